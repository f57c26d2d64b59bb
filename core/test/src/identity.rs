use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::{Caller, Principal};
use mcp_sansio_handlers::{Call, Host, Server};
use {
    mcp_sansio::http::Response,
    mcp_sansio_oauth::protected_resource::{Grant, ProtectedResource, VerifiedToken},
    mcp_sansio_sync::Arc,
};

use super::http::connect_http;

/// The sender of the requests to a server on HTTP: a principal, and the scopes of its token.
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
///     .protect(resource, async |_: TokenCheck| Err(TokenRefusal::Unavailable), || 0);
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
pub struct Identity {
    principal: Principal,
    scopes: Vec<String>,
}

impl Identity {
    /// Creates the identity of the principal with this name, without scopes.
    #[must_use]
    pub fn new(principal: &str) -> Self {
        Self { principal: Principal::new(principal), scopes: Vec::new() }
    }

    /// Sets the scopes.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
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
        let token = VerifiedToken::new(self.principal.clone())
            .audiences([resource.uri().as_str()])
            .scopes(self.scopes.iter().cloned());
        // The token never expires, so it is valid at any time.
        let grant = Grant::new(resource, Ok(token), 0);
        grant.map(Caller::from).map_err(|refusal| refusal.to_response(None))
    }
}

impl From<&Identity> for Caller {
    fn from(identity: &Identity) -> Self {
        Self::from_credentials(identity.principal.clone(), identity.scopes.clone())
    }
}
