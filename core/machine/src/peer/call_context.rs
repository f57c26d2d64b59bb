//! The context that an observer of operations attaches to a call.

use core::any::Any;
use core::fmt;

use mcp_sansio_sync::Arc;

/// The context of a call, as its observer has captured it.
#[derive(Clone)]
pub struct CallContext(Arc<dyn Any + Send + Sync>);

impl CallContext {
    /// Creates a context.
    #[must_use]
    pub const fn new(context: Arc<dyn Any + Send + Sync>) -> Self {
        Self(context)
    }

    /// Returns the context, if it is a `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallContext(..)")
    }
}
