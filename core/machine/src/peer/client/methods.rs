//! The named methods of clients, shorthands for commands.

/// Defines the named methods for [`ClientCommand`](crate::peer::ClientCommand), which clients have
/// over any binding.
///
/// Methods that need no time take no `now` on a byte stream, where messages are sent once the
/// stream has room. On HTTP each method starts its own exchanges, which have deadlines.
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
            /// `params` is an object: JSON text, or [`AsJson`](crate::jsonrpc::AsJson) around a
            /// value that serializes to one. It has no `_meta`; its members go into the options.
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
                self.call_typed(method, &Verbatim(params), options, now)
            }

            /// Sends a request with one of the protocol's typed parameters, encoded for the
            /// negotiated revision.
            ///
            /// # Errors
            ///
            /// Returns [`CommandError`](crate::peer::CommandError) if the request was not sent.
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

            /// Sends a request with a method that the protocol does not define, for extensions.
            ///
            /// # Errors
            ///
            /// Returns [`CommandError`](crate::peer::CommandError) if the request was not sent.
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

            /// Cancels a call or ends a subscription. It ends with
            /// [`Failure::Cancelled`](crate::peer::Failure::Cancelled). Does nothing if it has
            /// already ended.
            ///
            /// On a byte stream, and in a legacy session on HTTP, the server receives a
            /// notification. On HTTP with a modern server, the exchange is closed. If the request
            /// was never sent, nothing is sent either.
            pub fn cancel(&mut self, call: CallHandle, reason: &str, now: Instant) {
                let _done = self.apply(ClientCommand::Cancel { call, reason }, now);
            }

            /// Sends a notification, such as `notifications/roots/list_changed`.
            ///
            /// # Errors
            ///
            /// Returns [`CommandError`](crate::peer::CommandError) if the notification was not
            /// sent.
            pub fn notify(
                &mut self,
                method: Method,
                params: &dyn WriteJson,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::Notify { method, params }, at!($($now)?)).map(drop)
            }

            /// Subscribes to changes of lists, and of resources by URI.
            ///
            /// [`Event::Subscribed`](crate::peer::Event::Subscribed) reports the part of the filter
            /// that the server accepted. The subscription is a call that stays open until
            /// [`cancel`](Self::cancel) or the server ends it, with
            /// [`Event::Ended`](crate::peer::Event::Ended).
            ///
            /// If the exchange of a subscription to a modern server on HTTP breaks, the client
            /// opens another one and reports `Event::Subscribed` again; changes in between are
            /// lost. After the number of failed attempts that the client's `Backoff` allows, the
            /// subscription ends with
            /// [`TransportFailure::StreamLost`](crate::peer::TransportFailure::StreamLost).
            ///
            /// # Errors
            ///
            /// Returns [`CommandError`](crate::peer::CommandError) if the request was not sent.
            pub fn subscribe(
                &mut self,
                filter: &SubscriptionFilter,
                now: Instant,
            ) -> Result<CallHandle, CommandError> {
                started(self.apply(ClientCommand::Subscribe(filter), now))
            }

            /// Asks for log messages of `level` and above: for the session in the legacy era, with
            /// each further request in the modern era.
            ///
            /// # Errors
            ///
            /// Returns [`CommandError`](crate::peer::CommandError) if the request was not sent.
            pub fn set_log_level(
                &mut self,
                level: LoggingLevel,
                now: Instant,
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::SetLogLevel(level), now).map(drop)
            }

            /// Answers an input request with the result of its method.
            ///
            /// # Errors
            ///
            /// Returns [`CommandError::NotDue`](crate::peer::CommandError::NotDue) if it was
            /// already answered or withdrawn, and
            /// [`CommandError::NotWritable`](crate::peer::CommandError::NotWritable) if the result
            /// could not be encoded. The latter is the caller's fault, and the input request stays
            /// pending.
            pub fn answer_input(
                &mut self,
                input: InputHandle,
                result: &dyn WriteJsonAt,
                now: Instant,
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::AnswerInput { input, result }, now).map(drop)
            }

            /// Like [`answer_input`](Self::answer_input), with the caller's own result type.
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

            /// Refuses an input request. A legacy server receives `error` as the response. A call
            /// to a modern server cannot continue and ends with
            /// [`Failure::InputRefused`](crate::peer::Failure::InputRefused).
            ///
            /// # Errors
            ///
            /// Returns [`CommandError::NotDue`](crate::peer::CommandError::NotDue) if it was
            /// already answered or withdrawn.
            pub fn refuse_input(
                &mut self,
                input: InputHandle,
                error: ErrorObject<'_>,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::RefuseInput { input, error }, at!($($now)?)).map(drop)
            }

            /// Answers a legacy server's request that is not an input request, such as one about
            /// tasks.
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

            /// Answers a request of a legacy server with an error. Codes that the session's
            /// revision does not define are replaced with codes that it defines.
            ///
            /// # Errors
            ///
            /// Returns [`CommandError::NotDue`](crate::peer::CommandError::NotDue) if it was
            /// already answered or cancelled.
            pub fn reject(
                &mut self,
                request: RequestHandle,
                error: ErrorObject<'_>,
                $($now: Instant,)?
            ) -> Result<(), CommandError> {
                self.apply(ClientCommand::Reject { request, error }, at!($($now)?)).map(drop)
            }

            /// Closes the connection: every call ends with
            /// [`Failure::ConnectionLost`](crate::peer::Failure::ConnectionLost). Close the stream
            /// afterwards. On HTTP, every exchange is aborted and the server of a legacy session is
            /// notified: continue driving the machine until it [is drained](Self::is_drained).
            pub fn close(&mut self $(, $now: Instant)?) {
                let _done = self.apply(ClientCommand::Close, at!($($now)?));
            }
        }
        };
    };
}

pub(crate) use client_methods;
