//! Authorization of a host at servers that require a token.

mod action;
mod memory_store;
mod state;
mod store;
mod tasks;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use mcp_sansio_oauth::client::{
    ActionFailure, AssertionRequest, AuthorizationEvent, AuthorizationOptions,
    AuthorizationRequest, SigningRequest,
};

use crate::client::host::Host;
use crate::client::{Client, Command};
use crate::function::Callback;
use crate::mailbox::SendError;
use crate::threading::{Local, Step, ThreadSafe, Threading};

pub use memory_store::MemoryStore;
pub(super) use state::AuthorizationState;
pub use store::CredentialStore;

/// How a host gets tokens for servers that require one, with the functions that only the
/// application can perform.
///
/// Pass it to [`Host::authorization`](super::Host::authorization). A request that the server
/// refuses for lack of a token waits until the client has one, with its timeout paused, and is then
/// sent again. Requests made meanwhile wait for the same token. If the authorization fails, the
/// waiting calls fail with
/// [`TransportFailure::AuthorizationFailed`](mcp_sansio::peer::TransportFailure::AuthorizationFailed).
///
/// The functions are plain or `async`. They run where the connection is driven, so a plain one must
/// return quickly. An `async` one is dropped at its current await point when its answer is no
/// longer needed.
///
/// ```
/// use mcp_sansio_oauth::client::{AuthorizationRequest, AuthorizationOptions};
/// use mcp_sansio_handlers::{Authorization, Host};
/// # struct Listener;
/// # impl Listener { async fn next(&self) -> String { String::new() } }
/// # async fn open_browser(url: &str) -> Listener { Listener }
///
/// let options = AuthorizationOptions::code("http://127.0.0.1:8910/callback")?;
/// let authorization =
///     Authorization::new(options).on_authorize(async |request: AuthorizationRequest| {
///         let listener = open_browser(&request.url).await;
///         loop {
///             let redirect = listener.next().await;
///             if request.is_answered_by(&redirect) {
///                 return Ok(redirect);
///             }
///         }
///     });
/// let host = Host::new("editor", "1.0.0").authorization(authorization);
/// # let _ = host;
/// # Ok::<(), mcp_sansio_oauth::client::InvalidOption>(())
/// ```
///
/// # Connections
/// Clones share one [store](Self::store), and so do the connections of a host and its clones: a
/// later connection finds the tokens of earlier ones. Connections that are open at the same time,
/// in one process or in several, renew a token one at a time, if the store can
/// [lock](CredentialStore::lock) it, and use the token that another one has got. Each asks its user
/// to sign in on its own, so prefer one connection per server.
pub struct Authorization<K: Threading = ThreadSafe> {
    options: AuthorizationOptions,
    functions: Functions<K>,
    store: Arc<dyn store::DynStore>,
    observers: Vec<Observer>,
    unix_time: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
    entropy: Option<Arc<dyn Fn() -> [u8; 32] + Send + Sync>>,
}

/// A function that observes events.
type Observer = Arc<dyn Fn(&AuthorizationEvent) + Send + Sync>;

/// The functions of the application.
struct Functions<K: Threading> {
    authorize: Option<ActionFunction<K, AuthorizationRequest, String>>,
    sign: Option<ActionFunction<K, SigningRequest, Vec<u8>>>,
    assert: Option<ActionFunction<K, AssertionRequest, String>>,
}

/// A stored function.
type ActionFunction<K, In, T> = <K as Threading>::Callback<In, Step<K, Answer<T>>>;

/// The answer of a function.
type Answer<T> = Result<T, ActionFailure>;

impl Authorization {
    /// Creates an authorization whose functions may run on any thread. Credentials are kept in
    /// memory, as long as it or a clone of it lives.
    #[must_use]
    pub fn new(options: AuthorizationOptions) -> Self {
        Self::with_options(options)
    }
}

impl Authorization<Local> {
    /// Creates an authorization whose functions stay on the thread that drives the connection.
    #[must_use]
    pub fn local(options: AuthorizationOptions) -> Self {
        Self::with_options(options)
    }
}

impl<K: Threading> Host<K> {
    /// Sets how to get tokens for HTTP servers that require one; without it such a server refuses
    /// the requests. Has no effect on byte streams: a server that its client starts gets its
    /// credentials from its environment.
    // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-001] [AUTHC-003]
    #[must_use]
    pub fn authorization(mut self, authorization: Authorization<K>) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Sets an adapter's default clock and entropy for [`authorization`](Self::authorization), used
    /// where the application has set none: see [`Authorization::unix_time`] and
    /// [`Authorization::entropy`].
    #[must_use]
    pub fn authorization_runtime(
        mut self,
        unix_time: impl Fn() -> u64 + Send + Sync + 'static,
        entropy: impl Fn() -> [u8; 32] + Send + Sync + 'static,
    ) -> Self {
        self.authorization = self.authorization.map(|it| it.with_runtime(unix_time, entropy));
        self
    }
}

impl<K: Threading> Authorization<K> {
    fn with_options(options: AuthorizationOptions) -> Self {
        Self {
            options,
            functions: Functions { authorize: None, sign: None, assert: None },
            store: Arc::new(store::SharedStore::new(MemoryStore::new())),
            observers: Vec::new(),
            unix_time: None,
            entropy: None,
        }
    }

    /// Sets the function that sends the user to sign in and waits for the redirect. It takes an
    /// [`AuthorizationRequest`] and returns the redirect, a URL or the target of the received HTTP
    /// request, as `Result<String, ActionFailure>`.
    ///
    /// Any website can send a browser to the redirect URI. So a function that listens there must
    /// wait for a redirect that [answers](AuthorizationRequest::is_answered_by) the request. If it
    /// returns another redirect, that one is ignored and the function is called again, at most
    /// seven times.
    #[must_use]
    pub fn on_authorize<M>(
        mut self,
        function: impl Callback<K, AuthorizationRequest, Answer<String>, M>,
    ) -> Self {
        self.functions.authorize = Some(function.into_callback());
        self
    }

    /// Sets the function that signs with a private key of the application. It takes a
    /// [`SigningRequest`] and returns the signature as `Result<Vec<u8>, ActionFailure>`: the raw
    /// bytes of a JSON Web Signature, before base64.
    #[must_use]
    pub fn on_sign<M>(
        mut self,
        function: impl Callback<K, SigningRequest, Answer<Vec<u8>>, M>,
    ) -> Self {
        self.functions.sign = Some(function.into_callback());
        self
    }

    /// Sets the function that gets an assertion from the identity provider of this client or its
    /// user. It takes an [`AssertionRequest`] and returns the assertion as `Result<String,
    /// ActionFailure>`.
    #[must_use]
    pub fn on_assertion<M>(
        mut self,
        function: impl Callback<K, AssertionRequest, Answer<String>, M>,
    ) -> Self {
        self.functions.assert = Some(function.into_callback());
        self
    }

    /// Sets the store for tokens and registrations; the default keeps them in memory.
    #[must_use]
    pub fn store(mut self, store: impl CredentialStore) -> Self {
        self.store = Arc::new(store::SharedStore::new(store));
        self
    }

    /// Adds an observer of authorization events, which must return quickly. Events contain no
    /// secrets.
    #[must_use]
    pub fn observe(
        mut self,
        observer: impl Fn(&AuthorizationEvent) + Send + Sync + 'static,
    ) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Sets the clock, which returns the seconds since 1970. Some adapters provide one.
    #[must_use]
    pub fn unix_time(mut self, unix_time: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.unix_time = Some(Arc::new(unix_time));
        self
    }

    /// Sets the source of entropy, which returns 32 bytes from the operating system. It is called
    /// once per connection; all secrets of the connection are derived from them. Some adapters
    /// provide one.
    #[must_use]
    pub fn entropy(mut self, entropy: impl Fn() -> [u8; 32] + Send + Sync + 'static) -> Self {
        self.entropy = Some(Arc::new(entropy));
        self
    }

    /// Sets the clock and the source of entropy unless the application has set them.
    pub(super) fn with_runtime(
        mut self,
        unix_time: impl Fn() -> u64 + Send + Sync + 'static,
        entropy: impl Fn() -> [u8; 32] + Send + Sync + 'static,
    ) -> Self {
        self.unix_time.get_or_insert_with(|| Arc::new(unix_time));
        self.entropy.get_or_insert_with(|| Arc::new(entropy));
        self
    }
}

// Implemented by hand: `derive` would require `K: Clone`.
impl<K: Threading> Clone for Authorization<K> {
    fn clone(&self) -> Self {
        Self {
            options: self.options.clone(),
            functions: self.functions.clone(),
            store: Arc::clone(&self.store),
            observers: self.observers.clone(),
            unix_time: self.unix_time.clone(),
            entropy: self.entropy.clone(),
        }
    }
}

impl<K: Threading> Clone for Functions<K> {
    fn clone(&self) -> Self {
        Self {
            authorize: self.authorize.clone(),
            sign: self.sign.clone(),
            assert: self.assert.clone(),
        }
    }
}

impl<K: Threading> fmt::Debug for Authorization<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization")
            .field("options", &self.options)
            .field("authorize", &self.functions.authorize.is_some())
            .field("sign", &self.functions.sign.is_some())
            .field("assert", &self.functions.assert.is_some())
            .finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ lock

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

// ------------------------------------------------------------------ handle

impl Client {
    /// Signs in now, without waiting for the server to require a token: loads the stored credential
    /// or asks the user. The outcome is reported to the [observers](Authorization::observe)
    /// of the authorization. Does nothing while a sign-in is in progress, or on a connection without
    /// an [`Authorization`].
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn authorize(&self) -> Result<(), SendError> {
        self.command(Command::Authorize)
    }

    /// Signs out: drops the token of this connection and removes it from the store. A sign-in in
    /// progress is abandoned, and the calls that wait for it fail. The next request that the server
    /// refuses for lack of a token starts a new sign-in.
    ///
    /// Other open connections have tokens of their own and keep them.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed and its token dropped.
    pub fn forget_authorization(&self) -> Result<(), SendError> {
        self.command(Command::ForgetAuthorization)
    }
}
