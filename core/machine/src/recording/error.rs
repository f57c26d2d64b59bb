use alloc::string::String;

/// A recording cannot be read, or not completely. It was written incorrectly, truncated or
/// modified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The first line is not that of a recording.
    #[error("this is not a recording: {reason}")]
    NotARecording {
        /// The error in the line.
        reason: String,
    },
    /// This crate does not support the format version of the recording.
    #[error("the recording has format {found}; this program reads format {known}")]
    UnknownFormat {
        /// The version of the recording.
        found: u32,
        /// [`FORMAT`](crate::recording::FORMAT).
        known: u32,
    },
    /// A line does not contain a valid call for the machine.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// The line number; the first line is 1.
        line: usize,
        /// The error in the line.
        reason: String,
    },
    /// The last line is incomplete: the file was truncated, or is still being written. All earlier
    /// lines are complete.
    #[error("the recording ends in the middle of line {line}")]
    CutShort {
        /// The number of the line; the first line is 1.
        line: usize,
    },
}

/// The reason why a replay stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The rest of the recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The machine behaved differently from the recording.
    #[error(transparent)]
    Difference(#[from] Difference),
}

/// The machine behaved differently from the recording. Either it has another version, or the
/// recording was modified, or one of the runs has a defect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} differs: recorded `{recorded}`, replayed `{replayed}`")]
#[non_exhaustive]
pub struct Difference {
    /// The number of the line; the first line is 1.
    pub line: usize,
    /// The line of the recording.
    pub recorded: String,
    /// The line of the replay; empty if there is no such line.
    pub replayed: String,
}
