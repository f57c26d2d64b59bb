//! Requests as they come in.

use mcp_sansio_collections::Key;

use crate::Instant;
#[cfg(feature = "recording")]
use crate::http::SessionId;
use crate::http::{ExchangeId, HttpRejection, Principal, RequestHead, Response};
use crate::jsonrpc::{Frame, Message, RequestId};
use crate::peer::Event;
use crate::peer::RequestHandle;
use crate::peer::server::Declared;

use super::Server;
use super::admission::{Route, too_many};
use super::body::{Body, ParsedBody};
use super::callers::CallerHandle;
use super::callers::Sender;
use super::exchange::{Exchange, State};
use super::posts::{Handled, ONLY, named_request};

impl Server {
    /// Takes a whole request, and returns what the application must know of it.
    ///
    /// `principal` says who sends it, where that has been verified; see [`Principal`]. Else the head
    /// says from where, see [`RequestHead::remote_address`]. The exchange
    /// stands until its response is complete or its client has gone.
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        self.handle_request_if(head, body, principal, &|_| Ok(()), now)
    }

    /// The same, if `permit` has nothing against it. It is shown the body, or `None` where there is
    /// none or it holds no message, before anything of the request is acted on; what it refuses is
    /// answered so, as a whole.
    pub fn handle_request_if<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let handled = self.handle_route(head, body, principal, permit, now);
        handled.unwrap_or_else(|refused| (self.respond_whole(refused), None))
    }

    /// The next session has this id.
    #[cfg(feature = "recording")]
    pub(crate) const fn draw_next_session(&mut self, id: Option<SessionId>) {
        self.session_ids.draw_next(id);
    }

    /// The id of the session that was opened since the last time.
    #[cfg(feature = "recording")]
    pub(crate) const fn take_drawn_session(&mut self) -> Option<SessionId> {
        self.session_ids.take_drawn()
    }

    fn handle_route<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let route = self.route(head)?;
        if body.len() > self.options.limits.body_bytes_max {
            return Err(self.body_too_long());
        }
        if matches!(route, Route::Post | Route::Message) {
            let prefix = self.declared.as_ref().map(Declared::cached_prefix).unwrap_or_default();
            let limits = self.server_config.parse_limits();
            let mut parsed = ParsedBody::parse_after(body, limits, prefix);
            let permitted = permit(parsed.as_ref().ok());
            let body = match parsed {
                Ok(ParsedBody { frame, ref mut read }) => {
                    Body { frame: Ok(frame), read: read.as_mut() }
                }
                Err(malformed) => Body { frame: Err(malformed), read: None },
            };
            let request = named_request(&body.frame);
            permitted.map_err(|refusal| refusal.to_response(request))?;
            // What needs no answer frees something more often than not.
            let asks =
                matches!(body.frame, Ok(Frame::Single(Message::Request(_)) | Frame::Batch(_)));
            let caller = self.enter(head, principal, asks, request)?;
            let sender = Sender { principal, caller };
            let handled = match route {
                Route::Message => self.message(head, body, sender, now),
                _ => self.post(head, body, sender, now),
            };
            self.callers.close_exchange(caller);
            return handled;
        }
        permit(None).map_err(|refusal| refusal.to_response(None))?;
        let caller = self.enter(head, principal, route != Route::Delete, None)?;
        let sender = Sender { principal, caller };
        let exchange = match route {
            Route::Get => self.get(head, sender, now),
            Route::Delete => self.delete(head, principal, now),
            _ => self.open_event_stream(sender, now),
        };
        self.callers.close_exchange(caller);
        Ok((exchange?, None))
    }

    /// The caller of a request, if there is room in its share: it counts while the request is
    /// handled, and then as long as its exchange.
    fn enter(
        &mut self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        asks: bool,
        request: Option<&RequestId>,
    ) -> Result<Option<Key>, Response> {
        let caller = self.callers.enter(principal, head.remote);
        let held = caller.map_or(0, |caller| self.callers.exchanges(caller));
        if asks && held > self.options.limits.exchanges_per_caller_max {
            self.callers.close_exchange(caller);
            return Err(too_many(request, "you have too many requests to be answered"));
        }
        Ok(caller)
    }

    /// An exchange that counts against the share of its caller.
    pub(super) fn open_exchange(&mut self, mut exchange: Exchange, caller: Option<Key>) -> Key {
        exchange.caller = caller;
        self.callers.open_exchange(caller);
        self.exchanges.insert(exchange)
    }

    /// An exchange is over.
    pub(super) fn remove_exchange(&mut self, key: Key) -> Option<Exchange> {
        let exchange = self.exchanges.remove(key)?;
        self.callers.close_exchange(exchange.caller);
        Some(exchange)
    }

    /// Whether one more handler may go on for the caller of a request, by
    /// [`handlers_per_caller_max`](super::ServerLimits::handlers_per_caller_max).
    #[must_use]
    pub fn has_handler_capacity(&self, request: RequestHandle) -> bool {
        let caller = self.connections.get(request.connection).and_then(|it| it.caller);
        let most = self.options.limits.handlers_per_caller_max;
        caller.is_none_or(|caller| self.callers.handlers(caller) < most)
    }

    /// The handler of a request goes on: it counts against the share of its caller, which is
    /// returned, until [`end_handler`](Self::end_handler). `None` if nothing is counted.
    pub fn begin_handler(&mut self, request: RequestHandle) -> Option<CallerHandle> {
        let caller = self.connections.get(request.connection)?.caller?;
        self.callers.begin_handler(caller).then_some(CallerHandle(caller))
    }

    /// A handler that went on has ended, or nobody waits for it any more.
    pub fn end_handler(&mut self, caller: CallerHandle) {
        self.callers.end_handler(caller.0);
    }

    /// An exchange whose response is there already. It leaves at once, and counts against nobody's
    /// share.
    pub(super) fn respond_whole(&mut self, response: Response) -> ExchangeId {
        let key = self.exchanges.insert(Exchange::new(None, ONLY, State::Whole(response)));
        self.make_ready(key);
        ExchangeId(key)
    }
}
