use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::Principal;
use mcp_sansio::http::Location;
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio_sync::Arc;
use sha2::{Digest, Sha256};

use crate::client::DpopKey;
use crate::client::proof::ProvenRequest;
use crate::dpop::ProofKey;
use crate::protected_resource::{
    Grant, StaticTokens, TokenCheck, TokenRefusal, VerifiedToken, tests as server,
};

use super::*;

const URI: &str = "https://mcp.example.com/mcp";
const KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
const OTHER_KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eg"}"#;
const NOW: u64 = 1_000_000;

/// A signature that only the holder of the "private key" in this file makes.
fn sign(jwk: &str, input: &[u8]) -> Vec<u8> {
    Sha256::new().chain_update(jwk).chain_update(input).finalize().to_vec()
}

fn verifier() -> DpopVerifier {
    DpopVerifier::new(["ES256"], |proof: &ProofSignature<'_>| {
        assert_eq!(proof.algorithm(), "ES256");
        proof.signature() == sign(proof.jwk(), proof.input())
    })
}

fn resource(verifier: DpopVerifier) -> Arc<ProtectedResource> {
    Arc::new(server::resource().dpop(verifier).expect("algorithms"))
}

fn key(jwk: &str) -> ProofKey {
    ProofKey::new(&DpopKey::new("ES256", jwk)).expect("a key")
}

/// Returns the client's proof for a request.
fn proof<'a>(jwk: &str, change: impl FnOnce(&mut ProvenRequest<'a>)) -> String {
    let url = Box::leak(Box::new(Location::parse(URI).expect("a URL")));
    let mut request = ProvenRequest {
        method: "POST",
        url,
        access_token: Some("t1"),
        nonce: None,
        jti: "j1",
        unix_time: NOW,
    };
    change(&mut request);
    let (key, input) = (key(jwk), key(jwk).proof(&request));
    input.signed(&sign(&key.to_json(), input.as_str().as_bytes()))
}

/// Returns a proof with this header and these claims, as no client makes it.
fn forged(header: &str, claims: &str) -> String {
    let input = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(sign(KEY, input.as_bytes())))
}

fn extract(
    resource: &ProtectedResource,
    scheme: &str,
    proofs: &[&str],
) -> Result<TokenCheck, HttpRejection> {
    let authorization = format!("{scheme} t1");
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("authorization", authorization.as_bytes());
    proofs.iter().for_each(|proof| head.field("DPoP", proof.as_bytes()));
    resource.extract_token(&head, NOW)
}

fn token(bound_to: Option<&str>) -> VerifiedToken {
    let token = VerifiedToken::new(Principal::new("ann")).audiences([URI]).scope("use");
    match bound_to {
        Some(jwk) => token.bound_to(key(jwk).thumbprint()),
        None => token,
    }
}

/// Sends a request whose token is bound to `bound_to`.
fn send(
    resource: &Arc<ProtectedResource>,
    scheme: &str,
    proofs: &[&str],
    bound_to: Option<&str>,
) -> Result<Grant, HttpRejection> {
    let check = extract(resource, scheme, proofs)?;
    Grant::with_proof(resource, Ok(token(bound_to)), check.proof(), NOW)
}

/// Returns the error code and the description of a challenge for a proof.
fn refusal(refused: &HttpRejection) -> (String, String) {
    assert_eq!(refused.status, Status::UNAUTHORIZED);
    let challenge = refused.challenge.as_deref().expect("a challenge");
    assert!(challenge.starts_with("DPoP "), "{challenge}");
    assert!(challenge.contains("algs=\"ES256\""), "{challenge}");
    let read = server::read(refused);
    (read.error.unwrap_or_default(), read.error_description.unwrap_or_default())
}

#[track_caller]
fn refused(proofs: &[&str], why: &str) {
    let resource = resource(verifier());
    let refused = send(&resource, "DPoP", proofs, Some(KEY)).expect_err(why);
    let (error, description) = refusal(&refused);
    assert_eq!(error, "invalid_dpop_proof", "{description}");
    assert!(description.contains(why), "{description}");
}

#[test]
fn a_bound_token_is_accepted_with_a_proof_of_its_key() {
    let resource = resource(verifier());
    let proof = proof(KEY, |_| {});
    let grant = send(&resource, "DPoP", &[&proof], Some(KEY)).expect("accepted");
    assert_eq!(grant.principal().as_str(), "ann");
    let missing = grant.require(&["audit"]).expect_err("no scope");
    assert_eq!(missing.status, Status::FORBIDDEN);
    assert!(missing.challenge.expect("a challenge").starts_with("DPoP "));
}

#[test]
fn a_proof_is_accepted_once() {
    // Rule: [DPOP-009] [DPOP-011] [DPOP-014].
    let resource = resource(verifier());
    let first = proof(KEY, |_| {});
    assert!(send(&resource, "dpop", &[&first], Some(KEY)).is_ok());
    let again = send(&resource, "DPoP", &[&first], Some(KEY)).expect_err("repeated");
    let expected = ("invalid_dpop_proof".to_string(), "the proof was used before".to_string());
    assert_eq!(refusal(&again), expected);
    let same_id = proof(KEY, |request| request.unix_time += 1);
    assert!(send(&resource, "DPoP", &[&same_id], Some(KEY)).is_err());
    assert!(send(&resource, "DPoP", &[&proof(KEY, |it| it.jti = "j2")], Some(KEY)).is_ok());
    // The ids of another client are not those of this one.
    assert!(send(&resource, "DPoP", &[&proof(OTHER_KEY, |_| {})], Some(OTHER_KEY)).is_ok());
}

#[test]
fn a_refused_proof_is_not_recorded() {
    let resource = resource(verifier());
    let proof = proof(KEY, |_| {});
    let check = extract(&resource, "DPoP", &[&proof]).expect("fitting claims");
    for checked in [Err(TokenRefusal::Invalid), Ok(token(None)), Ok(token(Some(OTHER_KEY)))] {
        let refused =
            Grant::with_proof(&resource, checked, check.proof(), NOW).expect_err("a token");
        assert_eq!(refusal(&refused).0, "invalid_token");
    }
    assert!(send(&resource, "DPoP", &[&proof], Some(KEY)).is_ok());
}

#[test]
fn a_bound_token_without_a_proof_is_refused() {
    // Rule: [DPOP-007].
    let resource = resource(verifier());
    let proof = proof(KEY, |_| {});
    for proofs in [&[][..], &[&*proof]] {
        let refused = send(&resource, "Bearer", proofs, Some(KEY)).expect_err("no proof");
        assert_eq!(refusal(&refused).0, "invalid_token");
    }
    // A resource without a verifier accepts no bound token at all.
    let plain = Arc::new(server::resource());
    let refused = Grant::new(&plain, Ok(token(Some(KEY))), NOW).expect_err("bound");
    assert!(refused.challenge.expect("a challenge").starts_with("Bearer "));
    assert_eq!(extract(&plain, "DPoP", &[&proof]).expect_err("a scheme").status.0, 401);
}

#[test]
fn other_tokens_are_sent_as_bearer_unless_proofs_are_required() {
    let optional = resource(verifier());
    assert!(send(&optional, "Bearer", &[], None).is_ok());
    let challenge = optional.no_token().challenge.expect("a challenge");
    assert!(challenge.starts_with("Bearer resource_metadata="), "{challenge}");
    assert!(challenge.contains(", DPoP resource_metadata="), "{challenge}");
    let required = resource(verifier().required());
    let refused = send(&required, "Bearer", &[], None).expect_err("required");
    assert_eq!(refusal(&refused).0, "invalid_token");
    assert!(required.no_token().challenge.expect("a challenge").starts_with("DPoP "));
    let metadata = required.metadata().expect("an issuer");
    for member in [
        r#""dpop_signing_alg_values_supported":["ES256"]"#,
        r#""dpop_bound_access_tokens_required":true"#,
    ] {
        assert!(metadata.contains(member), "{metadata}");
    }
    assert!(!server::resource().metadata().expect("an issuer").contains("dpop"));
}

#[test]
fn a_proof_is_for_one_request() {
    // Rule: [DPOP-005].
    refused(&[], "missing");
    let good = proof(KEY, |_| {});
    refused(&[&good, &good], "repeated");
    refused(&[&proof(KEY, |it| it.method = "GET")], "another method");
    refused(&[&proof(KEY, |it| it.access_token = Some("t2"))], "another access token");
    refused(&[&proof(KEY, |it| it.access_token = None)], "another access token");
    refused(&[&proof(KEY, |it| it.jti = "")], "no id");
    for url in ["http://mcp.example.com/mcp", "https://mcp.example.com/", "https://x.example/mcp"] {
        let url = Location::parse(url).expect(url);
        refused(&[&proof(KEY, |it| it.url = &url)], "another URL");
    }
    let resource = resource(verifier());
    for (jti, url) in
        [("a", "https://MCP.example.com:443/mcp?x=y"), ("b", "https://mcp.example.com/mcp")]
    {
        let url = Location::parse(url).expect(url);
        let proof = proof(KEY, |it| (it.url, it.jti) = (&url, jti));
        assert!(send(&resource, "DPoP", &[&proof], Some(KEY)).is_ok(), "{jti}");
    }
}

#[test]
fn a_proof_was_made_now() {
    for time in [NOW - 61, NOW + 61, 0, u64::MAX] {
        refused(&[&proof(KEY, |it| it.unix_time = time)], "not made now");
    }
    for time in [NOW - 60, NOW + 60] {
        let proof = proof(KEY, |it| it.unix_time = time);
        assert!(send(&resource(verifier()), "DPoP", &[&proof], Some(KEY)).is_ok(), "{time}");
    }
}

#[test]
fn the_window_of_a_proof_is_at_most_five_minutes() {
    // Rule: [DPOP-006].
    for (age, accepted) in [(300, true), (301, false)] {
        let hour = verifier().window(Duration::from_secs(3600));
        let proof = proof(KEY, |it| it.unix_time = NOW - age);
        let sent = send(&resource(hour), "DPoP", &[&proof], Some(KEY));
        assert_eq!(sent.is_ok(), accepted, "{age}");
    }
}

#[test]
fn a_proof_is_a_signed_token_of_its_own_type() {
    // Rule: [DPOP-022].
    let claims = |text: &str| {
        let proof = proof(KEY, |_| {});
        let part = proof.split('.').nth(1).expect("claims").to_string();
        let claims = URL_SAFE_NO_PAD.decode(part).expect("base64url");
        String::from_utf8(claims).expect("text").replace('{', text)
    };
    let good = claims("{");
    let header =
        |typ: &str, alg: &str, jwk: &str| format!(r#"{{"typ":"{typ}","alg":"{alg}","jwk":{jwk}}}"#);
    refused(&[&forged(&header("at+jwt", "ES256", KEY), &good)], "another type");
    for alg in ["none", "HS256", "ES384", "es256"] {
        refused(&[&forged(&header("dpop+jwt", alg, KEY), &good)], "not supported");
    }
    let private = KEY.replace('{', r#"{"d":"AQ","#);
    for jwk in [&*private, r#"{"kty":"RSA","n":"AQ","e":"AQ"}"#, r#"["EC"]"#, "null", "{}"] {
        refused(&[&forged(&header("dpop+jwt", "ES256", jwk), &good)], "no public key");
    }
    let critical = header("dpop+jwt", "ES256", KEY).replace('{', r#"{"crit":["b64"],"#);
    refused(&[&forged(&critical, &good)], "");
    let header = header("dpop+jwt", "ES256", KEY);
    for text in [r#"{"jti":"x","#, "[{", r#"{"iat":"now","#] {
        refused(&[&forged(&header, &claims(text))], "malformed");
    }
    for text in ["", "a", "a.b", "a.b.c", &*format!("{}.x", forged(&header, &good)), "\u{fc}"] {
        refused(&[text], "malformed");
    }
    let long = "x".repeat(PROOF_LENGTH_MAX + 1);
    refused(&[&long], "malformed");
    let good = proof(KEY, |_| {});
    let (input, _) = good.rsplit_once('.').expect("a signature");
    refused(&[&format!("{input}.AAAA")], "the signature");
}

#[test]
fn a_client_is_told_the_nonce_once() {
    let resource = resource(verifier().nonces(&[7; 32], Duration::from_secs(300)));
    for (nonce, jti) in [(None, "a"), (Some("old"), "b")] {
        let without = proof(KEY, |it| it.nonce = nonce);
        let refused = extract(&resource, "DPoP", &[&without]).expect_err("no nonce");
        assert_eq!(refusal(&refused).0, "use_dpop_nonce");
        let nonce = String::from(refused.nonce().expect("a nonce"));
        let response = refused.to_response(None);
        let mut fields = response.head.fields();
        assert!(fields.any(|field| field == ("dpop-nonce", nonce.as_str().into())));
        let with = proof(KEY, |it| (it.nonce, it.jti) = (Some(&*nonce), jti));
        assert!(send(&resource, "DPoP", &[&with], Some(KEY)).is_ok());
    }
}

#[test]
fn remembered_proofs_are_limited() {
    let resource = resource(verifier().proofs_max(4));
    let send = |jti: &str| {
        send(&resource, "DPoP", &[&proof(KEY, |it| it.jti = jti)], Some(KEY))
            .map_err(|it| it.status)
    };
    assert!(send("a").is_ok());
    assert_eq!(send("b").err(), Some(Status::SERVICE_UNAVAILABLE));
}

#[test]
fn a_static_token_can_be_bound() {
    let resource = resource(verifier());
    let tokens = StaticTokens::new([("t1", token(Some(KEY)))]).expect("a table");
    let check = extract(&resource, "DPoP", &[&proof(KEY, |_| {})]).expect("a token");
    let proof = check.proof().cloned();
    let grant = Grant::with_proof(&resource, tokens.check(&check), proof.as_ref(), NOW);
    assert!(grant.is_ok());
}

#[test]
fn a_verifier_names_algorithms() {
    for names in [&[][..], &[""], &["ES256", "a\"b"]] {
        let verifier = DpopVerifier::new(names.iter().copied(), |_: &ProofSignature<'_>| true);
        let refused = server::resource().dpop(verifier).expect_err("no algorithm");
        assert!(matches!(refused, InvalidResource::Algorithm(_)));
    }
}

#[test]
fn proofs_and_secrets_are_not_shown() {
    let resource = resource(verifier().nonces(&[7; 32], Duration::from_secs(1)));
    assert!(!format!("{resource:?}").contains("mac"));
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("dpop", b"secret");
    assert!(!format!("{head:?}").contains("115, 101"));
}
