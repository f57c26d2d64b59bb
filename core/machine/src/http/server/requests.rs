//! Handles incoming requests.

use mcp_sansio_collections::Key;
use mcp_sansio_sync::Arc;

use crate::http::media::Accepted;
use crate::http::{ExchangeId, HttpRejection, RequestHead, Response, SessionId};
use crate::jsonrpc::RequestId;
use crate::peer::Event;
use crate::peer::RequestHandle;
use crate::{Caller, Instant};

use super::callers::CallerHandle;
use super::callers::Sender;
use super::exchange::{Exchange, State};
use super::posts::{Handled, ONLY, named_request};
use super::reader::{
    Body, ParsedBody, Post, Posted, ReadRequest, Route, closing, empty_frame, take_refusal,
};
use super::{Exhausted, Server, SharedResource};

impl Server {
    /// Handles a complete request, and returns an event if the application has to know of it.
    ///
    /// `caller` is the authenticated sender. If it is [anonymous](Caller::ANONYMOUS), the head
    /// should contain the remote address, see [`RequestHead::remote_address`]. The exchange exists
    /// until its response is complete or its client has disconnected.
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let mut request = self.reader.read(head, body, caller);
        self.handle_read_request(head, &mut request, &|_| Ok(()), now)
    }

    /// Handles a request that its [reader](Self::reader) has read, if `permit` allows it. The
    /// request is borrowed, because it is large; it is used up. `permit` is called before the
    /// request has any effect, with the parsed body, or with `None` if there is no body or it
    /// contains no message. Its refusal is sent as the complete response.
    pub fn handle_read_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        request: &mut ReadRequest<'f>,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        self.observe_head(head);
        let (text, caller) = (request.text, &request.caller.clone());
        let handled = match self.check_room(head, request) {
            Err(refused) => Err(refused),
            Ok(()) if self.shared.is_some() => {
                self.handle_shared(head, request, caller, permit, now)
            }
            Ok(()) => self.handle_routed(head, request, caller, permit, now),
        };
        handled.unwrap_or_else(|refused| {
            self.observe_refusal(text, caller, &refused);
            (self.respond_whole(refused), None)
        })
    }

    /// Checks again what may have changed since the request was read.
    fn check_room(
        &self,
        head: &RequestHead<'_>,
        request: &ReadRequest<'_>,
    ) -> Result<(), Response> {
        let Ok(route) = &request.route else { return Ok(()) };
        if self.pending_exchanges() >= self.options.limits.exchanges_max_if(request.asks()) {
            return Err(SharedResource::Exchanges.refusal(Exhausted::Total).to_response(None));
        }
        let new_stream = matches!(route, Route::Get | Route::EventStream);
        if self.closing && new_stream && head.last_event_id.is_none() {
            return Err(closing(None));
        }
        Ok(())
    }

    /// Sets the id of the next session.
    pub(crate) const fn draw_next_session(&mut self, id: Option<SessionId>) {
        self.session_ids.draw_next(id);
    }

    /// Returns the id of the session opened since the last call.
    pub(crate) const fn take_drawn_session(&mut self) -> Option<SessionId> {
        self.session_ids.take_drawn()
    }

    /// Handles a request for which there is room.
    pub(super) fn handle_routed<'f>(
        &mut self,
        head: &RequestHead<'_>,
        request: &mut ReadRequest<'f>,
        caller: &Caller,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let asks = request.asks();
        let ReadRequest { text, route, body: parsed, posted, served, .. } = request;
        let route = match route {
            Ok(route) => *route,
            Err(refused) => return Err(take_refusal(refused)),
        };
        if let Some(parsed) = parsed {
            let permitted = permit(parsed.as_ref().ok());
            let body = match parsed {
                Ok(ParsedBody { frame, read }) => Body {
                    frame: Ok(core::mem::replace(frame, empty_frame())),
                    read: read.as_mut(),
                },
                Err(malformed) => Body { frame: Err(malformed.clone()), read: None },
            };
            if let (Posted::Request(Ok(reading)), Some(served)) = (&mut *posted, served)
                && !Arc::ptr_eq(&served.config.catalog, &self.server_config.catalog)
            {
                // The catalog was edited since.
                reading.found = None;
            }
            let request = named_request(&body.frame);
            permitted.map_err(|refusal| refusal.to_response(request))?;
            let identity = caller;
            let caller = self.enter(head, identity, asks, request)?;
            let sender = Sender { identity, caller, accepted: head.accepted() };
            let post = Post { body, posted: &mut *posted };
            let handled = match route {
                Route::Message => self.message(head, post.body, sender, now),
                _ if self.shared.is_some() => self.post_shared(head, text, post, sender, now),
                _ => self.post(head, post, sender, now),
            };
            *posted = Posted::InSession;
            self.callers.close_exchange(caller);
            return handled;
        }
        permit(None).map_err(|refusal| refusal.to_response(None))?;
        let identity = caller;
        let caller = self.enter(head, identity, asks, None)?;
        // The response is an event stream, or empty.
        let accepted = Accepted { json: false, event_stream: true };
        let sender = Sender { identity, caller, accepted };
        let exchange = match route {
            Route::Get if self.shared.is_some() => self.get_shared(head, sender, now),
            Route::Get => self.get(head, sender, now),
            Route::Delete if self.shared.is_some() => {
                self.delete_shared(head, identity.principal(), now)
            }
            Route::Delete => self.delete(head, identity.principal(), now),
            _ => self.open_event_stream(sender, now),
        };
        self.callers.close_exchange(caller);
        Ok((exchange?, None))
    }

    /// Returns the caller of a request if its limit allows another one. The request counts while it
    /// is handled, and then as long as its exchange exists.
    #[inline]
    fn enter(
        &mut self,
        head: &RequestHead<'_>,
        identity: &Caller,
        asks: bool,
        request: Option<&RequestId>,
    ) -> Result<Option<Key>, Response> {
        let caller = self.callers.enter(identity.principal(), head.remote);
        let held = caller.map_or(0, |caller| self.callers.exchanges(caller));
        if asks && held > self.options.limits.exchanges_per_caller_max {
            self.callers.close_exchange(caller);
            return Err(SharedResource::Exchanges.refusal(Exhausted::Share).to_response(request));
        }
        Ok(caller)
    }

    /// Opens an exchange that counts against its caller's limit.
    #[inline]
    pub(super) fn open_exchange(&mut self, mut exchange: Exchange, caller: Option<Key>) -> Key {
        exchange.caller = caller;
        self.callers.open_exchange(caller);
        self.insert_exchange(exchange)
    }

    /// Adds an exchange, or continues one that has waited for the store.
    #[inline]
    pub(super) fn insert_exchange(&mut self, exchange: Exchange) -> Key {
        self.exchanges_over += usize::from(exchange.is_over);
        if let Some(shared) = &mut self.shared
            && let Some(key) = shared.take_waiting_exchange()
        {
            return self.replace_exchange(key, exchange);
        }
        let key = self.exchanges.insert(exchange);
        self.reader.set_exchanges(self.pending_exchanges());
        key
    }

    /// Returns how many exchanges count against the limit: those of a client that is refused do not,
    /// or it would take the place of another.
    pub(super) const fn pending_exchanges(&self) -> usize {
        self.exchanges.len() - self.exchanges_over
    }

    /// Removes an exchange that has ended.
    // Inlined, because an exchange is large and most of it is not needed any more.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: a copy of an exchange less")]
    pub(super) fn remove_exchange(&mut self, key: Key) -> Option<Exchange> {
        let exchange = self.exchanges.remove(key)?;
        self.exchanges_over -= usize::from(exchange.is_over);
        self.reader.set_exchanges(self.pending_exchanges());
        self.callers.close_exchange(exchange.caller);
        let (admitted, handler) = exchange.admitted;
        (0..admitted).for_each(|_| self.end_handler(handler));
        Some(exchange)
    }

    /// Checks that another handler may run for a request, according to
    /// [`handlers_max`](super::ServerLimits::handlers_max) and
    /// [`handlers_per_caller_max`](super::ServerLimits::handlers_per_caller_max), and counts it until
    /// its exchange ends. If it runs longer, call [`begin_handler`](Self::begin_handler); if it has
    /// ended, [`release_handler`](Self::release_handler).
    ///
    /// # Errors
    ///
    /// There is no room: [refuse](Self::refuse) the request with this.
    pub fn admit_handler(&mut self, request: RequestHandle) -> Result<(), HttpRejection> {
        let limits = &self.options.limits;
        let caller = self.connections.get(request.connection).and_then(|it| it.caller);
        let own = caller.map_or(0, |caller| self.callers.handlers(caller));
        if own >= limits.handlers_per_caller_max {
            return Err(SharedResource::Handlers.refusal(Exhausted::Share));
        }
        if self.handlers >= limits.handlers_max {
            return Err(SharedResource::Handlers.refusal(Exhausted::Total));
        }
        // Otherwise all requests that arrive before the first of their handlers waits would pass.
        if let Some(exchange) = self.exchange_of(request) {
            exchange.admitted = (exchange.admitted.0 + 1, CallerHandle(caller));
            self.callers.begin_handler(caller);
            self.handlers += 1;
        }
        Ok(())
    }

    /// Stops counting a handler that was [admitted](Self::admit_handler).
    pub fn release_handler(&mut self, request: RequestHandle) {
        let exchange = self.exchange_of(request).filter(|exchange| exchange.admitted.0 > 0);
        if let Some(exchange) = exchange {
            exchange.admitted.0 -= 1;
            let (_, handler) = exchange.admitted;
            self.end_handler(handler);
        }
    }

    /// Counts a running handler, also against the caller of its request, until
    /// [`end_handler`](Self::end_handler) is called with the returned handle. Returns `None` if the
    /// request is gone, and nothing is counted.
    pub fn begin_handler(&mut self, request: RequestHandle) -> Option<CallerHandle> {
        self.release_handler(request);
        let caller = self.connections.get(request.connection)?.caller;
        self.callers.begin_handler(caller);
        self.handlers += 1;
        Some(CallerHandle(caller))
    }

    /// Stops counting a handler that has ended or was abandoned.
    pub fn end_handler(&mut self, caller: CallerHandle) {
        self.callers.end_handler(caller.0);
        self.handlers -= 1;
    }

    /// Opens an exchange with a complete response. It is sent immediately, and counts against no
    /// caller's limit.
    pub(super) fn respond_whole(&mut self, response: Response) -> ExchangeId {
        let exchange = Exchange::new(None, ONLY, State::Whole(response));
        let key = self.insert_exchange(Exchange { is_over: true, ..exchange });
        self.make_ready(key);
        ExchangeId(key)
    }
}
