use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::future::{pending, poll_fn};
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::http::{
    Admission, AuthorizationField, ExchangeId, HttpServerOptions, RequestHead, RequestReader,
    Response, ServerTransmit,
};
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::{Caller, ErrorCode, Instant};
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerPoll, HttpServer, PendingHandler};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Local, Server, ServerHandle, TokenRequirement};

use crate::polled::Woken;
use crate::{Clock, NextPoll};

/// Who may use a server on HTTP, in addition to the checks of `Host` and `Origin`.
///
/// Those protect against web pages: a page that the user visits can reach each device of its
/// network, but cannot choose these header fields. They do not protect against other programs in
/// the network, which can send any header field.
#[derive(Clone)]
#[non_exhaustive]
pub enum HttpAccess {
    /// Programs on this device: connections whose
    /// [remote address](crate::HttpConnection::set_remote_address) is a loopback address. Others
    /// are refused with 403.
    Loopback,
    /// Clients that send this token as `Authorization: Bearer TOKEN`: a secret that was entered
    /// during the pairing, or is printed on the device. Others are refused with 401.
    ///
    /// At least [`TOKEN_LENGTH_MIN`](Self::TOKEN_LENGTH_MIN) visible ASCII characters, because
    /// nothing limits how often a client may guess. Without TLS it is sent in clear: anyone who can
    /// listen on the network can use it.
    Token(String),
    /// Everyone who can reach the device.
    Anyone,
}

impl HttpAccess {
    /// The minimum length of a token, in bytes. 16: 64 bits if they are hexadecimal digits.
    pub const TOKEN_LENGTH_MIN: usize = 16;

    /// Checks who sent a request. Takes the same time for all tokens of the same length.
    fn check(&self, head: &RequestHead<'_>, caller: &Caller) -> Result<(), HttpRejection> {
        let refusal = |status, message| {
            HttpRejection::new(status, ErrorObject::new(ErrorCode::INVALID_REQUEST, message))
        };
        match self {
            Self::Anyone => Ok(()),
            Self::Loopback => {
                let is_loopback = caller.remote_address().is_some_and(|it| it.ip().is_loopback());
                let message = "this server is only for programs on the same device";
                if is_loopback { Ok(()) } else { Err(refusal(Status::FORBIDDEN, message)) }
            }
            Self::Token(token) => {
                // RFC 6750, sections 2.1 and 3
                let (challenge, message) = match head.authorization() {
                    AuthorizationField::One(value) if is_bearer(value, token) => return Ok(()),
                    AuthorizationField::None => ("Bearer", "the request has no token"),
                    _ => ("Bearer error=\"invalid_token\"", "the token is not that of this device"),
                };
                Err(refusal(Status::UNAUTHORIZED, message).challenge(challenge))
            }
        }
    }
}

impl fmt::Debug for HttpAccess {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "Loopback",
            Self::Token(_) => "Token(..)",
            Self::Anyone => "Anyone",
        })
    }
}

/// Whether the value of `Authorization` contains the token.
fn is_bearer(value: &[u8], token: &str) -> bool {
    let Some((scheme, sent)) = value.split_at_checked("Bearer ".len()) else { return false };
    let (sent, token) = (sent.trim_ascii(), token.as_bytes());
    let differing = sent.iter().zip(token).fold(0, |bits, (a, b)| black_box(bits | (a ^ b)));
    scheme.eq_ignore_ascii_case(b"Bearer ") && sent.len() == token.len() && differing == 0
}

/// Why a server or a connection cannot be served over HTTP: a configuration error of the application.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpServiceError {
    /// The options allow hosts other than those of the device, so its clients are on a network, but
    /// the access is [`HttpAccess::Loopback`].
    #[error(
        "the options allow hosts of a network: require a token with `HttpAccess::Token`, or allow \
         everyone with `HttpAccess::Anyone`"
    )]
    NeedsToken,
    /// The token is shorter than [`HttpAccess::TOKEN_LENGTH_MIN`], or has bytes that a header field
    /// cannot transmit.
    #[error("the token must be at least 16 visible ASCII characters")]
    InvalidToken,
    /// The server is [protected](Server::protect): devices do not check tokens of authorization
    /// servers.
    #[error("the server is protected by an authorization server: use `HttpAccess::Token`")]
    Protected,
    /// [`HttpBuffers::input`] is too short.
    #[error("the input buffer of a connection must have at least 256 bytes")]
    ShortInput,
    /// [`HttpBuffers::output`] is too short.
    #[error("the output buffer of a connection must be 16 bytes longer than `chunk_bytes_max`")]
    ShortOutput,
    /// The server's catalog is invalid.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// The memory of a connection, which a program lends it.
#[derive(Debug)]
pub struct HttpBuffers<'b> {
    /// For the head of a request, and what follows it until it is handled. Its length, less 64
    /// bytes, limits a head: a longer one is refused with 431. Heads of the usual clients take 300
    /// to 700 bytes, a long token not included.
    pub input: &'b mut [u8],
    /// For the body of a request. Its length limits a body, in addition to
    /// [`ServerLimits::body_bytes_max`](mcp_sansio::http::ServerLimits): a longer one is refused
    /// with 413.
    pub body: &'b mut [u8],
    /// For the response: heads, bodies and events pass through it in parts. At least 16 bytes
    /// longer than [`ServerLimits::chunk_bytes_max`](mcp_sansio::http::ServerLimits).
    pub output: &'b mut [u8],
}

impl HttpBuffers<'_> {
    /// The longest framing of a chunk: its length in eight digits, and two line ends, rounded up.
    const FRAMING: usize = 16;

    /// Checks the lengths for chunks of at most `chunk` bytes.
    pub(crate) const fn check(&self, chunk: usize) -> Result<(), HttpServiceError> {
        if self.input.len() < 256 {
            return Err(HttpServiceError::ShortInput);
        }
        if self.output.len() < chunk.saturating_add(Self::FRAMING) {
            return Err(HttpServiceError::ShortOutput);
        }
        Ok(())
    }
}

/// A server on HTTP, with its handlers and timers, for the [connections](crate::HttpConnection) of
/// all its clients.
///
/// Drive it together with them: with [`poll`](Self::poll) in a bare loop, with [`run`](Self::run)
/// on an executor. It does no I/O.
pub struct HttpService<K: Threading = Local> {
    server: HttpServer<K>,
    reader: RequestReader,
    access: HttpAccess,
    pub(crate) head_timeout: Duration,
    pub(crate) stall_timeout: Duration,
    /// The handlers that wait for something. Their number is limited by `handlers_max`.
    handlers: Vec<PendingHandler<K>>,
    /// The wakers of connections, by the slot of their exchange.
    readers: Vec<Option<Waker>>,
    /// The waker of [`run`](Self::run).
    driver: Option<Waker>,
    /// The deadline that the driver waits for.
    armed: Option<Instant>,
    woken: Arc<Woken>,
}

impl<K: Threading> HttpService<K> {
    /// Creates a service. Give it [`ServerLimits::SMALL`](mcp_sansio::http::ServerLimits::SMALL)
    /// in the options, and the server [`Limits::SMALL`](crate::peer::Limits::SMALL).
    ///
    /// Clients that name the device in their URL by anything but `localhost` need that name or
    /// address among the [hosts](HttpServerOptions::allow_host) of the options.
    ///
    /// `secret` and `seed` are entropy: see [`Server::http`]. A device without a source of
    /// randomness must keep a secret of its own and a counter of its starts, and hash both.
    ///
    /// # Errors
    ///
    /// See [`HttpServiceError`].
    pub fn new(
        server: &Server<K>,
        options: HttpServerOptions,
        access: HttpAccess,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<Self, HttpServiceError> {
        match &access {
            HttpAccess::Loopback if !options.hosts_ref().is_of_this_machine() => {
                return Err(HttpServiceError::NeedsToken);
            }
            HttpAccess::Token(token)
                if token.len() < HttpAccess::TOKEN_LENGTH_MIN
                    || !token.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                return Err(HttpServiceError::InvalidToken);
            }
            _ => {}
        }
        let server = server.http(options, secret, seed)?;
        if server.resource().is_some() {
            return Err(HttpServiceError::Protected);
        }
        Ok(Self {
            reader: server.reader(),
            server,
            access,
            head_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(10),
            handlers: Vec::new(),
            readers: Vec::new(),
            driver: None,
            armed: None,
            woken: Arc::default(),
        })
    }

    /// Limits the time for a complete request head, from the start of the connection or the last
    /// response. 10 s by default, because few connections share a device.
    #[must_use]
    pub const fn head_timeout(mut self, time: Duration) -> Self {
        self.head_timeout = time;
        self
    }

    /// Limits the time for a client to read what one output buffer holds. After that, its
    /// connection is aborted. 10 s by default.
    #[must_use]
    pub const fn stall_timeout(mut self, time: Duration) -> Self {
        self.stall_timeout = time;
        self
    }

    /// Returns a handle to all clients, for use outside of handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Read access to the server.
    #[must_use]
    pub const fn server(&self) -> &HttpServer<K> {
        &self.server
    }

    /// Accepts no more requests, and ends open event streams: see
    /// [`http::Server::close`](mcp_sansio::http::Server). Poll until
    /// [`is_drained`](HttpServer::is_drained).
    pub fn close(&mut self, now: Instant) {
        self.server.close(now);
        self.wake();
    }

    /// Runs handlers and timers, in a bare loop. Poll the connections afterwards. Never returns
    /// [`NextPoll::Closed`].
    pub fn poll(&mut self, now: Instant) -> NextPoll {
        self.woken.reset();
        self.drive(&mut Context::from_waker(&self.waker()), now);
        if self.is_woken() { NextPoll::Now } else { NextPoll::Wait(self.server.poll_timeout()) }
    }

    /// Whether a handler was woken, or a connection has something to send, since the last
    /// [`poll`](Self::poll). Check it with interrupts disabled before sleeping.
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.woken.is_set()
    }

    /// Runs handlers and timers on an executor, forever. Run the connections concurrently.
    pub async fn run(service: &RefCell<Self>, clock: &impl Clock) {
        loop {
            let deadline = service.borrow().server.poll_timeout();
            let mut timer = pin!(async {
                match deadline {
                    Some(deadline) => clock.wait_until(deadline).await,
                    None => pending().await,
                }
            });
            poll_fn(|cx| {
                let mut service = service.borrow_mut();
                service.drive(cx, clock.now());
                service.driver = Some(cx.waker().clone());
                let changed = service.server.poll_timeout() != deadline;
                if changed { Poll::Ready(()) } else { timer.as_mut().poll(cx) }
            })
            .await;
        }
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.woken))
    }

    /// Wakes the driver of handlers and timers.
    fn wake(&mut self) {
        self.woken.set();
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Runs what can run at `now`.
    fn drive(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.server.poll_handlers(cx, now);
        if self.server.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.server.handle_timeout(now);
        }
        while let Some(call) = self.server.poll_call() {
            self.start(call, cx, now);
        }
        let mut index = 0;
        while let Some(handler) = self.handlers.get_mut(index) {
            match Pin::new(handler).poll_at(cx, now) {
                Poll::Pending => index += 1,
                Poll::Ready(output) => {
                    self.handlers.swap_remove(index);
                    if let Some(output) = output {
                        self.server.finish(output, now);
                    }
                    cx.waker().wake_by_ref();
                }
            }
        }
        while let Some(exchange) = self.server.poll_ready() {
            if let Some(reader) = self.readers.get_mut(exchange.slot()).and_then(Option::take) {
                reader.wake();
            }
        }
        self.armed = self.server.poll_timeout();
    }

    /// Calls a handler, and keeps it if it has to wait.
    fn start(&mut self, call: HandlerCall<'_, K>, cx: &mut Context<'_>, now: Instant) {
        match call.run() {
            HandlerPoll::Ready(output) => self.server.finish(output, now),
            HandlerPoll::Pending(mut handler) => match Pin::new(&mut handler).poll_at(cx, now) {
                Poll::Ready(Some(output)) => self.server.finish(output, now),
                Poll::Ready(None) => {}
                Poll::Pending => {
                    self.server.track(&handler);
                    self.handlers.push(handler);
                }
            },
        }
    }

    // ------------------------------------------------------------------ for connections

    /// Decides about a request before its body is read. `values` returns the values of a field.
    pub(crate) fn admit<'v, V: IntoIterator<Item = &'v [u8]>>(
        &self,
        head: &RequestHead<'_>,
        caller: Caller,
        values: impl Fn(&str) -> V,
    ) -> Result<(Admission, Caller), Response> {
        self.reader.locate(head)?;
        if let Err(refusal) = self.access.check(head, &caller) {
            return Err(refusal.to_response(None));
        }
        let caller = self.reader.attach_headers(caller, values)?;
        match self.server.authorize(head, &caller) {
            TokenRequirement::NotNeeded => {}
            TokenRequirement::Respond(response) => return Err(response),
            TokenRequirement::Check(check) => return Err(check.unchecked()),
        }
        Ok((self.reader.admit(head)?, caller))
    }

    pub(crate) const fn reader(&self) -> &RequestReader {
        &self.reader
    }

    /// Handles a complete request. A handler that does not wait has answered it afterwards.
    pub(crate) fn handle_request(
        &mut self,
        admission: Admission,
        head: &RequestHead<'_>,
        body: &[u8],
        caller: &Caller,
        now: Instant,
    ) -> ExchangeId {
        let mut request = self.reader.read_admitted(admission, head, body, caller);
        let (exchange, call) = self.server.handle_read_request(head, &mut request, now);
        if let Some(call) = call {
            // Polled again by the driver, which registers its own waker.
            self.start(call, &mut Context::from_waker(Waker::noop()), now);
        }
        self.wake();
        exchange
    }

    /// Returns the next output of an exchange. Without output, wakes the waker in `cx` later.
    pub(crate) fn poll_transmit(
        &mut self,
        exchange: ExchangeId,
        cx: &Context<'_>,
        now: Instant,
    ) -> Option<ServerTransmit<'_>> {
        let slot = exchange.slot();
        if self.readers.len() <= slot {
            self.readers.resize(slot + 1, None);
        }
        // Registered first, so that it is there whatever the exchange returns.
        self.readers[slot] = Some(cx.waker().clone());
        self.server.poll_transmit(exchange, now)
    }

    /// Wakes the driver for a deadline before the one that it waits for: output has deadlines too.
    pub(crate) fn update_timer(&mut self) {
        let next = self.server.poll_timeout();
        if next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed)) {
            self.wake();
        }
    }

    /// Handles the end of a connection whose response is not complete.
    pub(crate) fn disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.server.handle_disconnect(exchange, now);
        self.wake();
    }
}

mcp_sansio::partial_debug! { impl<K: Threading> Debug for HttpService<K> { access, .. } }
