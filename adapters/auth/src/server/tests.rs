use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::Principal;
use mcp_sansio::http::Location;
use mcp_sansio_oauth::protected_resource::{TokenRefusal, VerifiedToken};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;
use crate::Algorithm;

const ISSUER: &str = "https://a.example/tenant";
const AUDIENCE: &str = "https://r.example/mcp";
const NOW: u64 = 1_800_000_000;
const METADATA: &str = "https://a.example/.well-known/oauth-authorization-server/tenant";

/// A fake authorization server for verifiers.
struct Issuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
    documents: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    fetches: Arc<AtomicUsize>,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let issuer =
            Self { key: key(&random), random, documents: Arc::default(), fetches: Arc::default() };
        issuer.publish(json!({ "keys": [issuer.jwk("one")] }));
        issuer
    }

    fn publish(&self, jwks: Value) {
        self.documents.lock().unwrap().insert("https://a.example/jwks".into(), text(&jwks));
    }

    fn jwk(&self, id: &str) -> Value {
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        json!({ "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": x, "y": y })
    }

    /// Creates a verifier of its tokens with a fixed JWKS URL.
    fn verifier(&self) -> JwtVerifier {
        let jwks = Location::parse("https://a.example/jwks").unwrap();
        JwtVerifier::with_jwks_url(ISSUER, AUDIENCE, &jwks, self.fetch())
    }

    fn fetch(
        &self,
    ) -> impl Fn(String) -> std::future::Ready<Result<Vec<u8>, String>> + Send + Sync + 'static
    {
        let (documents, fetches) = (Arc::clone(&self.documents), Arc::clone(&self.fetches));
        move |url| {
            fetches.fetch_add(1, Ordering::Relaxed);
            let document = documents.lock().unwrap().get(&url).cloned();
            std::future::ready(document.ok_or_else(|| format!("404 at {url}")))
        }
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::Relaxed)
    }

    /// Creates a token with the given header and claims, always signed with ES256.
    fn token(&self, header: &Value, claims: &Value) -> String {
        let encode = |it: &Value| URL_SAFE_NO_PAD.encode(text(it));
        let input = format!("{}.{}", encode(header), encode(claims));
        let signature = self.key.sign(&self.random, input.as_bytes()).unwrap();
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Creates a valid token with this key id.
    fn named(&self, id: &str) -> String {
        self.token(&json!({ "alg": "ES256", "kid": id }), &claims())
    }

    /// Checks a valid token with one claim replaced.
    fn with(&self, name: &str, value: Value) -> Result<VerifiedToken, JwtError> {
        let mut claims = claims();
        claims[name] = value;
        let token = self.token(&json!({ "alg": "ES256", "kid": "one" }), &claims);
        self.check(&self.verifier(), &token)
    }

    /// Checks a valid token with this header.
    fn under(&self, header: &Value) -> Result<VerifiedToken, JwtError> {
        self.check(&self.verifier(), &self.token(header, &claims()))
    }

    fn check(&self, verifier: &JwtVerifier, token: &str) -> Result<VerifiedToken, JwtError> {
        self.check_after(Duration::ZERO, verifier, token)
    }

    fn check_after(
        &self,
        time: Duration,
        verifier: &JwtVerifier,
        token: &str,
    ) -> Result<VerifiedToken, JwtError> {
        now(verifier.verify(token, NOW + time.as_secs()))
    }
}

fn key(random: &SystemRandom) -> EcdsaKeyPair {
    let parameters = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(parameters, random).unwrap();
    EcdsaKeyPair::from_pkcs8(parameters, pkcs8.as_ref(), random).unwrap()
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "sub": "user", "aud": AUDIENCE, "exp": NOW + 7200, "scope": "a b" })
}

fn text(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the output of a future that must be ready at once.
fn now<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

mod claims;
mod keys;
mod signatures;
