//! The options that servers and hosts share.

/// Implements the setters of [`ConnectionOptions`] for a builder with a field `options`.
///
/// [`ConnectionOptions`]: mcp_sansio::peer::ConnectionOptions
macro_rules! connection_options {
    ($builder:ident, $peer:literal) => {
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
                #[cfg(feature = "observer")]
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
