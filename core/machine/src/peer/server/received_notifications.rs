//! The notifications of a client.

use alloc::boxed::Box;

use crate::Instant;
use crate::Revision;
use crate::gate::members::check_repeats;
use crate::gate::{MethodKind, Phase};
use crate::jsonrpc::{NotificationMessage, RawJson, RequestId};
use crate::peer::connection::Flow;
use crate::peer::event::{Event, Notification, Violation};
use crate::peer::method_name::MethodName;
use crate::protocol::{Method, Side};

use super::{NO_PARAMS, Server, ServerSession};

impl Server {
    // MCP 2025-11-25 basic/index#notifications [RPC-013]: never answered, even if it is malformed.
    pub(super) fn receive_notification<'f>(
        &mut self,
        message: NotificationMessage<'f>,
        now: Instant,
    ) -> Flow<'f> {
        if self.connection.has_middleware() {
            return self.notice_through_middleware(message, now);
        }
        self.receive_passed_notification(message, now)
    }

    /// Handles a notification that has passed the middleware.
    pub(super) fn receive_passed_notification<'f>(
        &mut self,
        message: NotificationMessage<'f>,
        now: Instant,
    ) -> Flow<'f> {
        let params = message.params.unwrap_or(NO_PARAMS);
        let repeats = check_repeats(params.view());
        let Some(method) = Method::parse(&message.method) else {
            if !self.connection.config.policy.deliver_unknown_methods {
                return Ok(None);
            }
            if let Err(what) = repeats {
                return self.connection.malformed(Violation::OutOfPlace(what));
            }
            let revision = self.session.as_ref().map_or(Revision::LATEST, ServerSession::revision);
            return Ok(Some(Event::Notification(Notification {
                method: MethodName::Other(message.method),
                params,
                revision,
                subscriptions: Box::default(),
            })));
        };
        if method.row().kind != MethodKind::Notification {
            return self.connection.out_of_place("a request without an id");
        }
        if let Err(what) = repeats {
            return self.connection.bad_parameters(method, what);
        }
        match method {
            Method::Cancelled => return self.cancelled(&params, now),
            Method::Initialized => return self.initialized(now),
            _ => {}
        }
        let Some(session) = &self.session else {
            return self.connection.out_of_place("a notification before `initialize`");
        };
        let revision = session.revision;
        let checked = method.row().check(Side::Client, revision, session.client, session.server);
        if let Err(refusal) = checked {
            return self.connection.forbidden(Violation::Forbidden(refusal));
        }
        debug_assert!(method.row().client.phase != Phase::Opening, "`initialize` is a request");
        match method {
            Method::Progress => self.connection.on_progress(&params, now),
            _ => Ok(Some(Event::Notification(Notification {
                method: MethodName::Known(method),
                params,
                revision,
                subscriptions: Box::default(),
            }))),
        }
    }

    /// Handles the client's cancellation of one of its requests.
    // MCP 2025-11-25 basic/utilities/cancellation#error-handling [CANC-004] [CANC-006] [CANC-007]:
    // unknown, finished and malformed ones are ignored.
    fn cancelled<'f>(&mut self, params: &RawJson<'f>, now: Instant) -> Flow<'f> {
        let (mut id, mut reason) = (None, None);
        for member in params.walk() {
            match &*member.name() {
                "requestId" => id = member.value.to_id(),
                "reason" => reason = member.value.to_text(),
                _ => {}
            }
        }
        // Only the client's own requests are searched: each direction has its own ids.
        let Some(id) = id else { return Ok(None) };
        // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-003]
        // MCP 2026-07-28 basic/transports/stdio#cancellation [CANC-016]: no further messages are
        // sent, and queued ones are withdrawn.
        let same = |id: &RequestId| self.connection.requests.by_id(id);
        // Some clients write a number as a string here.
        let Some(key) = same(&id).or_else(|| same(&id.own_number()?.into())) else {
            self.withdraw_answer(&id);
            return Ok(None);
        };
        Ok(self.give_up_request(key, reason, now))
    }
}
