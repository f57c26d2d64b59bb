//! What is reported beyond the defaults.

/// What [`Telemetry`](crate::Telemetry) reports beyond the defaults, or less than these.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct Options {
    pub(crate) payloads: bool,
    pub(crate) uris_in_names: bool,
    pub(crate) uris_in_metrics: bool,
    pub(crate) session_ids: bool,
    pub(crate) addresses: bool,
    pub(crate) principals: bool,
    pub(crate) notifications: bool,
    pub(crate) outer_tool_spans: bool,
    #[cfg(feature = "tracing")]
    pub(crate) access_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            payloads: false,
            uris_in_names: false,
            uris_in_metrics: false,
            session_ids: true,
            addresses: true,
            principals: false,
            notifications: true,
            outer_tool_spans: false,
            #[cfg(feature = "tracing")]
            access_log: false,
        }
    }
}
