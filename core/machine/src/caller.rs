//! The sender of a request.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use mcp_sansio_sync::Arc;

use crate::Principal;

/// The sender of a request, and its permissions. Cheap to clone.
///
/// The machines receive it with each request and pass it on with the
/// [`Request`](crate::peer::Request). It is never sent to a peer.
#[derive(Clone)]
pub struct Caller(Identity);

#[derive(Clone)]
enum Identity {
    /// The client started this process, or the other way round: everything is allowed.
    Owner,
    /// Nothing that needs a scope is allowed.
    Anonymous,
    Known(Arc<Known>),
}

struct Known {
    principal: Principal,
    credentials: Option<Box<dyn Credentials>>,
}

/// The verified credentials of a caller, such as an access token.
pub trait Credentials: Any + Send + Sync {
    /// Returns the scopes, unchanged.
    fn scopes(&self) -> &[String];

    /// Returns whether the credentials include a scope, or one that implies it.
    fn has_scope(&self, scope: &str) -> bool;
}

/// Scopes none of which implies another.
impl Credentials for Vec<String> {
    fn scopes(&self) -> &[String] {
        self
    }

    fn has_scope(&self, scope: &str) -> bool {
        self.iter().any(|it| it == scope)
    }
}

impl Caller {
    /// The other end of a byte stream: the process that started this one. It has all scopes.
    pub const OWNER: Self = Self(Identity::Owner);

    /// An unknown sender. It has no scopes.
    pub const ANONYMOUS: Self = Self(Identity::Anonymous);

    /// Creates a caller that is known by name and has no scopes.
    #[must_use]
    pub fn from_principal(principal: Principal) -> Self {
        Self(Identity::Known(Arc::new(Known { principal, credentials: None })))
    }

    /// Creates a caller from the principal and the scopes of verified credentials.
    #[must_use]
    pub fn from_credentials(principal: Principal, credentials: impl Credentials) -> Self {
        let credentials: Option<Box<dyn Credentials>> = Some(Box::new(credentials));
        Self(Identity::Known(Arc::new(Known { principal, credentials })))
    }

    /// Returns the principal, if it is known.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        match &self.0 {
            Identity::Known(known) => Some(&known.principal),
            Identity::Owner | Identity::Anonymous => None,
        }
    }

    /// Returns the scopes of the credentials: an empty slice without credentials. To make a
    /// decision, use [`has_scope`](Self::has_scope).
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        if let Some(credentials) = self.verified() {
            return credentials.scopes();
        }
        &[]
    }

    /// Returns whether the caller has a scope, or one that implies it. The
    /// [owner](Self::OWNER) has all scopes.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        if let Some(credentials) = self.verified() {
            return credentials.has_scope(scope);
        }
        self.is_owner()
    }

    /// Returns whether the caller is the [owner](Self::OWNER) of the process.
    #[must_use]
    pub const fn is_owner(&self) -> bool {
        matches!(self.0, Identity::Owner)
    }

    /// Returns the credentials if they are a `T`.
    #[must_use]
    pub fn credentials<T: Credentials>(&self) -> Option<&T> {
        let credentials: &dyn Any = self.verified()?;
        credentials.downcast_ref()
    }

    fn verified(&self) -> Option<&dyn Credentials> {
        match &self.0 {
            Identity::Known(known) => known.credentials.as_deref(),
            Identity::Owner | Identity::Anonymous => None,
        }
    }
}

impl From<Principal> for Caller {
    fn from(principal: Principal) -> Self {
        Self::from_principal(principal)
    }
}

impl From<Option<Principal>> for Caller {
    /// Returns the caller with this name, or else an [anonymous](Self::ANONYMOUS) one.
    fn from(principal: Option<Principal>) -> Self {
        principal.map_or(Self::ANONYMOUS, Self::from_principal)
    }
}

impl fmt::Debug for Caller {
    /// Omits the names, because logs have many readers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller(..)")
    }
}
