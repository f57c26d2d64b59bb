//! Signing keys and the JSON Web Tokens signed with them (ES256).

use std::collections::VecDeque;
use std::{fmt, io};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::failure::Failure;

/// The maximum number of published keys: the current one and earlier ones whose tokens may still be
/// valid.
const KEYS_MAX: usize = 3;

/// Keys for ES256 signatures. The newest one signs.
pub struct SigningKeys {
    keys: VecDeque<SigningKey>,
    made: u64,
}

struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

impl SigningKeys {
    /// Generates a first key.
    ///
    /// # Errors
    ///
    /// Fails if the system's random number generator fails.
    pub fn generate() -> io::Result<Self> {
        let mut keys = Self { keys: VecDeque::new(), made: 0 };
        keys.rotate()?;
        Ok(keys)
    }

    /// Generates a new signing key. The two previous keys stay published.
    ///
    /// # Errors
    ///
    /// Fails if the system's random number generator fails. The keys are unchanged then.
    pub fn rotate(&mut self) -> io::Result<()> {
        let random = SystemRandom::new();
        let failed = |_| io::Error::other("the system's random number generator failed");
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        let pair = pair.map_err(|error| io::Error::other(error.to_string()))?;
        self.made += 1;
        self.keys.push_front(SigningKey { id: format!("key-{}", self.made), pair });
        self.keys.truncate(KEYS_MAX);
        Ok(())
    }

    /// Returns the public keys as a JWK set.
    #[must_use]
    pub fn to_jwks(&self) -> Value {
        let keys = self.keys.iter().map(|key| {
            // An uncompressed point: the byte 4, then both coordinates with 32 bytes each.
            let (x, y) = key.pair.public_key().as_ref()[1..].split_at(32);
            json!({
                "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": key.id,
                "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
            })
        });
        json!({ "keys": keys.collect::<Vec<_>>() })
    }

    /// Signs a JSON Web Token with this `typ` and these claims.
    ///
    /// # Errors
    ///
    /// Fails if the system's random number generator fails.
    pub fn sign(&self, kind: &str, claims: &Value) -> io::Result<String> {
        let key = &self.keys[0];
        let header = json!({ "alg": "ES256", "typ": kind, "kid": key.id });
        let [header, claims] =
            [header, claims.clone()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let input = format!("{header}.{claims}");
        let signature = key.pair.sign(&SystemRandom::new(), input.as_bytes());
        let signature = signature
            .map_err(|_| io::Error::other("the system's random number generator failed"))?;
        Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl fmt::Debug for SigningKeys {
    /// Omits the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeys").field("made", &self.made).finish_non_exhaustive()
    }
}

/// Returns the claims of a token if a key in `jwks` signed it with ES256. Does not check
/// the claims.
#[must_use]
pub fn verify(token: &str, jwks: &Value) -> Option<Value> {
    let (input, signature) = token.rsplit_once('.')?;
    let (header, claims) = input.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
    // The header is only used to choose one of the given keys.
    if header["alg"] != "ES256" {
        return None;
    }
    let signature = decode(signature)?;
    let mut keys = jwks["keys"].as_array()?.iter();
    keys.find(|key| {
        let named = header["kid"].is_null() || header["kid"] == key["kid"];
        named && is_signed(input, &signature, key).unwrap_or_default()
    })?;
    serde_json::from_slice(&decode(claims)?).ok()
}

fn is_signed(input: &str, signature: &[u8], key: &Value) -> Option<bool> {
    if key["kty"] != "EC" || key["crv"] != "P-256" {
        return None;
    }
    let mut point = vec![4];
    for coordinate in [&key["x"], &key["y"]] {
        point.extend(URL_SAFE_NO_PAD.decode(coordinate.as_str()?).ok()?);
    }
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    Some(key.verify(input.as_bytes(), signature).is_ok())
}

/// Whether the claims name `audience`, alone or in a list.
pub(super) fn is_for(claims: &Value, audience: &str) -> bool {
    match &claims["aud"] {
        Value::Array(all) => all.iter().any(|it| it == audience),
        one => one == audience,
    }
}

/// Whether the claims have an expiry in the future and are valid at `now`.
pub(super) fn is_current(claims: &Value, now: u64) -> bool {
    let begun = claims["nbf"].as_u64().is_none_or(|from| from <= now);
    begun && claims["exp"].as_u64().is_some_and(|end| now < end)
}

/// Returns the unverified issuer of a token, to look up its keys.
pub(super) fn unverified_issuer(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["iss"].as_str().map(Into::into)
}

/// Returns an unguessable text: 32 random bytes in base64.
pub(super) fn secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| Failure::entropy())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_verified_by_the_published_keys() {
        let mut keys = SigningKeys::generate().unwrap();
        let claims = json!({ "sub": "user" });
        let token = keys.sign("at+jwt", &claims).unwrap();
        assert_eq!(verify(&token, &keys.to_jwks()), Some(claims.clone()));

        let others = SigningKeys::generate().unwrap();
        assert_eq!(verify(&token, &others.to_jwks()), None);
        let (input, signature) = token.rsplit_once('.').unwrap();
        assert_eq!(verify(&format!("{input}x.{signature}"), &keys.to_jwks()), None);
        assert_eq!(verify(&format!("{input}."), &keys.to_jwks()), None);

        keys.rotate().unwrap();
        assert_eq!(verify(&token, &keys.to_jwks()), Some(claims.clone()));
        let newer = keys.sign("at+jwt", &claims).unwrap();
        assert_eq!(verify(&newer, &keys.to_jwks()), Some(claims));
        for _ in 1..KEYS_MAX {
            keys.rotate().unwrap();
        }
        assert_eq!(keys.to_jwks()["keys"].as_array().unwrap().len(), KEYS_MAX);
        assert_eq!(verify(&token, &keys.to_jwks()), None);
    }

    #[test]
    fn an_unsigned_token_is_rejected() {
        let keys = SigningKeys::generate().unwrap();
        let [header, claims] =
            [r#"{"alg":"none"}"#, r#"{"sub":"user"}"#].map(|part| URL_SAFE_NO_PAD.encode(part));
        assert_eq!(verify(&format!("{header}.{claims}."), &keys.to_jwks()), None);
        assert_eq!(verify("x", &keys.to_jwks()), None);
    }
}
