//! Servers that require a token.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::catalog::{Catalog, Item};
use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, Location, ParsedBody, ProofId, ReadRequest, RemoteAddress,
    RequestHead, Response, StoreError,
};
use mcp_sansio::peer::Event;
use mcp_sansio::{Caller, Instant, Method};
use mcp_sansio_oauth::protected_resource::{
    DpopProof, Grant, ItemLookup, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_sync::Mutex;

use super::executor::PanicGuard;
use super::function::Callback;
use super::http_server::{HttpServer, HttpServerMachine};
use super::reply::HandlerError;
use super::server::{Server, UnixTime};
use super::server_card::ServerCard;
use super::threading::{Step, ThreadSafe, Threading};

/// What a server answers before a request on HTTP reaches its machine.
pub(super) struct HttpHandlers<K: Threading> {
    pub(super) protection: Option<Protection<K>>,
    refused_tokens: Option<RefusalObserver>,
    pub(super) card: Option<Arc<ServerCard>>,
}

impl<K: Threading> Default for HttpHandlers<K> {
    fn default() -> Self {
        Self { protection: None, refused_tokens: None, card: None }
    }
}

impl<K: Threading> Clone for HttpHandlers<K> {
    fn clone(&self) -> Self {
        Self {
            protection: self.protection.clone(),
            refused_tokens: self.refused_tokens.clone(),
            card: self.card.clone(),
        }
    }
}

/// Observes failed token checks: the cause, and the sender of the request.
type RefusalObserver = Arc<dyn Fn(&str, &Caller) + Send + Sync>;

/// The token requirements of a server on HTTP, and the function that checks tokens.
pub(super) struct Protection<K: Threading> {
    resource: Arc<ProtectedResource>,
    function: K::Callback<TokenCheck, Step<K, TokenResult>>,
}

impl<K: Threading> Protection<K> {
    /// Allows requests to the host of the resource, which is where its clients send them.
    pub(super) fn with_host(&self, options: HttpServerOptions) -> HttpServerOptions {
        let location = Location::parse(self.resource.uri().as_str());
        let allow = |location: Location| options.clone().allow_host(location.authority()).ok();
        location.ok().and_then(allow).unwrap_or(options)
    }
}

impl<K: Threading> Clone for Protection<K> {
    fn clone(&self) -> Self {
        Self { resource: Arc::clone(&self.resource), function: self.function.clone() }
    }
}

/// The decision about a request after its head was read.
#[derive(Debug)]
pub enum TokenRequirement<K: Threading = ThreadSafe> {
    /// The server requires no token.
    NotNeeded,
    /// The request carries a token. Poll the check outside of any lock, for at most
    /// [`TokenCheckFuture::time`].
    Check(TokenCheckFuture<K>),
    /// Send this response, and do not read the body.
    Respond(Response),
}

/// A token check in progress. Resolves to the grant of the request, or to the response that refuses
/// it.
///
/// Dropping it abandons the request. Until then it counts as one of the concurrent
/// [checks](ProtectedResource::checks_max).
pub struct TokenCheckFuture<K: Threading = ThreadSafe> {
    protection: Protection<K>,
    unix_time: UnixTime,
    state: State<K>,
    proof: Option<DpopProof>,
    guard: PanicGuard,
    /// Counts the check among those of its server, until it is dropped.
    _share: Arc<()>,
    /// The outcome for the observer if the check fails.
    observed: Option<Box<mcp_sansio::http::RefusedHead>>,
    /// The observer of failed checks, with the sender.
    refused: Option<(RefusalObserver, Caller)>,
}

/// Counts token checks in progress: each holds a reference.
#[derive(Debug, Default)]
pub(super) struct CheckCount(Arc<()>);

enum State<K: Threading> {
    Asked(TokenCheck),
    Running(K::Future<TokenResult>),
    Over,
}

impl<K: Threading> Server<K> {
    /// Protects the server on HTTP: each request needs a token of one of the authorization servers
    /// that `resource` names, and `check` verifies it. Clients discover automatically where to get
    /// a token.
    ///
    /// `check` verifies that the token is genuine and comes from one of the issuers. The core then
    /// checks that it is meant for this resource, has not expired, and has the scopes that a
    /// request needs. Requests may name the host of the resource, in addition to the hosts of the
    /// options. `check` is called for every request, before the body is read; it never sees a
    /// malformed token.
    ///
    /// Tokens expire by the clock of the adapter, or by [`unix_time`](Self::unix_time); without
    /// either, requests are answered with 503.
    ///
    /// Sessions, sealed states and tasks belong to the principal of the token, and handlers see it.
    /// Byte streams are not affected: there the client is the process that started the server.
    ///
    /// ```
    /// use mcp_sansio::{Caller, Principal};
    /// use mcp_sansio_oauth::protected_resource::{ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken};
    /// use mcp_sansio_handlers::{Server, TokenRequirement};
    /// use mcp_sansio::http::{RequestHead, HttpServerOptions};
    /// use mcp_sansio::peer::Status;
    /// # struct Claims { sub: &'static str, aud: String, scope: &'static str, exp: u64 }
    /// # async fn verify(check: &TokenCheck) -> Option<Claims> {
    /// #     let aud = check.resource().to_owned();
    /// #     (check.token() == "good").then(|| Claims { sub: "ann", aud, scope: "use", exp: 2_000 })
    /// # }
    /// # fn unix_time() -> u64 { 1_000 }
    ///
    /// let issuer = "https://auth.example.com";
    /// let resource =
    ///     ProtectedResource::new("https://mcp.example.com/mcp", [issuer])?.base_scopes(["use"])?;
    /// let server = Server::new("files", "1.0.0").protect(resource, async |check: TokenCheck| {
    ///     // The signature, the issuer: whatever makes it a token.
    ///     let claims = verify(&check).await.ok_or(TokenRefusal::Invalid)?;
    ///     Ok(VerifiedToken::new(Principal::new(claims.sub))
    ///         .audiences([claims.aud])
    ///         .scope(claims.scope)
    ///         .expires_at(claims.exp))
    /// });
    ///
    /// // What an adapter does with it:
    /// let mut http = server.http(HttpServerOptions::new(), [0; 32], 0)?;
    /// http.set_unix_time(Box::new(unix_time));
    /// let mut head = RequestHead::new("POST", "/mcp");
    /// head.field("host", b"localhost");
    /// let TokenRequirement::Respond(refused) = http.authorize(&head, &Caller::ANONYMOUS) else { unreachable!() };
    /// assert_eq!(refused.head.status, Status::UNAUTHORIZED);
    ///
    /// head.field("authorization", b"Bearer good");
    /// let TokenRequirement::Check(checking) = http.authorize(&head, &Caller::ANONYMOUS) else { unreachable!() };
    /// # let mut checking = Box::pin(checking);
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(checked) = checking.as_mut().poll(&mut cx) else { panic!() };
    /// # let checking = std::future::ready(checked);
    /// # let run = async {
    /// let grant = checking.await.map_err(|refused| refused.head.status)?;
    /// assert_eq!(grant.scopes(), ["use"]);
    /// # Ok::<(), Status>(()) };
    /// # let mut run = std::pin::pin!(run);
    /// # assert!(matches!(run.as_mut().poll(&mut cx), std::task::Poll::Ready(Ok(()))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-003]
    #[must_use]
    pub fn protect<M>(
        mut self,
        resource: ProtectedResource,
        check: impl Callback<K, TokenCheck, TokenResult, M>,
    ) -> Self {
        self.functions().http.protection =
            Some(Protection { resource: Arc::new(resource), function: check.into_callback() });
        self
    }
}

impl<K: Threading> Server<K> {
    /// Observes the tokens of a [protected](Self::protect) server that are refused or cannot be
    /// checked, for a log: `observer` gets the cause, with that of
    /// [`TokenRefusal::because`], and the sender of the request. Clients are told neither. Requests
    /// without a token are not shown: that is how clients learn that they need one.
    ///
    /// ```
    /// # use mcp_sansio_handlers::Server;
    /// let server = Server::new("files", "1.0.0").observe_refused_tokens(|cause, sender| {
    ///     let address = sender.remote_address().map(|address| address.ip());
    ///     eprintln!("refused a token from {address:?}: {cause}");
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn observe_refused_tokens(
        mut self,
        observer: impl Fn(&str, &Caller) + Send + Sync + 'static,
    ) -> Self {
        self.functions().http.refused_tokens = Some(Arc::new(observer));
        self
    }
}

impl<K: Threading> HttpServer<K> {
    /// Returns the protected resource, if the server is [protected](Server::protect): for adapters
    /// and tests that create the [`Grant`] of a request themselves.
    #[must_use]
    pub fn resource(&self) -> Option<&Arc<ProtectedResource>> {
        self.endpoint.handlers.http.protection.as_ref().map(|it| &it.resource)
    }

    /// Decides about a request before its body is read and before [`admit`](Self::admit): check its
    /// token, or respond at once. On a server that is not [protected](Server::protect) it returns
    /// [`TokenRequirement::NotNeeded`].
    ///
    /// `sender` is the sender as the connection or an earlier layer has identified it, with what
    /// surrounds the request: see [`TokenCheck::sender`]. The caller of the request is the grant
    /// [in its place](Caller::in_place_of).
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012]
    pub fn authorize(&self, head: &RequestHead<'_>, sender: &Caller) -> TokenRequirement<K> {
        if let Some(card) = &self.endpoint.handlers.http.card
            && let Some(response) = card.respond(head)
        {
            return TokenRequirement::Respond(response);
        }
        let Some(protection) = &self.endpoint.handlers.http.protection else {
            return TokenRequirement::NotNeeded;
        };
        if let Some(metadata) = protection.resource.respond(head) {
            return TokenRequirement::Respond(metadata);
        }
        let observed = self.reader().observe_refused_head(head);
        let refuse = |refused: Response| {
            if let Some(observed) = &observed {
                observed.report(&refused);
            }
            TokenRequirement::Respond(refused)
        };
        if let Err(refused) = self.reader().locate(head) {
            return refuse(refused);
        }
        let unavailable = |cause: &str| {
            if let Some(observer) = &self.endpoint.handlers.http.refused_tokens {
                let _panicked = self.endpoint.guard.run(|| observer(cause, sender));
            }
            refuse(protection.resource.unavailable().to_response(None))
        };
        let Some(unix_time) = self.endpoint.handlers.unix_time.clone() else {
            return unavailable("the server has no clock: set `Server::unix_time`");
        };
        // Counted before it is allowed, because checks run outside of the lock.
        let share = Arc::clone(&self.checks.0);
        match protection.resource.extract_token(head, unix_time()) {
            // One reference belongs to the counter.
            Ok(_) if Arc::strong_count(&share) > protection.resource.concurrent_checks() + 1 => {
                unavailable("too many token checks are in progress")
            }
            Ok(check) => TokenRequirement::Check(TokenCheckFuture {
                protection: protection.clone(),
                unix_time,
                proof: check.proof().cloned(),
                state: State::Asked(check.with_sender(sender.clone())),
                guard: self.endpoint.guard,
                _share: share,
                observed: observed.map(Box::new),
                refused: {
                    let observer = self.endpoint.handlers.http.refused_tokens.clone();
                    observer.map(|observer| (observer, sender.clone()))
                },
            }),
            Err(refusal) => refuse(refusal.to_response(None)),
        }
    }

    /// Records the proof of a request whose token was [checked](Self::authorize), if nodes share a
    /// store: await it before [`handle_request`](Self::handle_request), because another node may
    /// have accepted the proof before. Resolves to the response that refuses the request then, or if
    /// the store cannot tell. `None` if there is nothing to record.
    pub fn record_proof(
        &mut self,
        grant: &Grant,
        now: Instant,
    ) -> Option<impl Future<Output = Result<(), Response>> + use<K>> {
        let (proof, expires_at) = grant.used_proof()?;
        self.endpoint.handlers.http.protection.as_ref()?;
        let left = expires_at.saturating_sub(self.unix_time()).max(1);
        let (ttl, caller) = (Duration::from_secs(left), Caller::from(grant.clone()));
        let id = self.endpoint.machine.record_proof(proof.into(), ttl, &caller, now)?;
        let slot = Arc::<ProofSlot>::default();
        self.proofs.0.insert(id, Arc::clone(&slot));
        let grant = grant.clone();
        Some(poll_fn(move |cx| {
            let waker = cx.waker().clone();
            let (recorded, before) = slot.0.lock(|reply| {
                let before = reply.waiting.replace(waker);
                (reply.outcome.take(), before)
            });
            drop(before);
            let Some(recorded) = recorded else { return Poll::Pending };
            let refused = match recorded {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(StoreError::Refused) => grant.repeated_proof(),
                Err(_) => grant.unrecorded_proof(),
            };
            Poll::Ready(Err(refused.to_response(None)))
        }))
    }

    /// Returns the time of day. Without a clock no token was checked, and each counts as expired.
    fn unix_time(&self) -> u64 {
        self.endpoint.handlers.unix_time.as_ref().map_or(u64::MAX, |unix_time| unix_time())
    }

    /// Handles a complete request to a protected server, whose caller must be the grant of
    /// [`authorize`](Self::authorize).
    pub(super) fn handle_protected<'f>(
        &mut self,
        protection: &Protection<K>,
        head: &RequestHead<'_>,
        request: &mut ReadRequest<'f>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let resource = Arc::clone(&protection.resource);
        let caller = &request.caller().clone();
        let Some(grant) = caller.credentials().filter(|it: &&Grant| it.is_for(&resource)) else {
            let refuse = &|_: Option<&ParsedBody<'_>>| Err(resource.no_token());
            let machine = &mut self.endpoint.machine;
            return machine.handle_read_request(head, request, refuse, now);
        };
        let left = |end: u64| Duration::from_secs(end.saturating_sub(self.unix_time()));
        let deadline = grant.expires_at().map(|end| now + left(end));
        let catalog = self.endpoint.machine.shared_catalog();
        let machine = &mut self.endpoint.machine;
        let session = catalog.sessions().next().and_then(|_| machine.session_key(head, caller));
        let items = Items { catalog: &catalog, caller: &caller.clone().with_session(session) };
        let (exchange, event) = machine.handle_read_request(
            head,
            request,
            &|body| grant.check_with(body, Some(&items)),
            now,
        );
        // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-001]: messages after the
        // expiry require a new token.
        if let Some(deadline) = deadline {
            self.endpoint.machine.set_expiry(exchange, deadline);
        }
        (exchange, event)
    }
}

/// The items of a catalog, for the check of a token.
struct Items<'a> {
    catalog: &'a Catalog,
    caller: &'a Caller,
}

impl ItemLookup for Items<'_> {
    fn template_of(&self, uri: &str) -> Option<String> {
        let found = self.catalog.find_template(uri);
        let found = found.filter(|_| self.catalog.resource(uri).is_none());
        match self.catalog.item(found?.template())? {
            Item::ResourceTemplate(template) => Some(template.uri_template.clone()),
            _ => None,
        }
    }

    fn scopes_of(&self, method: &str, subject: &str) -> Vec<String> {
        let method = Method::parse(method);
        let audience = method.and_then(|method| self.catalog.audience_of(method, subject));
        // An item of other callers stays hidden: no scope would help.
        let audience = audience.filter(|it| it.includes_with_scopes(self.caller));
        audience.map(|audience| audience.scopes().to_vec()).unwrap_or_default()
    }
}

impl<K: Threading> TokenCheckFuture<K> {
    /// Returns how long the check may take. After that send [`unchecked`](Self::unchecked).
    #[must_use]
    pub fn time(&self) -> Duration {
        self.protection.resource.check_timeout()
    }

    /// Returns the response to a request whose token could not be checked in time.
    #[must_use]
    pub fn unchecked(&self) -> Response {
        self.show(&format_args!("the check took longer than {:?}", self.time()));
        let refused = self.protection.resource.unavailable().to_response(None);
        if let Some(observed) = &self.observed {
            observed.report(&refused);
        }
        refused
    }
}

impl<K: Threading> TokenCheckFuture<K> {
    /// Shows a failed check to its observer.
    fn show(&self, cause: &dyn fmt::Display) {
        if let Some((observer, sender)) = &self.refused {
            let _panicked = self.guard.run(|| observer(&cause.to_string(), sender));
        }
    }
}

impl<K: Threading> Future for TokenCheckFuture<K> {
    type Output = Result<Grant, Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { protection, unix_time, state, proof, guard, .. } = &mut *self;
        let unavailable = || Err(TokenRefusal::Unavailable.because("the check panicked"));
        let checked = loop {
            match core::mem::replace(state, State::Over) {
                State::Asked(check) => match guard.run(|| (protection.function)(check)) {
                    Ok(Step::Ready(checked)) => break checked,
                    Ok(Step::Pending(task)) => *state = State::Running(task),
                    Err(_) => break unavailable(),
                },
                State::Running(mut task) => match guard.run(|| Pin::new(&mut task).poll(cx)) {
                    Ok(Poll::Ready(checked)) => {
                        guard.drop(task);
                        break checked;
                    }
                    Ok(Poll::Pending) => {
                        *state = State::Running(task);
                        return Poll::Pending;
                    }
                    Err(_) => {
                        guard.drop(task);
                        break unavailable();
                    }
                },
                State::Over => break unavailable(),
            }
        };
        let (resource, unix_time) = (&protection.resource, unix_time());
        let cause = checked.as_ref().err().map(ToString::to_string);
        // The application verifies the signature of a proof.
        let granted = guard.run(|| Grant::with_proof(resource, checked, proof.as_ref(), unix_time));
        let granted = granted.unwrap_or_else(|_| Err(resource.unavailable()));
        if let Err(refusal) = &granted {
            self.show(&cause.as_deref().unwrap_or(&refusal.error.message));
        }
        let granted = granted.map_err(|refusal| refusal.to_response(None));
        if let (Err(refused), Some(observed)) = (&granted, &self.observed) {
            observed.report(refused);
        }
        Poll::Ready(granted)
    }
}

mcp_sansio::partial_debug! { impl<K: Threading> Debug for TokenCheckFuture<K> { .. } }

// ------------------------------------------------------------------ result of a check

/// The result of a token check.
pub type TokenResult = Result<VerifiedToken, TokenRefusal>;

// ------------------------------------------------------------------ what surrounds a request

impl super::context::Context {
    /// Returns a header field of the HTTP request, if the server
    /// [keeps](mcp_sansio::http::HttpServerOptions::keep_headers) it and the client sent it: see
    /// [`Caller::header`]. `None` on a byte stream.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.caller.header(name)
    }

    /// Returns the address that the HTTP request came from, if the adapter knows it: see
    /// [`Caller::remote_address`].
    #[must_use]
    pub fn remote_address(&self) -> Option<RemoteAddress> {
        self.caller.remote_address()
    }
}

impl super::middleware::ServerRequest {
    /// Returns a header field of the HTTP request: see
    /// [`Context::header`](crate::Context::header).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.caller().header(name)
    }

    /// Returns the address that the HTTP request came from: see
    /// [`Context::remote_address`](crate::Context::remote_address).
    #[must_use]
    pub fn remote_address(&self) -> Option<RemoteAddress> {
        self.caller().remote_address()
    }
}

// ------------------------------------------------------------------ permissions of a client

impl super::context::Context {
    /// Returns the scopes of the client's token: an empty slice on byte streams, and on servers
    /// that are not [protected](super::Server::protect).
    ///
    /// To make an access decision, use [`require_scopes`](Self::require_scopes), which knows which
    /// scopes imply which.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        self.caller.scopes()
    }

    /// Requires that the client's token has all of these scopes, or others that imply them. Use it
    /// when a request turns out to need more scopes: ask for all of them in one call, and before
    /// anything is sent, because only then HTTP can tell the client to return with another token.
    ///
    /// On a byte stream everything is allowed, as there are no tokens. Over HTTP a server that is
    /// not [protected](super::Server::protect) allows nothing.
    ///
    /// # Errors
    ///
    /// The token lacks a scope. Return the error from the handler to tell the client.
    // MCP 2026-07-28 basic/authorization/index#runtime-insufficient-scope-errors [AUTHS-015] [AUTHS-018]
    pub fn require_scopes(&self, scopes: &[&str]) -> Result<(), HandlerError> {
        match self.caller.credentials::<Grant>() {
            Some(grant) => {
                grant.require(scopes).map_err(|refusal| HandlerError::Refused(Box::new(refusal)))
            }
            // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-003]
            None if self.caller.is_owner() => Ok(()),
            None => Err(HandlerError::failed("this server checks no tokens")),
        }
    }
}

// ------------------------------------------------------------------ requests whose proof is being recorded in the store of several nodes

/// The proofs that are being recorded.
#[derive(Debug, Default)]
pub(super) struct ProofReplies(pub(super) BTreeMap<ProofId, Arc<ProofSlot>>);

/// The reply to one request to record a proof.
#[derive(Debug, Default)]
pub(super) struct ProofSlot(pub(super) Mutex<ProofReply>);

/// The reply, once it has arrived, and the task that waits for it.
#[derive(Debug, Default)]
pub(super) struct ProofReply {
    pub(super) outcome: Option<Result<(), StoreError>>,
    pub(super) waiting: Option<Waker>,
}

impl ProofReplies {
    /// Tells the outcomes that the machine knows.
    pub(super) fn complete_all(&mut self, machine: &mut HttpServerMachine) {
        while let Some((proof, result)) = machine.poll_proof() {
            self.complete(proof, result);
        }
    }

    fn complete(&mut self, proof: ProofId, result: Result<(), StoreError>) {
        let Some(slot) = self.0.remove(&proof) else { return };
        let waker = slot.0.lock(|reply| {
            reply.outcome = Some(result);
            reply.waiting.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
