use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_sansio::Instant;

use crate::{Runtime, Timer};

/// A type-erased [`Runtime`]: response bodies are public types, and would otherwise need a type
/// parameter in every program.
pub(super) trait AnyRuntime: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Instant;

    fn timer(&self) -> Box<dyn Timer + Send>;

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

impl<R: Runtime> AnyRuntime for R {
    fn now(&self) -> Instant {
        Runtime::now(self)
    }

    fn timer(&self) -> Box<dyn Timer + Send> {
        Box::new(Runtime::timer(self))
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        Runtime::spawn(self, task);
    }
}
