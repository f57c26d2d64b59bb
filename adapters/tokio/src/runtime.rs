//! tokio as a runtime of [`mcp_sansio_async`].

use std::future::Future;

use mcp_sansio::{Instant, Job};
use mcp_sansio_async::Runtime;
use tokio::runtime::Handle;

use crate::now;

#[cfg(feature = "client")]
pub use crate::child::{ChildStream, TokioProcess};
#[cfg(feature = "http-client")]
pub use crate::http_client::{ConnectorBuilder, TokioExchanger};
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use crate::network::Listener;
pub use crate::standard_streams::StandardStreams;
pub use crate::timer::{TokioAlarm, TokioTimer};

/// A tokio runtime, with I/O and time enabled.
#[derive(Clone, Debug)]
pub struct TokioRuntime(Handle);

impl Runtime for TokioRuntime {
    type Timer = TokioTimer;

    fn current() -> Self {
        Self(Handle::current())
    }

    fn timer(&self) -> TokioTimer {
        TokioTimer::new()
    }

    fn now(&self) -> Instant {
        now()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        drop(self.0.spawn(future));
    }

    fn spawn_blocking(job: Job) {
        drop(tokio::task::spawn_blocking(job));
    }
}
