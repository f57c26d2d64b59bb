//! What a host has for servers that want a token.

mod action;
mod function;
mod handle;
mod state;
mod store;
mod tasks;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_oauth::client::{
    AssertionRequest, AuthorizationRequest, ClientOptions, Event, SigningRequest,
};

use super::threading::{Local, ThreadSafe, Threading};

pub(super) use action::ActionOutput;
pub use function::AuthorizationFunction;
pub(super) use state::AuthorizationState;
pub use store::{CredentialStore, MemoryStore};

/// How a host gets tokens for the servers that want one, and the functions that do what only the
/// application can.
///
/// Given to [`Host::authorization`](super::Host::authorization), it sees to everything else: a
/// request that the server refuses for want of a token waits until there is one, with its time
/// standing still, and goes on as if nothing had been. Requests that come meanwhile wait for the
/// same token. What fails is told by the calls that waited, as
/// [`TransportFailure::AuthorizationFailed`](mcp_sansio::peer::TransportFailure::AuthorizationFailed).
///
/// The functions are plain or `async`, and run where the connection runs, so that a plain one must
/// be quick. An `async` one is dropped where it waits when nobody needs its answer any more.
///
/// ```
/// use mcp_sansio_oauth::client::{AuthorizationRequest, ClientOptions};
/// use mcp_sansio_handlers::{Authorization, Host};
/// # struct Listener;
/// # impl Listener { async fn next(&self) -> String { String::new() } }
/// # async fn open_browser(url: &str) -> Listener { Listener }
///
/// let options = ClientOptions::code("http://127.0.0.1:8910/callback")?;
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
///
/// Clones have the same [store](Self::store), and so have the connections of a host and its clones:
/// one that opens later has the tokens of those before. Connections that are open at the same time
/// do not wait for each other: each asks for a token when it is refused, and renews its own. Where
/// the authorization server lets a refresh token be used once, the second of them has to ask the
/// user again, so that one connection to a server is better than several.
pub struct Authorization<K: Threading = ThreadSafe> {
    options: ClientOptions,
    functions: Functions<K>,
    store: Arc<dyn store::DynStore>,
    observers: Vec<Observer>,
    unix_time: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
    entropy: Option<Arc<dyn Fn() -> [u8; 32] + Send + Sync>>,
}

/// A function that is shown what happens.
type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// The functions of the application.
struct Functions<K: Threading> {
    authorize: Option<K::ActionFunction<AuthorizationRequest>>,
    sign: Option<K::ActionFunction<SigningRequest>>,
    assert: Option<K::ActionFunction<AssertionRequest>>,
}

impl Authorization {
    /// One whose functions may run on any thread. Credentials are kept in memory, as long as it or
    /// a clone of it lives.
    #[must_use]
    pub fn new(options: ClientOptions) -> Self {
        Self::with_options(options)
    }
}

impl Authorization<Local> {
    /// One whose functions stay on the thread that the connection runs on.
    #[must_use]
    pub fn local(options: ClientOptions) -> Self {
        Self::with_options(options)
    }
}

impl<K: Threading> Authorization<K> {
    fn with_options(options: ClientOptions) -> Self {
        Self {
            options,
            functions: Functions { authorize: None, sign: None, assert: None },
            store: Arc::new(store::SharedStore::new(MemoryStore::new())),
            observers: Vec::new(),
            unix_time: None,
            entropy: None,
        }
    }

    /// Sends the user to sign in, and waits for where they come back to. The function takes an
    /// [`AuthorizationRequest`] and returns the redirect, a URL or the target of the request that
    /// came, as `Result<String, ActionFailure>`.
    ///
    /// Anybody can send a browser to where the user comes back to. So a function that listens there
    /// goes on until a redirect [answers](AuthorizationRequest::is_answered_by) the request. If it
    /// returns another one, that is passed over and it is called again, at most seven times.
    #[must_use]
    pub fn on_authorize<M>(
        mut self,
        function: impl AuthorizationFunction<K, AuthorizationRequest, M>,
    ) -> Self {
        self.functions.authorize = Some(function.into_action_function());
        self
    }

    /// Signs with a private key that the application has. The function takes a [`SigningRequest`]
    /// and returns the signature as `Result<Vec<u8>, ActionFailure>`, raw as a JSON Web Signature
    /// has it before base64.
    #[must_use]
    pub fn on_sign<M>(
        mut self,
        function: impl AuthorizationFunction<K, SigningRequest, M>,
    ) -> Self {
        self.functions.sign = Some(function.into_action_function());
        self
    }

    /// Gets an assertion from whoever vouches for this client or its user. The function takes an
    /// [`AssertionRequest`] and returns the assertion as `Result<String, ActionFailure>`.
    #[must_use]
    pub fn on_assertion<M>(
        mut self,
        function: impl AuthorizationFunction<K, AssertionRequest, M>,
    ) -> Self {
        self.functions.assert = Some(function.into_action_function());
        self
    }

    /// Where tokens and registrations are kept, in place of memory.
    #[must_use]
    pub fn store(mut self, store: impl CredentialStore) -> Self {
        self.store = Arc::new(store::SharedStore::new(store));
        self
    }

    /// Shows what happens to `observer`, which must be quick. There are no secrets in it.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Says how many seconds have gone by since 1970. Some adapters bring this along.
    #[must_use]
    pub fn unix_time(mut self, unix_time: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.unix_time = Some(Arc::new(unix_time));
        self
    }

    /// Draws 32 bytes of the operating system's entropy, once a connection: all its secrets come
    /// from them. Some adapters bring this along.
    #[must_use]
    pub fn entropy(mut self, entropy: impl Fn() -> [u8; 32] + Send + Sync + 'static) -> Self {
        self.entropy = Some(Arc::new(entropy));
        self
    }

    /// The same with a clock and a source of entropy, where it has none.
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

// By hand: `derive` would ask for a `K` that can be cloned.
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
