//! How handles are serialized.

use core::fmt;

use mcp_sansio_collections::Key;
use serde::{Deserialize, Serialize};

use crate::peer::handle::{CallHandle, InputHandle, InputSource, RequestHandle};

/// A handle: its slot and generation, followed by those of its connection if the machine has many
/// connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Handle {
    Own([u32; 2]),
    Of([u32; 4]),
}

impl Handle {
    pub(crate) const fn from_key(key: Key) -> Self {
        Self::Own(key.to_parts())
    }

    const fn within(key: Key, connection: Key) -> Self {
        let ([slot, generation], [owner, owner_generation]) =
            (key.to_parts(), connection.to_parts());
        if owner == Key::NONE.slot {
            Self::from_key(key)
        } else {
            Self::Of([slot, generation, owner, owner_generation])
        }
    }

    pub(crate) const fn key(self) -> Key {
        match self {
            Self::Own([slot, generation]) | Self::Of([slot, generation, ..]) => {
                Key::from_parts(slot, generation)
            }
        }
    }

    const fn connection(self) -> Key {
        match self {
            Self::Own(_) => Key::NONE,
            Self::Of([.., slot, generation]) => Key::from_parts(slot, generation),
        }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(parts) => write!(f, "{parts:?}"),
            Self::Of(parts) => write!(f, "{parts:?}"),
        }
    }
}

impl From<Handle> for RequestHandle {
    fn from(handle: Handle) -> Self {
        Self { key: handle.key(), connection: handle.connection() }
    }
}

impl From<Handle> for CallHandle {
    fn from(handle: Handle) -> Self {
        Self { key: handle.key(), connection: handle.connection() }
    }
}

impl From<RequestHandle> for Handle {
    fn from(handle: RequestHandle) -> Self {
        Self::within(handle.key, handle.connection)
    }
}

impl From<CallHandle> for Handle {
    fn from(handle: CallHandle) -> Self {
        Self::within(handle.key, handle.connection)
    }
}

/// Identifies an input request to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputName {
    Request(Handle),
    Round { call: Handle, round: u32, index: u32 },
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(handle) => handle.fmt(f),
            Self::Round { call, round, index } => write!(f, "{call} {round}.{index}"),
        }
    }
}

impl From<InputName> for InputHandle {
    fn from(name: InputName) -> Self {
        Self(match name {
            InputName::Request(handle) => InputSource::Request(handle.key()),
            InputName::Round { call, round, index } => {
                InputSource::Round { call: call.key(), round, index }
            }
        })
    }
}

impl From<InputHandle> for InputName {
    fn from(handle: InputHandle) -> Self {
        match handle.0 {
            InputSource::Request(key) => Self::Request(Handle::from_key(key)),
            InputSource::Round { call, round, index } => {
                Self::Round { call: Handle::from_key(call), round, index }
            }
        }
    }
}
