use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::http::{DOCUMENT_LENGTH_MAX, Location, Scheme};
use mcp_sansio::{Principal, Revision};
use mcp_sansio_oauth::protected_resource::VerifiedToken;
use mcp_sansio_oauth::{MetadataUrls, is_same_resource};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

use super::JwtError;
use super::key::KeySet;
use crate::Algorithm;

/// A well-formed JSON Web Token, which is not verified yet.
#[derive(Debug)]
pub(super) struct Jwt<'a> {
    pub(super) algorithm: Algorithm,
    /// The id of its key, if present.
    pub(super) key_id: Option<String>,
    /// The signed part.
    pub(super) input: &'a str,
    pub(super) signature: Vec<u8>,
    payload: Vec<u8>,
}

/// The header fields that are used. Keys embedded in a token (`jwk`, `jku`, `x5c`, `x5u`) are
/// ignored.
#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
    crit: Option<IgnoredAny>,
}

impl<'a> Jwt<'a> {
    pub(super) fn parse(token: &'a str, allowed: &[Algorithm]) -> Result<Self, JwtError> {
        let (input, signature) =
            token.rsplit_once('.').ok_or(JwtError::Malformed("it has no signature"))?;
        let (header, payload) =
            input.split_once('.').ok_or(JwtError::Malformed("it has no claims"))?;
        // An additional dot is not valid base64.
        let decode = |part: &str| {
            URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Malformed("it is not base64url"))
        };
        let header: Header = object(&decode(header)?)?;
        // Selected by name, so that neither a symmetric algorithm nor `none` is possible (RFC 8725,
        // section 3.1).
        let algorithm = header.alg.parse().map_err(|_| JwtError::Algorithm)?;
        if !allowed.contains(&algorithm) {
            return Err(JwtError::Algorithm);
        }
        // RFC 7515, section 4.1.11: no extensions are supported.
        if header.crit.is_some() {
            return Err(JwtError::Malformed("it has a critical header parameter"));
        }
        if !header.typ.is_none_or(|it| is_access_token(&it)) {
            return Err(JwtError::Type);
        }
        Ok(Self {
            algorithm,
            key_id: header.kid,
            input,
            signature: decode(signature)?,
            payload: decode(payload)?,
        })
    }

    /// Decodes the claims.
    pub(super) fn claims<T: DeserializeOwned>(&self) -> Result<T, JwtError> {
        object(&self.payload)
    }
}

/// Returns whether `typ` is that of an access token: that of RFC 9068 (section 2.1), or the common
/// generic one of a JSON Web Token.
fn is_access_token(typ: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    matches!(typ.strip_prefix("application/").unwrap_or(&typ), "at+jwt" | "jwt")
}

/// Reads a JSON object; a duplicate of a known member is refused.
fn object<T: DeserializeOwned>(text: &[u8]) -> Result<T, JwtError> {
    // Derived deserializers also accept an array for a struct.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(JwtError::Malformed("it is not made of JSON objects"));
    }
    // Omit the parse error, which quotes the content.
    serde_json::from_slice(text)
        .map_err(|_| JwtError::Malformed("a member is missing, duplicated, or of the wrong type"))
}

// ------------------------------------------------------------------ claims

/// The claims that are used (RFC 9068, section 2.2).
#[derive(Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMore,
    exp: f64,
    nbf: Option<f64>,
    /// Separated by spaces; some issuers write a list.
    scope: Option<OneOrMore>,
    /// Used by some issuers instead of `scope`.
    scp: Option<OneOrMore>,
    /// The key or the certificate that the token is bound to (RFC 7800).
    cnf: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// The values that claims are checked against.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) audiences: &'a [String],
    /// Seconds since 1970.
    pub(super) now: u64,
    /// Tolerated clock difference between issuer and server, in seconds.
    pub(super) leeway: u64,
}

impl Claims {
    /// Checks everything but the signature.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012]
    pub(super) fn check(&self, expected: &Expected<'_>) -> Result<(), JwtError> {
        if self.iss != expected.issuer {
            return Err(JwtError::Issuer);
        }
        if self.sub.is_empty() {
            return Err(JwtError::Malformed("the subject is empty"));
        }
        // MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-013]
        let audiences = self.aud.as_slice();
        if !audiences
            .iter()
            .any(|it| expected.audiences.iter().any(|ours| is_same_resource(it, ours)))
        {
            return Err(JwtError::Audience);
        }
        // Negated, since NaN would pass the opposite comparison.
        #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN must not pass")]
        {
            if !(self.exp + seconds(expected.leeway) > seconds(expected.now)) {
                return Err(JwtError::Expired);
            }
            if !self.nbf.is_none_or(|it| it <= seconds(expected.now + expected.leeway)) {
                return Err(JwtError::Early);
            }
        }
        // The core checks the binding to a key of the client (RFC 9449, section 6), and nothing
        // checks others. A bound token that is presented as a bearer token may be stolen.
        if self.cnf.is_some() && self.thumbprint().is_none() {
            return Err(JwtError::Bound);
        }
        Ok(())
    }

    /// Returns the thumbprint of the key that the token is bound to, if it is bound to nothing
    /// else.
    fn thumbprint(&self) -> Option<&str> {
        let confirmation = self.cnf.as_ref()?;
        confirmation.get("jkt")?.as_str().filter(|_| confirmation.len() == 1)
    }

    /// Converts the checked claims for the core.
    pub(super) fn into_verified(self, leeway: u64) -> VerifiedToken {
        // An issuer is a URL, which contains no `|`.
        let principal = Principal::new(format!("{}|{}", self.iss, self.sub));
        let mut token = VerifiedToken::new(principal)
            .audiences(self.aud.as_slice())
            .expires_at(whole(self.exp).saturating_add(leeway));
        if let Some(thumbprint) = self.thumbprint() {
            token = token.bound_to(thumbprint);
        }
        for scopes in [&self.scope, &self.scp].into_iter().flatten() {
            for scope in scopes.as_slice() {
                token = token.scope(scope);
            }
        }
        token
    }
}

impl OneOrMore {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::More(texts) => texts,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
const fn seconds(count: u64) -> f64 {
    count as f64
}

/// Truncates a date to whole seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "dates out of range saturate"
)]
const fn whole(date: f64) -> u64 {
    date as u64
}

// ------------------------------------------------------------------ fetches the documents of an issuer

/// The location of an issuer's keys.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// At this URL.
    Url(String),
    /// At the URL in the metadata of this issuer.
    Issuer(String),
}

type Fetched = Result<Vec<u8>, Box<dyn Error + Send + Sync>>;

/// Fetches documents.
pub(super) struct Fetch(Box<dyn Fn(String) -> Fetching + Send + Sync>);

type Fetching = Pin<Box<dyn Future<Output = Fetched> + Send>>;

/// The metadata fields that are used.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Fetch {
    pub(super) fn new<F, R, E>(fetch: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Box::new(move |url| {
            let fetching = fetch(url);
            Box::pin(async { fetching.await.map_err(Into::into) })
        }))
    }

    /// Fetches the keys of an issuer.
    pub(super) async fn keys(&self, source: &Source) -> Result<KeySet, JwtError> {
        let url = match source {
            Source::Url(url) => url.clone(),
            Source::Issuer(issuer) => self.jwks_uri(issuer).await?,
        };
        if !is_private(&url) {
            return Err(unavailable(
                "the URL of the keys is neither `https` nor on a loopback address",
            ));
        }
        let document = self.document(url).await?;
        KeySet::read(&document).ok_or_else(|| unavailable("the document is not a JWKS"))
    }

    /// Returns the URL of the keys according to the metadata of the issuer.
    async fn jwks_uri(&self, issuer: &str) -> Result<String, JwtError> {
        let urls = MetadataUrls::for_issuer(Revision::LATEST, issuer)
            .map_err(|error| unavailable(&error.to_string()))?;
        let mut failure = unavailable("the issuer has no metadata");
        for url in urls {
            let document = match self.document(url.as_str().to_owned()).await {
                Ok(document) => document,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            // A web server may answer with a page where it has no metadata.
            let Ok(metadata) = serde_json::from_slice::<Metadata>(&document) else {
                failure = unavailable("the metadata of the issuer is malformed");
                continue;
            };
            // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery
            // [AUTHC-025]: the rule for clients protects a server as well.
            if metadata.issuer == issuer {
                return Ok(metadata.jwks_uri);
            }
            failure = unavailable("the metadata belongs to another issuer");
        }
        Err(failure)
    }

    async fn document(&self, url: String) -> Result<Vec<u8>, JwtError> {
        let document = (self.0)(url).await.map_err(|error| unavailable(&error.to_string()))?;
        if document.len() > DOCUMENT_LENGTH_MAX {
            return Err(unavailable("a document is longer than 256 KiB"));
        }
        Ok(document)
    }
}

/// Returns whether documents at the URL are protected from replacement in transit.
fn is_private(url: &str) -> bool {
    Location::parse(url).is_ok_and(|url| {
        let origin = url.origin();
        origin.scheme() == Scheme::Https || origin.is_loopback()
    })
}

mcp_sansio::partial_debug! { impl Debug for Fetch(..) }

fn unavailable(reason: &str) -> JwtError {
    JwtError::Unavailable(reason.to_owned())
}
