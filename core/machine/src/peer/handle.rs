//! Handles of pending requests, calls and input requests.

use mcp_sansio_collections::Key;
use serde::{Deserialize, Serialize};

use super::command::handle_format::{Handle, InputName};

macro_rules! handles {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $(
            $(#[doc = $doc])*
            ///
            /// A handle is never reused, so a stale one is recognized.
            #[derive(
                Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
            )]
            #[serde(into = "Handle", from = "Handle")]
            pub struct $name {
                pub(crate) key: Key,
                /// The connection, if one machine serves several.
                pub(crate) connection: Key,
            }

            impl $name {
                pub(crate) const fn new(key: Key) -> Self {
                    Self { key, connection: Key::NONE }
                }

                /// Returns the slot in the connection's table of pending entries, an index for
                /// tables of a higher layer. Slots are dense and reused.
                #[must_use]
                pub const fn slot(self) -> u32 {
                    self.key.slot
                }
            }
        )*
    };
}

handles! {
    /// A handle of a call that this side made.
    CallHandle;
    /// A handle of a peer's request that waits for its response.
    RequestHandle;
}

impl RequestHandle {
    /// Returns whether one connection received both requests. A machine may serve several: a session
    /// each, or a request without a session.
    #[must_use]
    pub fn is_on_connection_of(self, other: Self) -> bool {
        self.connection == other.connection
    }
}

/// A handle of an input request that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "InputName", from = "InputName")]
pub struct InputHandle(pub(crate) InputSource);

/// The origin of an input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum InputSource {
    /// A request of a legacy server.
    Request(Key),
    /// An entry of the input requests in one round of a call.
    Round { call: Key, round: u32, index: u32 },
}
