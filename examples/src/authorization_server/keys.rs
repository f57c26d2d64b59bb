//! The keys that sign tokens, and JSON Web Tokens of theirs (ES256).

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

/// Keys that are published at once: the one that signs, and those whose tokens may still be around.
const KEYS_MAX: usize = 3;

/// Keys for signing with ES256, of which the newest one signs.
pub struct SigningKeys {
    keys: VecDeque<SigningKey>,
    made: u64,
}

struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

impl SigningKeys {
    /// One fresh key.
    ///
    /// # Errors
    ///
    /// The system's fault: it has no entropy.
    pub fn generate() -> io::Result<Self> {
        let mut keys = Self { keys: VecDeque::new(), made: 0 };
        keys.rotate()?;
        Ok(keys)
    }

    /// Signs with a fresh key from now on. The last two before it stay published.
    ///
    /// # Errors
    ///
    /// The system's fault: it has no entropy. Nothing has changed then.
    pub fn rotate(&mut self) -> io::Result<()> {
        let random = SystemRandom::new();
        let failed = |_| io::Error::other("the system has no entropy");
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
        let pair = pair.map_err(|error| io::Error::other(error.to_string()))?;
        self.made += 1;
        self.keys.push_front(SigningKey { id: format!("key-{}", self.made), pair });
        self.keys.truncate(KEYS_MAX);
        Ok(())
    }

    /// The public halves, as a JWK set.
    #[must_use]
    pub fn to_jwks(&self) -> Value {
        let keys = self.keys.iter().map(|key| {
            // An uncompressed point: 4, then both coordinates in 32 bytes each.
            let (x, y) = key.pair.public_key().as_ref()[1..].split_at(32);
            json!({
                "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": key.id,
                "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
            })
        });
        json!({ "keys": keys.collect::<Vec<_>>() })
    }

    /// A JSON Web Token of this `typ` with these claims.
    ///
    /// # Errors
    ///
    /// The system's fault: it has no entropy.
    pub fn sign(&self, kind: &str, claims: &Value) -> io::Result<String> {
        let key = &self.keys[0];
        let header = json!({ "alg": "ES256", "typ": kind, "kid": key.id });
        let [header, claims] =
            [header, claims.clone()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let input = format!("{header}.{claims}");
        let signature = key.pair.sign(&SystemRandom::new(), input.as_bytes());
        let signature = signature.map_err(|_| io::Error::other("the system has no entropy"))?;
        Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl fmt::Debug for SigningKeys {
    /// Leaves the keys out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeys").field("made", &self.made).finish_non_exhaustive()
    }
}

/// The claims of a token that one of the keys of `jwks` has signed with ES256, whatever they say.
#[must_use]
pub fn verify(token: &str, jwks: &Value) -> Option<Value> {
    let (input, signature) = token.rsplit_once('.')?;
    let (header, claims) = input.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
    // What a header says of its key counts for nothing but the choice among ours.
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

/// Whether claims are for `audience`, which may be one of several.
pub(super) fn is_for(claims: &Value, audience: &str) -> bool {
    match &claims["aud"] {
        Value::Array(all) => all.iter().any(|it| it == audience),
        one => one == audience,
    }
}

/// Whether claims say until when they hold, and it is not over.
pub(super) fn is_current(claims: &Value, now: u64) -> bool {
    let begun = claims["nbf"].as_u64().is_none_or(|from| from <= now);
    begun && claims["exp"].as_u64().is_some_and(|end| now < end)
}

/// Who a token says that it is from, to look up its keys with.
pub(super) fn unverified_issuer(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["iss"].as_str().map(Into::into)
}

/// A text that nobody can guess: 32 bytes of the system's entropy in base64.
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
