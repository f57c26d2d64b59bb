use alloc::string::String;

/// A recording cannot be read, or not to its end. The fault of whoever wrote, cut or changed it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Its first line is none of a recording.
    #[error("this is no recording: {reason}")]
    NotARecording {
        /// What is wrong with the line.
        reason: String,
    },
    /// It is of a version of the format that this crate does not read.
    #[error("the recording is of format {found}, and this program reads format {known}")]
    UnknownFormat {
        /// The version.
        found: u32,
        /// [`FORMAT`](crate::recording::FORMAT).
        known: u32,
    },
    /// A line tells of no call that the machine has.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// Its number; the first line is 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The last line has no end: the file was cut, or is still being written. All lines before it
    /// are whole.
    #[error("the recording ends in the middle of line {line}")]
    CutShort {
        /// The number of the line; the first line is 1.
        line: usize,
    },
}

/// Why a replay does not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The recording cannot be read any further.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The machine did something else this time.
    #[error(transparent)]
    Difference(#[from] Difference),
}

/// The machine did something else this time: it is another version of it, or the recording was
/// changed, or there is a defect in either run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} differs: recorded `{recorded}`, replayed `{replayed}`")]
#[non_exhaustive]
pub struct Difference {
    /// The number of the line; the first line is 1.
    pub line: usize,
    /// The line of the recording.
    pub recorded: String,
    /// What it is now; empty where nothing came.
    pub replayed: String,
}
