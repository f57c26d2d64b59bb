//! What a layer above has to remember of a request.

#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
#[cfg(target_has_atomic = "ptr")]
use core::any::Any;
use core::fmt;

/// A value of the layer above that stays with a request through all its rounds. The machine never
/// looks at it.
#[derive(Clone, Default)]
pub struct Attachment {
    #[cfg(target_has_atomic = "ptr")]
    value: Option<Arc<dyn Any + Send + Sync>>,
}

#[cfg(target_has_atomic = "ptr")]
impl Attachment {
    /// Attaches `value`. Copies share it.
    #[must_use]
    pub fn new(value: impl Any + Send + Sync) -> Self {
        Self { value: Some(Arc::new(value)) }
    }

    /// Whether nothing is attached.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.value.is_none()
    }

    /// What is attached, if it is a `T`.
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
