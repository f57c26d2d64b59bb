use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::{Caller, Credentials, Principal};
use mcp_sansio_handlers::{Call, Host, Server};
use {
    mcp_sansio::http::Response,
    mcp_sansio_oauth::protected_resource::{Grant, ProtectedResource, VerifiedToken},
    mcp_sansio_sync::Arc,
};

use super::http::connect_http;

/// The sender of the requests to a server on HTTP: a principal, its credentials and their scopes,
/// and the values that an application's own layer attaches.
///
/// ```
/// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
/// use mcp_sansio_oauth::protected_resource::{ProtectedResource, TokenCheck, TokenRefusal};
/// use mcp_sansio_test::{Identity, URL, connect_http};
///
/// // The server of production, whose check of tokens needs the network.
/// let resource = ProtectedResource::new(URL, ["https://auth.example.com"])?;
/// let server = Server::new("files", "1.0.0")
///     .tool("delete", "Delete", async |call: Call<NoArguments>| {
///         call.require_scopes(&["write"])?;
///         Ok("deleted")
///     })
///     .protect(resource, async |_: TokenCheck| Err(TokenRefusal::Unavailable));
///
/// let host = Host::new("test", "1.0.0");
/// let (client, mut pair) = connect_http(&server, &host, Identity::new("ann").scopes(["write"]));
/// assert!(pair.run(client.call_tool("delete", &NoArguments {})).is_ok());
///
/// let (client, mut pair) = connect_http(&server, &host, Identity::new("bob"));
/// assert!(pair.run(client.call_tool("delete", &NoArguments {})).is_err());
/// assert_eq!(pair.transcript.count("< 403"), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Identity(Caller);

impl Identity {
    /// Creates the identity of the principal with this name, without scopes.
    #[must_use]
    pub fn new(principal: &str) -> Self {
        Self(Caller::from_principal(Principal::new(principal)))
    }

    /// Sets the scopes, as credentials without further contents.
    #[must_use]
    pub fn scopes(self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        self.credentials(scopes)
    }

    /// Sets the credentials, with their scopes: for an application that verifies credentials of its
    /// own type in front of the server, and whose handlers read them with
    /// [`Caller::credentials`]. On a server with `Server::protect` the requests have a token with
    /// these scopes instead.
    ///
    /// ```
    /// use mcp_sansio::Credentials;
    /// use mcp_sansio_handlers::{Call, NoArguments};
    /// use mcp_sansio_test::Identity;
    ///
    /// struct ApiKey { tenant: u32, scopes: Vec<String> }
    ///
    /// impl Credentials for ApiKey {
    ///     fn scopes(&self) -> &[String] { &self.scopes }
    ///     fn has_scope(&self, scope: &str) -> bool { self.scopes.has_scope(scope) }
    /// }
    ///
    /// fn tenant(call: Call<NoArguments>) -> Option<u32> {
    ///     call.caller().credentials::<ApiKey>().map(|key| key.tenant)
    /// }
    ///
    /// let key = ApiKey { tenant: 7, scopes: vec!["read".to_owned()] };
    /// let ann = Identity::new("ann").credentials(key);
    /// assert_eq!(tenant(ann.call(NoArguments {})), Some(7));
    /// ```
    #[must_use]
    pub fn credentials(self, credentials: impl Credentials) -> Self {
        let principal = self.0.principal().cloned().expect("set by `new`");
        Self(Caller::from_credentials(principal, credentials).in_place_of(&self.0))
    }

    /// Attaches a value, as a layer in front of the server does with [`Caller::with_extension`]:
    /// handlers find it by its type with `Call::extension`.
    #[must_use]
    pub fn extension(self, value: impl core::any::Any + Send + Sync) -> Self {
        Self(self.0.with_extension(value))
    }

    /// Creates the call of a tool that this identity makes: see [`call`](crate::call()).
    ///
    /// ```
    /// use mcp_sansio_handlers::{Call, NoArguments};
    /// use mcp_sansio_test::Identity;
    ///
    /// fn greet(call: Call<NoArguments>) -> String {
    ///     format!("Hello {}!", call.principal().map_or("stranger", |it| it.as_str()))
    /// }
    ///
    /// assert_eq!(greet(Identity::new("ann").call(NoArguments {})), "Hello ann!");
    /// assert_eq!(greet(mcp_sansio_test::call(NoArguments {})), "Hello stranger!");
    /// ```
    #[must_use]
    pub fn call<A>(&self, arguments: A) -> Call<A> {
        let host = Host::new("test", "1");
        let connect = |server: &Server| connect_http(server, &host, self.clone());
        Call::new(arguments, super::call::context(connect))
    }

    /// Returns the caller with a token for `resource`, or the response that refuses the token.
    pub(crate) fn granted(&self, resource: &Arc<ProtectedResource>) -> Result<Caller, Response> {
        let principal = self.0.principal().cloned().expect("set by `new`");
        let token = VerifiedToken::new(principal)
            .audiences([resource.uri().as_str()])
            .scopes(self.0.scopes().iter().cloned());
        // The token never expires, so it is valid at any time.
        let grant = Grant::new(resource, Ok(token), 0);
        let granted = grant.map(|grant| Caller::from(grant).in_place_of(&self.0));
        granted.map_err(|refusal| refusal.to_response(None))
    }
}

impl From<&Identity> for Caller {
    fn from(identity: &Identity) -> Self {
        identity.0.clone()
    }
}
