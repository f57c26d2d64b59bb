use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::Location;
use mcp_sansio_oauth::protected_resource::{
    ACCESS_TOKEN_LENGTH_MAX, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_oauth::{MetadataUrls, UrlFault};

use super::JwtError;
use super::jwt::{Claims, Expected, Fetch, Jwt, Source};
use super::key::KeyCache;
use crate::Algorithm;

/// The maximum of the tolerated clock difference between issuer and server. 5 min.
const LEEWAY_MAX: Duration = Duration::from_secs(5 * 60);

/// Checks access tokens of one issuer that are JSON Web Tokens: signature, algorithm, type, issuer,
/// audience and time. Accepts tokens as defined in RFC 9068, and those of issuers that use its
/// claims but not its `typ`. A token without `exp` would be valid forever, so it is refused, like
/// one without `iss`, `sub` or `aud`.
///
/// The principal of a token is `issuer|subject`. Its scopes are those of `scope` and `scp`.
///
/// The keys of the issuer are fetched when the first token arrives, again when a token has an
/// unknown key id, and every 15 minutes; never by two requests at once, and never twice within an
/// [interval](Self::interval), so that tokens cannot cause frequent fetches. New keys replace all
/// old ones. While they are fetched again, other requests use the old ones; if they cannot be
/// fetched, for up to an hour.
///
/// ```
/// use mcp_sansio_oauth::protected_resource::TokenCheck;
/// use mcp_sansio_handlers::Server;
/// use mcp_sansio_auth::JwtVerifier;
/// # async fn get(url: String) -> Result<Vec<u8>, std::io::Error> { Ok(Vec::new()) }
/// # use mcp_sansio_oauth::protected_resource::ProtectedResource;
///
/// let (issuer, uri) = ("https://auth.example.com", "https://mcp.example.com/mcp");
/// let verifier = JwtVerifier::new(issuer, uri, get)?;
/// let resource = ProtectedResource::new(uri, [issuer])?;
/// let server = Server::new("files", "1.0.0")
///     .protect(resource, move |check: TokenCheck| verifier.check(check));
/// # let _ = server;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones share the keys.
#[derive(Clone, Debug)]
pub struct JwtVerifier {
    issuer: String,
    audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    leeway: Duration,
    interval: Duration,
    keys: Arc<KeyCache>,
}

impl JwtVerifier {
    /// Creates a verifier for tokens of `issuer` for `audience`, the URI of the resource. The
    /// metadata of the issuer contains the URL of its keys.
    ///
    /// `fetch` fetches the document at a URL: it returns the body of a response with status 200,
    /// and an error in all other cases. It must have a timeout, must not follow redirects to other
    /// origins, and should stop reading after
    /// [`DOCUMENT_LENGTH_MAX`](mcp_sansio::http::DOCUMENT_LENGTH_MAX) bytes: longer documents are
    /// not used.
    ///
    /// # Errors
    ///
    /// `issuer` is not a valid issuer identifier: the caller's fault.
    pub fn new<F, R, E>(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        fetch: F,
    ) -> Result<Self, UrlFault>
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let issuer = issuer.into();
        MetadataUrls::for_issuer(Revision::LATEST, &issuer)?;
        let source = Source::Issuer(issuer.clone());
        Ok(Self::from_source(issuer, audience.into(), source, Fetch::new(fetch)))
    }

    /// Like [`new`](Self::new), with the keys at `jwks`, for an issuer without metadata. If that
    /// URL is neither `https` nor on a loopback address, the keys are never fetched, and every
    /// token is refused.
    pub fn with_jwks_url<F, R, E>(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        jwks: &Location,
        fetch: F,
    ) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let source = Source::Url(jwks.as_str().to_owned());
        Self::from_source(issuer.into(), audience.into(), source, Fetch::new(fetch))
    }

    fn from_source(issuer: String, audience: String, source: Source, fetch: Fetch) -> Self {
        Self {
            issuer,
            audiences: vec![audience],
            algorithms: Algorithm::ALL.into(),
            leeway: Duration::from_secs(60),
            interval: Duration::from_secs(30),
            keys: Arc::new(KeyCache::new(fetch, source)),
        }
    }

    /// Also accepts tokens for this audience: another name of the same resource, which must be
    /// configured in the core, too.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audiences.push(name.into());
        self
    }

    /// Replaces the set of allowed algorithms; all are allowed by default.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Sets the tolerated clock difference between the issuer and this server. 60 s by default, 5
    /// min at most.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway.min(LEEWAY_MAX);
        self
    }

    /// Sets the minimum time between two fetches of the keys. 30 s by default, and at least 1 s. It
    /// is also how long a new key of the issuer may stay unknown, and how long keys are missing
    /// after a failed fetch.
    #[must_use]
    pub const fn interval(mut self, interval: Duration) -> Self {
        let least = Duration::from_secs(1);
        self.interval = if interval.as_secs() == 0 { least } else { interval };
        self
    }

    /// Checks a token on behalf of the core.
    ///
    /// # Errors
    ///
    /// See [`TokenRefusal`], whose cause is a [`JwtError`].
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012]
    pub fn check(
        &self,
        check: TokenCheck,
    ) -> impl Future<Output = Result<VerifiedToken, TokenRefusal>> + Send + use<> {
        let verifier = self.clone();
        async move { Ok(verifier.verify(check.token(), check.unix_time()).await?) }
    }

    /// Checks a token at `unix_time`, in seconds since 1970.
    ///
    /// The returned expiry includes the leeway, for use by the core.
    ///
    /// # Errors
    ///
    /// See [`JwtError`].
    pub async fn verify(&self, token: &str, unix_time: u64) -> Result<VerifiedToken, JwtError> {
        if token.len() > ACCESS_TOKEN_LENGTH_MAX {
            return Err(JwtError::Malformed("it is too long"));
        }
        let jwt = Jwt::parse(token, &self.algorithms)?;
        // Before the keys are fetched, as these checks do not need them.
        let claims: Claims = jwt.claims()?;
        let leeway = self.leeway.as_secs();
        claims.check(&Expected {
            issuer: &self.issuer,
            audiences: &self.audiences,
            now: unix_time,
            leeway,
        })?;
        // If none of the keys has its id, the token may be signed with a key that is not known yet.
        let suffice = |keys: &super::key::KeySet| keys.has_key_named_by(&jwt) || keys.verify(&jwt);
        let keys = self.keys.get(unix_time, self.interval, suffice).await?;
        if !keys.has_key_for(&jwt) {
            return Err(JwtError::Key);
        }
        if !keys.verify(&jwt) {
            return Err(JwtError::Signature);
        }
        Ok(claims.into_verified(leeway))
    }
}
