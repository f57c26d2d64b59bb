//! The options that servers and hosts share.

/// Implements the setters of [`ConnectionOptions`] for a builder with a field `options`.
///
/// [`ConnectionOptions`]: mcp_sansio::peer::ConnectionOptions
macro_rules! connection_options {
    ($builder:ident, $peer:literal, $messages:literal) => {
        const _: () = {
            use mcp_sansio::Revisions;
            use mcp_sansio::peer::{Limits, Policy, Timeouts};

            impl<K: $crate::threading::Threading> $builder<K> {
                /// Sets the supported revisions; the default is all.
                #[must_use]
                pub fn revisions(mut self, revisions: Revisions) -> Self {
                    self.options = self.options.revisions(revisions);
                    self
                }

                #[doc = concat!("Sets the resource limits per ", $peer, ".")]
                #[must_use]
                pub fn limits(mut self, limits: Limits) -> Self {
                    self.options = self.options.limits(limits);
                    self
                }

                /// Sets the timeouts.
                #[must_use]
                pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
                    self.options = self.options.timeouts(timeouts);
                    self
                }

                #[doc = concat!("Sets the observer of all requests and notifications of each ", $peer,
                    " in both directions, refused ones included: for telemetry. It replaces an earlier one.")]
                #[must_use]
                pub fn observe_operations(
                    mut self,
                    observer: impl mcp_sansio::peer::OperationObserver + 'static,
                ) -> Self {
                    let observer: alloc::boxed::Box<dyn mcp_sansio::peer::OperationObserver> =
                        alloc::boxed::Box::new(observer);
                    self.options = self.options.operation_observer(observer.into());
                    self
                }

                #[doc = concat!("Adds middleware around all messages of each ", $peer,
                    ", in both directions: see [`MessageMiddleware`]. It is inside of that of earlier calls.")]
                ///
                #[doc = $messages]
                ///
                /// [`MessageMiddleware`]: mcp_sansio::peer::MessageMiddleware
                #[must_use]
                pub fn message_middleware(
                    mut self,
                    middleware: impl mcp_sansio::peer::MessageMiddleware + 'static,
                ) -> Self {
                    let middleware: alloc::boxed::Box<dyn mcp_sansio::peer::MessageMiddleware> =
                        alloc::boxed::Box::new(middleware);
                    self.options = self.options.message_middleware(middleware.into());
                    self
                }

                #[doc = concat!("Adds middleware around all notifications of each ", $peer,
                    ", in both directions, also those that the protocol layer sends and handles itself, such as announcements of changed lists.")]
                /// It sees each before the next one, in order, and decides whether it is passed on.
                /// It must return quickly; a panic drops the notification.
                ///
                /// It is [`message_middleware`](Self::message_middleware) for notifications only.
                ///
                /// ```
                /// use mcp_sansio_handlers::middleware::NotificationAction;
                #[doc = concat!("use mcp_sansio_handlers::", stringify!($builder), ";")]
                ///
                #[doc = concat!("let side = ", stringify!($builder), "::new(\"weather\", \"1.0.0\")")]
                ///     .notification_middleware(|message| {
                ///         if message.params().as_str().contains("password") {
                ///             return NotificationAction::Drop;
                ///         }
                ///         NotificationAction::Forward
                ///     });
                /// # let _ = side;
                /// ```
                #[must_use]
                pub fn notification_middleware(
                    self,
                    middleware: impl Fn(
                        &mcp_sansio::peer::MiddlewareMessage<'_>,
                    ) -> mcp_sansio::peer::NotificationAction
                    + Send
                    + Sync
                    + 'static,
                ) -> Self {
                    self.message_middleware($crate::middleware::NotificationFunction(middleware))
                }

                #[doc = concat!("Sets how to react when a ", $peer, " breaks a rule.")]
                #[must_use]
                pub fn policy(mut self, policy: Policy) -> Self {
                    self.options = self.options.policy(policy);
                    self
                }
            }
        };
    };
}
pub(super) use connection_options;
