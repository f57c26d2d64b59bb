use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::JwtError;
use crate::Algorithm;

/// A JSON Web Token whose form is right, and of which nothing is believed yet.
#[derive(Debug)]
pub(super) struct Jwt<'a> {
    pub(super) algorithm: Algorithm,
    /// Which key it names, if it does.
    pub(super) key_id: Option<String>,
    /// What is signed.
    pub(super) input: &'a str,
    pub(super) signature: Vec<u8>,
    payload: Vec<u8>,
}

/// What is read of the header; the rest means nothing here. Keys that a token brings (`jwk`, `jku`,
/// `x5c`, `x5u`) are not even looked at.
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
        // A dot more is no base64.
        let decode = |part: &str| {
            URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Malformed("it is no base64url"))
        };
        let header: Header = object(&decode(header)?)?;
        // By name, so that there is no way to a secret key's algorithm or to none (RFC 8725,
        // section 3.1).
        let algorithm = header.alg.parse().map_err(|_| JwtError::Algorithm)?;
        if !allowed.contains(&algorithm) {
            return Err(JwtError::Algorithm);
        }
        // RFC 7515, section 4.1.11: no extension is known here.
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

    /// The claims.
    pub(super) fn claims<T: DeserializeOwned>(&self) -> Result<T, JwtError> {
        object(&self.payload)
    }
}

/// Whether `typ` is that of an access token: of RFC 9068 (section 2.1), or of the many that say no
/// more than that they are a JSON Web Token.
fn is_access_token(typ: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    matches!(typ.strip_prefix("application/").unwrap_or(&typ), "at+jwt" | "jwt")
}

/// Reads a JSON object; a member that counts and is there twice is refused.
fn object<T: DeserializeOwned>(text: &[u8]) -> Result<T, JwtError> {
    // The derived readers take an array for an object too.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(JwtError::Malformed("it is not made of JSON objects"));
    }
    // What is wrong would be told with what is there.
    serde_json::from_slice(text)
        .map_err(|_| JwtError::Malformed("a member is missing, twice there, or of a wrong type"))
}
