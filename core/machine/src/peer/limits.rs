use core::time::Duration;

/// Every bound on what the other side can make this side hold or do. Each default has its reason.
///
/// What each costs is said in bytes of the heap of a computer of 64 bits; on a device of 32 tables
/// take less. What all of them cost together, [`server_memory_max`] and [`client_memory_max`] say.
///
/// [`server_memory_max`]: Self::server_memory_max
/// [`client_memory_max`]: Self::client_memory_max
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(default))]
#[non_exhaustive]
pub struct Limits {
    /// The nesting of JSON values. 128: `serde_json` stops there too, so that what passes can be
    /// decoded. Costs nothing here, as nothing is built; decoding costs stack.
    pub depth_max: usize,
    /// The length of a string id or progress token of the other side, in bytes; of an id, those of
    /// its JSON text. 1,024: ids that tell of a trace have some hundred. A request with a longer
    /// one is refused under its id. Each request in flight keeps both: up to 64 bytes inline, a
    /// longer one costs its length more, and as much again in each message that repeats it.
    pub id_length_max: usize,
    /// Messages in a batch. 1,024: a batch is answered as one frame, so its answers are held.
    /// Each costs an event, of 176 bytes and its text, and a refusal, of up to 192 and its id.
    pub batch_length_max: usize,
    /// Bytes of answers that wait for others of their batch, of all batches together. 1 MiB: beyond
    /// it the answers of a batch leave in more than one frame. Costs up to three times as much.
    pub batch_bytes_max: usize,
    /// Requests of the other side that are not answered yet. 4,096: each is a task in many
    /// applications. A request beyond is refused, not lost. Each costs some 500 bytes, a round of
    /// input 250 more, and its answer when that waits to be sent.
    pub requests_in_flight_max: usize,
    /// Calls of this side that are not ended yet. 65,536: a guard against a caller that never
    /// looks at the outcome. Each costs some 400 bytes, and an event when they end together.
    pub calls_in_flight_max: usize,
    /// Bytes that wait to be sent, and 32 for each message of them, before
    /// [`is_congested`](crate::peer::Server::is_congested) asks the driver to stop reading. 16 MiB:
    /// a peer that sends 100,000 pings before its first read still does not block itself. Beyond it
    /// progress and log messages are dropped, changes are told later and once, and what is left of
    /// a batch is refused. What is withdrawn for a cancelled request does not count any more. Costs
    /// up to four times as much, for the time that the queue moves to a larger place.
    pub transmit_bytes_max: usize,
    /// Calls given up whose late answers are absorbed in silence. 256, and see
    /// `tombstone_duration`. Each costs 16 bytes.
    pub tombstones_max: usize,
    /// How long a late answer is expected. One minute: longer than any sane round trip.
    pub tombstone_duration: Duration,
    /// Rounds of input that one call may take. 16: nobody answers a seventeenth question. Costs
    /// nothing: a round is forgotten before the next.
    pub rounds_max: u32,
    /// Input requests in one round. 32: more than a person would answer. Each costs 112 bytes, and of
    /// a client an event of 176.
    pub inputs_per_round_max: usize,
    /// Bytes that are kept for calls and requests that wait for input: requests that are handed to
    /// the application again, states, and the answers of earlier questions, all together. 64 MiB:
    /// sixteen of the longest messages that adapters take. Beyond it a request is refused, an answer
    /// counts as refused, and a call ends with
    /// [`Failure::TooMuchInput`](crate::peer::Failure::TooMuchInput). Costs up to twice as much.
    pub input_bytes_max: usize,
    /// URIs that a legacy peer may subscribe to, and that all listen streams of a modern one may
    /// name together; of tasks as many. 4,096, each of `uri_length_max` bytes at most.
    /// Each costs up to five times its length and some 250 bytes: of a session, of listen streams as
    /// a resource and as a task, and twice where news of it has to wait.
    pub subscribed_resources_max: usize,
    /// Listen streams that a modern peer may hold open. 256: a client needs one. Each costs as much
    /// as a request in flight, and the two messages that end it.
    pub listen_streams_max: usize,
    /// The length of a URI that is kept, in bytes. 2,048: what browsers accept. Costs
    /// what `subscribed_resources_max` says.
    pub uri_length_max: usize,
    /// Progress notifications of one request that are sent in any second. 1,000: more is a loop,
    /// not progress. Those beyond are dropped. Costs nothing that `transmit_bytes_max` does not.
    // MCP 2025-11-25 basic/utilities/progress#implementation-notes [PROG-008]
    pub progress_per_second_max: u32,
    /// Progress reports and log messages of one request that wait for the driver. 65,536: a handler
    /// that does not pause for it may report each step of a long loop. One that never pauses, or
    /// whose peer reads nothing, has those beyond dropped. What a request may have shrinks as others
    /// leave more, so that all together have less than twice as many, and one request cannot take
    /// the room of the others. Those of the application, which belong to no request, count as those
    /// of one. Each costs some 100 bytes and its text, which is the handler's own and part of no
    /// formula.
    pub reports_max: usize,
    /// Commands of one request, or of the application, that wait for the driver: edits of the
    /// catalog, news of resources; of a client its calls. 65,536: as many as calls in flight. One
    /// beyond is refused with an error that says so. They are shared out like `reports_max`. Each
    /// costs some 100 bytes, and what it holds.
    pub commands_max: usize,
    /// Bytes of the reports of one request that wait for the driver, and as many of its commands:
    /// each with its text and what it costs itself. 16 MiB: as many as wait to be sent. Shared out
    /// like `reports_max`.
    pub mailbox_bytes_max: usize,
}

impl Limits {
    /// The defaults for a computer.
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

    /// Those that hold while a frame is read.
    pub(crate) const fn parse_limits(&self) -> crate::jsonrpc::ParseLimits {
        crate::jsonrpc::ParseLimits {
            depth: self.depth_max,
            batch: self.batch_length_max,
            id_length: self.id_length_max,
        }
    }

    /// Bounds for a device with some ten kilobytes to spare, and one client. Each has its reason:
    /// see the source.
    pub const SMALL: Self = Self {
        // A level costs a few dozen bytes of stack where values are decoded; schemas and forms of
        // clients stay under ten.
        depth_max: 32,
        // A UUID has 36, and what is kept inline costs nothing more.
        id_length_max: 64,
        // Each may be a request with an event of its own.
        batch_length_max: 8,
        // Eight answers of some hundred bytes each.
        batch_bytes_max: 1024,
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
        // A request or two, with the answers to a form.
        input_bytes_max: 2 * 1024,
        // Those of one client, of at most `uri_length_max` each: half a kilobyte.
        subscribed_resources_max: 4,
        // One for lists, one for resources.
        listen_streams_max: 2,
        // The device makes up its own URIs, and can make them short.
        uri_length_max: 128,
        // A report of a hundred bytes, on a line of 115,200 bits: a fifth of what it carries.
        progress_per_second_max: 20,
        // What a handler says between two of its pauses.
        reports_max: 8,
        // As many: a device tells of its sensors one by one.
        commands_max: 8,
        // Eight reports of some hundred bytes each, and what each costs beside its text.
        mailbox_bytes_max: 2 * 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How long things may take. Every duration can be set per connection, those of calls per call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(default))]
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
    /// The answer to the `server/discover` probe. 2 s: a legacy server may keep silent, and every
    /// connection to one waits this long, unless its era is [known](super::ClientOptions::known_era).
    /// A server that runs answers within milliseconds, and one in Python or JavaScript has started
    /// by then; a modern one that takes longer is found when it refuses the handshake.
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
            probe: Duration::from_secs(2),
            keep_alive: None,
            keep_alive_answer: Duration::from_secs(10),
            keep_alive_failures_max: 3,
        }
    }
}
