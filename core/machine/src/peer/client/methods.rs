//! The named methods of clients: each is short for a command.

/// The named methods for [`ClientCommand`](crate::peer::ClientCommand): all that clients have, whatever they are bound to.
///
/// Where messages leave when their stream has room, `now` is left out of those methods that need no
/// time. On HTTP each begins exchanges of its own, which have deadlines.
macro_rules! client_methods {
    ($client:ty $(, $now:ident)?) => {
        const _: () = {
            use $crate::Instant;
            use $crate::jsonrpc::{ErrorObject, WriteJson};
            use $crate::peer::command::{at, started};
            use $crate::peer::{
                CallHandle, CallOptions, ClientCommand, CommandError, InputHandle, MethodName,
                RequestHandle,
            };
            use $crate::protocol::{
                LoggingLevel, Method, SubscriptionFilter, Verbatim, WriteJsonAt,
            };

        impl $client {
            /// Sends a request.
            ///
            /// `params` is an object: JSON text, or [`AsJson`](crate::jsonrpc::AsJson) around anything
            /// that serialises to one. It has no `_meta`; members for that go into the options.
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
                self.call_typed(method, &Verbatim(params), options, now)
            }

            /// Sends a request with one of the protocol's typed parameters, written as the
            /// negotiated revision has them.
            ///
            /// # Errors
            ///
            /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
            pub fn call_typed(
                &mut self,
                method: Method,
                params: &dyn WriteJsonAt,
                options: &CallOptions<'_>,
                now: Instant,
            ) -> Result<CallHandle, CommandError> {
                let method = MethodName::Known(method);
                started(self.apply(ClientCommand::Call { method, params, options }, now))
            }

            /// Sends a request that the protocol does not know, for extensions.
            ///
            /// # Errors
            ///
            /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
            pub fn call_other(
                &mut self,
                method: &str,
                params: &dyn WriteJson,
                options: &CallOptions<'_>,
                now: Instant,
            ) -> Result<CallHandle, CommandError> {
                let method = MethodName::Other(method.into());
                let params = &Verbatim(params);
                started(self.apply(ClientCommand::Call { method, params, options }, now))
            }

            /// Gives up a call or ends a subscription: the server is told, and it ends with
            /// [`Failure::Cancelled`](crate::peer::Failure::Cancelled). Nothing happens if it has
            /// ended already.
            ///
            /// On a byte stream and in a legacy session on HTTP a notification tells the server, a
            /// modern server on HTTP sees its exchange closed; neither if the request never left.
            pub fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
                let _done = self.apply(ClientCommand::Cancel { call, reason }, now);
            }

            /// Sends a notification, such as `notifications/roots/list_changed`.
            ///
            /// # Errors
            ///
            /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
            pub fn notify(
                &mut self,
                method: Method,
                params: &dyn WriteJson,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::Notify { method, params }, at!($($now)?)).map(drop)
            }

            /// Subscribes to changes: of lists, and of resources by URI.
            ///
            /// [`Event::Subscribed`](crate::peer::Event::Subscribed) says what the server honours of
            /// it. The subscription is a call that stays open: it ends with
            /// [`Event::Ended`](crate::peer::Event::Ended), by [`cancel`](Self::cancel) or by the
            /// server.
            ///
            /// When the exchange of a subscription to a modern server on HTTP breaks, another one is
            /// made, and `Event::Subscribed` comes again: what changed in between was not told. After
            /// as many attempts in vain as the client's `Backoff` has, the subscription ends with
            /// [`TransportFailure::StreamLost`](crate::peer::TransportFailure::StreamLost).
            ///
            /// # Errors
            ///
            /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
            pub fn subscribe(
                &mut self,
                filter: &SubscriptionFilter,
                now: Instant,
            ) -> Result<CallHandle, CommandError> {
                started(self.apply(ClientCommand::Subscribe(filter), now))
            }

            /// Asks for log messages from `level` on: of the session in the legacy era, with each
            /// request from now on in the modern one.
            ///
            /// # Errors
            ///
            /// Nothing was sent: see [`CommandError`](crate::peer::CommandError).
            pub fn set_log_level(
                &mut self,
                level: LoggingLevel,
                now: Instant,
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::SetLogLevel(level), now).map(drop)
            }

            /// Answers a question with the result of its method.
            ///
            /// # Errors
            ///
            /// [`CommandError::NotDue`](crate::peer::CommandError::NotDue): it was answered or withdrawn. [`CommandError::NotWritable`](crate::peer::CommandError::NotWritable):
            /// the caller's fault; the question still waits.
            pub fn answer_input(
                &mut self,
                input: InputHandle,
                result: &dyn WriteJsonAt,
                now: Instant,
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::AnswerInput { input, result }, now).map(drop)
            }

            /// The same with a result of the caller's own.
            ///
            /// # Errors
            ///
            /// See [`answer_input`](Self::answer_input).
            pub fn answer_input_with(
                &mut self,
                input: InputHandle,
                result: &dyn WriteJson,
                now: Instant,
            ) -> Result<(), CommandError> {
                self.answer_input(input, &Verbatim(result), now)
            }

            /// Refuses a question. A legacy server gets `error` as its answer; a call to a modern
            /// server ends with [`Failure::InputRefused`](crate::peer::Failure::InputRefused), as
            /// there is no way to go on.
            ///
            /// # Errors
            ///
            /// [`CommandError::NotDue`](crate::peer::CommandError::NotDue): it was answered or withdrawn.
            pub fn refuse_input(
                &mut self,
                input: InputHandle,
                error: ErrorObject<'_>,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::RefuseInput { input, error }, at!($($now)?)).map(drop)
            }

            /// Answers a request of a legacy server that is no question to the host, such as one
            /// about tasks.
            ///
            /// # Errors
            ///
            /// See [`answer_input`](Self::answer_input).
            pub fn respond_with(
                &mut self,
                request: RequestHandle,
                result: &dyn WriteJson,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::Respond { request, result }, at!($($now)?)).map(drop)
            }

            /// Answers a request of a legacy server with an error. Codes that the session's revision
            /// does not have become those that it has.
            ///
            /// # Errors
            ///
            /// [`CommandError::NotDue`](crate::peer::CommandError::NotDue): it was answered or cancelled.
            pub fn reject(
                &mut self,
                request: RequestHandle,
                error: ErrorObject<'_>,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::Reject { request, error }, at!($($now)?)).map(drop)
            }

            /// Ends the connection from this side: every call ends with
            /// [`Failure::ConnectionLost`](crate::peer::Failure::ConnectionLost). Then close the
            /// stream; on HTTP, where every exchange is aborted and the server of a legacy session is
            /// told, go on driving the machine until it [is drained](Self::is_drained).
            pub fn close(&mut self $(, $now: Instant)?) {
                let _done = self.apply(ClientCommand::Close, at!($($now)?));
            }
        }
        };
    };
}

pub(crate) use client_methods;
