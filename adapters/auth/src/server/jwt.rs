use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::JwtError;
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
