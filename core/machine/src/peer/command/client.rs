//! The commands of clients.

use alloc::borrow::Cow;
use mcp_sansio_sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Instant;
use crate::binding::HeaderFields;
use crate::jsonrpc::{ErrorObject, WriteJson};
use crate::peer::client::ClientSession;
use crate::peer::error::CommandError;
use crate::peer::handle::{CallHandle, InputHandle, RequestHandle};
use crate::peer::machine::Machine;
use crate::peer::method_name::MethodName;
use crate::peer::operation::Observation;
use crate::peer::outgoing::CallOptions;
use crate::protocol::{LoggingLevel, Method, SubscriptionFilter, Verbatim, WriteJsonAt};

use super::{Body, MaybeOwned, format, started};

/// A command to a client machine. The methods of [`ClientMachine`] create and apply them.
///
/// Serialized, it has all that a machine needs to apply it again, but for header fields of the
/// application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ClientCommand<'a> {
    /// Sends a request: see [`ClientMachine::call`].
    Call {
        /// A method of the protocol or an extension.
        #[serde(borrow)]
        method: MethodName<'a>,
        /// The parameters, an object without `_meta`.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
        /// Timeouts, progress and metadata.
        #[serde(borrow)]
        options: MaybeOwned<'a, CallOptions<'a>>,
    },
    /// Sends a request that has header fields of its own, in addition to those of the connection.
    /// They replace fields of the same name. Recordings contain it as `Call`, because the fields
    /// may be secrets. A byte stream has no such fields: there the error is
    /// [`CommandError::NoHeaderFields`], because a server that does not receive the name of a
    /// tenant would work for another one.
    #[serde(skip)]
    CallWithFields {
        /// A method of the protocol or an extension.
        method: MethodName<'a>,
        /// The parameters, an object without `_meta`.
        params: Body<'a>,
        /// Timeouts, progress and metadata.
        options: MaybeOwned<'a, CallOptions<'a>>,
        /// The fields.
        fields: &'a HeaderFields,
    },
    /// Cancels a call: see [`ClientMachine::cancel`].
    Cancel {
        /// The call or subscription.
        call: CallHandle,
        /// The reason sent to the server.
        #[serde(borrow)]
        reason: Cow<'a, str>,
    },
    /// Sends a notification: see [`ClientMachine::notify`].
    Notify {
        /// The method, one that clients send.
        method: Method,
        /// The parameters, an object.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
    },
    /// Sends a notification of an extension: see [`ClientMachine::notify_other`].
    NotifyOther {
        /// A method that the protocol does not define.
        #[serde(borrow)]
        method: Cow<'a, str>,
        /// The parameters, an object.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        params: Body<'a>,
    },
    /// Subscribes to changes: see [`ClientMachine::subscribe`].
    Subscribe(
        #[serde(serialize_with = "format::at_all_revisions")] MaybeOwned<'a, SubscriptionFilter>,
    ),
    /// Subscribes with header fields of its own, under the same conditions as
    /// [`CallWithFields`](Self::CallWithFields). All requests that open the subscription have them,
    /// also those that open it again. In a legacy session, the stream of the session and the
    /// requests that end the subscription do not have them.
    #[serde(skip)]
    SubscribeWithFields {
        /// The notifications to subscribe to.
        filter: MaybeOwned<'a, SubscriptionFilter>,
        /// The fields.
        fields: &'a HeaderFields,
    },
    /// Asks for log messages: see [`ClientMachine::set_log_level`].
    SetLogLevel(LoggingLevel),
    /// Answers an input request: see [`ClientMachine::answer_input`].
    AnswerInput {
        /// The input request.
        input: InputHandle,
        /// The result of its method.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        result: Body<'a>,
    },
    /// Refuses an input request: see [`ClientMachine::refuse_input`].
    RefuseInput {
        /// The input request.
        input: InputHandle,
        /// The reason.
        #[serde(borrow)]
        error: ErrorObject<'a>,
    },
    /// Answers another request: see [`ClientMachine::respond_with`].
    Respond {
        /// The request.
        request: RequestHandle,
        /// The result, an object.
        #[serde(borrow, default, skip_serializing_if = "Body::is_value")]
        result: Body<'a>,
    },
    /// Refuses another request: see [`ClientMachine::reject`].
    Reject {
        /// The request.
        request: RequestHandle,
        /// The error.
        #[serde(borrow)]
        error: ErrorObject<'a>,
    },
    /// Closes the connection: see [`ClientMachine::close`].
    Close,
}

impl<'a> ClientCommand<'a> {
    /// Returns the parameters or the result, to encode them.
    pub fn body_mut(&mut self) -> Option<&mut Body<'a>> {
        match self {
            Self::CallWithFields { params: body, .. }
            | Self::Call { params: body, .. }
            | Self::Notify { params: body, .. }
            | Self::NotifyOther { params: body, .. }
            | Self::AnswerInput { result: body, .. }
            | Self::Respond { result: body, .. } => Some(body),
            Self::SubscribeWithFields { .. }
            | Self::Cancel { .. }
            | Self::Subscribe(_)
            | Self::SetLogLevel(_)
            | Self::RefuseInput { .. }
            | Self::Reject { .. }
            | Self::Close => None,
        }
    }

    /// Separates the header fields of the application from the command.
    pub(crate) fn split_fields(self) -> (Self, Option<&'a HeaderFields>) {
        match self {
            Self::CallWithFields { method, params, options, fields } => {
                (Self::Call { method, params, options }, Some(fields))
            }
            Self::SubscribeWithFields { filter, fields } => (Self::Subscribe(filter), Some(fields)),
            command => (command, None),
        }
    }
}

/// A client machine over any binding: its state, and a method for each [`ClientCommand`].
pub trait ClientMachine: for<'a> Machine<Command<'a> = ClientCommand<'a>> {
    /// Returns the outcome of the negotiation, once the connection is open.
    fn session(&self) -> Option<&ClientSession>;

    /// Returns whether the call has not ended, or has become a task whose progress is awaited.
    fn has_call(&self, call: CallHandle) -> bool;

    /// Runs the [middleware](crate::peer::MessageMiddleware) in `guard`.
    fn catch_panics(&mut self, guard: crate::PanicGuard);

    /// Returns the observation of a server's request for input. Input rounds of calls are not
    /// observed.
    fn observation_of_input(&self, input: InputHandle) -> Option<Arc<dyn Observation>>;

    /// Returns the observation of another request of the server.
    fn observation_of(&self, request: RequestHandle) -> Option<Arc<dyn Observation>>;

    /// Sends a request.
    ///
    /// `params` is an object: JSON text, or [`AsJson`](crate::jsonrpc::AsJson) around a value that
    /// serializes to one. It has no `_meta`; its members go into the options.
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
        self.call_typed(method, &Verbatim(params), options, now)
    }

    /// Sends a request with one of the protocol's typed parameters, encoded for the negotiated
    /// revision.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the request was not sent.
    fn call_typed(
        &mut self,
        method: Method,
        params: &dyn WriteJsonAt,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        let method = MethodName::Known(method);
        let (params, options) = (Body::Value(params), options.into());
        started(self.apply(ClientCommand::Call { method, params, options }, now))
    }

    /// Sends a request with a method that the protocol does not define, for extensions.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the request was not sent.
    fn call_other(
        &mut self,
        method: &str,
        params: &dyn WriteJson,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        let method = MethodName::Other(method.into());
        let (verbatim, options) = (Verbatim(params), options.into());
        let params = Body::Value(&verbatim);
        started(self.apply(ClientCommand::Call { method, params, options }, now))
    }

    /// Cancels a call or ends a subscription. It ends with
    /// [`Failure::Cancelled`](crate::peer::Failure::Cancelled). Does nothing if it has already
    /// ended.
    ///
    /// On a byte stream, and in a legacy session on HTTP, the server receives a notification. On
    /// HTTP with a modern server, the exchange is closed. If the request was never sent, nothing is
    /// sent either.
    fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
        let _done = self.apply(ClientCommand::Cancel { call, reason: reason.into() }, now);
    }

    /// Sends a notification, such as `notifications/roots/list_changed`.
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
        self.apply(ClientCommand::Notify { method, params }, now).map(drop)
    }

    /// Sends a notification of an extension to a legacy server. A modern server ignores it over
    /// HTTP, so there it is an error.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the notification was not sent.
    fn notify_other(
        &mut self,
        method: &str,
        params: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        let (method, verbatim) = (method.into(), Verbatim(params));
        let params = Body::Value(&verbatim);
        self.apply(ClientCommand::NotifyOther { method, params }, now).map(drop)
    }

    /// Subscribes to changes of lists, and of resources by URI.
    ///
    /// [`Event::Subscribed`](crate::peer::Event::Subscribed) reports the part of the filter that
    /// the server accepted. The subscription is a call that stays open until
    /// [`cancel`](Self::cancel) or the server ends it, with
    /// [`Event::Ended`](crate::peer::Event::Ended).
    ///
    /// If the exchange of a subscription to a modern server on HTTP breaks, the client opens
    /// another one and reports `Event::Subscribed` again; changes in between are lost. After the
    /// number of failed attempts that the client's `Backoff` allows, the subscription ends with
    /// [`TransportFailure::StreamLost`](crate::peer::TransportFailure::StreamLost).
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the request was not sent.
    fn subscribe(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        started(self.apply(ClientCommand::Subscribe(filter.into()), now))
    }

    /// Asks for log messages of `level` and above: for the session in the legacy era, with each
    /// further request in the modern era.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// servers log to standard error, or with OpenTelemetry.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the request was not sent.
    fn set_log_level(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CommandError> {
        self.apply(ClientCommand::SetLogLevel(level), now).map(drop)
    }

    /// Answers an input request with the result of its method.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::NotDue`] if it was already answered or withdrawn, and
    /// [`CommandError::NotWritable`] if the result could not be encoded. The latter is the caller's
    /// fault, and the input request stays pending.
    fn answer_input(
        &mut self,
        input: InputHandle,
        result: &dyn WriteJsonAt,
        now: Instant,
    ) -> Result<(), CommandError> {
        let result = Body::Value(result);
        self.apply(ClientCommand::AnswerInput { input, result }, now).map(drop)
    }

    /// Like [`answer_input`](Self::answer_input), with the caller's own result type.
    ///
    /// # Errors
    ///
    /// See [`answer_input`](Self::answer_input).
    fn answer_input_with(
        &mut self,
        input: InputHandle,
        result: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.answer_input(input, &Verbatim(result), now)
    }

    /// Refuses an input request. A legacy server receives `error` as the response. A call to a
    /// modern server cannot continue and ends with
    /// [`Failure::InputRefused`](crate::peer::Failure::InputRefused).
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::NotDue`] if it was already answered or withdrawn.
    fn refuse_input(
        &mut self,
        input: InputHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.apply(ClientCommand::RefuseInput { input, error }, now).map(drop)
    }

    /// Answers a legacy server's request that is not an input request, such as one about tasks.
    ///
    /// # Errors
    ///
    /// See [`answer_input`](Self::answer_input).
    fn respond_with(
        &mut self,
        request: RequestHandle,
        result: &dyn WriteJson,
        now: Instant,
    ) -> Result<(), CommandError> {
        let verbatim = Verbatim(result);
        let result = Body::Value(&verbatim);
        self.apply(ClientCommand::Respond { request, result }, now).map(drop)
    }

    /// Answers a request of a legacy server with an error. Codes that the session's revision does
    /// not define are replaced with codes that it defines.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::NotDue`] if it was already answered or cancelled.
    fn reject(
        &mut self,
        request: RequestHandle,
        error: ErrorObject<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.apply(ClientCommand::Reject { request, error }, now).map(drop)
    }

    /// Closes the connection: every call ends with
    /// [`Failure::ConnectionLost`](crate::peer::Failure::ConnectionLost). Close the stream
    /// afterwards. On HTTP, every exchange is aborted and the server of a legacy session is
    /// notified: continue driving the machine until it is drained.
    fn close(&mut self, now: Instant) {
        let _done = self.apply(ClientCommand::Close, now);
    }
}
