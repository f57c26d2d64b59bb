//! Data that a higher layer attaches to a request.

#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
#[cfg(target_has_atomic = "ptr")]
use core::any::Any;
use core::fmt;

/// A value that a higher layer attaches to a request for all its rounds. The machine does not
/// inspect it.
#[derive(Clone, Default)]
pub struct Attachment {
    #[cfg(target_has_atomic = "ptr")]
    value: Option<Arc<dyn Any + Send + Sync>>,
}

#[cfg(target_has_atomic = "ptr")]
impl Attachment {
    /// Attaches `value`. Clones share it.
    #[must_use]
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self { value: Some(Arc::new(value)) }
    }

    /// Returns whether no value is attached.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.value.is_none()
    }

    /// Returns the attached value if it is a `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.value.as_deref().and_then(|value| value.downcast_ref())
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachment(..)")
    }
}
