//! The arguments of recorded calls.

use serde::{Deserialize, Serialize};

use crate::framing::FrameError;
use crate::jsonrpc::RawJson;

/// A framing error.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Misframed {
    TooLong { limit: usize },
    Truncated { length: usize },
}

impl From<FrameError> for Misframed {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLong { limit } => Self::TooLong { limit },
            FrameError::Truncated { length } => Self::Truncated { length },
        }
    }
}

impl From<Misframed> for FrameError {
    fn from(error: Misframed) -> Self {
        match error {
            Misframed::TooLong { limit } => Self::TooLong { limit },
            Misframed::Truncated { length } => Self::Truncated { length },
        }
    }
}

/// A line asks for something that cannot be done. The recording is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unperformable(pub(crate) &'static str);

impl From<super::payload::NotBase64> for Unperformable {
    fn from(_: super::payload::NotBase64) -> Self {
        Self("the bytes are not valid base64")
    }
}

/// The line is a call that this kind of machine does not have.
pub(crate) const MISPLACED: Unperformable =
    Unperformable("this kind of machine does not have this call");

pub(crate) fn decoded<'a, T: Deserialize<'a>>(json: &'a RawJson<'_>) -> Result<T, Unperformable> {
    json.decode().map_err(|_| Unperformable("the value is malformed"))
}
