//! The server's side: an MCP server as a protected resource (RFC 9728).

mod challenges;
mod document;
mod extraction;
mod grant;
mod operation;
mod scope;
mod token;

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::{InvalidUrl, Location};

use super::discovery::{InvalidIssuer, MetadataUrls};
use super::resource::{ResourceMismatch, ResourceUri, is_same_resource};

pub use extraction::ACCESS_TOKEN_LENGTH_MAX;
pub use grant::Grant;
pub use operation::Operation;
pub use token::{TokenCheck, TokenRefusal, VerifiedToken};

use operation::ScopeRequirements;
use scope::Hierarchy;

/// An MCP server that takes tokens: what it is called, whose tokens it takes, and what they must be
/// good for.
///
/// ```
/// use mcp_sansio_oauth::protected_resource::{Operation, ProtectedResource};
///
/// let resource = ProtectedResource::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
///     .base_scopes(["files:read"])?
///     .scopes_for(Operation::tool("delete"), ["files:write"])?
///     .implies("files", ["files:read", "files:write"])?;
/// assert_eq!(
///     resource.metadata_url(),
///     "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
/// );
/// # Ok::<(), mcp_sansio_oauth::protected_resource::InvalidResource>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    uri: ResourceUri,
    location: Location,
    issuers: Vec<String>,
    /// Other names of this resource in `aud`.
    audiences: Vec<String>,
    base_scopes: Vec<String>,
    operations: ScopeRequirements,
    hierarchy: Hierarchy,
    scopes_supported: Option<Vec<String>>,
    name: Option<String>,
    documentation: Option<Location>,
    at_root: bool,
    check_time: Duration,
    checks_max: usize,
}

/// A resource cannot be as it is described. The caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResource {
    /// The URI of the resource, or the URL of its documentation, is no URL of a server.
    #[error("not the URL of a resource: {0}")]
    Url(#[from] InvalidUrl),
    /// The URI of the resource has a fragment.
    #[error("the URI of the resource has a fragment")]
    Fragment,
    /// The host of the URI ends with a dot: clients ask for tokens without it.
    #[error("the host of the resource's URI ends with a dot: leave it out")]
    FinalDot,
    /// An authorization server cannot have this issuer identifier.
    #[error("`{issuer}` is not the issuer identifier of an authorization server: {reason}")]
    Issuer {
        /// What was given.
        issuer: String,
        /// What is wrong with it.
        reason: InvalidIssuer,
    },
    /// There is no authorization server.
    #[error("a protected resource needs an authorization server")]
    NoIssuer,
    /// A scope is empty or has a character that scopes have not (RFC 6749, section 3.3).
    #[error("`{0}` is not a scope")]
    Scope(String),
    /// `offline_access` is between a client and its authorization server: no resource needs it.
    #[error("`offline_access` is no scope of a resource")]
    OfflineAccess,
}

impl ProtectedResource {
    /// The MCP server at `uri`, the URL that clients know it by, which takes tokens of these
    /// `issuers`.
    ///
    /// A token is taken if it was issued for this very URI. It is kept as it is written here, and
    /// best written without a slash at its end. It should be `https`, unless it is on this computer.
    ///
    /// # Errors
    ///
    /// The caller's: see [`InvalidResource`].
    // MCP 2026-07-28 basic/authorization/index#canonical-server-uri [AUTHC-041]
    pub fn new(
        uri: &str,
        issuers: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        let location = Location::parse(uri)?;
        // A URL is above itself, so that nothing else can be wrong.
        let uri = ResourceUri::from_metadata(uri, &location).map_err(|reason| match reason {
            ResourceMismatch::FinalDot => InvalidResource::FinalDot,
            _ => InvalidResource::Fragment,
        })?;
        let issuers: Vec<String> = issuers.into_iter().map(Into::into).collect();
        // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHS-008]
        if issuers.is_empty() {
            return Err(InvalidResource::NoIssuer);
        }
        for issuer in &issuers {
            // What no client could find metadata of is no issuer.
            MetadataUrls::for_issuer(Revision::LATEST, issuer)
                .map_err(|reason| InvalidResource::Issuer { issuer: issuer.clone(), reason })?;
        }
        Ok(Self {
            uri,
            location,
            issuers,
            audiences: Vec::new(),
            base_scopes: Vec::new(),
            operations: ScopeRequirements::default(),
            hierarchy: Hierarchy::default(),
            scopes_supported: None,
            name: None,
            documentation: None,
            at_root: false,
            check_time: Duration::from_secs(10),
            checks_max: 1024,
        })
    }

    /// The scopes that every request needs.
    ///
    /// # Errors
    ///
    /// The caller's: [`InvalidResource::Scope`] or [`InvalidResource::OfflineAccess`].
    pub fn base_scopes(
        mut self,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        self.base_scopes = scope::checked(scopes)?;
        Ok(self)
    }

    /// The scopes that an operation needs beside those that every request needs. What is said of a
    /// method and of one of its subjects adds up.
    ///
    /// # Errors
    ///
    /// As for [`base_scopes`](Self::base_scopes).
    pub fn scopes_for(
        mut self,
        operation: impl Into<Operation>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        self.operations.add(operation.into(), &scope::checked(scopes)?);
        Ok(self)
    }

    /// Whoever has the scope `broad` needs none of `narrow`, nor of what these imply.
    ///
    /// # Errors
    ///
    /// As for [`base_scopes`](Self::base_scopes).
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHS-019]
    pub fn implies(
        mut self,
        broad: impl Into<String>,
        narrow: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        let broad = broad.into();
        scope::check_scope(&broad)?;
        self.hierarchy.add(broad, scope::checked(narrow)?);
        Ok(self)
    }

    /// The scopes that the metadata names, for clients that were not told any: those of basic use.
    /// By default the base scopes.
    ///
    /// # Errors
    ///
    /// As for [`base_scopes`](Self::base_scopes).
    pub fn scopes_supported(
        mut self,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        self.scopes_supported = Some(scope::checked(scopes)?);
        Ok(self)
    }

    /// Takes tokens whose `aud` has this name as well: for authorization servers that know the
    /// resource by another one than its URI (RFC 8707, section 2). It must be the name of this
    /// resource alone: whoever else has tokens for it could use them here.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audiences.push(name.into());
        self
    }

    /// The name of the resource, for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where developers read about the resource.
    ///
    /// # Errors
    ///
    /// The caller's: it is no URL.
    pub fn documentation(mut self, url: &str) -> Result<Self, InvalidResource> {
        self.documentation = Some(Location::parse(url)?);
        Ok(self)
    }

    /// Serves the metadata at the root of the host as well, for clients that look there. Only where
    /// this resource is the only one of its host.
    #[must_use]
    pub const fn at_root(mut self) -> Self {
        self.at_root = true;
        self
    }

    /// How long the check of a token may take, in which its request waits. 10 s by default; after
    /// that the client is told to come again.
    #[must_use]
    pub const fn check_time(mut self, time: Duration) -> Self {
        self.check_time = time;
        self
    }

    /// How many tokens may be under check at once. 1,024 by default; to a client beyond that it is
    /// said to come again. Anybody can send tokens, and a check may hold memory or a connection to the
    /// authorization server.
    #[must_use]
    pub const fn checks_max(mut self, checks: usize) -> Self {
        self.checks_max = checks;
        self
    }

    /// The URI of the resource.
    #[must_use]
    pub const fn uri(&self) -> &ResourceUri {
        &self.uri
    }

    /// How long the check of a token may take.
    #[must_use]
    pub const fn check_timeout(&self) -> Duration {
        self.check_time
    }

    /// How many tokens may be under check at once.
    #[must_use]
    pub const fn concurrent_checks(&self) -> usize {
        self.checks_max
    }

    /// Whether this is a scope that something here needs or is good for.
    fn knows_scope(&self, scope: &str) -> bool {
        let supported = self.scopes_supported.iter().flatten();
        let mut named = self.base_scopes.iter().chain(supported);
        named.any(|it| it == scope) || self.operations.knows(scope) || self.hierarchy.knows(scope)
    }

    /// Whether an audience is this resource.
    ///
    /// Whoever issues a token may have written the URI in another form of the same.
    // MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-013]
    fn is_audience(&self, audience: &str) -> bool {
        is_same_resource(audience, self.uri.as_str())
            || self.audiences.iter().any(|it| it == audience)
    }
}

// What the server says is read as a client reads it.
#[cfg(all(test, feature = "client"))]
mod tests;
