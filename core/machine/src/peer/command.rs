//! What an application can ask of a machine, as data.

use crate::Principal;
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

/// Everything that an application can ask of a client machine.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientCommand<'a> {
    /// Sends a request: see [`Client::call`](super::Client::call).
    Call {
        /// Of the protocol, or of an extension.
        method: MethodName<'a>,
        /// An object without `_meta`.
        params: &'a dyn WriteJsonAt,
        /// Its time, progress and metadata.
        options: &'a CallOptions<'a>,
    },
    /// Gives up a call: see [`Client::cancel`](super::Client::cancel).
    Cancel {
        /// The call or subscription.
        call: CallHandle,
        /// What the server is told.
        reason: &'a str,
    },
    /// Sends a notification: see [`Client::notify`](super::Client::notify).
    Notify {
        /// A notification that clients send.
        method: Method,
        /// An object.
        params: &'a dyn WriteJson,
    },
    /// Subscribes to changes: see [`Client::subscribe`](super::Client::subscribe).
    Subscribe(&'a SubscriptionFilter),
    /// Asks for log messages: see [`Client::set_log_level`](super::Client::set_log_level).
    SetLogLevel(LoggingLevel),
    /// Answers a question: see [`Client::answer_input`](super::Client::answer_input).
    AnswerInput {
        /// The question.
        input: InputHandle,
        /// The result of its method.
        result: &'a dyn WriteJsonAt,
    },
    /// Refuses a question: see [`Client::refuse_input`](super::Client::refuse_input).
    RefuseInput {
        /// The question.
        input: InputHandle,
        /// Why.
        error: ErrorObject<'a>,
    },
    /// Answers another request: see [`Client::respond_with`](super::Client::respond_with).
    Respond {
        /// The request.
        request: RequestHandle,
        /// Its result, an object.
        result: &'a dyn WriteJson,
    },
    /// Refuses another request: see [`Client::reject`](super::Client::reject).
    Reject {
        /// The request.
        request: RequestHandle,
        /// Why.
        error: ErrorObject<'a>,
    },
    /// Ends the connection: see [`Client::close`](super::Client::close).
    Close,
}

/// Everything that an application can ask of a server machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerCommand<'a> {
    /// Sends a request to a legacy client: see [`Server::call`](super::Server::call).
    Call {
        /// A request that servers send.
        method: Method,
        /// An object without `_meta`.
        params: &'a dyn WriteJson,
        /// Its time, progress and metadata.
        options: &'a CallOptions<'a>,
    },
    /// Gives up a call: see [`Server::cancel`](super::Server::cancel).
    Cancel {
        /// The call.
        call: CallHandle,
        /// What the client is told.
        reason: &'a str,
    },
    /// Sends a notification to a legacy client: see [`Server::notify`](super::Server::notify).
    Notify {
        /// A notification that servers send.
        method: Method,
        /// An object.
        params: &'a dyn WriteJson,
    },
    /// Answers a request: see [`Server::respond`](super::Server::respond).
    Respond {
        /// The request.
        request: RequestHandle,
        /// Its result, an object.
        result: &'a dyn WriteJsonAt,
    },
    /// Answers a request with an error: see [`Server::reject`](super::Server::reject).
    Reject {
        /// The request.
        request: RequestHandle,
        /// Why.
        error: ErrorObject<'a>,
    },
    /// Answers a request with questions: see [`Server::require_input`](super::Server::require_input).
    RequireInput {
        /// The request as it came.
        request: &'a Request<'a>,
        /// The questions.
        required: &'a InputRequiredResult,
    },
    /// Gives up the questions that a request waits for: see
    /// [`Server::withdraw_input`](super::Server::withdraw_input).
    WithdrawInput(RequestHandle),
    /// Sends progress of a request: see [`Server::progress`](super::Server::progress).
    Progress {
        /// The request.
        request: RequestHandle,
        /// More than the last time.
        progress: f64,
        /// What it will be in the end.
        total: Option<f64>,
        /// For people.
        message: Option<&'a str>,
    },
    /// Sends progress of a task: see [`Server::task_progress`](super::Server::task_progress).
    TaskProgress {
        /// A request that waits for the task, or did.
        request: RequestHandle,
        /// Those of `notifications/progress`.
        params: &'a dyn WriteJson,
    },
    /// Sends a log message: see [`Server::log`](super::Server::log).
    Log {
        /// The request that it belongs to, if any.
        request: Option<RequestHandle>,
        /// How grave it is.
        level: LoggingLevel,
        /// Who says it.
        logger: Option<&'a str>,
        /// What is said.
        data: &'a dyn WriteJson,
    },
    /// Reports a change of a resource: see
    /// [`Server::resource_updated`](super::Server::resource_updated).
    ResourceUpdated {
        /// Its URI.
        uri: &'a str,
    },
    /// Reports the status of a task: see [`Server::task_changed`](super::Server::task_changed).
    TaskChanged {
        /// The status.
        status: &'a TaskStatusParams,
        /// Whose task it is. On a byte stream, which has one client, it does not matter.
        principal: Option<&'a Principal>,
    },
    /// Reports changes of lists: see [`Server::announce`](super::Server::announce).
    Announce(Changes),
    /// Ends the connection: see [`Server::close`](super::Server::close).
    Close,
}

/// The call that a command began. Those that name a method or a filter begin one.
pub(crate) fn started(applied: Result<Applied, CommandError>) -> Result<CallHandle, CommandError> {
    applied?.call().ok_or(CommandError::NotOpen)
}

/// The time of a command that needs none.
macro_rules! at {
    () => {
        $crate::Instant::ZERO
    };
    ($now:ident) => {
        $now
    };
}
pub(crate) use at;
