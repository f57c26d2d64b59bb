use core::time::Duration;

/// Limits on the resources that a server can make an HTTP client use, in addition to those of
/// [`peer::Limits`](crate::peer::Limits). Each default has its reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Concurrent requests to the server, including those whose stream waits to be resumed. 64:
    /// below the usual limit of servers for one HTTP/2 connection (100). Further requests are
    /// queued.
    pub requests_max: usize,
    /// Additional exchanges for messages that must not wait behind calls: responses to the server's
    /// requests, cancellations and notifications, including those that wait to be sent again. 8: a
    /// call may depend on such a response, so these messages never wait for calls.
    pub control_exchanges_max: usize,
    /// The length of a JSON body, in bytes. 4 MiB: the length of a body that servers usually
    /// accept.
    pub body_bytes_max: usize,
    /// The length of a stream event, in bytes. 4 MiB: an event holds a message, like a body.
    pub event_bytes_max: usize,
    /// The length of an error response body, in bytes. 64 KiB: a JSON-RPC error with its data.
    pub error_bytes_max: usize,
    /// The length of a session id, in bytes. 4 KiB: some ids are tokens, with a state that a
    /// gateway sealed, and servers usually accept 8 KiB for all headers together.
    pub session_id_length_max: usize,
    /// The length of a `WWW-Authenticate` value, in bytes. 8 KiB; longer values are dropped.
    pub challenge_length_max: usize,
    /// Redirects followed for one message. 5.
    pub redirects_max: u32,
    /// Consecutive sessions that were opened and could not be used, neither for a message nor to
    /// listen. 3: a server that forgets every session immediately is broken.
    pub renewals_max: u32,
    /// Times that one message is sent again because its session has ended, or because the server
    /// refused the revision of the connection and lists it all the same. 1.
    pub resends_max: u32,
    /// Times that a call, a response or a notification is sent again because the server did not
    /// handle it: it could not be reached, or answered 429 or 503 with `Retry-After`; the opening
    /// only for the latter. 3, with the delays of
    /// [`HttpClientOptions::backoff`](super::HttpClientOptions::backoff): up to 7 s, in which a node
    /// is restarted. No attempt is made after the timeout of the call; for the others, the server
    /// may ask for a delay up to [`Timeouts::call`](crate::peer::Timeouts::call).
    pub retries_max: u32,
    /// The memory for the header parameters of tools, in bytes: the name of each tool twice, its
    /// headers and their properties, and 256 bytes. 1 MiB: some thousand tools with a few headers. Tools
    /// without mirrored arguments are evicted first, then those listed least recently. 0: no
    /// argument is mirrored into headers.
    pub mirrored_bytes_max: usize,
    /// Pages of `tools/list` that are read to find the header parameters of one tool: before its
    /// first call, if it was not listed on this connection, and after a call that was refused for
    /// its headers. 32. 0: calls do not read the list.
    pub refresh_pages_max: u32,
    /// How long the rest of a response may take after the JSON-RPC response has arrived, and the
    /// body of a refusal. 2 s: servers end the stream with the response; a stream that continues is
    /// aborted.
    pub linger: Duration,
    /// How long calls wait until the listening stream of a legacy session is open. 500 ms: a server
    /// may send its requests only on that stream, but some servers send the response head only with
    /// the first event.
    pub listening_wait: Duration,
    /// How long the server has to respond to the deletion of the session. 5 s.
    pub closing_wait: Duration,
    /// The minimum delay before a stream is resumed, whatever the server asks for. 50 ms: a server
    /// that asks for no delay cannot cause a busy loop.
    pub reconnect_pause_min: Duration,
    /// The longest delay that the server may ask for, with `retry` or `Retry-After`, before a
    /// stream is resumed. 1 h: longer than any maintenance that a user would wait for. A stream
    /// whose server asks for more is lost at once: an early attempt is not allowed, and a caller
    /// that waits would not know why.
    pub reconnect_pause_max: Duration,
}

impl ClientLimits {
    /// The defaults for a computer.
    pub const DEFAULT: Self = Self {
        requests_max: 64,
        control_exchanges_max: 8,
        body_bytes_max: 4 * 1024 * 1024,
        event_bytes_max: 4 * 1024 * 1024,
        error_bytes_max: 64 * 1024,
        session_id_length_max: 4096,
        challenge_length_max: 8 * 1024,
        redirects_max: 5,
        renewals_max: 3,
        resends_max: 1,
        retries_max: 3,
        mirrored_bytes_max: 1024 * 1024,
        refresh_pages_max: 32,
        linger: Duration::from_secs(2),
        listening_wait: Duration::from_millis(500),
        closing_wait: Duration::from_secs(5),
        reconnect_pause_min: Duration::from_millis(50),
        reconnect_pause_max: Duration::from_secs(3600),
    };
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
