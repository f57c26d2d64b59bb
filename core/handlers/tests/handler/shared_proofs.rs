//! Proofs of possession (RFC 9449) at several nodes: each is accepted once, at one of them.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::{RequestHead, Response, SharedOptions};
use mcp_sansio::{Caller, Principal};
use mcp_sansio_handlers::{Server, TokenRequirement};
use mcp_sansio_oauth::protected_resource::{
    DpopVerifier, Grant, ProofSignature, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};

use crate::task_cluster::TaskCluster;

const URI: &str = "http://localhost/mcp";
const NOW: u64 = 1_000_000;

/// A node's server, which accepts every signature.
fn server() -> Server {
    let verifier = DpopVerifier::new(["ES256"], |_: &ProofSignature<'_>| true);
    let resource = ProtectedResource::new(URI, ["https://auth.example.com"]).unwrap();
    let resource = resource.dpop(verifier).unwrap();
    let check = |check: TokenCheck| -> Result<VerifiedToken, TokenRefusal> {
        let token = VerifiedToken::new(Principal::new("ann")).audiences([URI]);
        Ok(match check.proof() {
            Some(proof) => token.bound_to(proof.thumbprint()),
            None => token,
        })
    };
    Server::new("s", "1").protect(resource, check).unix_time(|| NOW)
}

/// The URL-safe alphabet of base64, without padding.
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        for at in 0..=chunk.len() {
            let digit = bits >> (18 - 6 * at) & 63;
            out.push(char::from(DIGITS[digit as usize]));
        }
    }
    out
}

/// The proof of a request, with this id. Its token is `t1`.
fn proof(id: &str) -> String {
    let header =
        r#"{"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}}"#;
    // The hash of the token.
    let ath = "YotJ2W3N6XpDDdT1l3BYmeCalo95NJHktwTK4zpA3AI";
    let claims =
        format!(r#"{{"jti":"{id}","htm":"POST","htu":"{URI}","iat":{NOW},"ath":"{ath}"}}"#);
    format!("{}.{}.{}", base64(header), base64(&claims), base64("signature"))
}

/// Sends the head of a request to a node, and returns its grant, or the status that refuses it.
fn authorize(cluster: &mut TaskCluster, at: usize, proof: &str) -> Result<Grant, u16> {
    let status = |response: Response| response.head.status.0;
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("authorization", b"DPoP t1");
    head.field("dpop", proof.as_bytes());
    let mut cx = Context::from_waker(Waker::noop());
    let checking =
        match cluster.with_server(at, |server, _| server.authorize(&head, &Caller::ANONYMOUS)) {
            TokenRequirement::Check(checking) => checking,
            TokenRequirement::Respond(refused) => return Err(status(refused)),
            TokenRequirement::NotNeeded => panic!("the server is protected"),
        };
    let Poll::Ready(grant) = pin!(checking).poll(&mut cx) else { panic!("it does not wait") };
    let grant = grant.map_err(status)?;
    let record = cluster.with_server(at, |server, now| server.record_proof(&grant, now));
    let mut record = pin!(record.expect("nodes share a store"));
    for _ in 0..10 {
        if let Poll::Ready(recorded) = record.as_mut().poll(&mut cx) {
            return recorded.map(|()| grant).map_err(status);
        }
        cluster.pass(Duration::from_secs(1));
    }
    panic!("the store has to answer in time");
}

#[test]
fn a_proof_that_was_used_at_one_node_is_refused_at_another() {
    let servers = [server(), server()];
    let mut cluster = TaskCluster::of([&servers[0], &servers[1]], &SharedOptions::new());
    for (first, second, id) in [(0, 1, "a"), (1, 0, "b")] {
        let proof = proof(id);
        let grant = authorize(&mut cluster, first, &proof).unwrap();
        assert_eq!(grant.principal(), &Principal::new("ann"));
        for at in [second, first, second] {
            assert_eq!(authorize(&mut cluster, at, &proof).unwrap_err(), 401, "node {at}");
        }
    }
    // They expire: nothing is left of them.
    assert!(!cluster.store.is_empty());
    cluster.pass(Duration::from_secs(200));
    let now = cluster.now;
    cluster.store.expire(now);
    assert!(cluster.store.is_empty());
}

#[test]
fn a_proof_that_the_store_cannot_record_is_refused_for_now() {
    let servers = [server(), server()];
    let mut options = SharedOptions::new();
    let mut cluster = TaskCluster::of([&servers[0], &servers[1]], &options);
    cluster.cut(0, true);
    assert_eq!(authorize(&mut cluster, 0, &proof("a")).unwrap_err(), 503);
    // Unless nodes go on alone.
    options.keep_locally = true;
    let mut cluster = TaskCluster::of([&servers[0], &servers[1]], &options);
    cluster.cut(0, true);
    let kept = proof("b");
    authorize(&mut cluster, 0, &kept).unwrap();
    assert_eq!(authorize(&mut cluster, 0, &kept).unwrap_err(), 401);
}
