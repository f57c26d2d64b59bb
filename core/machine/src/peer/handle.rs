//! Names of what waits for an answer.

use mcp_sansio_collections::Key;

macro_rules! handles {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        $(
            $(#[doc = $doc])*
            ///
            /// Never used again for another one, so an old handle is recognised as such.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name {
                pub(crate) key: Key,
                /// Whose it is, where one machine serves many connections.
                pub(crate) connection: Key,
            }

            impl $name {
                pub(crate) const fn new(key: Key) -> Self {
                    Self { key, connection: Key::NONE }
                }

                /// Its place among those of its connection that are in flight: an index for tables of
                /// a layer above. Places are dense, and used again.
                #[must_use]
                pub const fn slot(self) -> u32 {
                    self.key.slot
                }
            }
        )*
    };
}

handles! {
    /// Names a call that this side made.
    CallHandle;
    /// Names a request of the other side that waits for its answer.
    RequestHandle;
}

impl RequestHandle {
    /// The connection that the request came on.
    #[must_use]
    pub const fn connection(self) -> ConnectionHandle {
        ConnectionHandle(self.connection)
    }
}

/// Names a connection of a machine that serves many: a session, or a request without one. The same
/// for all requests of a machine that serves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(Key);

/// Names a question to the host that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputHandle(pub(crate) InputSource);

/// Where a question to the host came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum InputSource {
    /// A request of a legacy server.
    Request(Key),
    /// An entry of the input requests of a call's round.
    Round { call: Key, round: u32, index: u32 },
}
