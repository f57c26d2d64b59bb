use core::time::Duration;

/// Settings of a [`StreamConnection`](super::StreamConnection). The documentation of each field
/// gives the reason for its default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamSettings {
    /// Maximum line length in bytes, including the line end; ignored if the frame memory is lent.
    /// 16 MiB: tools return images and whole files as text, and a peer can occupy at most one such
    /// line of memory. A longer line is reported and skipped, and the connection continues.
    pub frame_length_max: usize,
    /// Maximum size of a read in bytes. 64 KiB, the capacity of a pipe.
    pub read_length_max: usize,
    /// Number of consecutive failed reads after which the input counts as broken. 0: a pipe or a
    /// socket that fails once does not recover. [`StreamSettings::DEVICE`] has 8: a serial line
    /// that lost a byte to noise or an overrun reports it and recovers, and the garbled message is
    /// refused. A line that always fails must not keep a loop busy.
    pub read_errors_max: u32,
    /// How long handlers may run after the end of the input, a broken output, or a local close;
    /// also how long the peer may then accept no queued output. 1.5 s: a host gives a server about
    /// two seconds to exit before it terminates it.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]: a server exits promptly when its
    // input ends.
    pub linger: Duration,
    /// Maximum number of frames per poll before other tasks can run; each step on the stream counts
    /// as one. 512: about a millisecond of work. [`StreamSettings::DEVICE`] has 8: some ten
    /// milliseconds of work on a small processor.
    pub frames_per_poll_max: usize,
    /// Number of frames of one read after which output is written while frames remain; the number
    /// doubles each time. `usize::MAX`, after all frames: the fewest writes, which is best for
    /// sockets and on a fully loaded computer. [`StreamSettings::pipe`] has 2.
    pub frames_before_write: usize,
}

impl StreamSettings {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        frame_length_max: 16 * 1024 * 1024,
        read_length_max: 64 * 1024,
        read_errors_max: 0,
        linger: Duration::from_millis(1500),
        frames_per_poll_max: 512,
        frames_before_write: usize::MAX,
    };

    /// Settings for small processors and serial lines.
    pub const DEVICE: Self = Self { read_errors_max: 8, frames_per_poll_max: 8, ..Self::DEFAULT };

    /// Settings for pipes between two processes, such as the standard streams of a server.
    ///
    /// Writing to a pipe is cheap, and the peer can process the first responses while the server
    /// computes the others. Neither process goes to sleep, and waking up costs the most. Therefore
    /// [`frames_before_write`](Self::frames_before_write) is 2: a single message is written as
    /// usual, and the last of many messages still share their writes.
    #[must_use]
    pub const fn pipe() -> Self {
        Self { frames_before_write: 2, ..Self::DEFAULT }
    }
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
