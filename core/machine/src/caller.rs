//! The sender of a request, and its session.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::hash::BuildHasher;
use core::num::NonZeroU64;

use mcp_sansio_collections::KeyedHash;
use mcp_sansio_sync::Arc;

/// The sender of a request, as verified by the adapter or a higher layer: a user of this server.
///
/// Sessions belong to the principal that opened them. Two principals are equal if their texts are
/// equal. The application chooses the text (`issuer|subject`, an account number); it is never sent
/// to a peer.
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Creates a principal with this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into().into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

crate::partial_debug! {
    /// Omits the name, because logs have many readers.
    impl Debug for Principal(..)
}

/// The sender of a request, its permissions, and what surrounds the request: values that a layer in
/// front of the server has [attached](Self::with_extension). Cheap to clone.
///
/// The machines receive it with each request and pass it on with the
/// [`Request`](crate::peer::Request). It is never sent to a peer.
#[derive(Clone)]
pub struct Caller {
    known: Option<Arc<Known>>,
    origin: Origin,
}

/// Whether a caller is the owner of the process, in the lowest bit, and the key of its session, in
/// the others. Packed, because each request has a caller.
#[derive(Clone, Copy)]
struct Origin(u64);

impl Origin {
    const ELSEWHERE: Self = Self(0);
    const OWNER: Self = Self(1);

    const fn is_owner(self) -> bool {
        self.0 & Self::OWNER.0 != 0
    }

    const fn session(self) -> Option<SessionKey> {
        SessionKey::from_number(self.0 >> 1)
    }

    const fn with_session(self, session: Option<SessionKey>) -> Self {
        let number = match session {
            Some(session) => session.to_number(),
            None => 0,
        };
        Self(number << 1 | self.0 & Self::OWNER.0)
    }
}

struct Known {
    principal: Option<Principal>,
    credentials: Option<Box<dyn Credentials>>,
}

/// A caller with a value, in the place of its credentials, so that programs without such values
/// contain no code for them.
struct Extended {
    caller: Caller,
    value: Box<dyn Any + Send + Sync>,
}

impl Credentials for Extended {
    fn scopes(&self) -> &[String] {
        self.caller.scopes()
    }

    fn has_scope(&self, scope: &str) -> bool {
        self.caller.has_scope(scope)
    }
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
    pub const OWNER: Self = Self { known: None, origin: Origin::OWNER };

    /// An unknown sender. It has no scopes.
    pub const ANONYMOUS: Self = Self { known: None, origin: Origin::ELSEWHERE };

    /// Creates a caller that is known by name and has no scopes.
    #[must_use]
    pub fn from_principal(principal: Principal) -> Self {
        Self::from_known(Known { principal: Some(principal), credentials: None })
    }

    /// Creates a caller that is known by name and has these scopes, none of which implies another.
    ///
    /// ```
    /// use mcp_sansio::{Caller, Principal};
    ///
    /// let ann = Caller::from_scopes(Principal::new("ann"), ["read", "write"]);
    /// assert!(ann.has_scope("write") && !ann.has_scope("admin"));
    /// ```
    #[must_use]
    pub fn from_scopes(principal: Principal, scopes: impl IntoIterator<Item: AsRef<str>>) -> Self {
        let scopes: Vec<String> = scopes.into_iter().map(|it| it.as_ref().into()).collect();
        Self::from_credentials(principal, scopes)
    }

    /// Creates a caller from the principal and the scopes of verified credentials of a type of your
    /// own, which handlers find with [`credentials`](Self::credentials).
    #[must_use]
    pub fn from_credentials(principal: Principal, credentials: impl Credentials) -> Self {
        let credentials: Option<Box<dyn Credentials>> = Some(Box::new(credentials));
        Self::from_known(Known { principal: Some(principal), credentials })
    }

    fn from_known(known: Known) -> Self {
        Self { known: Some(Arc::new(known)), origin: Origin::ELSEWHERE }
    }

    /// Attaches a value to the request. It travels with the request to whatever decides about it:
    /// conditions of the catalog, middleware and handlers, which find it by its type with
    /// [`extension`](Self::extension). It hides an earlier value of this type. It is in no
    /// recording, and is kept for as long as the request, its task or its stream exists.
    ///
    /// ```
    /// use mcp_sansio::{Caller, Principal};
    ///
    /// struct Tenant(u32);
    ///
    /// let caller = Caller::from_principal(Principal::new("ann")).with_extension(Tenant(7));
    /// assert_eq!(caller.extension::<Tenant>().map(|tenant| tenant.0), Some(7));
    /// assert_eq!(caller.principal(), Some(&Principal::new("ann")));
    /// ```
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(self, value: T) -> Self {
        let (principal, origin) = (self.principal().cloned(), self.origin);
        let credentials: Box<dyn Credentials> =
            Box::new(Extended { caller: self, value: Box::new(value) });
        let known = Known { principal, credentials: Some(credentials) };
        Self { known: Some(Arc::new(known)), origin }
    }

    /// Returns the value of this type that is [attached](Self::with_extension) to the request, or
    /// to an attached caller.
    #[must_use]
    pub fn extension<T: Any>(&self) -> Option<&T> {
        let Extended { caller, value } = self.extended()?;
        let inner = || value.downcast_ref::<Self>().and_then(Self::extension);
        value.downcast_ref().or_else(inner).or_else(|| caller.extension())
    }

    /// Returns this caller in the place of `sender`, as whom a layer in front of the server has
    /// identified the same request: with its values, and, if anything is known of it, with `sender`
    /// itself as an [extension](Self::extension), so that it is not lost.
    #[must_use]
    pub fn in_place_of(self, sender: &Self) -> Self {
        if sender.known.is_none() { self } else { self.with_extension(sender.clone()) }
    }

    fn extended(&self) -> Option<&Extended> {
        let credentials: &dyn Any = self.verified()?;
        credentials.downcast_ref()
    }

    /// Returns the same sender in a session, or in none. The machines do it for each request:
    /// callers that an adapter passes need no session.
    #[must_use]
    pub const fn with_session(mut self, session: Option<SessionKey>) -> Self {
        self.origin = self.origin.with_session(session);
        self
    }

    /// Returns the key of the legacy session that the request belongs to; `None` for a modern
    /// request, which belongs to no session.
    // MCP 2026-07-28 changelog#major-changes [SESS-016]
    #[must_use]
    pub const fn session(&self) -> Option<SessionKey> {
        self.origin.session()
    }

    /// Returns the principal, if it is known.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.known.as_ref()?.principal.as_ref()
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
        self.origin.is_owner()
    }

    /// Returns the credentials if they are a `T`.
    #[must_use]
    pub fn credentials<T: Credentials>(&self) -> Option<&T> {
        let credentials: &dyn Any = self.verified()?;
        let inner = || self.extended()?.caller.credentials();
        credentials.downcast_ref().or_else(inner)
    }

    fn verified(&self) -> Option<&dyn Credentials> {
        self.known.as_ref()?.credentials.as_deref()
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

crate::partial_debug! {
    /// Omits the names, because logs have many readers.
    impl Debug for Caller(..)
}

/// Identifies a legacy session on its server, without naming it: requests of one session have the
/// same key, and those of different sessions have different ones.
///
/// On HTTP it is derived from the session id, of which it contains too few bits to guess it; all
/// nodes of a cluster derive the same key. On a byte stream it stands for the connection. It is
/// never sent to a peer, and the id cannot be used to send requests, so it may be logged.
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-012]: the key is no authentication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(NonZeroU64);

impl SessionKey {
    /// The bits that a key has; the others are free for [`Caller`].
    pub(crate) const BITS: u32 = 63;

    /// Returns the key with this number, for tests and stores; `None` if no key has it. The keys of
    /// a server come with its requests.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() >> Self::BITS == 0 => Some(Self(number)),
            _ => None,
        }
    }

    /// Returns the number of the key.
    #[must_use]
    pub const fn to_number(self) -> u64 {
        self.0.get()
    }

    /// Returns the key with the lower bits of a hash.
    pub(crate) fn from_hash(hash: u64) -> Self {
        let number = NonZeroU64::new(hash & (u64::MAX >> 1));
        Self(number.unwrap_or(NonZeroU64::MIN))
    }

    /// Derives the key of a connection on a byte stream from the hasher of its tables, which has a
    /// random seed.
    pub(crate) fn from_hasher(hasher: &KeyedHash) -> Self {
        Self::from_hash(hasher.hash_one("session")).first()
    }

    /// The bits that count the sessions which replace each other on one connection. The others stay
    /// the same, so that tables find all of them by the first key. They are neither the lowest nor
    /// the highest bits, which hash tables use.
    const GENERATION: u64 = 0xFF << 48;

    /// Returns the key of the session that replaces this one on the same connection.
    pub(crate) fn next(self) -> Self {
        let number = self.0.get();
        let next = number.wrapping_add(1 << 48) & Self::GENERATION;
        Self::from_hash(number & !Self::GENERATION | next)
    }

    /// Returns the key of the session with the same place among those of the connection whose first
    /// session has the key `first`.
    pub(crate) fn with_first(self, first: Self) -> Self {
        let place = self.0.get() & Self::GENERATION;
        Self::from_hash(first.0.get() & !Self::GENERATION | place)
    }

    /// Returns the key of the first session on the same connection.
    pub(crate) fn first(self) -> Self {
        Self::from_hash(self.0.get() & !Self::GENERATION)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_changes_neither_the_identity_nor_the_size() {
        let session = SessionKey::from_number(u64::MAX >> 1);
        let ann = Caller::from_principal(Principal::new("ann"));
        for caller in [Caller::OWNER, Caller::ANONYMOUS, ann] {
            assert_eq!(caller.session(), None);
            let inside = caller.clone().with_session(session);
            assert_eq!(inside.session(), session);
            assert_eq!(inside.is_owner(), caller.is_owner());
            assert_eq!(inside.principal(), caller.principal());
            assert_eq!(inside.with_session(None).session(), None);
        }
        assert!(size_of::<Caller>() <= 16);
    }

    #[test]
    fn a_value_travels_with_the_request_and_changes_neither_identity_nor_permissions() {
        let session = SessionKey::from_number(7);
        let scopes = || Vec::from([String::from("read")]);
        let ann = Caller::from_credentials(Principal::new("ann"), scopes());
        for caller in [Caller::OWNER, Caller::ANONYMOUS.with_session(session), ann.clone()] {
            let extended = caller.clone().with_extension(1_u8).with_extension("two");
            assert_eq!(extended.extension::<u8>(), Some(&1));
            assert_eq!(extended.extension::<&str>(), Some(&"two"));
            assert_eq!(extended.extension::<u16>(), None);
            assert_eq!(extended.principal(), caller.principal());
            assert_eq!(extended.session(), caller.session());
            assert_eq!(extended.is_owner(), caller.is_owner());
            assert_eq!(extended.scopes(), caller.scopes());
            for scope in ["read", "write"] {
                assert_eq!(extended.has_scope(scope), caller.has_scope(scope));
            }
            let credentials = caller.credentials::<Vec<String>>();
            assert_eq!(extended.credentials::<Vec<String>>(), credentials);
            let replaced = extended.with_extension(2_u8);
            assert_eq!(replaced.extension::<u8>(), Some(&2));
        }
        assert!(ann.extension::<u8>().is_none());
    }

    #[test]
    fn a_caller_that_is_replaced_stays_in_reach_with_its_values() {
        let layer = Caller::from_principal(Principal::new("layer")).with_extension(1_u8);
        let token = Caller::from_credentials(Principal::new("token"), Vec::new());
        let both = token.clone().in_place_of(&layer);
        assert_eq!(both.principal(), token.principal());
        assert!(both.credentials::<Vec<String>>().is_some());
        assert_eq!(both.extension::<u8>(), Some(&1));
        let replaced = both.extension::<Caller>().expect("the caller of the layer");
        assert_eq!(replaced.principal(), layer.principal());
        assert!(token.in_place_of(&Caller::ANONYMOUS).extension::<Caller>().is_none());
    }

    #[test]
    fn a_number_is_not_zero_and_leaves_the_highest_bit() {
        assert_eq!(SessionKey::from_number(0), None);
        assert_eq!(SessionKey::from_number(1 << 63), None);
        let most = SessionKey::from_number(u64::MAX >> 1).unwrap();
        assert_eq!(most.to_number(), u64::MAX >> 1);
        assert_eq!(SessionKey::from_hash(1 << 63).to_number(), 1);
    }
}
