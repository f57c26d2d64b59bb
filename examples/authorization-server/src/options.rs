use std::time::Duration;

use serde_json::Value;

use super::clients::Client;

/// The options of an [`AuthorizationServer`](super::AuthorizationServer): scopes, clients and
/// lifetimes.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) scopes: Vec<String>,
    pub(super) approval: Approval,
    pub(super) subject: String,
    pub(super) access_token_lifetime: Duration,
    pub(super) clients: Vec<Client>,
    pub(super) trusted: Vec<TrustedIssuer>,
    pub(super) limits: Limits,
}

/// How the user answers an authorization request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Approves without asking.
    Automatic,
    /// Denies without asking.
    Denied,
    /// Asks on a consent page.
    Page,
}

/// An issuer whose assertions are accepted as grants (RFC 7523).
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// The `iss` claim of the issuer.
    pub issuer: String,
    /// The public keys as a JWK set.
    pub keys: Value,
}

/// Limits of the stored state. Beyond a limit, the oldest entry is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Dynamically registered clients. 256 by default.
    pub clients_max: usize,
    /// Requests that wait for the user; also, counted separately, authorization codes. 256 by
    /// default.
    pub codes_max: usize,
    /// Refresh tokens, including those that were used and are kept to detect reuse. 1024 by
    /// default.
    pub refresh_tokens_max: usize,
}

impl Limits {
    /// Far more than a test or a demonstration uses.
    pub const DEFAULT: Self = Self { clients_max: 256, codes_max: 256, refresh_tokens_max: 1024 };
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// A user `user` who approves every request, the scope `mcp:basic`, and access tokens with a
    /// lifetime of 5 minutes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            scopes: vec!["mcp:basic".into()],
            approval: Approval::Automatic,
            subject: "user".into(),
            // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHS-029]:
            // access tokens are short-lived.
            access_token_lifetime: Duration::from_secs(300),
            clients: Vec::new(),
            trusted: Vec::new(),
            limits: Limits::DEFAULT,
        }
    }

    /// Sets the supported scopes. A request without a scope gets the first one.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how the user answers.
    #[must_use]
    pub const fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Sets the user name, which is the `sub` claim of the tokens.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Sets the lifetime of access tokens, in whole seconds.
    #[must_use]
    pub const fn access_token_lifetime(mut self, lifetime: Duration) -> Self {
        self.access_token_lifetime = lifetime;
        self
    }

    /// Adds a client that does not need to register.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.clients.push(client);
        self
    }

    /// Accepts the assertions of `issuer` as grants.
    #[must_use]
    pub fn trust(mut self, issuer: TrustedIssuer) -> Self {
        self.trusted.push(issuer);
        self
    }

    /// Sets the limits of the stored state.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
