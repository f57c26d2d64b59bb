use core::time::Duration;

/// The limits on what servers can make an authorizing client store or do. Each default states its
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationLimits {
    /// The most requests that wait for a token at once. 128: more than an HTTP client sends
    /// concurrently by default. Further ones are refused.
    pub waiting_max: usize,
    /// The most bytes of an authorization server's document. 256 KiB: several times the largest
    /// known.
    pub document_bytes_max: usize,
    /// The most bytes that are read of a response that is not needed, before it is aborted. 64 KiB:
    /// aborting it costs a connection.
    pub refusal_bytes_max: usize,
    /// The most responses that are read although they are not needed. 16: the next one is aborted
    /// at once.
    pub refusals_max: usize,
    /// The most redirects followed for one metadata document, within its origin. 3.
    pub redirects_max: u32,
    /// The most authorization servers of one MCP server that are tried. 4.
    pub issuers_max: usize,
    /// The most authorizations for one operation because of insufficient scopes. 2: one, and
    /// another one in case the user did not grant everything.
    pub step_ups_max: u32,
    /// The most operations whose authorizations are counted. 64: the oldest are dropped first.
    pub operations_max: usize,
    /// The most scopes of one token request. 256. Further ones are not requested.
    pub scopes_max: usize,
    /// How often one request is repeated because the server requires a new nonce in its proof. 3: a
    /// nonce may expire while a request is in transit.
    pub nonces_max: u32,
}

impl AuthorizationLimits {
    /// The default limits.
    pub const DEFAULT: Self = Self {
        waiting_max: 128,
        document_bytes_max: 256 * 1024,
        refusal_bytes_max: 64 * 1024,
        refusals_max: 16,
        redirects_max: 3,
        issuers_max: 4,
        step_ups_max: 2,
        operations_max: 64,
        scopes_max: 256,
        nonces_max: 3,
    };
}

impl Default for AuthorizationLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The timeouts for the steps of an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTimeouts {
    /// The timeout for one exchange with a server. 30 s: far longer than a working server needs.
    pub exchange: Duration,
    /// The timeout for the user, from the opening of the browser to the redirect. 5 min: time to
    /// find a second factor; about the lifetime of sign-in pages.
    pub user: Duration,
    /// The timeout for any other action of the application. 60 s: a key store may ask its user.
    pub application: Duration,
    /// How long a response that is not needed is read. 2 s: refusals are short.
    pub refusal: Duration,
    /// How long before its expiry a token is renewed, or half of its lifetime if that is shorter.
    /// 30 s: longer than a request is in transit.
    pub renew_before: Duration,
    /// How long to wait after a failed early renewal before the next one. 10 s: meanwhile requests
    /// are sent with the current token.
    pub renewal_pause: Duration,
}

impl ClientTimeouts {
    /// The default timeouts.
    pub const DEFAULT: Self = Self {
        exchange: Duration::from_secs(30),
        user: Duration::from_secs(5 * 60),
        application: Duration::from_secs(60),
        refusal: Duration::from_secs(2),
        renew_before: Duration::from_secs(30),
        renewal_pause: Duration::from_secs(10),
    };
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self::DEFAULT
    }
}
