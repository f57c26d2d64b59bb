//! The server's side: an MCP server as a protected resource (RFC 9728).

mod document;
mod dpop;
mod grant;
mod scope;
#[cfg(test)]
mod tests;
mod token;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::http::{InvalidUrl, Location};
use mcp_sansio::{Method, Revision};
use mcp_sansio_sync::Arc;

use super::discovery::{MetadataUrls, UrlFault};
use super::resource::{ResourceUri, is_same_resource};

use scope::Hierarchy;

pub use dpop::{DpopProof, DpopVerifier, PROOF_LENGTH_MAX, ProofSignature};
pub use grant::Grant;
pub use token::{ACCESS_TOKEN_LENGTH_MAX, StaticTokens, TokenCheck, TokenRefusal, VerifiedToken};

/// An MCP server that requires tokens: its URI, the issuers it trusts, and the scopes it requires.
///
/// ```
/// use mcp_sansio_oauth::protected_resource::{Operation, ProtectedResource};
///
/// let resource = ProtectedResource::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
///     .base_scopes(["files:read"])?
///     .scopes_for(Operation::tool("delete"), ["files:write"])?
///     .implies("files", ["files:read", "files:write"])?;
/// assert_eq!(
///     resource.metadata_url().as_deref(),
///     Some("https://mcp.example.com/.well-known/oauth-protected-resource/mcp")
/// );
/// # Ok::<(), mcp_sansio_oauth::protected_resource::InvalidResource>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    uri: ResourceUri,
    location: Location,
    /// Empty if the server has its own tokens.
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
    dpop: Option<Arc<DpopVerifier>>,
}

/// Why the description of a resource is invalid. The caller's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResource {
    /// The URI of the resource, or the URL of its documentation, is not the URL of a server.
    #[error("not the URL of a resource: {0}")]
    Url(#[from] InvalidUrl),
    /// The URI of the resource has a fragment.
    #[error("the URI of the resource has a fragment")]
    Fragment,
    /// The host of the URI ends with a dot: clients request tokens without it.
    #[error("the host of the resource's URI ends with a dot: leave it out")]
    FinalDot,
    /// The issuer identifier is invalid.
    #[error("`{issuer}` is not the issuer identifier of an authorization server: {reason}")]
    Issuer {
        /// The issuer identifier.
        issuer: String,
        /// The fault.
        reason: UrlFault,
    },
    /// The list of authorization servers is empty.
    #[error(
        "a protected resource needs an authorization server; without one, use `without_issuer`"
    )]
    NoIssuer,
    /// A scope is empty or has a character that scopes cannot have (RFC 6749, section 3.3).
    #[error("`{0}` is not a scope")]
    Scope(String),
    /// `offline_access` concerns only a client and its authorization server: no resource requires
    /// it.
    #[error("`offline_access` is not a scope of a resource")]
    OfflineAccess,
    /// The algorithms of a [`DpopVerifier`] are missing, or one has characters that the names of
    /// algorithms do not have.
    #[error("`{0}` is not a list of signature algorithms")]
    Algorithm(String),
    /// A token of [`StaticTokens`] is empty, too long, or has characters that clients cannot send
    /// (RFC 6750, section 2.1): use letters, digits and `-._~+/`, such as those of Base64.
    #[error("the token at position {index} cannot be sent in `Authorization`")]
    Token {
        /// The position, from 0.
        index: usize,
    },
    /// A token of [`StaticTokens`] occurs twice.
    #[error("the token at position {index} is the same as an earlier one")]
    RepeatedToken {
        /// The position of the second one, from 0.
        index: usize,
    },
}

impl ProtectedResource {
    /// Creates the MCP server at `uri`, the URL that clients use, which accepts tokens of these
    /// `issuers`.
    ///
    /// A token is accepted if it was issued for this exact URI. The URI is kept unchanged; omit a
    /// trailing slash. It should be `https`, unless it is on this machine.
    ///
    /// # Errors
    ///
    /// The caller's error: see [`InvalidResource`].
    // MCP 2026-07-28 basic/authorization/index#canonical-server-uri [AUTHC-041]
    pub fn new(
        uri: &str,
        issuers: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        let issuers: Vec<String> = issuers.into_iter().map(Into::into).collect();
        // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHS-008]
        if issuers.is_empty() {
            return Err(InvalidResource::NoIssuer);
        }
        for issuer in &issuers {
            // An identifier from which clients cannot derive a metadata URL is not an issuer.
            MetadataUrls::for_issuer(Revision::LATEST, issuer)
                .map_err(|reason| InvalidResource::Issuer { issuer: issuer.clone(), reason })?;
        }
        Ok(Self { issuers, ..Self::without_issuer(uri)? })
    }

    /// Creates the MCP server at `uri`, the URL that clients use, which has no authorization
    /// server: its tokens come from its own configuration, for example from [`StaticTokens`], and
    /// clients have received them by other means.
    ///
    /// It has no metadata, and its challenges do not name any, so a client cannot sign in.
    ///
    /// # Errors
    ///
    /// The caller's error: see [`InvalidResource`].
    // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-001]: the OAuth flow is
    // optional. Without it there is no metadata, which would have to name an authorization server.
    pub fn without_issuer(uri: &str) -> Result<Self, InvalidResource> {
        let location = Location::parse(uri)?;
        // A URL is below itself, so no other mismatch is possible.
        let uri = ResourceUri::from_metadata(uri, &location).map_err(|reason| match reason {
            UrlFault::FinalDot => InvalidResource::FinalDot,
            _ => InvalidResource::Fragment,
        })?;
        Ok(Self {
            uri,
            location,
            issuers: Vec::new(),
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
            dpop: None,
        })
    }

    /// Sets the scopes that every request needs.
    ///
    /// # Errors
    ///
    /// The caller's error: [`InvalidResource::Scope`] or [`InvalidResource::OfflineAccess`].
    pub fn base_scopes(
        mut self,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        self.base_scopes = scope::checked(scopes)?;
        Ok(self)
    }

    /// Sets the scopes that an operation needs in addition to those of every request. The
    /// scopes for a method and for one of its subjects add up.
    ///
    /// # Errors
    ///
    /// Those of [`base_scopes`](Self::base_scopes).
    pub fn scopes_for(
        mut self,
        operation: impl Into<Operation>,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        self.operations.add(operation.into(), &scope::checked(scopes)?);
        Ok(self)
    }

    /// Makes the scope `broad` imply all of `narrow`, and the scopes that these imply.
    ///
    /// # Errors
    ///
    /// Those of [`base_scopes`](Self::base_scopes).
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

    /// Sets the scopes that the metadata names, for clients without a challenge: those of basic
    /// use. The default is the base scopes.
    ///
    /// # Errors
    ///
    /// Those of [`base_scopes`](Self::base_scopes).
    pub fn scopes_supported(
        mut self,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, InvalidResource> {
        self.scopes_supported = Some(scope::checked(scopes)?);
        Ok(self)
    }

    /// Also accepts tokens with this name in `aud`: for authorization servers that know the
    /// resource by another name than its URI (RFC 8707, section 2). The name must be unique to this
    /// resource: tokens for another resource with this name would be accepted here.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audiences.push(name.into());
        self
    }

    /// Sets the name of the resource, for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the URL of the documentation for developers.
    ///
    /// # Errors
    ///
    /// The caller's error: the URL is malformed.
    pub fn documentation(mut self, url: &str) -> Result<Self, InvalidResource> {
        self.documentation = Some(Location::parse(url)?);
        Ok(self)
    }

    /// Also serves the metadata at the root of the host, for clients that request it there. Use it
    /// only if this is the only resource of its host.
    #[must_use]
    pub const fn at_root(mut self) -> Self {
        self.at_root = true;
        self
    }

    /// Sets how long a token check may take, during which its request waits. 10 s by default; after
    /// that the client is told to retry.
    #[must_use]
    pub const fn check_time(mut self, time: Duration) -> Self {
        self.check_time = time;
        self
    }

    /// Sets how many token checks may run at once. 1,024 by default; clients beyond the limit are
    /// told to retry. Any client can send tokens, and a check may use memory or a connection to the
    /// authorization server.
    #[must_use]
    pub const fn checks_max(mut self, checks: usize) -> Self {
        self.checks_max = checks;
        self
    }

    /// Returns the URI of the resource.
    #[must_use]
    pub const fn uri(&self) -> &ResourceUri {
        &self.uri
    }

    /// Returns how long a token check may take.
    #[must_use]
    pub const fn check_timeout(&self) -> Duration {
        self.check_time
    }

    /// Returns how many token checks may run at once.
    #[must_use]
    pub const fn concurrent_checks(&self) -> usize {
        self.checks_max
    }

    /// Whether this resource requires or lists the scope.
    fn knows_scope(&self, scope: &str) -> bool {
        let supported = self.scopes_supported.iter().flatten();
        let mut named = self.base_scopes.iter().chain(supported);
        named.any(|it| it == scope) || self.operations.knows(scope) || self.hierarchy.knows(scope)
    }

    /// Whether an audience names this resource.
    ///
    /// An issuer may have written the URI in another equivalent form.
    // MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-013]
    fn is_audience(&self, audience: &str) -> bool {
        is_same_resource(audience, self.uri.as_str())
            || self.audiences.iter().any(|it| it == audience)
    }
}

// The output of the server is parsed with the client's code.

// ------------------------------------------------------------------ operation

/// An operation that may require scopes: a method, or a method with a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    method: Cow<'static, str>,
    subject: Option<Subject>,
}

/// The subject of an operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Subject {
    /// The item with this exact name.
    Named(String),
    /// All reads that the handler of this template gets.
    Template(String),
}

impl Operation {
    /// All requests of a method, defined by the protocol or an extension.
    pub fn method(method: impl Into<Cow<'static, str>>) -> Self {
        Self { method: method.into(), subject: None }
    }

    /// Calls of the tool called `name`.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::about(Method::ToolsCall, name)
    }

    /// Uses of the prompt called `name`.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::about(Method::PromptsGet, name)
    }

    /// Reads of the resource with this exact URI, and subscriptions to it. For the resources of a
    /// template use [`template`](Self::template): a template may match several spellings of a URI.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::about(Method::ResourcesRead, uri)
    }

    /// Reads that the handler of a template gets, and subscriptions to such resources, with the
    /// template given as text (`file:///{path}`). Does not include URIs that have their own handler
    /// or match an earlier template.
    pub fn template(uri_template: impl Into<String>) -> Self {
        let subject = Some(Subject::Template(uri_template.into()));
        Self { method: Method::ResourcesRead.as_str().into(), subject }
    }

    fn about(method: Method, subject: impl Into<String>) -> Self {
        let subject = Some(Subject::Named(subject.into()));
        Self { method: method.as_str().into(), subject }
    }
}

impl From<Method> for Operation {
    fn from(method: Method) -> Self {
        Self::method(method.as_str())
    }
}

/// The scopes that operations require.
#[derive(Clone, Debug, Default)]
struct ScopeRequirements(BTreeMap<Cow<'static, str>, MethodScopes>);

#[derive(Clone, Debug, Default)]
struct MethodScopes {
    always: Vec<String>,
    /// By the subject of a request.
    subjects: BTreeMap<String, Vec<String>>,
    /// By the template of the handler.
    templates: BTreeMap<String, Vec<String>>,
}

/// The items of a server, as far as permissions depend on them.
pub trait ItemLookup {
    /// Returns the template whose handler gets the reads of a URI.
    fn template_of(&self, uri: &str) -> Option<String>;

    /// Returns the scopes that the item of a request requires, in addition to those of its
    /// [`Operation`].
    fn scopes_of(&self, method: &str, subject: &str) -> Vec<String>;
}

impl ScopeRequirements {
    fn add(&mut self, operation: Operation, scopes: &[String]) {
        let method_scopes = self.0.entry(operation.method).or_default();
        let known = match operation.subject {
            None => &mut method_scopes.always,
            Some(Subject::Named(name)) => method_scopes.subjects.entry(name).or_default(),
            Some(Subject::Template(it)) => method_scopes.templates.entry(it).or_default(),
        };
        scopes.iter().for_each(|it| scope::add(known, it));
    }

    /// Returns the scopes that a request needs. `subject` is the name by which its handler is
    /// found. Without a template lookup, a read needs the scopes of all templates.
    fn scopes_for(
        &self,
        method: &str,
        subject: Option<&str>,
        items: Option<&dyn ItemLookup>,
    ) -> impl Iterator<Item = &str> {
        let method_scopes = self.0.get(method);
        // A subscription tells when a resource changes, which only its readers may know.
        let subscribes = [Method::ResourcesSubscribe, Method::SubscriptionsListen]
            .iter()
            .any(|it| it.as_str() == method);
        let item_scopes = match subscribes {
            true => self.0.get(Method::ResourcesRead.as_str()).filter(|_| subject.is_some()),
            false => method_scopes,
        };
        let subject_scopes = item_scopes.and_then(|it| it.subjects.get(subject?));
        let templates = item_scopes.map(|it| &it.templates).filter(|it| !it.is_empty());
        let (template, any) = match items {
            Some(items) => {
                let found = templates.zip(subject);
                (found.and_then(|(it, uri)| it.get(&items.template_of(uri)?)), None)
            }
            None => (None, templates.map(BTreeMap::values)),
        };
        let always = method_scopes.map(|it| &it.always);
        let scopes = always.into_iter().chain(subject_scopes).chain(template);
        scopes.chain(any.into_iter().flatten()).flatten().map(String::as_str)
    }

    fn knows(&self, scope: &str) -> bool {
        let named = |scopes: &Vec<String>| scopes.iter().any(|it| it == scope);
        self.0.values().any(|it| {
            named(&it.always) || it.subjects.values().chain(it.templates.values()).any(named)
        })
    }
}
