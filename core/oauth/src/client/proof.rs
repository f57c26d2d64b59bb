//! Proofs that the client holds the key its tokens are bound to: DPoP (RFC 9449).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::InvalidValue;
use mcp_sansio::http::{Location, Origin};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::DpopKey;
use super::authentication::SigningInput;
use super::challenge::{BearerChallenge, Challenge};
use crate::dpop::{Jwk, MALFORMED, ProofKey, PublicJwk, USE_DPOP_NONCE};

/// The longest accepted key, in bytes: an RSA key of 16,384 bits has half of it.
const JWK_LENGTH_MAX: usize = 8192;

/// A request that needs a proof.
#[derive(Clone, Copy)]
pub(crate) struct ProvenRequest<'a> {
    /// The method, in upper case.
    pub(crate) method: &'a str,
    /// The complete URL.
    pub(crate) url: &'a Location,
    /// The token of the request's `Authorization`; `None` at the token endpoint.
    pub(crate) access_token: Option<&'a str>,
    /// The last nonce of the server: see [`Nonces::get`](Nonces::get).
    pub(crate) nonce: Option<&'a str>,
    /// A unique id for the proof.
    pub(crate) jti: &'a str,
    /// The time in seconds since 1970.
    pub(crate) unix_time: u64,
}

impl ProofKey {
    /// Parses a key of the configuration.
    ///
    /// # Errors
    ///
    /// The key cannot be used for DPoP: a configuration error.
    pub(crate) fn new(key: &DpopKey) -> Result<Self, InvalidValue> {
        if key.jwk.len() > JWK_LENGTH_MAX || !key.jwk.trim_ascii_start().starts_with('{') {
            return Err(InvalidValue::new(MALFORMED));
        }
        let jwk: Jwk = serde_json::from_str(&key.jwk).map_err(|_| InvalidValue::new(MALFORMED))?;
        Self::from_jwk(&key.algorithm, jwk)
    }

    /// Returns the proof for a request, to be signed (RFC 9449, section 4.2). Each proof is valid
    /// for one request.
    // MCP 2026-07-28 auth:dpop-extension#access-token-presentation [DPOP-004]
    pub(crate) fn proof(&self, request: &ProvenRequest<'_>) -> SigningInput {
        let header = Header { typ: "dpop+jwt", alg: self.algorithm(), jwk: &self.jwk };
        let url = request.url.as_str();
        let claims = Claims {
            jti: request.jti,
            htm: request.method,
            htu: url.split('?').next().unwrap_or(url),
            iat: request.unix_time,
            ath: request.access_token.map(|it| URL_SAFE_NO_PAD.encode(Sha256::digest(it))),
            nonce: request.nonce,
        };
        SigningInput::new(&header, &claims)
    }
}

/// Whether a 401 requires a proof with another nonce, rather than another token (RFC 9449, section
/// 9).
pub(crate) fn asks_for_nonce(challenges: &[Challenge]) -> bool {
    let mut tokens = challenges.iter().filter_map(BearerChallenge::from_challenge);
    tokens.any(|it| it.error.as_deref() == Some(USE_DPOP_NONCE))
}

mcp_sansio::partial_debug! {
    /// Omits the token.
    impl Debug for ProvenRequest<'_> { method, url, .. }
}

#[derive(Serialize)]
struct Header<'a> {
    typ: &'static str,
    alg: &'a str,
    jwk: &'a PublicJwk,
}

#[derive(Serialize)]
struct Claims<'a> {
    jti: &'a str,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

// ------------------------------------------------------------------ nonces

/// The longest nonce that is stored, in bytes.
const NONCE_LENGTH_MAX: usize = 1024;
/// The most origins whose nonce is stored: the MCP server, its authorization server, and room for a
/// change of either.
const NONCES_MAX: usize = 8;

/// The last nonce of each server.
#[derive(Default)]
pub(crate) struct Nonces(Vec<(Origin, String)>);

impl Nonces {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the nonce for a request to this URL.
    pub(crate) fn get(&self, url: &Location) -> Option<&str> {
        let mut nonces = self.0.iter();
        nonces.find(|(origin, _)| origin == url.origin()).map(|(_, nonce)| &**nonce)
    }

    /// Stores the `DPoP-Nonce` of a response from this URL. Returns whether it differs from the
    /// last one, because only then a retry is useful. Ignores an invalid nonce.
    pub(crate) fn insert(&mut self, url: &Location, nonce: &[u8]) -> bool {
        // RFC 9449, section 8.1: `NQCHAR`.
        let allowed = |byte: &u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
        if nonce.is_empty() || nonce.len() > NONCE_LENGTH_MAX || !nonce.iter().all(allowed) {
            return false;
        }
        let nonce = String::from_utf8_lossy(nonce).into_owned();
        if self.get(url) == Some(&*nonce) {
            return false;
        }
        self.0.retain(|(origin, _)| origin != url.origin());
        if self.0.len() == NONCES_MAX {
            self.0.remove(0);
        }
        self.0.push((url.origin().clone(), nonce));
        true
    }
}

impl fmt::Debug for Nonces {
    /// Prints only the origins.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(origin, _)| origin)).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    fn parts(url: &str, access_token: Option<&str>, nonce: Option<&str>) -> Vec<String> {
        let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ","kid":"k","use":"sig"}"#;
        let key = DpopKey::new("ES256", jwk);
        let key = ProofKey::new(&key).expect("a key");
        let url = &Location::parse(url).expect(url);
        let request =
            ProvenRequest { method: "POST", url, access_token, nonce, jti: "j", unix_time: 1000 };
        let input = key.proof(&request);
        let parts = input.as_str().split('.').map(|it| URL_SAFE_NO_PAD.decode(it).ok());
        let parts: Option<Vec<_>> = parts.map(|it| String::from_utf8(it?).ok()).collect();
        parts.expect("base64url")
    }

    #[test]
    fn a_proof_has_the_public_key_and_the_request_without_its_query() {
        let header = concat!(
            r#"{"typ":"dpop+jwt","alg":"ES256","#,
            r#""jwk":{"crv":"P-256","kty":"EC","x":"eA","y":"eQ"}}"#
        );
        let claims = r#"{"jti":"j","htm":"POST","htu":"https://a.example/token","iat":1000}"#;
        assert_eq!(parts("https://a.example/token?x#y", None, None), [header, claims]);
    }

    #[test]
    fn a_proof_is_for_one_token_and_one_nonce() {
        // RFC 9449, section 7.1.
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        let claims = concat!(
            r#"{"jti":"j","htm":"POST","htu":"https://r.example/","iat":1000,"#,
            r#""ath":"fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo","nonce":"n"}"#
        );
        assert_eq!(parts("https://r.example", Some(token), Some("n"))[1], claims);
    }

    #[test]
    fn only_a_nonce_challenge_asks_for_a_nonce() {
        let asks = |value: &str| asks_for_nonce(&Challenge::parse([value.as_bytes()]));
        assert!(asks(r#"DPoP error="use_dpop_nonce", error_description="x""#));
        assert!(asks(r#"Bearer realm="x", DPoP algs="ES256", error="use_dpop_nonce""#));
        assert!(!asks(r#"DPoP error="invalid_token""#));
        assert!(!asks(r#"Basic error="use_dpop_nonce""#));
        assert!(!asks_for_nonce(&[]));
    }

    #[test]
    fn debug_output_hides_secrets() {
        let url = &Location::parse("https://a.example/").expect("a URL");
        let request = ProvenRequest {
            method: "GET",
            url,
            access_token: Some("secret"),
            nonce: None,
            jti: "j",
            unix_time: 0,
        };
        assert!(!format!("{request:?}").contains("secret"));
    }
}

#[cfg(test)]
mod nonces_tests {
    use alloc::format;

    use super::*;

    fn location(url: &str) -> Location {
        Location::parse(url).expect(url)
    }

    #[test]
    fn each_origin_has_its_last_nonce() {
        let mut nonces = Nonces::new();
        let (issuer, server) = (location("https://a.example/t"), location("https://r.example"));
        assert!(nonces.insert(&issuer, b"1"));
        assert!(nonces.insert(&server, b"2"));
        assert!(nonces.insert(&location("https://a.example/other"), b"3"));
        assert_eq!((nonces.get(&issuer), nonces.get(&server)), (Some("3"), Some("2")));
        assert_eq!(nonces.get(&location("http://a.example/t")), None);
    }

    #[test]
    fn a_known_nonce_does_not_cause_a_retry() {
        let mut nonces = Nonces::new();
        let url = location("https://a.example");
        assert!(nonces.insert(&url, b"1"));
        assert!(!nonces.insert(&url, b"1"));
    }

    #[test]
    fn an_invalid_nonce_is_ignored() {
        let mut nonces = Nonces::new();
        let url = location("https://a.example");
        let long = [b'x'; NONCE_LENGTH_MAX + 1];
        for nonce in [&b""[..], b"a b", b"\"", b"\\", b"a\r\n", b"\xff", &long] {
            assert!(!nonces.insert(&url, nonce), "{nonce:?}");
        }
        assert_eq!(nonces.get(&url), None);
        assert!(nonces.insert(&url, &long[1..]));
    }

    #[test]
    fn the_oldest_nonce_is_evicted() {
        let mut nonces = Nonces::new();
        let url = |port| location(&format!("https://a.example:{port}"));
        for port in 1..10 {
            assert!(nonces.insert(&url(port), b"n"));
        }
        assert_eq!((nonces.get(&url(1)), nonces.get(&url(2))), (None, Some("n")));
        assert_eq!(nonces.0.len(), NONCES_MAX);
    }
}

#[cfg(test)]
mod key_tests {
    use alloc::format;

    use super::*;
    use crate::dpop::{ALGORITHM, PRIVATE};

    const RFC_9449: &str = r#"{"kty":"EC","crv":"P-256",
        "x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"}"#;
    const RFC_7638: &str = concat!(
        r#"{"kty":"RSA","n":"#,
        "\"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1",
        "L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4",
        "QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbO",
        "pbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csF",
        "Cur-kEgU8awapJzKnqDKgw\"",
        r#","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#
    );
    const RFC_8037: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    fn key(algorithm: &str, jwk: &str) -> Result<ProofKey, InvalidValue> {
        ProofKey::new(&DpopKey::new(algorithm, jwk))
    }

    #[test]
    fn thumbprints_match_the_examples() {
        for (algorithm, jwk, thumbprint) in [
            ("ES256", RFC_9449, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"),
            ("RS256", RFC_7638, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
            ("EdDSA", RFC_8037, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
        ] {
            let key = key(algorithm, jwk).expect(algorithm);
            assert_eq!(key.thumbprint(), thumbprint);
            assert_eq!(key.algorithm(), algorithm);
        }
    }

    #[test]
    fn a_private_key_is_refused() {
        for member in ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] {
            for jwk in [RFC_9449, RFC_7638, RFC_8037] {
                let jwk = jwk.replacen('{', &format!(r#"{{"{member}":"AQ","#), 1);
                assert_eq!(key("ES256", &jwk), Err(InvalidValue::new(PRIVATE)), "{member}");
            }
        }
        assert_eq!(key("HS256", r#"{"kty":"oct","k":"AQ"}"#), Err(InvalidValue::new(PRIVATE)));
    }

    #[test]
    fn an_algorithm_requires_a_matching_key() {
        for algorithm in ["none", "HS256", "RS256", "ES384", "es256", ""] {
            assert_eq!(key(algorithm, RFC_9449), Err(InvalidValue::new(ALGORITHM)), "{algorithm}");
        }
        assert!(key("PS512", RFC_7638).is_ok());
        assert!(key("Ed25519", RFC_8037).is_ok());
        assert_eq!(key("Ed448", RFC_8037), Err(InvalidValue::new(ALGORITHM)));
        let agreement = RFC_8037.replace("Ed25519", "X25519");
        assert_eq!(key("EdDSA", &agreement), Err(InvalidValue::new(ALGORITHM)));
    }

    #[test]
    fn an_invalid_public_key_is_refused() {
        for jwk in [
            "",
            "null",
            r#"["EC","P-256","AQ","AQ"]"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQ"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQ","y":""}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AQ","y":"A="}"#,
            r#"{"kty":"EC","kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}"#,
            r#"{"kty":"XX","crv":"P-256","x":"AQ","y":"AQ"}"#,
            r#"{"crv":"P-256","x":"AQ","y":"AQ"}"#,
        ] {
            assert_eq!(key("ES256", jwk), Err(InvalidValue::new(MALFORMED)), "{jwk}");
        }
        let long = [RFC_9449, &*" ".repeat(JWK_LENGTH_MAX)].concat();
        assert_eq!(key("ES256", &long), Err(InvalidValue::new(MALFORMED)));
    }
}
