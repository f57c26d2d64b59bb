//! The commands of servers.

use alloc::borrow::Cow;
use mcp_sansio_sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::Changes;
use crate::jsonrpc::{AsJson, ErrorObject, RequestId, WriteJson};
use crate::peer::error::CommandError;
use crate::peer::event::Request;
use crate::peer::handle::{CallHandle, RequestHandle};
use crate::peer::machine::Machine;
use crate::peer::operation::Observation;
use crate::peer::outgoing::CallOptions;
use crate::protocol::{
    InputRequiredResult, LoggingLevel, Method, TaskStatusParams, Verbatim, WholeInput, WriteJsonAt,
    whole,
};
use crate::{Instant, Principal, Revision};

use super::{Body, MaybeOwned, format, started};

/// A command to a server machine. The methods of [`ServerMachine`] create and apply them.
///
/// Serialized, it has all that a machine needs to apply it again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ServerCommand<'a> {
    /// Sends a request to a legacy client: see [`ServerMachine::call`].
    Call {
        /// The method, one that servers send as a request.
        method: Method,
        /// The parameters, an object without `_meta`.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
        /// Timeouts, progress and metadata.
        #[serde(borrow)]
        options: MaybeOwned<'a, CallOptions<'a>>,
    },
    /// Cancels a call: see [`ServerMachine::cancel`].
    Cancel {
        /// The call.
        call: CallHandle,
        /// The reason sent to the client.
        #[serde(borrow)]
        reason: Cow<'a, str>,
    },
    /// Sends a notification to a legacy client: see [`ServerMachine::notify`].
    Notify {
        /// The method, one that servers send.
        method: Method,
        /// The parameters, an object.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
    },
    /// Sends a notification of an extension: see [`ServerMachine::notify_other`].
    NotifyOther {
        /// The request that it concerns.
        request: RequestHandle,
        /// A method that the protocol does not define.
        #[serde(borrow)]
        method: Cow<'a, str>,
        /// The parameters, an object.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
    },
    /// Answers a request: see [`ServerMachine::respond`].
    Respond {
        /// The request.
        request: RequestHandle,
        /// The result, an object.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        result: Body<'a>,
    },
    /// Answers a request with an error: see [`ServerMachine::reject`].
    Reject {
        /// The request.
        request: RequestHandle,
        /// The error.
        #[serde(borrow)]
        error: ErrorObject<'a>,
    },
    /// Answers a request with input requests: see [`ServerMachine::require_input`].
    RequireInput {
        /// The request as received.
        #[serde(borrow, with = "handle_and_method")]
        request: MaybeOwned<'a, Request<'a>>,
        /// The input requests.
        #[serde(serialize_with = "with_all_members")]
        required: MaybeOwned<'a, InputRequiredResult>,
    },
    /// Withdraws the input requests of a request: see [`ServerMachine::withdraw_input`].
    WithdrawInput(RequestHandle),
    /// Sends progress of a request: see [`ServerMachine::progress`].
    Progress {
        /// The request.
        request: RequestHandle,
        /// The progress, greater than the last value.
        #[serde(with = "format::decimal")]
        progress: f64,
        /// The final value, if known.
        #[serde(
            default,
            with = "format::decimal::optional",
            skip_serializing_if = "Option::is_none"
        )]
        total: Option<f64>,
        /// A message for people.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        message: Option<Cow<'a, str>>,
    },
    /// Sends progress of a task: see [`ServerMachine::task_progress`].
    TaskProgress {
        /// A request that waits or waited for the task.
        request: RequestHandle,
        /// The parameters of `notifications/progress`.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
    },
    /// Sends a log message: see [`ServerMachine::log`].
    Log {
        /// The request that the message belongs to, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestHandle>,
        /// The severity.
        level: LoggingLevel,
        /// The name of the logger.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        logger: Option<Cow<'a, str>>,
        /// The message data.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        data: Body<'a>,
    },
    /// Reports a change of a resource: see [`ServerMachine::resource_updated`].
    ResourceUpdated {
        /// The URI of the resource.
        #[serde(borrow)]
        uri: Cow<'a, str>,
    },
    /// Reports the status of a task: see [`ServerMachine::task_changed`].
    TaskChanged {
        /// The status.
        #[serde(serialize_with = "format::at_all_revisions")]
        status: MaybeOwned<'a, TaskStatusParams>,
        /// The owner of the task. Ignored on a byte stream, which has one client.
        #[serde(default, with = "name", skip_serializing_if = "Option::is_none")]
        principal: Option<Cow<'a, Principal>>,
    },
    /// Reports changes of lists: see [`ServerMachine::announce`].
    Announce(Changes),
    /// Closes the connection: see [`ServerMachine::close`].
    Close,
}

impl<'a> ServerCommand<'a> {
    /// Returns the parameters, the result or the data, to encode them.
    pub fn body_mut(&mut self) -> Option<&mut Body<'a>> {
        match self {
            Self::Call { params: body, .. }
            | Self::Notify { params: body, .. }
            | Self::NotifyOther { params: body, .. }
            | Self::Respond { result: body, .. }
            | Self::TaskProgress { params: body, .. }
            | Self::Log { data: body, .. } => Some(body),
            Self::Cancel { .. }
            | Self::Reject { .. }
            | Self::RequireInput { .. }
            | Self::WithdrawInput(_)
            | Self::Progress { .. }
            | Self::ResourceUpdated { .. }
            | Self::TaskChanged { .. }
            | Self::Announce(_)
            | Self::Close => None,
        }
    }

    /// Returns the request that the command is about, if it is about one.
    #[must_use]
    pub fn request(&self) -> Option<RequestHandle> {
        match self {
            Self::Respond { request, .. }
            | Self::Reject { request, .. }
            | Self::WithdrawInput(request)
            | Self::Progress { request, .. }
            | Self::TaskProgress { request, .. }
            | Self::NotifyOther { request, .. } => Some(*request),
            Self::Log { request, .. } => *request,
            Self::RequireInput { request, .. } => Some(request.handle),
            Self::Call { .. }
            | Self::Cancel { .. }
            | Self::Notify { .. }
            | Self::ResourceUpdated { .. }
            | Self::TaskChanged { .. }
            | Self::Announce(_)
            | Self::Close => None,
        }
    }
}

/// Serializes input requests with the members of all revisions.
fn with_all_members<S: serde::Serializer>(
    required: &MaybeOwned<'_, InputRequiredResult>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    whole(&WholeInput(required)).serialize(serializer)
}

/// A request as far as the machine needs it to require input again.
mod handle_and_method {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::peer::{MethodName, Request, RequestHandle};

    use super::MaybeOwned;

    #[derive(Serialize, Deserialize)]
    struct Named<'a> {
        handle: RequestHandle,
        #[serde(borrow)]
        method: MethodName<'a>,
    }

    pub(super) fn serialize<S: Serializer>(
        request: &MaybeOwned<'_, Request<'_>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Named { handle: request.handle, method: request.method.clone() }.serialize(serializer)
    }

    pub(super) fn deserialize<'de: 'a, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<MaybeOwned<'a, Request<'a>>, D::Error> {
        let Named { handle, method } = Named::deserialize(deserializer)?;
        Ok(Request::without_content(handle, method).into())
    }
}

/// A principal, which is a name.
mod name {
    use alloc::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Principal;

    pub(super) fn serialize<S: Serializer>(
        principal: &Option<Cow<'_, Principal>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        principal.as_ref().map(|principal| principal.as_str()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Cow<'a, Principal>>, D::Error> {
        let name = Option::<Cow<'de, str>>::deserialize(deserializer)?;
        Ok(name.map(|name| Cow::Owned(Principal::new(name))))
    }
}

/// A server machine over any binding: its state, and a method for each [`ServerCommand`].
pub trait ServerMachine: for<'a> Machine<Command<'a> = ServerCommand<'a>> {
    /// Returns the revision of a pending request.
    fn revision_of(&self, request: RequestHandle) -> Option<Revision>;

    /// Returns the JSON-RPC id of a pending request. Clients choose it: requests of different
    /// sessions may have the same id.
    fn id_of(&self, request: RequestHandle) -> Option<&RequestId>;

    /// Returns the observation of a pending request.
    fn observation_of(&self, request: RequestHandle) -> Option<Arc<dyn Observation>>;

    /// Answers a request with a result, encoded for the request's revision.
    ///
    /// Members that the revision requires in every result (`resultType`, the server's identity,
    /// caching hints) are added if they are missing.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::NotDue`] in an ordinary race with a cancellation. Returns
    /// [`CommandError::NotWritable`] if the result could not be encoded, which is the caller's
    /// fault; the client then received an internal error.
    fn respond(
        &mut self,
        request: RequestHandle,
        result: &dyn WriteJsonAt,
        now: Instant,
    ) -> Result<(), CommandError> {
        let result = Body::Value(result);
        self.apply(ServerCommand::Respond { request, result }, now).map(drop)
    }

    /// Answers a request with the caller's own result type: JSON text, or [`AsJson`] around a value
    /// that serializes to an object.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`respond`](Self::respond).
    fn respond_with(
        &mut self,
        request: RequestHandle,
        result: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.respond(request, &Verbatim(result), now)
    }

    /// Answers a request with an error. Codes that the request's revision does not define are
    /// replaced with codes that it defines.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::NotDue`] if the request was already answered or cancelled.
    fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.apply(ServerCommand::Reject { request, error }, now).map(drop)
    }

    /// Answers a request with input requests for the user or the host: "input required".
    ///
    /// In the modern era the client answers them and sends the request again. In a legacy session
    /// the machine sends the input requests, waits for all responses, and delivers the same request
    /// to the application again with the responses in
    /// [`Request::inputs`](crate::peer::Request::inputs). The application handles both eras in the
    /// same way.
    ///
    /// `request` is stored only in a legacy session. There, a `tasks/result` may also require input
    /// for its task; the caller then adds the task to the `_meta` of each input request.
    ///
    /// # Errors
    ///
    /// The client receives a response in each case. Returns [`CommandError::NotDeclared`] if the
    /// client does not support the input requests, and [`CommandError::InputNotAllowed`] for a
    /// mistake of the caller.
    fn require_input(
        &mut self,
        request: &Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), CommandError> {
        let (request, required) = (request.into(), required.into());
        self.apply(ServerCommand::RequireInput { request, required }, now).map(drop)
    }

    /// Withdraws the input requests that a request waits for in a legacy session: the client is
    /// notified, and the request waits for a response from the application again. Has no effect on
    /// other requests.
    ///
    /// Use it for input that is not needed any more, such as that of a cancelled task.
    fn withdraw_input(&mut self, request: RequestHandle, now: Instant) {
        let _done = self.apply(ServerCommand::WithdrawInput(request), now);
    }

    /// Sends progress for a request that asked for it.
    ///
    /// Silently dropped if the client did not ask for progress, if `progress` does not increase, if
    /// reports exceed
    /// [`Limits::progress_per_second_max`](crate::peer::Limits::progress_per_second_max), or while
    /// the client's queue is full.
    fn progress(
        &mut self,
        request: RequestHandle,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        now: Instant,
    ) {
        let message = message.map(Cow::Borrowed);
        let command = ServerCommand::Progress { request, progress, total, message };
        let _done = self.apply(command, now);
    }

    /// Sends progress for a task of 2025-11-25 whose call is already answered. `params` are those
    /// of `notifications/progress`, with the call's token and the task in `_meta`. The notification
    /// is sent on the channel of `request`, a request that waits for the task, or otherwise on the
    /// channel for messages without a request.
    ///
    /// Silently dropped if no session has that revision, and while the client's queue is full. The
    /// caller has the token and must ensure that progress increases and is not sent too often.
    ///
    /// # Errors
    ///
    /// Fails if `params` is not an object, which is the caller's fault.
    fn task_progress(
        &mut self,
        request: RequestHandle,
        params: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        let verbatim = Verbatim(params);
        let command = ServerCommand::TaskProgress { request, params: Body::Value(&verbatim) };
        self.apply(command, now).map(drop)
    }

    /// Sends a log message for `request`, or in every legacy session if `request` is `None`. Sent
    /// only if the client wants messages of this level: per session in the legacy era, per request
    /// in the modern era. Silently dropped once the request has ended, and while the client's queue
    /// is full, so that output for a client that does not read stays bounded.
    ///
    /// # Errors
    ///
    /// Fails if `data` cannot be encoded, which is the caller's fault.
    fn log<D: Serialize + ?Sized>(
        &mut self,
        request: Option<RequestHandle>,
        level: LoggingLevel,
        logger: Option<&str>,
        data: &D,
        now: Instant,
    ) -> Result<(), CommandError> {
        let (json, logger) = (AsJson(data), logger.map(Cow::Borrowed));
        let verbatim = Verbatim(&json);
        let command = ServerCommand::Log { request, level, logger, data: Body::Value(&verbatim) };
        self.apply(command, now).map(drop)
    }

    /// Notifies every client that subscribed to `uri` that the resource changed.
    fn resource_updated(&mut self, uri: &str, now: Instant) {
        let _done = self.apply(ServerCommand::ResourceUpdated { uri: uri.into() }, now);
    }

    /// Notifies clients of a change to a list that the catalog does not hold.
    fn announce(&mut self, changes: Changes, now: Instant) {
        let _done = self.apply(ServerCommand::Announce(changes), now);
    }

    /// Sends a request to a legacy client on a byte stream, such as a `ping`.
    ///
    /// To request input from the user or the host for a request, use
    /// [`require_input`](Self::require_input), which supports both eras.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the request was not sent.
    fn call(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        let (verbatim, options) = (Verbatim(params), options.into());
        let params = Body::Value(&verbatim);
        started(self.apply(ServerCommand::Call { method, params, options }, now))
    }

    /// Cancels a call: the client is notified, and the call ends with
    /// [`Failure::Cancelled`](crate::peer::Failure::Cancelled).
    fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
        let _done = self.apply(ServerCommand::Cancel { call, reason: reason.into() }, now);
    }

    /// Sends a notification to a legacy client on a byte stream that has no method of its own here,
    /// such as `notifications/elicitation/complete` or `notifications/tasks/status`.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the notification was not sent.
    fn notify(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        let verbatim = Verbatim(params);
        let params = Body::Value(&verbatim);
        self.apply(ServerCommand::Notify { method, params }, now).map(drop)
    }

    /// Sends a notification of an extension on the channel of a request, before its response.
    /// Silently dropped if the request has ended, and while the client's queue is full.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::NotANotification`] if the protocol defines the method.
    fn notify_other(
        &mut self,
        request: RequestHandle,
        method: &str,
        params: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        let (method, verbatim) = (method.into(), Verbatim(params));
        let params = Body::Value(&verbatim);
        self.apply(ServerCommand::NotifyOther { request, method, params }, now).map(drop)
    }

    /// Notifies clients that listen to a task of its status, if `principal` owns it. A byte stream
    /// has one client, and ignores it. Silently dropped while the client's queue is full; clients
    /// also poll the status.
    fn task_changed(
        &mut self,
        status: &TaskStatusParams,
        principal: Option<&Principal>,
        now: Instant,
    ) {
        let (status, principal) = (status.into(), principal.map(Cow::Borrowed));
        let _done = self.apply(ServerCommand::TaskChanged { status, principal }, now);
    }

    /// Closes the connection of a byte stream: listen streams and calls end, and pending requests
    /// get no response. A server on HTTP stops accepting requests: new requests are refused. Open
    /// streams end, pending requests are still answered, and clients may still send messages that
    /// these requests need, such as input responses and cancellations, until the server is drained.
    fn close(&mut self, now: Instant) {
        let _done = self.apply(ServerCommand::Close, now);
    }
}
