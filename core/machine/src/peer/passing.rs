//! How messages pass the middleware of a connection.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_sync::Arc;

use crate::PanicGuard;
use crate::jsonrpc::{
    ErrorObject, Json, NotificationMessage, RawJson, RequestId, WriteJson, to_shared_json,
    write_string,
};
use crate::protocol::{LoggingLevel, Method, Side};

use super::connection::{Connection, Flow};
use super::error::CommandError;
use super::event::Event;
use super::middleware::{
    MessageMiddleware, MiddlewareMessage, MiddlewareResponse, NotificationAction, PeerContext,
    RequestAction, ResponseAction,
};
use crate::gate::members::check_repeats;
use crate::gate::metadata;

/// What the messages of a connection pass.
pub(in crate::peer) trait Pass: fmt::Debug + Send + Sync {
    /// Runs the middleware in `guard`.
    fn set_guard(&mut self, guard: PanicGuard);

    /// Passes a notification.
    fn notification(
        &self,
        sender: Side,
        method: &str,
        params: &RawJson<'_>,
        peer: PeerContext<'_>,
    ) -> Passed;

    /// Returns the value in changed parameters of a progress notification. Only middleware makes
    /// the machine read numbers with a fraction, which takes 6 KB of a device image.
    fn progress(&self, params: &RawJson<'_>) -> Option<f64>;

    /// Passes a request that the peer has sent. If a middleware has answered it, its result is the
    /// [early one](Self::take_early_result).
    fn request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: &RawJson<'_>,
        peer: PeerContext<'_>,
    ) -> Exchanged;

    /// Takes the result with which a middleware has answered the request that is being handled.
    fn take_early_result(&mut self) -> Option<RawJson<'static>>;

    /// The request that passed was handled: its response may follow later.
    fn end_request(&mut self);

    /// Passes a request that this side sends. `own` are the members of `_meta` that the application
    /// has set.
    fn call(
        &self,
        id: i64,
        method: &str,
        params: &dyn WriteJson,
        own: Option<&RawJson<'_>>,
    ) -> Result<Option<ChangedCall>, CommandError>;

    /// Passes a response with which this side answers.
    fn answer(
        &mut self,
        id: &RequestId,
        method: Option<Method>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> Exchanged;

    /// Passes a response of the peer.
    fn received_answer(
        &self,
        id: i64,
        method: Option<Method>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> Exchanged;
}

type List = Vec<Arc<dyn MessageMiddleware>>;

/// The middleware of a connection, and the function that passes the messages of a connection
/// through it. Only a program that has middleware contains that function.
#[derive(Clone)]
pub(crate) struct MiddlewareList {
    middleware: List,
    pass: fn(List, Side) -> Box<dyn Pass>,
}

impl MiddlewareList {
    pub(in crate::peer) fn new() -> Self {
        Self { middleware: Vec::new(), pass: State::pass }
    }

    /// Adds middleware inside of the others.
    pub(in crate::peer) fn push(&mut self, middleware: Arc<dyn MessageMiddleware>) {
        self.middleware.push(middleware);
    }

    /// Passes the messages of a connection through the middleware.
    pub(in crate::peer) fn connection(&self, role: Side) -> Box<dyn Pass> {
        (self.pass)(self.middleware.clone(), role)
    }
}

impl fmt::Debug for MiddlewareList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MiddlewareList").field("length", &self.middleware.len()).finish()
    }
}

/// The state of a connection for its middleware.
struct State {
    role: Side,
    /// The outermost first.
    middleware: List,
    guard: PanicGuard,
    /// The decision of a middleware about the request that is being handled.
    early: Option<Early>,
}

crate::partial_debug! { impl Debug for State { early, .. } }

/// A middleware has answered or refused a request.
#[derive(Debug)]
struct Early {
    /// Its result, until it is taken.
    result: Option<Json>,
    /// Its number, counted from the outermost: the response passes those outside of it.
    at: usize,
}

/// The decision about a notification, or about the parameters of a request.
#[derive(Debug)]
pub(in crate::peer) enum Passed {
    Unchanged,
    Changed(RawJson<'static>),
    Dropped,
}

impl Passed {
    /// Handles a received notification with `receive`, unless it is dropped.
    pub(in crate::peer) fn receive<'f>(
        self,
        message: NotificationMessage<'f>,
        receive: impl for<'m> FnOnce(NotificationMessage<'m>) -> Flow<'m>,
    ) -> Flow<'f> {
        match self {
            Self::Unchanged => receive(message),
            Self::Changed(changed) => {
                let params = Some(RawJson::trusted(changed.as_str()));
                owned(receive(NotificationMessage { method: message.method, params }))
            }
            Self::Dropped => Ok(None),
        }
    }
}

/// The decision about a received request, or about a response.
#[derive(Debug)]
pub(in crate::peer) enum Exchanged {
    Unchanged,
    Changed(RawJson<'static>),
    Refused(ErrorObject<'static>),
}

impl Exchanged {
    /// Handles the response to a call with `receive`.
    pub(in crate::peer) fn receive<'f>(
        self,
        outcome: Result<RawJson<'f>, ErrorObject<'f>>,
        receive: impl for<'m> FnOnce(Result<RawJson<'m>, ErrorObject<'m>>) -> Flow<'m>,
    ) -> Flow<'f> {
        match self {
            Self::Unchanged => receive(outcome),
            Self::Changed(changed) => owned(receive(Ok(RawJson::trusted(changed.as_str())))),
            Self::Refused(error) => receive(Err(error)),
        }
    }
}

/// Makes an event independent of the changed message.
pub(in crate::peer) fn owned<'f>(flow: Flow<'_>) -> Flow<'f> {
    flow.map(|event| event.map(Event::into_owned))
}

/// The changed parameters of a call.
#[derive(Debug)]
pub(in crate::peer) struct ChangedCall {
    pub(in crate::peer) params: RawJson<'static>,
    /// The members of `_meta` that the application has set.
    pub(in crate::peer) meta: Option<RawJson<'static>>,
}

/// Members of the parameters that identify a message of the protocol.
const KEPT: [&str; 8] = [
    "name",
    "uri",
    "ref",
    "taskId",
    "requestId",
    "elicitationId",
    "protocolVersion",
    metadata::PROGRESS_TOKEN,
];

/// Members of `_meta` that identify a message.
const KEPT_META: [&str; 5] = [
    metadata::PROTOCOL_VERSION,
    metadata::CLIENT_CAPABILITIES,
    metadata::PROGRESS_TOKEN,
    metadata::SUBSCRIPTION_ID,
    "io.modelcontextprotocol/related-task",
];

/// Returns whether two objects have the same values of these members.
fn agree(one: &RawJson<'_>, other: &RawJson<'_>, members: &[&str]) -> bool {
    members.iter().all(|name| match (one.get_present(name), other.get_present(name)) {
        (Some(one), Some(other)) => {
            // The middleware may have written the same value with other spaces or in another order.
            let value = |text: &RawJson<'_>| text.decode::<serde_json::Value>().ok();
            one.as_str() == other.as_str()
                || value(&one).is_some_and(|it| value(&other) == Some(it))
        }
        (one, other) => one.is_none() && other.is_none(),
    })
}

/// Returns whether changed parameters, or a changed result, still identify the same message.
fn keeps(original: &RawJson<'_>, changed: &RawJson<'_>, members: &[&str]) -> bool {
    let empty = RawJson::EMPTY_OBJECT;
    let (before, after) = (original.get_present("_meta"), changed.get_present("_meta"));
    let (before, after) = (before.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty));
    changed.is_object() && agree(original, changed, members) && agree(before, after, &KEPT_META)
}

fn has_valid_meta(object: &RawJson<'_>) -> bool {
    object.get_present("_meta").is_none_or(|meta| meta.is_object())
}

/// Returns whether the changed parameters of a received message are those of the same message. The
/// machine checks them like those of the peer.
fn is_same(method: &str, original: &RawJson<'_>, changed: &RawJson<'_>) -> bool {
    let members = if Method::parse(method).is_some() { &KEPT[..] } else { &[] };
    keeps(original, changed, members)
}

/// Returns whether the changed parameters of a message that this side sends fit its method.
fn fits(method: &str, original: &RawJson<'_>, changed: &RawJson<'_>) -> bool {
    if !has_valid_meta(changed)
        || !is_same(method, original, changed)
        || check_repeats(changed.view()).is_err()
    {
        return false;
    }
    let method = Method::parse(method);
    let is_text = |name| changed.get(name).is_none_or(|value| value.to_text().is_some());
    let is_number = |value: RawJson<'_>| value.decode::<f64>().is_ok();
    match method {
        Some(Method::Progress) => {
            changed.get("progress").is_some_and(is_number)
                && changed.get("total").is_none_or(is_number)
                && is_text("message")
        }
        Some(Method::Message) => {
            let level = changed.get("level");
            level.is_some_and(|level| level.decode::<LoggingLevel>().is_ok())
                && changed.get("data").is_some()
                && is_text("logger")
        }
        Some(Method::Cancelled) => is_text("reason"),
        _ => true,
    }
}

/// Returns whether the peer waits for a notification.
fn is_awaited(method: &str) -> bool {
    matches!(
        Method::parse(method),
        Some(Method::Cancelled | Method::Initialized | Method::SubscriptionsAcknowledged)
    )
}

fn broken(what: &str) -> ErrorObject<'static> {
    ErrorObject::internal(alloc::format!("middleware: {what}"))
}

impl State {
    fn pass(middleware: List, role: Side) -> Box<dyn Pass> {
        Box::new(Self { role, middleware, guard: PanicGuard::default(), early: None })
    }

    /// Runs a function of a middleware.
    fn run<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        self.guard.run(call).ok()
    }

    /// Calls `pass` with each middleware and its number, in the order of a message from `sender`,
    /// until it returns something.
    fn each<T>(
        &self,
        sender: Side,
        mut pass: impl FnMut(usize, &dyn MessageMiddleware) -> Option<T>,
    ) -> Option<T> {
        let list = self.middleware.iter().enumerate();
        // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034]
        if sender == self.role {
            list.rev().find_map(|(at, middleware)| pass(at, &**middleware))
        } else {
            list.into_iter().find_map(|(at, middleware)| pass(at, &**middleware))
        }
    }

    fn pass_response(
        &self,
        sender: Side,
        (id, method): (&RequestId, Option<Method>),
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
        outer: Option<usize>,
    ) -> Exchanged {
        let response = MiddlewareResponse { sender, id, method };
        let mut changed: Option<Result<RawJson<'static>, ErrorObject<'static>>> = None;
        let _end = self.each(sender, |at, middleware| {
            if outer.is_some_and(|outer| at >= outer) {
                return None::<()>;
            }
            let now = changed.as_ref().map_or(outcome, Result::as_ref);
            let borrowed = now.map(|result| RawJson::trusted(result.as_str()));
            let shown = borrowed.as_ref().map_err(|error| *error);
            let action = self.run(|| middleware.response(&response, shown));
            let action = action.unwrap_or_else(|| ResponseAction::Refuse(broken("panicked")));
            match (action, outcome) {
                (ResponseAction::Forward, _) => {}
                (ResponseAction::Replace(new), Ok(result)) if now.is_ok() => {
                    let new_result = new.as_raw();
                    let kept =
                        has_valid_meta(&new_result) && keeps(result, &new_result, &["resultType"]);
                    changed = Some(if kept {
                        Ok(new.into())
                    } else {
                        Err(broken("the result does not fit its request"))
                    });
                }
                (ResponseAction::Replace(_), _) => {}
                (ResponseAction::Refuse(error), _) => changed = Some(Err(error)),
            }
            None
        });
        match changed {
            None => Exchanged::Unchanged,
            Some(Ok(result)) => Exchanged::Changed(result),
            Some(Err(error)) => Exchanged::Refused(error),
        }
    }
}

impl Pass for State {
    fn set_guard(&mut self, guard: PanicGuard) {
        self.guard = guard;
    }

    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-028] [EXT-031] [EXT-032]: each
    // notification is passed on before the next one is looked at. Cancellations are not dropped.
    fn notification(
        &self,
        sender: Side,
        method: &str,
        params: &RawJson<'_>,
        peer: PeerContext<'_>,
    ) -> Passed {
        let check = if sender == self.role { fits } else { is_same };
        let mut changed: Option<RawJson<'static>> = None;
        let dropped = self.each(sender, |_, middleware| {
            let now = RawJson::trusted(changed.as_ref().unwrap_or(params).as_str());
            let message = MiddlewareMessage { sender, id: None, method, params: now, peer };
            // Passing it on could reveal data that the middleware removes.
            let action = self.run(|| middleware.notification(&message));
            match action.unwrap_or(NotificationAction::Drop) {
                NotificationAction::Forward => None,
                NotificationAction::Replace(new) if check(method, params, &new.as_raw()) => {
                    changed = Some(new.into());
                    None
                }
                // The peer waits for it: the result of the previous middleware is forwarded.
                NotificationAction::Replace(_) | NotificationAction::Drop if is_awaited(method) => {
                    None
                }
                NotificationAction::Replace(_) | NotificationAction::Drop => Some(()),
            }
        });
        match (dropped, changed) {
            (Some(()), _) => Passed::Dropped,
            (None, Some(params)) => Passed::Changed(params),
            (None, None) => Passed::Unchanged,
        }
    }

    fn request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: &RawJson<'_>,
        peer: PeerContext<'_>,
    ) -> Exchanged {
        self.early = None;
        let sender = self.role.peer();
        let mut changed: Option<RawJson<'static>> = None;
        let stopped = self.each(sender, |at, middleware| {
            let now = RawJson::trusted(changed.as_ref().unwrap_or(params).as_str());
            let message = MiddlewareMessage { sender, id: Some(id), method, params: now, peer };
            let action = self.run(|| middleware.request(&message));
            Some((
                at,
                match action.unwrap_or_else(|| RequestAction::Refuse(broken("panicked"))) {
                    RequestAction::Forward => return None,
                    RequestAction::Replace(new) if is_same(method, params, &new.as_raw()) => {
                        changed = Some(new.into());
                        return None;
                    }
                    RequestAction::Answer(_) if method == Method::Initialize.as_str() => {
                        Err(broken("`initialize` cannot be answered"))
                    }
                    RequestAction::Answer(result) if result.as_raw().is_object() => Ok(result),
                    RequestAction::Answer(_) | RequestAction::Replace(_) => {
                        Err(broken("the message does not fit its method"))
                    }
                    RequestAction::Refuse(error) => Err(error),
                },
            ))
        });
        if let Some((at, outcome)) = stopped {
            let (result, refused) = match outcome {
                Ok(result) => (Some(result), None),
                Err(error) => (None, Some(error)),
            };
            self.early = Some(Early { result, at });
            if let Some(error) = refused {
                return Exchanged::Refused(error);
            }
        }
        changed.map_or(Exchanged::Unchanged, Exchanged::Changed)
    }

    fn progress(&self, params: &RawJson<'_>) -> Option<f64> {
        params.get("progress")?.decode().ok()
    }

    fn take_early_result(&mut self) -> Option<RawJson<'static>> {
        self.early.as_mut()?.result.take().map(RawJson::from)
    }

    fn end_request(&mut self) {
        self.early = None;
    }

    fn call(
        &self,
        id: i64,
        method: &str,
        params: &dyn WriteJson,
        own: Option<&RawJson<'_>>,
    ) -> Result<Option<ChangedCall>, CommandError> {
        let (sender, id) = (self.role, RequestId::Number(id));
        let given = with_meta(&to_shared_json(params)?, own);
        let mut changed: Option<RawJson<'static>> = None;
        let refused = self.each(sender, |_, middleware| {
            let params = RawJson::trusted(changed.as_ref().unwrap_or(&given).as_str());
            let peer = PeerContext::default();
            let message = MiddlewareMessage { sender, id: Some(&id), method, params, peer };
            let action = self.run(|| middleware.request(&message));
            match action.unwrap_or_else(|| RequestAction::Refuse(broken("panicked"))) {
                RequestAction::Forward => None,
                RequestAction::Replace(new) if fits(method, &given, &new.as_raw()) => {
                    changed = Some(new.into());
                    None
                }
                RequestAction::Answer(_) => Some(broken("only the peer can answer this request")),
                RequestAction::Replace(_) => Some(broken("the message does not fit its method")),
                RequestAction::Refuse(error) => Some(error),
            }
        });
        if let Some(error) = refused {
            return Err(CommandError::RefusedByMiddleware(Box::new(error)));
        }
        Ok(changed.map(|changed| ChangedCall {
            meta: changed.get("_meta").map(RawJson::into_owned),
            params: without_meta(&changed),
        }))
    }

    fn answer(
        &mut self,
        id: &RequestId,
        method: Option<Method>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> Exchanged {
        let outer = self.early.take().map(|early| early.at);
        self.pass_response(self.role, (id, method), outcome, outer)
    }

    fn received_answer(
        &self,
        id: i64,
        method: Option<Method>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> Exchanged {
        self.pass_response(self.role.peer(), (&RequestId::Number(id), method), outcome, None)
    }
}

impl Connection {
    /// Returns whether messages pass any middleware.
    #[inline]
    pub(in crate::peer) const fn has_middleware(&self) -> bool {
        self.passing.is_some()
    }

    /// Runs the middleware in `guard`.
    pub(in crate::peer) fn catch_panics(&mut self, guard: PanicGuard) {
        if let Some(passing) = &mut self.passing {
            passing.set_guard(guard);
        }
    }

    /// Passes a notification that this side sends.
    pub(in crate::peer) fn pass_sent(
        &self,
        method: &str,
        params: Option<&dyn WriteJson>,
    ) -> Passed {
        let Some(passing) = &self.passing else { return Passed::Unchanged };
        let Ok(params) = params.map_or(Ok(RawJson::EMPTY_OBJECT), to_shared_json) else {
            return Passed::Unchanged;
        };
        passing.notification(self.role, method, &params, PeerContext::default())
    }

    /// Passes a notification that the peer has sent.
    pub(in crate::peer) fn pass_received(
        &self,
        method: &str,
        params: Option<&RawJson<'_>>,
        peer: PeerContext<'_>,
    ) -> Passed {
        let Some(passing) = &self.passing else { return Passed::Unchanged };
        let params = params.unwrap_or(&RawJson::EMPTY_OBJECT);
        passing.notification(self.role.peer(), method, params, peer)
    }

    /// Passes a request that the peer has sent.
    pub(in crate::peer) fn pass_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawJson<'_>>,
        peer: PeerContext<'_>,
    ) -> Exchanged {
        let Some(passing) = &mut self.passing else { return Exchanged::Unchanged };
        passing.request(id, method, params.unwrap_or(&RawJson::EMPTY_OBJECT), peer)
    }

    /// Takes the result with which a middleware has answered the request that is being handled.
    #[inline]
    pub(in crate::peer) fn take_early_result(&mut self) -> Option<RawJson<'static>> {
        self.passing.as_mut()?.take_early_result()
    }

    /// The request that passed was handled: its response may follow later.
    pub(in crate::peer) fn end_passing(&mut self) {
        if let Some(passing) = &mut self.passing {
            passing.end_request();
        }
    }

    /// Passes a request that this side sends.
    #[inline]
    pub(in crate::peer) fn pass_call(
        &self,
        id: i64,
        method: &str,
        params: &dyn WriteJson,
        own: Option<&RawJson<'_>>,
    ) -> Result<Option<ChangedCall>, CommandError> {
        self.passing.as_ref().map_or(Ok(None), |it| it.call(id, method, params, own))
    }

    /// Passes a result with which this side answers.
    pub(in crate::peer) fn pass_result(
        &mut self,
        id: &RequestId,
        method: Option<Method>,
        result: &RawJson<'_>,
    ) -> Exchanged {
        let Some(passing) = &mut self.passing else { return Exchanged::Unchanged };
        passing.answer(id, method, Ok(result))
    }

    /// Passes an error with which this side answers. Returns the error to send instead, if any.
    pub(in crate::peer) fn pass_error(
        &mut self,
        id: &RequestId,
        error: &ErrorObject<'_>,
    ) -> Option<ErrorObject<'static>> {
        match self.passing.as_mut()?.answer(id, None, Err(error)) {
            Exchanged::Refused(error) => Some(error),
            Exchanged::Unchanged | Exchanged::Changed(_) => None,
        }
    }

    /// Passes a response of the peer.
    pub(in crate::peer) fn pass_answer(
        &self,
        id: i64,
        method: Option<Method>,
        outcome: &Result<RawJson<'_>, ErrorObject<'_>>,
    ) -> Exchanged {
        let Some(passing) = &self.passing else { return Exchanged::Unchanged };
        passing.received_answer(id, method, outcome.as_ref())
    }
}

/// Returns parameters with these members of `_meta`.
fn with_meta(params: &RawJson<'_>, own: Option<&RawJson<'_>>) -> RawJson<'static> {
    let Some(own) = own else { return params.clone().into_owned() };
    object_of(params, Some(own))
}

/// Returns parameters without `_meta`.
fn without_meta(params: &RawJson<'_>) -> RawJson<'static> {
    object_of(params, None)
}

/// Returns an object with this `_meta` in place of its own.
fn object_of(object: &RawJson<'_>, meta: Option<&RawJson<'_>>) -> RawJson<'static> {
    let mut out = String::from("{");
    if let Some(meta) = meta {
        out.push_str(r#""_meta":"#);
        out.push_str(meta.as_str());
    }
    for member in object.members().filter(|member| member.name() != "_meta") {
        if out.len() > 1 {
            out.push(',');
        }
        write_string(&mut out, &member.name());
        out.push(':');
        out.push_str(member.value.as_str());
    }
    out.push('}');
    RawJson::trusted_string(out)
}
