//! The named methods of servers, shorthands for commands.

/// Defines the named methods for [`ServerCommand`](crate::peer::ServerCommand), which servers have
/// over any binding. Methods omit `now` under the same conditions as those of clients.
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
                /// Answers a request with a result, encoded for the request's revision.
                ///
                /// Members that the revision requires in every result (`resultType`, the server's
                /// identity, caching hints) are added if they are missing.
                ///
                /// # Errors
                ///
                /// Returns [`CommandError::NotDue`](crate::peer::CommandError::NotDue) in an
                /// ordinary race with a cancellation. Returns
                /// [`CommandError::NotWritable`](crate::peer::CommandError::NotWritable) if the
                /// result could not be encoded, which is the caller's fault; the client then
                /// received an internal error.
                pub fn respond(
                    &mut self,
                    request: RequestHandle,
                    result: &dyn WriteJsonAt,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    self.apply(ServerCommand::Respond { request, result }, at!($($now)?)).map(drop)
                }

                /// Answers a request with the caller's own result type: JSON text, or
                /// [`AsJson`](crate::jsonrpc::AsJson) around a value that serializes to an object.
                ///
                /// # Errors
                ///
                /// Returns the errors of [`respond`](Self::respond).
                pub fn respond_with(
                    &mut self,
                    request: RequestHandle,
                    result: &dyn WriteJson,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    self.respond(request, &Verbatim(result) $(, $now)?)
                }

                /// Answers a request with an error. Codes that the request's revision does not
                /// define are replaced with codes that it defines.
                ///
                /// # Errors
                ///
                /// Returns [`CommandError::NotDue`](crate::peer::CommandError::NotDue) if the
                /// request was already answered or cancelled.
                pub fn reject(
                    &mut self,
                    request: RequestHandle,
                    error: ErrorObject<'_>,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    self.apply(ServerCommand::Reject { request, error }, at!($($now)?)).map(drop)
                }

                /// Answers a request with input requests for the user or the host: "input
                /// required".
                ///
                /// In the modern era the client answers them and sends the request again. In a
                /// legacy session the machine sends the input requests, waits for all responses,
                /// and delivers the same request to the application again with the responses in
                /// [`Request::inputs`](crate::peer::Request::inputs). The application handles both
                /// eras in the same way.
                ///
                /// `request` is stored only in a legacy session; pass an owned request to share its
                /// text instead of copying it. In a legacy session, a `tasks/result` may also
                /// require input for its task; the caller then adds the task to the `_meta` of each
                /// input request.
                ///
                /// # Errors
                ///
                /// The client receives a response in each case. Returns
                /// [`CommandError::NotDeclared`](crate::peer::CommandError::NotDeclared) if the
                /// client does not support the input requests, and
                /// [`CommandError::InputNotAllowed`](crate::peer::CommandError::InputNotAllowed)
                /// for a mistake of the caller.
                pub fn require_input(
                    &mut self,
                    request: Request<'_>,
                    required: &InputRequiredResult,
                    now: Instant,
                ) -> Result<(), CommandError> {
                    let request = &request;
                    self.apply(ServerCommand::RequireInput { request, required }, now).map(drop)
                }

                /// Withdraws the input requests that a request waits for in a legacy session: the
                /// client is notified, and the request waits for a response from the application
                /// again. Has no effect on other requests.
                ///
                /// Use it for input that is not needed any more, such as that of a cancelled task.
                pub fn withdraw_input(&mut self, request: RequestHandle, now: Instant) {
                    let _done = self.apply(ServerCommand::WithdrawInput(request), now);
                }

                /// Sends progress for a request that asked for it.
                ///
                /// Silently dropped if the client did not ask for progress, if `progress` does not
                /// increase, if reports exceed
                /// [`Limits::progress_per_second_max`](crate::peer::Limits::progress_per_second_max),
                /// or while the client's queue is full.
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

                /// Sends progress for a task of 2025-11-25 whose call is already answered. `params`
                /// are those of `notifications/progress`, with the call's token and the task in
                /// `_meta`. The notification is sent on the channel of `request`, a request that
                /// waits for the task, or otherwise on the channel for messages without a request.
                ///
                /// Silently dropped if no session has that revision, and while the client's queue
                /// is full. The caller has the token and must ensure that progress increases and is
                /// not sent too often.
                ///
                /// # Errors
                ///
                /// Fails if `params` is not an object, which is the caller's fault.
                pub fn task_progress(
                    &mut self,
                    request: RequestHandle,
                    params: &dyn WriteJson,
                    $($now: Instant,)?
                ) -> Result<(), CommandError> {
                    let command = ServerCommand::TaskProgress { request, params };
                    self.apply(command, at!($($now)?)).map(drop)
                }

                /// Sends a log message for `request`, or in every legacy session if `request` is
                /// `None`. Sent only if the client wants messages of this level: per session in the
                /// legacy era, per request in the modern era. Silently dropped once the request has
                /// ended, and while the client's queue is full, so that output for a client that
                /// does not read stays bounded.
                ///
                /// # Errors
                ///
                /// Fails if `data` cannot be encoded, which is the caller's fault.
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

                /// Notifies every client that subscribed to `uri` that the resource changed.
                pub fn resource_updated(&mut self, uri: &str $(, $now: Instant)?) {
                    let _done = self.apply(ServerCommand::ResourceUpdated { uri }, at!($($now)?));
                }

                /// Notifies clients of a change to a list that the catalog does not hold.
                pub fn announce(&mut self, changes: Changes $(, $now: Instant)?) {
                    let _done = self.apply(ServerCommand::Announce(changes), at!($($now)?));
                }
            }
        };
    };
}
pub(crate) use server_methods;

/// Defines the methods of servers over a byte stream, which always have a connection.
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
                /// To request input from the user or the host for a request, use
                /// [`require_input`](Self::require_input), which supports both eras.
                ///
                /// # Errors
                ///
                /// Returns [`CommandError`](crate::peer::CommandError) if the request was not sent.
                pub fn call(
                    &mut self,
                    method: Method,
                    params: &dyn WriteJson,
                    options: &CallOptions<'_>,
                    now: Instant,
                ) -> Result<CallHandle, CommandError> {
                    started(self.apply(ServerCommand::Call { method, params, options }, now))
                }

                /// Cancels a call: the client is notified, and the call ends with
                /// [`Failure::Cancelled`](crate::peer::Failure::Cancelled).
                pub fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
                    let _done = self.apply(ServerCommand::Cancel { call, reason }, now);
                }

                /// Sends a notification to a legacy client that has no method of its own here, such
                /// as `notifications/elicitation/complete` or `notifications/tasks/status`.
                ///
                /// # Errors
                ///
                /// Returns [`CommandError`](crate::peer::CommandError) if the notification was not
                /// sent.
                pub fn notify(
                    &mut self,
                    method: Method,
                    params: &dyn WriteJson,
                ) -> Result<(), CommandError> {
                    self.apply(ServerCommand::Notify { method, params }, Instant::ZERO).map(drop)
                }

                /// Notifies clients that listen to a task of its status. Silently dropped while the
                /// machine is [congested](Self::is_congested); clients also poll the status.
                pub fn task_changed(&mut self, status: &TaskStatusParams) {
                    let command = ServerCommand::TaskChanged { status, principal: None };
                    let _done = self.apply(command, Instant::ZERO);
                }

                /// Closes the connection: listen streams and calls end, and pending requests get no
                /// response.
                pub fn close(&mut self) {
                    let _done = self.apply(ServerCommand::Close, Instant::ZERO);
                }
            }
        };
    };
}
pub(crate) use stream_server_methods;
