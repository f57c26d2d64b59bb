use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::Location;
use mcp_sansio_oauth::protected_resource::{
    ACCESS_TOKEN_LENGTH_MAX, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_oauth::{InvalidIssuer, MetadataUrls};

use super::JwtError;
use super::claims::{Claims, Expected};
use super::document::{Fetch, Source};
use super::jwt::Jwt;
use super::key_cache::KeyCache;
use crate::Algorithm;

/// The most by which the clocks of issuer and server may be apart. 5 min.
const LEEWAY_MAX: Duration = Duration::from_secs(5 * 60);

/// Checks access tokens of one issuer that are JSON Web Tokens: signature, algorithm, type, issuer,
/// audience and time. Tokens are taken as RFC 9068 has them, and from issuers that know its claims
/// but not its `typ`. One without `exp` would be good for ever, and is refused as one without `iss`,
/// `sub` or `aud` is.
///
/// The principal of a token is `issuer|subject`. Its scopes are those of `scope` and `scp`.
///
/// The keys of the issuer are fetched when the first token comes, again when a token names a key that
/// is not among them, and every 15 minutes; never by two requests at once, and never twice within an
/// [interval](Self::interval), so that nobody can have them fetched by sending tokens. New keys take
/// the place of all old ones. If they cannot be fetched, the old ones are good for an hour.
/// ```
/// use mcp_sansio_oauth::TokenCheck;
/// use mcp_sansio_handlers::Server;
/// use mcp_sansio_auth::JwtVerifier;
/// # async fn get(url: String) -> Result<Vec<u8>, std::io::Error> { Ok(Vec::new()) }
/// # use mcp_sansio_oauth::ProtectedResource;
/// # fn unix_time() -> u64 { 0 }
///
/// let (issuer, uri) = ("https://auth.example.com", "https://mcp.example.com/mcp");
/// let verifier = JwtVerifier::new(issuer, uri, get)?;
/// let resource = ProtectedResource::new(uri, [issuer])?;
/// let server = Server::new("files", "1.0.0")
///     .protect(resource, move |check: TokenCheck| verifier.check(check), unix_time);
/// # let _ = server;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones have the same keys.
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
    /// Tokens of `issuer` for `audience`, the URI of the resource. Where the keys are, the metadata
    /// of the issuer says.
    ///
    /// `fetch` gets the document at a URL: it answers with the body of a response of status 200, and
    /// with an error in every other case. It must come to an end by itself (give it a time-out), must
    /// not follow redirects to other origins, and had best stop reading after
    /// [`DOCUMENT_LENGTH_MAX`](mcp_sansio::http::DOCUMENT_LENGTH_MAX) bytes: what is longer is not used.
    ///
    /// # Errors
    ///
    /// The caller's: no issuer can be called that.
    pub fn new<F, R, E>(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        fetch: F,
    ) -> Result<Self, InvalidIssuer>
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

    /// The same, with keys that are at `jwks`: for an issuer without metadata. A place that is neither
    /// `https` nor on a loopback address is never asked, and no token is taken then.
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

    /// Takes tokens for this audience as well: another name of the same resource, which the core has
    /// to be told of, too.
    #[must_use]
    pub fn audience(mut self, name: impl Into<String>) -> Self {
        self.audiences.push(name.into());
        self
    }

    /// The algorithms to allow, in place of all that are known.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// How far the clocks of the issuer and of this server may be apart. 60 s by default, 5 min at
    /// most.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway.min(LEEWAY_MAX);
        self
    }

    /// The time between two fetches of the keys, at least. 30 s by default, and never less than 1 s: so long a key may stay
    /// unknown that the issuer has just begun to use, and so long keys are missing after a fetch came
    /// to nothing.
    #[must_use]
    pub const fn interval(mut self, interval: Duration) -> Self {
        let least = Duration::from_secs(1);
        self.interval = if interval.as_secs() == 0 { least } else { interval };
        self
    }

    /// Checks a token, as the core asks for it.
    ///
    /// # Errors
    ///
    /// See [`TokenRefusal`]. For a log there is [`verify`](Self::verify), which says more.
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
    /// The time at which the token ends is told with the leeway on top, for the core to judge by.
    ///
    /// # Errors
    ///
    /// See [`JwtError`].
    pub async fn verify(&self, token: &str, unix_time: u64) -> Result<VerifiedToken, JwtError> {
        if token.len() > ACCESS_TOKEN_LENGTH_MAX {
            return Err(JwtError::Malformed("it is too long"));
        }
        let jwt = Jwt::parse(token, &self.algorithms)?;
        // Before the keys are asked for, as what fails here needs none.
        let claims: Claims = jwt.claims()?;
        let leeway = self.leeway.as_secs();
        claims.check(&Expected {
            issuer: &self.issuer,
            audiences: &self.audiences,
            now: unix_time,
            leeway,
        })?;
        // A token that names no key may be signed with one that is not known yet.
        let suffice = |keys: &super::key_set::KeySet| match &jwt.key_id {
            Some(_) => keys.has_key_for(&jwt),
            None => keys.verify(&jwt),
        };
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
