use core::time::Duration;

/// Every bound on what servers can make an authorizing client hold or do. Each default has its
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Requests that wait for a token at once. 128: more than an HTTP client has under way by
    /// default. Further ones are refused.
    pub waiting_max: usize,
    /// The length of a document of an authorization server, in bytes. 256 KiB: several times the
    /// largest that are known.
    pub document_bytes_max: usize,
    /// What is read of a response that nobody needs, in bytes, before it is cut off. 64 KiB: cutting
    /// it off costs a connection.
    pub refusal_bytes_max: usize,
    /// Responses that nobody needs and that are still coming. 16: the next one is cut off at once.
    pub refusals_max: usize,
    /// Redirects followed for one metadata document, within its origin. 3.
    pub redirects_max: u32,
    /// Authorization servers of one MCP server that are tried. 4.
    pub issuers_max: usize,
    /// Authorizations for one operation because its scopes do not suffice. 2: one, and one more in
    /// case that the user left something out.
    pub step_ups_max: u32,
    /// Operations whose step-ups are remembered. 64: those longest ago are forgotten first.
    pub operations_max: usize,
    /// Scopes of one request for a token. 256. Those beyond are not asked for.
    pub scopes_max: usize,
    /// Times that one request is sent again because the server wants another nonce in its proof. 3:
    /// a nonce may run out while a request is on its way.
    pub nonces_max: u32,
}

impl ClientLimits {
    /// The defaults.
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

impl Default for ClientLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How long the steps of an authorization may take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTimeouts {
    /// One exchange with a server. 30 s: far more than one takes that works.
    pub exchange: Duration,
    /// The user, from the opening of the browser to the redirect. 5 min: time to look for a second
    /// factor; about as long as sign-in pages live.
    pub user: Duration,
    /// Anything else that is asked of the application. 60 s: a key store may ask its user.
    pub application: Duration,
    /// How long a response may go on that nobody needs. 2 s: what refuses is short.
    pub refusal: Duration,
    /// How long before its end a token is renewed; half of its life where that is shorter. 30 s:
    /// longer than a request is on its way.
    pub renew_before: Duration,
    /// How long a token is left alone after an attempt to renew it ahead of its end came to nothing.
    /// 10 s: the requests of that time go with the token that there is.
    pub renewal_pause: Duration,
}

impl ClientTimeouts {
    /// The defaults.
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
