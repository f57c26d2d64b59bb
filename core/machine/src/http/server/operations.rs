//! HTTP requests as the observer of a server is told of them.

use alloc::string::{String, ToString};

use mcp_sansio_sync::Arc;

use crate::Caller;
use crate::http::{RequestHead, Response, Status};
use crate::jsonrpc::{
    ErrorCode, ErrorObject, Frame, Message, NotificationMessage, RawJson, RequestId,
};
use crate::peer::{
    Cause, Direction, Observation, Operation, OperationEnd, OperationObserver, OperationOutcome,
    OperationTransport,
};
use crate::protocol::{Revision, Side};

use super::Server;
use super::reader::{ParsedBody, RequestReader};

impl Server {
    fn observer(&self) -> Option<Arc<dyn OperationObserver>> {
        self.reader.observer().cloned()
    }

    /// Notes the description of a request.
    pub(super) fn observe_head(&mut self, head: &RequestHead<'_>) {
        if self.observer().is_none() {
            return;
        }
        self.arriving = transport_of(head);
    }

    /// Reports the messages of a request that was refused as a whole.
    pub(super) fn observe_refusal(&self, body: &[u8], caller: &Caller, refused: &Response) {
        let Some(observer) = self.observer() else { return };
        let limits = self.reader.limits();
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
                end_alone(begun, outcome);
            }
            Frame::Single(Message::Notification(sent)) => {
                let named = (&*sent.method, None);
                let begun = self.begin_alone(&*observer, named, sent.params.as_ref(), caller);
                end_alone(begun, outcome);
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
        end_alone(begun, outcome);
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
}

impl RequestReader {
    /// Returns what the observer is told if a request is refused by its head alone. `None` if there
    /// is no observer, or the request contains no message: only those that are posted do.
    #[must_use]
    pub fn observe_refused_head(&self, head: &RequestHead<'_>) -> Option<RefusedHead> {
        let observer = Arc::clone(self.observer()?);
        (head.method == "POST").then(|| RefusedHead {
            observer,
            transport: transport_of(head),
            method: text_of(head.mcp_method).unwrap_or_default(),
            revision: super::reader::named_revision(head),
        })
    }
}

/// A request that may be refused by its head, for the observer: see
/// [`RequestReader::observe_refused_head`].
#[derive(Clone, Debug)]
pub struct RefusedHead {
    observer: Arc<dyn OperationObserver>,
    transport: OperationTransport,
    method: String,
    revision: Option<Revision>,
}

impl RefusedHead {
    /// Reports the refusal: an operation without an id and parameters. Its method is that of
    /// `Mcp-Method`, empty before 2026-07-28. A path without a server of this protocol is not
    /// reported.
    pub fn report(&self, refused: &Response) {
        if refused.head.status == Status::NOT_FOUND {
            return;
        }
        let begun = self.observer.begin(&Operation {
            direction: Direction::Received,
            role: Side::Server,
            method: &self.method,
            id: None,
            params: &RawJson::EMPTY_OBJECT,
            revision: self.revision,
            meta: None,
            transport: &self.transport,
            caller: None,
            cause: Cause::Unknown,
        });
        let status = refused.head.status.0;
        end_alone(begun, OperationOutcome::Refused { status, error: None });
    }
}

fn transport_of(head: &RequestHead<'_>) -> OperationTransport {
    OperationTransport {
        protocol_name: Some("http"),
        protocol_version: head.http_version,
        session_id: None,
        peer_address: head.remote.map(|remote| remote.ip().to_string()),
        peer_port: None,
        traceparent: text_of(head.traceparent),
        tracestate: text_of(head.tracestate),
    }
}

fn text_of(value: Option<&[u8]>) -> Option<String> {
    value.and_then(|value| core::str::from_utf8(value).ok()).map(Into::into)
}

fn end_alone(begun: Option<Arc<dyn Observation>>, outcome: OperationOutcome<'_>) {
    if let Some(observation) = begun {
        observation.end(&OperationEnd { outcome, revision: None, session_id: None, result: None });
    }
}

/// Returns the revision that a `_meta` names.
fn named_revision(meta: &RawJson<'_>) -> Option<Revision> {
    Revision::parse(&meta.get(crate::gate::metadata::PROTOCOL_VERSION)?.to_text()?)
}
