use core::time::Duration;

/// Every bound on what the other side can make this side hold or do. Each default has its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The nesting of JSON values. 128: `serde_json` stops there too, so that what passes can be
    /// decoded.
    pub depth_max: usize,
    /// Messages in a batch. 1,024: a batch is answered as one frame, so its answers are held.
    pub batch_length_max: usize,
    /// Requests of the other side that are not answered yet. 4,096: each costs about 300 bytes
    /// here and a task in many applications. A request beyond is refused, not lost.
    pub requests_in_flight_max: usize,
    /// Calls of this side that are not ended yet. 65,536: a guard against a caller that never
    /// looks at the outcome.
    pub calls_in_flight_max: usize,
    /// Bytes that wait to be sent before [`is_congested`](crate::peer::Server::is_congested) asks
    /// the driver to stop reading. 16 MiB: a peer that sends 100,000 pings before its first read
    /// still does not block itself.
    pub transmit_bytes_max: usize,
    /// Calls given up whose late answers are absorbed in silence. 256, and see
    /// `tombstone_duration`.
    pub tombstones_max: usize,
    /// How long a late answer is expected. One minute: longer than any sane round trip.
    pub tombstone_duration: Duration,
    /// Rounds of input that one call may take. 16: nobody answers a seventeenth question.
    pub rounds_max: u32,
    /// Input requests in one round. 32.
    pub inputs_per_round_max: usize,
    /// URIs that a legacy peer may subscribe to. 4,096, each of `uri_length_max` bytes at most.
    pub subscribed_resources_max: usize,
    /// Listen streams that a modern peer may hold open. 256.
    pub listen_streams_max: usize,
    /// The length of a URI that is kept, in bytes. 2,048: what browsers accept.
    pub uri_length_max: usize,
    /// Progress notifications of one request that are sent in any second. 1,000: more is a loop,
    /// not progress. Those beyond are dropped.
    // MCP 2025-11-25 basic/utilities/progress#implementation-notes [PROG-008]
    pub progress_per_second_max: u32,
}

impl Limits {
    /// The defaults for a computer.
    pub const DEFAULT: Self = Self {
        depth_max: 128,
        batch_length_max: 1024,
        requests_in_flight_max: 4096,
        calls_in_flight_max: 65_536,
        transmit_bytes_max: 16 * 1024 * 1024,
        tombstones_max: 256,
        tombstone_duration: Duration::from_secs(60),
        rounds_max: 16,
        inputs_per_round_max: 32,
        subscribed_resources_max: 4096,
        listen_streams_max: 256,
        uri_length_max: 2048,
        progress_per_second_max: 1000,
    };

    /// Those that hold while a frame is read.
    pub(crate) const fn of_parsing(&self) -> crate::jsonrpc::ParseLimits {
        crate::jsonrpc::ParseLimits { depth: self.depth_max, batch: self.batch_length_max }
    }

    /// Bounds for a device with some ten kilobytes to spare, and one client. Each has its reason:
    /// see the source.
    pub const SMALL: Self = Self {
        // A level costs a few dozen bytes of stack where values are decoded; schemas and forms of
        // clients stay under ten.
        depth_max: 32,
        // Its answers are held together, of some hundred bytes each.
        batch_length_max: 8,
        // Clients call a few tools side by side; each costs some hundred bytes and its handler.
        requests_in_flight_max: 4,
        // A device asks one thing at a time.
        calls_in_flight_max: 4,
        // Two lists of a dozen tools. What waits is kept in one piece, so it costs up to twice this.
        transmit_bytes_max: 4 * 1024,
        // As many as there can be calls.
        tombstones_max: 4,
        // A serial line delays an answer by seconds at most.
        tombstone_duration: Duration::from_secs(10),
        // Answers of earlier rounds are held until the last one.
        rounds_max: 4,
        // More than one form at once is more than a person wants to see.
        inputs_per_round_max: 4,
        // Those of one client, of at most `uri_length_max` each: half a kilobyte.
        subscribed_resources_max: 4,
        // One for lists, one for resources.
        listen_streams_max: 2,
        // The device makes up its own URIs, and can make them short.
        uri_length_max: 128,
        // A report of a hundred bytes, on a line of 115,200 bits: a fifth of what it carries.
        progress_per_second_max: 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How long things may take. Every duration can be set per connection, those of calls per call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// A call without an answer and without progress. 60 s: what other implementations use.
    // MCP 2025-11-25 basic/lifecycle#timeouts [TIME-001]
    pub call: Duration,
    /// A call altogether, progress or not. 10 minutes.
    // MCP 2025-11-25 basic/lifecycle#timeouts [TIME-006]
    pub call_hard: Duration,
    /// The answer to `initialize`. 60 s: a server may be downloaded before it starts.
    pub opening: Duration,
    /// The answer to the `server/discover` probe. 5 s: a legacy server may keep silent, and every
    /// connection to one waits this long.
    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-022]
    pub probe: Duration,
    /// The pause between keep-alive pings of a legacy session; `None` sends none, the default: a
    /// byte stream says by itself when it ends.
    // MCP 2025-11-25 basic/utilities/ping#implementation-considerations [PING-003]
    pub keep_alive: Option<Duration>,
    /// How long a keep-alive ping may take. 10 s.
    pub keep_alive_answer: Duration,
    /// Keep-alive pings without an answer, one after the other, that end the connection. 3.
    pub keep_alive_failures_max: u32,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(60),
            call_hard: Duration::from_secs(600),
            opening: Duration::from_secs(60),
            probe: Duration::from_secs(5),
            keep_alive: None,
            keep_alive_answer: Duration::from_secs(10),
            keep_alive_failures_max: 3,
        }
    }
}
