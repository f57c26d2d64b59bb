//! The named methods of servers: each is short for a command.

/// The named methods for [`ServerCommand`](crate::peer::ServerCommand) that servers have, whatever they are bound to. Where
/// `now` is left out it is as with those of clients.
macro_rules! server_methods {
    ($server:ty $(, $now:ident)?) => {
        const _: () = {
            use $crate::Instant;
            use $crate::catalog::Changes;
            use $crate::jsonrpc::{ErrorObject, AsJson, WriteJson};
            use $crate::peer::command::at;
            use $crate::peer::{CommandError, Request, RequestHandle, ServerCommand};
            use $crate::protocol::{InputRequiredResult, LoggingLevel, Verbatim, WriteJsonAt};

            impl $server {
                /// Answers a request with a result, written as the request's revision has it.
                ///
                /// What the revision wants in every result (`resultType`, the server's identity,
                /// caching hints) is added where it is missing.
                ///
                /// # Errors
                ///
                /// [`CommandError::NotDue`](crate::peer::CommandError::NotDue) is an ordinary race
                /// with a cancellation. After
                /// [`CommandError::NotWritable`](crate::peer::CommandError::NotWritable), the
                /// caller's fault, the client got an internal error.
                pub fn respond(
                    &mut self,
                    request: RequestHandle,
                    result: &dyn WriteJsonAt,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    self.apply(ServerCommand::Respond { request, result }, at!($($now)?)).map(drop)
                }

                /// Answers a request with a result of the caller's own: JSON text, or
                /// [`AsJson`](crate::jsonrpc::AsJson) around anything that serialises to an object.
                ///
                /// # Errors
                ///
                /// See [`respond`](Self::respond).
                pub fn respond_with(
                    &mut self,
                    request: RequestHandle,
                    result: &dyn WriteJson,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    self.respond(request, &Verbatim(result) $(, $now)?)
                }

                /// Answers a request with an error. Codes that the request's revision does not have
                /// become those that it has.
                ///
                /// # Errors
                ///
                /// [`CommandError::NotDue`](crate::peer::CommandError::NotDue): it was answered or
                /// cancelled.
                pub fn reject(
                    &mut self,
                    request: RequestHandle,
                    error: ErrorObject<'_>,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    self.apply(ServerCommand::Reject { request, error }, at!($($now)?)).map(drop)
                }

                /// Answers a request with questions for the user or the host: "input required".
                ///
                /// In the modern era the client answers them and sends the request again. In a
                /// legacy session the machine asks, waits for all answers, and hands the same request
                /// to the application once more, with the answers in
                /// [`Request::inputs`](crate::peer::Request::inputs). The application sees no
                /// difference.
                ///
                /// `request` is kept only in a legacy session; hand in an owned one to share its text
                /// instead of copying it. There a `tasks/result` may ask as well, for its task: the
                /// caller then puts the task into the `_meta` of each question.
                ///
                /// # Errors
                ///
                /// In each case the client got an answer.
                /// [`CommandError::NotDeclared`](crate::peer::CommandError::NotDeclared): the client
                /// cannot be asked this.
                /// [`CommandError::InputNotAllowed`](crate::peer::CommandError::InputNotAllowed): the
                /// caller's fault.
                pub fn require_input(
                    &mut self,
                    request: Request<'_>,
                    required: &InputRequiredResult,
                    now: Instant,
                ) -> Result<(), CommandError> {
                    let request = &request;
                    self.apply(ServerCommand::RequireInput { request, required }, now).map(drop)
                }

                /// Gives up the questions that a request waits for in a legacy session: the client is
                /// told, and the request waits for an answer of the application again. Nothing
                /// happens to any other.
                ///
                /// For what need not be known any more, such as the questions of a task that was
                /// cancelled.
                pub fn withdraw_input(&mut self, request: RequestHandle, now: Instant) {
                    let _done = self.apply(ServerCommand::WithdrawInput(request), now);
                }

                /// Sends progress of a request that asked for it.
                ///
                /// Dropped without an error where nobody asked, where `progress` does not increase,
                /// and where it comes more often than
                /// [`Limits::progress_per_second_max`](crate::peer::Limits::progress_per_second_max),
                /// and while the client's queue is full.
                pub fn progress(
                    &mut self,
                    request: RequestHandle,
                    progress: f64,
                    total: Option<f64>,
                    message: Option<&str>,
                    now: Instant,
                ) {
                    let command = ServerCommand::Progress { request, progress, total, message };
                    let _done = self.apply(command, now);
                }

                /// Sends progress of a task of 2025-11-25, whose call is answered already: `params`
                /// are those of `notifications/progress`, with the call's token and the task in
                /// `_meta`. It goes on the channel of `request`, one that waits for the task, or else
                /// like what belongs to no request.
                ///
                /// Dropped without an error where no session is of that revision, and while the
                /// client's queue is full. That progress increases, and comes not too often, is up to
                /// the caller, which keeps the token.
                ///
                /// # Errors
                ///
                /// The caller's: `params` is not an object.
                pub fn task_progress(
                    &mut self,
                    request: RequestHandle,
                    params: &dyn WriteJson,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    let command = ServerCommand::TaskProgress { request, params };
                    self.apply(command, at!($($now)?)).map(drop)
                }

                /// Sends a log message on behalf of `request`; on behalf of none, in every legacy
                /// session. Only where the client wants messages of this level: of the session in the
                /// legacy era, of that request in the modern one. Dropped without an error once the
                /// request has ended, and while the client's queue is full: a client that reads
                /// nothing is not written to without end.
                ///
                /// # Errors
                ///
                /// The caller's: `data` cannot be written.
                pub fn log<D: serde::Serialize + ?Sized>(
                    &mut self,
                    request: Option<RequestHandle>,
                    level: LoggingLevel,
                    logger: Option<&str>,
                    data: &D,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    let command = ServerCommand::Log { request, level, logger, data: &AsJson(data) };
                    self.apply(command, at!($($now)?)).map(drop)
                }

                /// Tells every client that subscribed to `uri` that the resource changed.
                pub fn resource_updated(&mut self, uri: &str $(, $now: Instant)?) {
                    let _done = self.apply(ServerCommand::ResourceUpdated { uri }, at!($($now)?));
                }

                /// Tells clients that a list changed which the catalog does not hold.
                pub fn announce(&mut self, changes: Changes $(, $now: Instant)?) {
                    let _done = self.apply(ServerCommand::Announce(changes), at!($($now)?));
                }
            }
        };
    };
}
pub(crate) use server_methods;

/// Those of servers over a byte stream, where the connection is always there.
macro_rules! stream_server_methods {
    ($server:ty) => {
        const _: () = {
            use $crate::Instant;
            use $crate::jsonrpc::WriteJson;
            use $crate::peer::command::started;
            use $crate::peer::{CallHandle, CallOptions, CommandError, ServerCommand};
            use $crate::protocol::{Method, TaskStatusParams};

            impl $server {
                /// Sends a request to a legacy client, such as a `ping`.
                ///
                /// To ask the user or the host on behalf of a request, use
                /// [`require_input`](Self::require_input), which serves both eras.
                ///
                /// # Errors
                ///
                /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
                pub fn call(
                    &mut self,
                    method: Method,
                    params: &dyn WriteJson,
                    options: &CallOptions<'_>,
                    now: Instant,
                ) -> Result<CallHandle, CommandError> {
                    started(self.apply(ServerCommand::Call { method, params, options }, now))
                }

                /// Gives up a call: the client is told, and the call ends with [`Failure::Cancelled`](crate::peer::Failure::Cancelled).
                pub fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
                    let _done = self.apply(ServerCommand::Cancel { call, reason }, now);
                }

                /// Sends a notification to a legacy client that no other method sends, such as
                /// `notifications/elicitation/complete` or `notifications/tasks/status`.
                ///
                /// # Errors
                ///
                /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
                pub fn notify(
                    &mut self,
                    method: Method,
                    params: &dyn WriteJson,
                ) -> Result<(), CommandError> {
                    self.apply(ServerCommand::Notify { method, params }, Instant::ZERO).map(drop)
                }

                /// Tells clients that listen for it of the status of a task. Dropped without an error while the
                /// machine is [congested](Self::is_congested): a client asks for it as well.
                pub fn task_changed(&mut self, status: &TaskStatusParams) {
                    let command = ServerCommand::TaskChanged { status, principal: None };
                    let _done = self.apply(command, Instant::ZERO);
                }

                /// Ends the connection from this side: listen streams and calls end, requests without an
                /// answer get none.
                pub fn close(&mut self) {
                    let _done = self.apply(ServerCommand::Close, Instant::ZERO);
                }
            }
        };
    };
}
pub(crate) use stream_server_methods;
