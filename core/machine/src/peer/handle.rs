//! Handles of pending requests, calls and input requests.

use alloc::boxed::Box;
use core::ops::Deref;

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
    /// Returns the connection that received the request.
    #[must_use]
    pub const fn connection(self) -> ConnectionHandle {
        ConnectionHandle(self.connection)
    }
}

/// The subscriptions of this side that a notification belongs to, in the order in which they were
/// made: a slice of [`CallHandle`]s. Up to one handle is stored without an allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionHandles(Handles);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Handles {
    #[default]
    None,
    One(CallHandle),
    Several(Box<[CallHandle]>),
}

impl SubscriptionHandles {
    /// No subscription.
    pub(crate) const NONE: Self = Self(Handles::None);
}

impl Deref for SubscriptionHandles {
    type Target = [CallHandle];

    fn deref(&self) -> &[CallHandle] {
        match &self.0 {
            Handles::None => &[],
            Handles::One(handle) => core::slice::from_ref(handle),
            Handles::Several(handles) => handles,
        }
    }
}

impl FromIterator<CallHandle> for SubscriptionHandles {
    fn from_iter<I: IntoIterator<Item = CallHandle>>(handles: I) -> Self {
        let mut handles = handles.into_iter();
        Self(match (handles.next(), handles.next()) {
            (None, _) => Handles::None,
            (Some(only), None) => Handles::One(only),
            (Some(first), Some(second)) => {
                Handles::Several([first, second].into_iter().chain(handles).collect())
            }
        })
    }
}

impl<'a> IntoIterator for &'a SubscriptionHandles {
    type Item = &'a CallHandle;
    type IntoIter = core::slice::Iter<'a, CallHandle>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A handle of a connection in a machine that serves several: a session, or a request without a
/// session. Equal for all requests of a machine with one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle(Key);

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
