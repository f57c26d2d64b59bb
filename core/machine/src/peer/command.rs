//! Commands of an application to a machine.

use crate::Principal;
use crate::binding::HeaderFields;
use crate::catalog::Changes;
use crate::jsonrpc::{ErrorObject, WriteJson};
use crate::protocol::{
    InputRequiredResult, LoggingLevel, Method, SubscriptionFilter, TaskStatusParams, WriteJsonAt,
};

use super::error::CommandError;
use super::event::Request;
use super::handle::{CallHandle, InputHandle, RequestHandle};
use super::machine::Applied;
use super::method_name::MethodName;
use super::outgoing::CallOptions;

/// A command to a client machine.
#[cfg(feature = "client")]
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientCommand<'a> {
    /// Sends a request: see [`Client::call`](super::Client::call).
    Call {
        /// A method of the protocol or an extension.
        method: MethodName<'a>,
        /// The parameters, an object without `_meta`.
        params: &'a dyn WriteJsonAt,
        /// Timeouts, progress and metadata.
        options: &'a CallOptions<'a>,
    },
    /// Sends a request that has header fields of its own, in addition to those of the connection.
    /// They replace fields of the same name. Recordings do not contain them. A byte stream has no
    /// such fields: there the error is [`CommandError::NoHeaderFields`], because a server that does
    /// not receive the name of a tenant would work for another one.
    CallWithFields {
        /// A method of the protocol or an extension.
        method: MethodName<'a>,
        /// The parameters, an object without `_meta`.
        params: &'a dyn WriteJsonAt,
        /// Timeouts, progress and metadata.
        options: &'a CallOptions<'a>,
        /// The fields.
        fields: &'a HeaderFields,
    },
    /// Cancels a call: see [`Client::cancel`](super::Client::cancel).
    Cancel {
        /// The call or subscription.
        call: CallHandle,
        /// The reason sent to the server.
        reason: &'a str,
    },
    /// Sends a notification: see [`Client::notify`](super::Client::notify).
    Notify {
        /// The method, one that clients send.
        method: Method,
        /// The parameters, an object.
        params: &'a dyn WriteJson,
    },
    /// Sends a notification of an extension to a legacy server. A modern server ignores it over HTTP,
    /// so there it is an error.
    NotifyOther {
        /// A method that the protocol does not define.
        method: &'a str,
        /// The parameters, an object.
        params: &'a dyn WriteJson,
    },
    /// Subscribes to changes: see [`Client::subscribe`](super::Client::subscribe).
    Subscribe(&'a SubscriptionFilter),
    /// Subscribes with header fields of its own, under the same conditions as
    /// [`CallWithFields`](Self::CallWithFields). All requests that open the subscription have them,
    /// also those that open it again. In a legacy session, the stream of the session and the requests
    /// that end the subscription do not have them.
    SubscribeWithFields {
        /// The notifications to subscribe to.
        filter: &'a SubscriptionFilter,
        /// The fields.
        fields: &'a HeaderFields,
    },
    /// Asks for log messages: see [`Client::set_log_level`](super::Client::set_log_level).
    SetLogLevel(LoggingLevel),
    /// Answers an input request: see [`Client::answer_input`](super::Client::answer_input).
    AnswerInput {
        /// The input request.
        input: InputHandle,
        /// The result of its method.
        result: &'a dyn WriteJsonAt,
    },
    /// Refuses an input request: see [`Client::refuse_input`](super::Client::refuse_input).
    RefuseInput {
        /// The input request.
        input: InputHandle,
        /// The reason.
        error: ErrorObject<'a>,
    },
    /// Answers another request: see [`Client::respond_with`](super::Client::respond_with).
    Respond {
        /// The request.
        request: RequestHandle,
        /// The result, an object.
        result: &'a dyn WriteJson,
    },
    /// Refuses another request: see [`Client::reject`](super::Client::reject).
    Reject {
        /// The request.
        request: RequestHandle,
        /// The error.
        error: ErrorObject<'a>,
    },
    /// Closes the connection: see [`Client::close`](super::Client::close).
    Close,
}

/// A command to a server machine.
#[cfg(feature = "server")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerCommand<'a> {
    /// Sends a request to a legacy client: see [`Server::call`](super::Server::call).
    Call {
        /// The method, one that servers send as a request.
        method: Method,
        /// The parameters, an object without `_meta`.
        params: &'a dyn WriteJson,
        /// Timeouts, progress and metadata.
        options: &'a CallOptions<'a>,
    },
    /// Cancels a call: see [`Server::cancel`](super::Server::cancel).
    Cancel {
        /// The call.
        call: CallHandle,
        /// The reason sent to the client.
        reason: &'a str,
    },
    /// Sends a notification to a legacy client: see [`Server::notify`](super::Server::notify).
    Notify {
        /// The method, one that servers send.
        method: Method,
        /// The parameters, an object.
        params: &'a dyn WriteJson,
    },
    /// Sends a notification of an extension on the channel of a request, before its response.
    /// Silently dropped if the request has ended, and while the client's queue is full.
    NotifyOther {
        /// The request that it concerns.
        request: RequestHandle,
        /// A method that the protocol does not define.
        method: &'a str,
        /// The parameters, an object.
        params: &'a dyn WriteJson,
    },
    /// Answers a request: see [`Server::respond`](super::Server::respond).
    Respond {
        /// The request.
        request: RequestHandle,
        /// The result, an object.
        result: &'a dyn WriteJsonAt,
    },
    /// Answers a request with an error: see [`Server::reject`](super::Server::reject).
    Reject {
        /// The request.
        request: RequestHandle,
        /// The error.
        error: ErrorObject<'a>,
    },
    /// Answers a request with input requests: see
    /// [`Server::require_input`](super::Server::require_input).
    RequireInput {
        /// The request as received.
        request: &'a Request<'a>,
        /// The input requests.
        required: &'a InputRequiredResult,
    },
    /// Withdraws the input requests of a request: see
    /// [`Server::withdraw_input`](super::Server::withdraw_input).
    WithdrawInput(RequestHandle),
    /// Sends progress of a request: see [`Server::progress`](super::Server::progress).
    Progress {
        /// The request.
        request: RequestHandle,
        /// The progress, greater than the last value.
        progress: f64,
        /// The final value, if known.
        total: Option<f64>,
        /// A message for people.
        message: Option<&'a str>,
    },
    /// Sends progress of a task: see [`Server::task_progress`](super::Server::task_progress).
    TaskProgress {
        /// A request that waits or waited for the task.
        request: RequestHandle,
        /// The parameters of `notifications/progress`.
        params: &'a dyn WriteJson,
    },
    /// Sends a log message: see [`Server::log`](super::Server::log).
    Log {
        /// The request that the message belongs to, if any.
        request: Option<RequestHandle>,
        /// The severity.
        level: LoggingLevel,
        /// The name of the logger.
        logger: Option<&'a str>,
        /// The message data.
        data: &'a dyn WriteJson,
    },
    /// Reports a change of a resource: see
    /// [`Server::resource_updated`](super::Server::resource_updated).
    ResourceUpdated {
        /// The URI of the resource.
        uri: &'a str,
    },
    /// Reports the status of a task: see [`Server::task_changed`](super::Server::task_changed).
    TaskChanged {
        /// The status.
        status: &'a TaskStatusParams,
        /// The owner of the task. Ignored on a byte stream, which has one client.
        principal: Option<&'a Principal>,
    },
    /// Reports changes of lists: see [`Server::announce`](super::Server::announce).
    Announce(Changes),
    /// Closes the connection: see [`Server::close`](super::Server::close).
    Close,
}

/// Returns the call that a command started. Commands with a method or a filter start one.
pub(crate) fn started(applied: Result<Applied, CommandError>) -> Result<CallHandle, CommandError> {
    applied?.call().ok_or(CommandError::NotOpen)
}

/// The time for a command that needs none.
macro_rules! at {
    () => {
        $crate::Instant::ZERO
    };
    ($now:ident) => {
        $now
    };
}
pub(crate) use at;
