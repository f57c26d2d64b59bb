use core::time::Duration;

/// Limits on the memory and work that a peer can cause. The documentation of each field gives the
/// reason for its default.
///
/// Costs are given in bytes of heap on a 64-bit computer; tables take less on a 32-bit device.
/// [`server_memory_max`] and [`client_memory_max`] return the total.
///
/// [`server_memory_max`]: Self::server_memory_max
/// [`client_memory_max`]: Self::client_memory_max
///
/// ```
/// use mcp_sansio::peer::{Limits, MessageLengths};
///
/// let mut limits = Limits::SMALL;
/// limits.requests_in_flight_max = 2;
/// // The longest line that is received, and the longest that is sent.
/// let lengths = MessageLengths::new(1024, 512);
/// assert!(limits.server_memory_max(lengths) < Limits::SMALL.server_memory_max(lengths));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Nesting depth of JSON values. 128: the same as in `serde_json`, so that accepted values can
    /// be decoded. The scanner builds no values, so depth costs no memory here; decoding uses
    /// stack.
    pub depth_max: usize,
    /// Length of a peer's string id or progress token in bytes; for an id, of its JSON text. 1,024:
    /// ids with trace information have some hundred. A request with a longer id is refused, under
    /// that id. Each request in flight keeps both: up to 64 bytes inline; a longer one costs its
    /// length in addition, and the same again in each message that repeats it.
    pub id_length_max: usize,
    /// Messages in a batch. 1,024: a batch is answered in one frame, so its responses are buffered.
    /// Each costs an event of 176 bytes plus its text, and a refusal of up to 192 bytes plus its
    /// id.
    pub batch_length_max: usize,
    /// Bytes of buffered responses in all batches together. 1 MiB: above it, a batch is answered in
    /// more than one frame. Costs up to three times as much.
    pub batch_bytes_max: usize,
    /// Pending requests of the peer. 4,096: each is a task in many applications. Further requests
    /// are refused, not lost. Each costs some 500 bytes, plus 250 for an input round, plus its
    /// response while that is queued.
    pub requests_in_flight_max: usize,
    /// Pending calls of this side. 65,536: a guard against a caller that never reads the outcome.
    /// Each costs some 400 bytes, and an event if they all end together.
    pub calls_in_flight_max: usize,
    /// Bytes of queued output, plus 32 for each message, above which
    /// [`is_congested`](crate::peer::Server::is_congested) asks the driver to stop reading. 16 MiB:
    /// a peer that sends 100,000 pings before its first read does not block itself. Above the
    /// limit, progress and log messages are dropped, change notifications are deferred and merged,
    /// and the rest of a batch is refused. Messages that were withdrawn for a cancelled request do
    /// not count. Costs up to four times as much while the queue is reallocated.
    pub transmit_bytes_max: usize,
    /// Abandoned calls whose late responses are silently ignored. 256; see also
    /// `tombstone_duration`. Each costs 16 bytes.
    pub tombstones_max: usize,
    /// How long a late response is expected. One minute, longer than any reasonable round trip.
    pub tombstone_duration: Duration,
    /// Input rounds of one call. 16: users do not answer a seventeenth input request. No memory
    /// cost: the state of a round is dropped before the next.
    pub rounds_max: u32,
    /// Input requests in one round. 32: more than a user would answer. Each costs 112 bytes, and
    /// for a client an event of 176 bytes.
    pub inputs_per_round_max: usize,
    /// Bytes stored for calls and requests that wait for input: requests to be delivered again,
    /// states, and earlier input responses, all together. 64 MiB: sixteen bodies of the maximum
    /// length on HTTP. Above the limit, a request is refused, an input response counts as refused,
    /// and a call ends with [`Failure::TooMuchInput`](crate::peer::Failure::TooMuchInput). Costs up
    /// to twice as much.
    pub input_bytes_max: usize,
    /// URIs that a legacy peer may subscribe to, and that all listen streams of a modern peer may
    /// name together; the same number again for tasks. 4,096, each of at most `uri_length_max`
    /// bytes. Each costs up to five times its length plus some 250 bytes: once for a session, twice
    /// for listen streams (as a resource and as a task), and twice while a notification for it is
    /// deferred.
    pub subscribed_resources_max: usize,
    /// Open listen streams of a modern peer. 256: a client needs one. Each costs as much as a
    /// request in flight, plus the two messages that end it.
    pub listen_streams_max: usize,
    /// Length of a stored URI in bytes. 2,048, the length that browsers accept. See
    /// `subscribed_resources_max` for the cost.
    pub uri_length_max: usize,
    /// Progress notifications sent per request in one second. 1,000: a higher rate indicates a
    /// loop. Further notifications are dropped. The cost is included in `transmit_bytes_max`.
    // MCP 2025-11-25 basic/utilities/progress#implementation-notes [PROG-008]
    pub progress_per_second_max: u32,
    /// Progress reports and log messages of one request that wait for the driver. 65,536: a handler
    /// that does not wait for the driver may report each step of a long loop. If a handler never
    /// yields, or its peer reads nothing, further reports are dropped. The share of a request
    /// shrinks as others queue more, so that all together have less than twice as many and one
    /// request cannot use up the space of the others. Reports of the application that belong to no
    /// request count as one request. Each costs some 100 bytes plus its text, which belongs to the
    /// handler and is not part of the memory formulas.
    pub reports_max: usize,
    /// Commands of one request, or of the application, that wait for the driver: catalog edits and
    /// resource updates; for a client its calls. 65,536, the same as calls in flight. Further
    /// commands are refused with an error. They are shared like `reports_max`. Each costs some 100
    /// bytes plus its content.
    pub commands_max: usize,
    /// Total size in bytes of one request's reports that wait for the driver, and separately of its
    /// commands: the text and the overhead of each. 16 MiB, the same as the output queue. Shared
    /// like `reports_max`.
    pub mailbox_bytes_max: usize,
}

impl Limits {
    /// The defaults for a desktop or server computer.
    pub const DEFAULT: Self = Self {
        depth_max: 128,
        id_length_max: 1024,
        batch_length_max: 1024,
        batch_bytes_max: 1024 * 1024,
        requests_in_flight_max: 4096,
        calls_in_flight_max: 65_536,
        transmit_bytes_max: 16 * 1024 * 1024,
        tombstones_max: 256,
        tombstone_duration: Duration::from_secs(60),
        rounds_max: 16,
        inputs_per_round_max: 32,
        input_bytes_max: 64 * 1024 * 1024,
        subscribed_resources_max: 4096,
        listen_streams_max: 256,
        uri_length_max: 2048,
        progress_per_second_max: 1000,
        reports_max: 65_536,
        commands_max: 65_536,
        mailbox_bytes_max: 16 * 1024 * 1024,
    };

    /// Returns the limits for parsing a frame.
    pub(crate) const fn parse_limits(&self) -> crate::jsonrpc::ParseLimits {
        crate::jsonrpc::ParseLimits {
            depth: self.depth_max,
            batch: self.batch_length_max,
            id_length: self.id_length_max,
        }
    }

    /// Limits for a device with some ten kilobytes of free memory and one client. The source code
    /// gives the reason for each.
    pub const SMALL: Self = Self {
        // Decoding uses a few dozen bytes of stack per level; clients' schemas and forms have fewer
        // than ten levels.
        depth_max: 32,
        // A UUID has 36 bytes, and inline storage costs no extra memory.
        id_length_max: 64,
        // Each message may be a request with its own event.
        batch_length_max: 8,
        // Eight responses of some hundred bytes each.
        batch_bytes_max: 1024,
        // Clients run a few tools concurrently; each costs some hundred bytes plus its handler.
        requests_in_flight_max: 4,
        // A device makes one call at a time.
        calls_in_flight_max: 4,
        // Two lists of a dozen tools. The queue is contiguous, so it costs up to twice this.
        transmit_bytes_max: 4 * 1024,
        // The same as the number of calls.
        tombstones_max: 4,
        // A serial line delays a response by a few seconds.
        tombstone_duration: Duration::from_secs(10),
        // Responses of earlier rounds are stored until the last one.
        rounds_max: 4,
        // A user does not want to see more than one form at once.
        inputs_per_round_max: 4,
        // One or two requests with the responses to a form.
        input_bytes_max: 2 * 1024,
        // The subscriptions of one client, each of at most `uri_length_max` bytes: half a kilobyte.
        subscribed_resources_max: 4,
        // One for lists, one for resources.
        listen_streams_max: 2,
        // The device chooses its own URIs and can keep them short.
        uri_length_max: 128,
        // A report of a hundred bytes on a line with 115,200 bits per second: a fifth of its
        // capacity.
        progress_per_second_max: 20,
        // The reports of a handler between two of its yields.
        reports_max: 8,
        // The same number: a device reports its sensors one by one.
        commands_max: 8,
        // Eight reports of some hundred bytes each, plus overhead.
        mailbox_bytes_max: 2 * 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Timeouts. Each can be set per connection, and those of calls also per call.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Timeouts {
    /// Time without a response or progress after which a call times out. 60 s, as in other
    /// implementations. Over HTTP, a client also gives up a response or notification that the
    /// server has not accepted in this time.
    // MCP 2025-11-25 basic/lifecycle#timeouts [TIME-001]
    pub call: Duration,
    /// Total time of a call, regardless of progress. 10 minutes.
    // MCP 2025-11-25 basic/lifecycle#timeouts [TIME-006]
    pub call_hard: Duration,
    /// Time for the response to `initialize`. 60 s: a server may be downloaded before it starts.
    pub opening: Duration,
    /// Time for the response to the `server/discover` probe. 2 s: a legacy server may not respond,
    /// and each connection to one waits this long unless its era is
    /// [known](super::ClientOptions::known_era). A running server answers within milliseconds, and
    /// one in Python or JavaScript has started by then. A slower modern server is detected when it
    /// refuses the handshake.
    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-022]
    pub probe: Duration,
    /// Interval of keep-alive pings in a legacy session. `None`, the default, sends no pings: the
    /// end of a byte stream is detected without them.
    // MCP 2025-11-25 basic/utilities/ping#implementation-considerations [PING-003]
    pub keep_alive: Option<Duration>,
    /// Time for the response to a keep-alive ping, and before the next one if the transport fails
    /// it. 10 s.
    pub keep_alive_answer: Duration,
    /// Number of consecutive unanswered keep-alive pings that closes the connection. 3.
    pub keep_alive_failures_max: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(60),
            call_hard: Duration::from_secs(600),
            opening: Duration::from_secs(60),
            probe: Duration::from_secs(2),
            keep_alive: None,
            keep_alive_answer: Duration::from_secs(10),
            keep_alive_failures_max: 3,
        }
    }
}
