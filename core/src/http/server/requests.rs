//! Requests as they come in.

use crate::Instant;
use crate::http::{ExchangeId, Principal, Refusal, RequestHead, Response};
use crate::peer::Event;

use super::Server;
use super::admission::Route;
use super::body::ParsedBody;
use super::exchange::{Exchange, State};
use super::posts::{Handled, ONLY, named_request};

impl Server {
    /// Takes a whole request, and returns what the application must know of it.
    ///
    /// `principal` says who sends it, where that has been verified; see [`Principal`]. The exchange
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
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), Refusal>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        #[cfg(feature = "recording")]
        if let Some(book) = self.tape.clone() {
            return self.handle_noted(&book, head, body, principal, permit, now);
        }
        let handled = self.handle_route(head, body, principal, permit, now);
        handled.unwrap_or_else(|refused| (self.respond_whole(refused), None))
    }

    pub(super) fn handle_route<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), Refusal>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let route = self.route(head)?;
        if body.len() > self.options.limits.body_bytes_max {
            return Err(self.body_too_long());
        }
        let exchange = match route {
            Route::Post | Route::Message => {
                let body = ParsedBody::parse(body, self.blueprint.parse_limits());
                permit(body.as_ref().ok())
                    .map_err(|refusal| refusal.to_response(named_request(&body)))?;
                return match route {
                    Route::Message => self.message(head, body, principal, now),
                    _ => self.post(head, body, principal, now),
                };
            }
            _ => {
                permit(None).map_err(|refusal| refusal.to_response(None))?;
                match route {
                    Route::Get => self.get(head, principal, now)?,
                    Route::Delete => self.delete(head, principal, now)?,
                    _ => self.open_event_stream(principal, now)?,
                }
            }
        };
        Ok((exchange, None))
    }

    /// An exchange whose response is there already.
    pub(super) fn respond_whole(&mut self, response: Response) -> ExchangeId {
        let key = self.exchanges.insert(Exchange::new(None, ONLY, State::Whole(response)));
        self.make_ready(key);
        ExchangeId(key)
    }
}
