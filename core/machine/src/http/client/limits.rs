use core::time::Duration;

/// Every bound on what a server can make an HTTP client hold or do, beyond those of
/// [`peer::Limits`](crate::peer::Limits). Each default has its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(default))]
#[non_exhaustive]
pub struct ClientLimits {
    /// Requests to the server that are under way at once, those included whose stream waits to be
    /// resumed. 64: below what servers commonly allow on one connection of HTTP/2 (100). Further
    /// ones wait in a queue.
    pub requests_max: usize,
    /// Exchanges beyond those for what must not wait for an answer to come first: answers to the
    /// server's questions, cancellations, notifications. 8: a call may wait for such an answer, so
    /// these never wait for calls.
    pub control_exchanges_max: usize,
    /// The length of a body of JSON, in bytes. 4 MiB: the longest line that adapters take from a
    /// byte stream by default.
    pub body_bytes_max: usize,
    /// The length of an event of a stream, in bytes. 4 MiB: a message, like a body.
    pub event_bytes_max: usize,
    /// The length of the body of a refusal, in bytes. 64 KiB: an error of JSON-RPC with its data.
    pub error_bytes_max: usize,
    /// The length of a session id, in bytes. 1,024: some are tokens; servers commonly take 8 KiB
    /// for all headers together.
    pub session_id_length_max: usize,
    /// The length of a `WWW-Authenticate` value that is kept, in bytes. 8 KiB; a longer one is
    /// dropped.
    pub challenge_length_max: usize,
    /// Redirects followed for one message. 5.
    pub redirects_max: u32,
    /// Sessions opened one after the other of which none could be used. 3: a server that forgets
    /// every session at once is broken.
    pub renewals_max: u32,
    /// Times that one message is sent again because its session had ended. 1.
    pub resends_max: u32,
    /// Tools whose arguments are mirrored into headers. 1,024, the least recently listed are
    /// forgotten first.
    pub mirrored_tools_max: usize,
    /// Pages of `tools/list` that are read to refresh the header_params of one tool. 32.
    pub refresh_pages_max: u32,
    /// How long a response may go on after the answer is there. 2 s: servers end the stream with
    /// the answer; what goes on is cut off.
    pub linger: Duration,
    /// How long calls wait for the listening stream of a legacy session to stand. 500 ms: a server
    /// may ask on that stream and nowhere else, but not every server sends the head of a response
    /// before the first event.
    pub listening_wait: Duration,
    /// How long the server has to take note of the end of the session. 5 s.
    pub closing_wait: Duration,
    /// The least pause before a stream is resumed, whatever the server asks for. 50 ms: a server
    /// that asks for none does not make the client spin.
    pub reconnect_pause_min: Duration,
}

impl ClientLimits {
    /// The defaults for a computer.
    pub const DEFAULT: Self = Self {
        requests_max: 64,
        control_exchanges_max: 8,
        body_bytes_max: 4 * 1024 * 1024,
        event_bytes_max: 4 * 1024 * 1024,
        error_bytes_max: 64 * 1024,
        session_id_length_max: 1024,
        challenge_length_max: 8 * 1024,
        redirects_max: 5,
        renewals_max: 3,
        resends_max: 1,
        mirrored_tools_max: 1024,
        refresh_pages_max: 32,
        linger: Duration::from_secs(2),
        listening_wait: Duration::from_millis(500),
        closing_wait: Duration::from_secs(5),
        reconnect_pause_min: Duration::from_millis(50),
    };
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
