//! What the observer of a server is told of HTTP requests.

use alloc::string::ToString;

use mcp_sansio_sync::Arc;

use crate::Caller;
use crate::http::{RequestHead, Response};
use crate::jsonrpc::{
    ErrorCode, ErrorObject, Frame, Message, NotificationMessage, RawJson, RequestId,
};
use crate::peer::{
    Cause, Direction, Observation, Operation, OperationEnd, OperationObserver, OperationOutcome,
    OperationTransport,
};
use crate::protocol::{Revision, Side};

use super::Server;
use super::body::ParsedBody;

impl Server {
    fn observer(&self) -> Option<Arc<dyn OperationObserver>> {
        self.server_config.observer()
    }

    /// Notes the description of a request.
    pub(super) fn observe_head(&mut self, head: &RequestHead<'_>) {
        if self.observer().is_none() {
            return;
        }
        let text = |value: Option<&[u8]>| {
            value.and_then(|value| core::str::from_utf8(value).ok()).map(Into::into)
        };
        self.arriving = OperationTransport {
            protocol_name: Some("http"),
            protocol_version: head.http_version,
            session_id: None,
            peer_address: head.remote.map(|remote| remote.ip().to_string()),
            peer_port: None,
            traceparent: text(head.traceparent),
            tracestate: text(head.tracestate),
        };
    }

    /// Reports the messages of a request that was refused as a whole.
    pub(super) fn observe_refusal(&self, body: &[u8], caller: &Caller, refused: &Response) {
        let Some(observer) = self.observer() else { return };
        let limits = self.server_config.parse_limits();
        let Ok(parsed) = ParsedBody::parse(body, limits) else { return };
        let text = core::str::from_utf8(&refused.body).unwrap_or_default();
        let error = RawJson::trusted(text).get("error").and_then(|error| {
            let code = error.get("code")?.decode().ok()?;
            let message = error.get("message")?.to_text()?.into_owned();
            Some(ErrorObject::new(ErrorCode(code), message))
        });
        let status = refused.head.status.0;
        let outcome = OperationOutcome::Refused { status, error: error.as_ref() };
        match parsed.frame() {
            Frame::Single(Message::Request(request)) => {
                let begun = self.begin_alone(
                    &*observer,
                    (&request.method, Some(&request.id)),
                    request.params.as_ref(),
                    caller,
                );
                self.end_alone(begun, outcome);
            }
            Frame::Single(Message::Notification(sent)) => {
                let named = (&*sent.method, None);
                let begun = self.begin_alone(&*observer, named, sent.params.as_ref(), caller);
                self.end_alone(begun, outcome);
            }
            _ => {}
        }
    }

    /// Reports a modern notification, which belongs to no connection.
    pub(super) fn observe_notification(
        &self,
        notification: &NotificationMessage<'_>,
        repeats: Result<(), &'static str>,
        caller: &Caller,
    ) {
        let Some(observer) = self.observer() else { return };
        let named = (&*notification.method, None);
        let begun = self.begin_alone(&*observer, named, notification.params.as_ref(), caller);
        let outcome = match repeats {
            Ok(()) => OperationOutcome::Done,
            Err(_) => OperationOutcome::Violation,
        };
        self.end_alone(begun, outcome);
    }

    fn begin_alone(
        &self,
        observer: &dyn OperationObserver,
        (method, id): (&str, Option<&RequestId>),
        params: Option<&RawJson<'_>>,
        caller: &Caller,
    ) -> Option<Arc<dyn Observation>> {
        let params = params.unwrap_or(&RawJson::EMPTY_OBJECT);
        let meta = params.get("_meta");
        observer.begin(&Operation {
            direction: Direction::Received,
            role: Side::Server,
            method,
            id,
            params,
            revision: meta.as_ref().and_then(named_revision),
            meta,
            transport: &self.arriving,
            caller: Some(caller),
            cause: Cause::Unknown,
        })
    }

    fn end_alone(&self, begun: Option<Arc<dyn Observation>>, outcome: OperationOutcome<'_>) {
        if let Some(observation) = begun {
            observation.end(&OperationEnd {
                outcome,
                revision: None,
                session_id: None,
                result: None,
            });
        }
    }
}

/// Returns the revision that a `_meta` names.
fn named_revision(meta: &RawJson<'_>) -> Option<Revision> {
    Revision::parse(&meta.get(crate::peer::metadata::PROTOCOL_VERSION)?.to_text()?)
}
