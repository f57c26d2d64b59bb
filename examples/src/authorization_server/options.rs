use std::time::Duration;

use serde_json::Value;

use super::clients::Client;

/// What an [`AuthorizationServer`](super::AuthorizationServer) gives, to whom, and for how long.
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

/// What the user says when a client wants access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Yes, without being asked.
    Automatic,
    /// No, without being asked.
    Denied,
    /// A page asks them.
    Page,
}

/// Whose assertions are taken for grants (RFC 7523).
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// What it is called in `iss`.
    pub issuer: String,
    /// Its public keys, as a JWK set.
    pub keys: Value,
}

/// How much is kept. Beyond that the oldest is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Clients that registered by themselves. 256 by default.
    pub clients_max: usize,
    /// Requests that wait for the user, and, apart from them, authorization codes. 256 by default.
    pub codes_max: usize,
    /// Refresh tokens, those of which only the memory is left included. 1024 by default.
    pub refresh_tokens_max: usize,
}

impl Limits {
    /// What a test or a demonstration never reaches.
    pub const DEFAULT: Self = Self { clients_max: 256, codes_max: 256, refresh_tokens_max: 1024 };
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// A user `user` who says yes to everything, the scope `mcp:basic`, and access for 5 minutes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            scopes: vec!["mcp:basic".into()],
            approval: Approval::Automatic,
            subject: "user".into(),
            // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHS-029]: short.
            access_token_lifetime: Duration::from_secs(300),
            clients: Vec::new(),
            trusted: Vec::new(),
            limits: Limits::DEFAULT,
        }
    }

    /// The scopes that there are. The first is what a client gets that names none.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// What the user says.
    #[must_use]
    pub const fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Who the user is: `sub` of the tokens.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// How long an access token is good for, in whole seconds.
    #[must_use]
    pub const fn access_token_lifetime(mut self, lifetime: Duration) -> Self {
        self.access_token_lifetime = lifetime;
        self
    }

    /// A client that is known without having registered.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.clients.push(client);
        self
    }

    /// Takes the assertions of `issuer` for grants.
    #[must_use]
    pub fn trust(mut self, issuer: TrustedIssuer) -> Self {
        self.trusted.push(issuer);
        self
    }

    /// How much is kept.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
