use core::time::Duration;

/// How a [`Connection`](super::Connection) is driven. Each default has its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The longest line that is taken, in bytes, line end included, where the memory for it is not
    /// lent. 16 MiB: tools return images and whole files as text, and a peer cannot make this side
    /// hold more than one such line. A longer one is reported, skipped, and the stream goes on.
    pub frame_length_max: usize,
    /// The most that is read at once, in bytes. 64 KiB: what a pipe holds.
    pub read_length_max: usize,
    /// How many reads in a row may fail before the input counts as broken. 0: a pipe or a socket
    /// that fails once fails for good. [`Settings::DEVICE`] has 8: a serial line that lost a byte to
    /// noise or to an overrun reports it and goes on, and what was garbled is refused as a message;
    /// a line that does nothing but fail must not keep a loop busy.
    pub read_errors_max: u32,
    /// How long handlers may run once the connection is over, that is after the end of the input,
    /// a broken output, or a close from this side; and how long the other side may take nothing of
    /// what waits for it then. 1.5 s: a host gives a server some two seconds to exit before it is
    /// terminated.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]: a server exits promptly when its
    // input ends.
    pub linger: Duration,
    /// How many frames are taken in one poll before other tasks can run; a look at the stream counts
    /// as one. 512: about a millisecond's work. [`Settings::DEVICE`] has 8: some ten milliseconds'
    /// work for a small processor.
    pub frames_per_poll_max: usize,
    /// After how many frames of one read what waits is written, while the rest is still to be
    /// handed over, and then after twice as many each time. `usize::MAX`, that is after all of them:
    /// the fewest writes, which is best for sockets, and where every processor is busy.
    /// [`Settings::pipe`] has 2.
    pub frames_before_write: usize,
}

impl Settings {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        frame_length_max: 16 * 1024 * 1024,
        read_length_max: 64 * 1024,
        read_errors_max: 0,
        linger: Duration::from_millis(1500),
        frames_per_poll_max: 512,
        frames_before_write: usize::MAX,
    };

    /// For small processors and serial lines.
    pub const DEVICE: Self = Self { read_errors_max: 8, frames_per_poll_max: 8, ..Self::DEFAULT };

    /// For pipes between two processes, such as the standard streams of a server.
    ///
    /// A write to a pipe is cheap, and the other side can process the first answers while the
    /// others are made: neither falls asleep, and it is the waking up that costs the most. So
    /// [`frames_before_write`](Self::frames_before_write) is 2 here: a message that comes alone is
    /// written as ever, and of many the last ones still share their writes.
    #[must_use]
    pub const fn pipe() -> Self {
        Self { frames_before_write: 2, ..Self::DEFAULT }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
