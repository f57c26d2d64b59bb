use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

/// The lock on a stored credential, released when it is dropped.
pub struct CredentialLock(Option<Box<dyn Any + Send>>);

impl CredentialLock {
    /// Creates a lock from a value that releases it when it is dropped, such as an open file.
    #[must_use]
    pub fn new(guard: impl Send + 'static) -> Self {
        Self(Some(Box::new(guard)))
    }

    /// Creates a lock that locks nothing, for a store that cannot lock.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }
}

impl fmt::Debug for CredentialLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialLock").field("locks", &self.0.is_some()).finish()
    }
}
