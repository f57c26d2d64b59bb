//! The switches of telemetry.

/// Switches of [`Telemetry`](crate::Telemetry), which describes them.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct Options {
    pub(crate) payloads: bool,
    pub(crate) uris_in_names: bool,
    pub(crate) uris_in_metrics: bool,
    pub(crate) session_ids: bool,
    pub(crate) addresses: bool,
    pub(crate) notifications: bool,
    pub(crate) outer_tool_spans: bool,
    pub(crate) links_peers: bool,
    pub(crate) tracing_spans: bool,
    pub(crate) access_log: bool,
    pub(crate) principals: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            payloads: false,
            uris_in_names: false,
            uris_in_metrics: false,
            session_ids: true,
            addresses: true,
            notifications: true,
            outer_tool_spans: false,
            links_peers: false,
            tracing_spans: false,
            access_log: false,
            principals: false,
        }
    }
}
