use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use crate::client::ClientError;

/// Why a connection could not be opened, or ended.
pub type ConnectionError = Arc<dyn core::error::Error + Send + Sync>;

/// Why a server of [`Servers`](super::Servers) could not be added, listed or called.
///
/// Its [`Debug`](fmt::Debug) output is the message as well, for programs that return it from `main`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ServersError {
    /// A server with this name was added before, and its future still exists.
    #[error("there is a server {name:?} already")]
    NameInUse {
        /// The name.
        name: String,
    },
    /// With both names, two tools of different servers could get the same name. Choose another name
    /// or another [separator](super::Servers::separator).
    #[error("a tool of {name:?} could have the same name as a tool of {other:?}")]
    AmbiguousName {
        /// The name that was refused.
        name: String,
        /// The name of the other server.
        other: String,
    },
    /// There is no server for this name: it does not begin with the name of a server and the
    /// separator.
    #[error("no server offers {name:?}")]
    UnknownName {
        /// The name that was called or looked up.
        name: String,
    },
    /// The server is not connected.
    #[error("the server {server:?} is not connected{}", Because(error.as_ref()))]
    NotConnected {
        /// The name of the server.
        server: String,
        /// Why the last connection ended or could not be opened; `None` while one is being opened,
        /// for which [`ready`](super::Servers::ready) waits, or while the process of the server is
        /// started again.
        error: Option<ConnectionError>,
    },
    /// A list of the server could not be read.
    #[error("the server {server:?}: {error}")]
    List {
        /// The name of the server.
        server: String,
        /// Why not.
        error: Arc<ClientError>,
    },
}

impl fmt::Debug for ServersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the reason, or that the server is only not connected yet.
struct Because<'a>(Option<&'a ConnectionError>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(error) => write!(f, ": {error}"),
            None => f.write_str(" yet"),
        }
    }
}
