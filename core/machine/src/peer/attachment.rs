//! What a layer above has to remember of a request.

#[cfg(all(feature = "auth", target_has_atomic = "ptr"))]
use alloc::sync::Arc;
#[cfg(all(feature = "auth", target_has_atomic = "ptr"))]
use core::any::Any;
use core::fmt;

/// Something that stays with a request through all its rounds, and that nothing here looks at.
#[derive(Clone, Default)]
pub(crate) struct Attachment {
    #[cfg(all(feature = "auth", target_has_atomic = "ptr"))]
    value: Option<Arc<dyn Any + Send + Sync>>,
}

#[cfg(all(feature = "auth", target_has_atomic = "ptr"))]
impl Attachment {
    pub(crate) fn new(value: impl Any + Send + Sync) -> Self {
        Self { value: Some(Arc::new(value)) }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.value.is_none()
    }

    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.value.as_deref().and_then(|value| value.downcast_ref())
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attachment(..)")
    }
}
