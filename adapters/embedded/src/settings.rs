use core::time::Duration;

/// How a driver goes about its work. Each default has its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// How long handlers may go on once the connection is over, that is after the end of the input,
    /// a broken output, or a close from this side; and how long the other side may take nothing of
    /// what waits for it then. 1.5 s: a host gives a server some two seconds to exit before it is
    /// terminated.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]: a server exits promptly when its
    // input ends.
    pub linger: Duration,
    /// How many frames are taken in one poll before others get their turn; a look at the streams
    /// counts as one. 8: some ten milliseconds' work for a small processor.
    pub frames_per_poll_max: usize,
    /// How many reads in a row may fail before the input counts as broken. 8: a serial line that
    /// lost a byte to noise or to an overrun reports it and goes on, and what was garbled is refused
    /// as a message; a line that does nothing but fail must not keep a loop busy. An error which
    /// says that the other side has gone ends the input at once.
    pub read_errors_max: u32,
}

impl Settings {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { linger: Duration::from_millis(1500), frames_per_poll_max: 8, read_errors_max: 8 };
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
