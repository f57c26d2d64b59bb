//! Servers that a client runs as child processes. A runtime implements [`Process`].

pub(crate) mod any;
mod connection;
mod members;
mod process;
mod server;
mod stream;

pub use any::connect_over;
use any::{Stderr, StderrTail};
#[cfg(feature = "http-client")]
pub(crate) use connection::connect_showing;
pub use connection::{ChildConnection, connect, connect_with};
pub use process::{ExitReport, Process, SpawnError, command};
pub(crate) use process::{OpenOutcome, open};
pub use server::{ChildServer, GracePeriods};
pub use stream::ChildStream;

/// The names that adapters export at their root.
pub(crate) mod names {
    pub use super::any::{AnyConnection, Stderr};
    pub use super::connection::SpawnOptions;
    pub use mcp_sansio_handlers::{
        Client, ClientCall, ClientError, Host, HostRequest, ServerSpec, Servers, ServersConfig,
        Subscription,
    };
}
