//! The proofs of a client.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::http::{Location, Origin};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{ProofKey, PublicJwk, USE_DPOP_NONCE};
use crate::challenge::{BearerChallenge, Challenge};
use crate::client_authentication::SigningInput;

/// A request that needs a proof.
#[derive(Clone, Copy)]
pub(crate) struct ProvenRequest<'a> {
    /// The method, in upper case.
    pub(crate) method: &'a str,
    /// The complete URL.
    pub(crate) url: &'a Location,
    /// The token of the request's `Authorization`; `None` at the token endpoint.
    pub(crate) access_token: Option<&'a str>,
    /// The last nonce of the server: see [`Nonces::get`](super::Nonces::get).
    pub(crate) nonce: Option<&'a str>,
    /// A unique id for the proof.
    pub(crate) jti: &'a str,
    /// The time in seconds since 1970.
    pub(crate) unix_time: u64,
}

impl ProofKey {
    /// Returns the proof for a request, to be signed (RFC 9449, section 4.2). Each proof is valid
    /// for one request.
    pub(crate) fn proof(&self, request: &ProvenRequest<'_>) -> SigningInput {
        let header = Header { typ: "dpop+jwt", alg: self.algorithm(), jwk: self.jwk() };
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

impl fmt::Debug for ProvenRequest<'_> {
    /// Omits the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvenRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
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
    use crate::client::DpopKey;

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
