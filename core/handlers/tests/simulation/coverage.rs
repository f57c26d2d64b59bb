use std::fmt;

macro_rules! happenings {
    ($($name:ident = $words:literal,)*) => {
        /// Events of a schedule: faults, actions of applications, and outcomes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Happening { $($name,)* }

        impl Happening {
            const ALL: &[(Self, &'static str)] = &[$((Self::$name, $words),)*];
        }
    };
}

happenings! {
    // Schedules.
    Streams = "schedules over byte streams",
    Exchanges = "schedules over HTTP exchanges",
    HandlersOnStreams = "schedules of handlers over byte streams",
    Open20241105 = "connections opened at 2024-11-05",
    Open20250326 = "connections opened at 2025-03-26",
    Open20250618 = "connections opened at 2025-06-18",
    Open20251125 = "connections opened at 2025-11-25",
    Open20260728 = "connections opened at 2026-07-28",
    OldTransport = "clients of HTTP+SSE",
    BothEras = "clients that detect the era",
    // Faults of every network.
    Split = "pieces of split writes and bodies",
    Stall = "stalls of a direction or an exchange",
    Cut = "connections and responses cut",
    CutInFrame = "cuts in the middle of a frame",
    HalfClosed = "directions closed alone",
    SlowReader = "readers that stop for a while",
    LateWake = "deadlines met late",
    Jump = "jumps of the clock",
    StandStill = "stretches without any time",
    ServerRestart = "servers started again",
    ClientRestart = "clients started again",
    // Faults of HTTP.
    Lost = "requests lost without a word",
    NotSent = "requests that were never sent",
    Duplicated = "requests delivered twice",
    Reordered = "responses that overtake earlier ones",
    Polite = "cuts that look like an end",
    HalfOpen = "cuts that the server detects late",
    Proxy = "refusals by a proxy",
    Resumed = "streams resumed",
    StoreFailed = "failed reads of the store",
    StoreLate = "completions of abandoned reads",
    StoreHole = "events lost by the store",
    StoreKept = "restarts that keep the store",
    StoreLost = "restarts that lose the store",
    StoreRead = "reads of the store",
    Aborted = "responses aborted by the server",
    // Actions of applications.
    Called = "calls",
    Cancelled = "calls cancelled by the client",
    Subscribed = "subscriptions",
    Closed = "connections closed by the client",
    ServerClosed = "connections closed by the server",
    Answered = "requests answered",
    Rejected = "requests rejected",
    Asked = "requests answered with input requests",
    Forgotten = "requests never answered",
    Progress = "progress sent",
    Logged = "log messages sent",
    Broadcast = "broadcasts",
    Released = "connections released by handlers",
    Questioned = "calls made by servers",
    InputAnswered = "questions answered",
    InputRefused = "questions refused",
    InputWithdrawn = "questions withdrawn",
    LateAnswer = "answers to abandoned requests",
    LeftOut = "broadcasts dropped for a slow client",
    // Outcomes.
    Succeeded = "calls that ended with a result",
    Refused = "calls that ended with an error",
    TimedOut = "calls that timed out",
    TimedOutHard = "calls that reached their hard timeout",
    WithInput = "calls with rounds of input that succeeded",
    ConnectionLost = "calls that ended with their connection",
    TransportFailed = "calls that failed with their transport",
    RequestGivenUp = "requests abandoned by their client",
    ProgressHeard = "progress heard",
    LogHeard = "log messages received",
    UpdateHeard = "updates heard",
    LossReported = "losses reported",
    Reopened = "sessions opened again",
    Congested = "reads delayed by congestion",
    Overlong = "overlong frames skipped",
}

/// How often each event occurred, in one schedule or in many.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    counts: [u64; Happening::ALL.len()],
    pub(crate) schedules: u64,
    pub(crate) steps: u64,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Virtual time, in seconds.
    pub(crate) seconds: u64,
}

impl Coverage {
    pub(crate) const fn new() -> Self {
        Self {
            counts: [0; Happening::ALL.len()],
            schedules: 0,
            steps: 0,
            messages: 0,
            bytes: 0,
            seconds: 0,
        }
    }

    pub(crate) const fn count(&mut self, happening: Happening) {
        self.counts[happening as usize] += 1;
    }

    pub(crate) const fn count_of(&self, happening: Happening) -> u64 {
        self.counts[happening as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.schedules += other.schedules;
        self.steps += other.steps;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }

    /// Returns the events that never occurred.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let never = |(happening, words): &(Happening, &'static str)| {
            (self.count_of(*happening) == 0).then_some(*words)
        };
        Happening::ALL.iter().filter_map(never).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (happening, words) in Happening::ALL {
            writeln!(f, "{:>14}  {words}", self.count_of(*happening))?;
        }
        writeln!(f, "{:>14}  schedules", self.schedules)?;
        writeln!(f, "{:>14}  steps", self.steps)?;
        writeln!(f, "{:>14}  messages", self.messages)?;
        writeln!(f, "{:>14}  bytes", self.bytes)?;
        write!(f, "{:>14}  days of virtual time", self.seconds / 86_400)
    }
}
