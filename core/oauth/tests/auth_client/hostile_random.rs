//! Servers, users and clocks with random behavior.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::{ExchangeFailure, Location};
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, ClientMetadata, DpopKey, IdentityProvider,
};
use seeded_random::{Random, scaled};

use crate::answers::{Answer, Reply, challenge, error, issuer, mcp_answer, ok, status};
use crate::network::{AS, MCP, TestNetwork, User, client, code_bare, password};
use crate::sent::Sent;

const SEEDS: u32 = 75;
const STEPS: u64 = 25;
const ISSUERS: [&str; 3] = [AS, "https://evil.example", "https://third.example/tenant"];

/// Returns a random failure or an unexpected response.
fn mischief(random: &mut Random) -> Answer {
    match random.below(9) {
        0 => Answer::Silence,
        1 => Answer::Fails(ExchangeFailure::Broken),
        2 => Answer::Fails(ExchangeFailure::NotSent),
        3 => status(500),
        4 => status(404),
        5 => ok("<html>"),
        6 => ok(&"{".repeat(300_000)),
        7 => {
            let to = ["/x", "https://evil.example/", "http://localhost/", ""];
            Reply::new(307, "").field("location", random.one_of(to)).into()
        }
        _ => Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("dpop-nonce", "n").into(),
    }
}

/// Returns the answer of any server to any request: usually a valid one.
fn answer(request: &Sent, random: &mut Random, number: &mut u64) -> Answer {
    *number += 1;
    if random.once_in(8) {
        return mischief(random);
    }
    let place = request.place();
    if place.contains("oauth-protected-resource") {
        let (first, second) = (random.one_of(ISSUERS), random.one_of(ISSUERS));
        let resource = if random.once_in(12) { "https://evil.example/mcp" } else { MCP };
        return ok(&format!(
            r#"{{"resource":"{resource}","authorization_servers":["{first}","{second}"],"scopes_supported":["a"]}}"#
        ));
    }
    if place.contains("/.well-known/") {
        let of =
            |it: &&&str| place.starts_with(&it.split('/').take(3).collect::<Vec<_>>().join("/"));
        let name = ISSUERS.iter().find(of).unwrap_or(&AS);
        let name = if random.once_in(12) { random.one_of(ISSUERS) } else { name };
        let iss = random.one_of(["true", "false"]);
        return issuer(
            name,
            &format!(
                r#","registration_endpoint":"{name}/register","client_id_metadata_document_supported":{},"authorization_response_iss_parameter_supported":{iss}"#,
                random.one_of(["true", "false"])
            ),
        );
    }
    if place.ends_with("/register") {
        return Reply::new(
            201,
            &format!(
                r#"{{"client_id":"client-{number}","client_secret":"client-password-{number}","client_secret_expires_at":{}}}"#,
                random.one_of(["0", "1", "1900000000"])
            ),
        )
        .into();
    }
    if request.form("grant_type").is_some() {
        let code =
            random.one_of(["invalid_grant", "invalid_client", "invalid_scope", "use_dpop_nonce"]);
        if random.once_in(5) {
            return error(400, code);
        }
        let kind = random.one_of(["Bearer", "DPoP", "bearer"]);
        let scope = random.one_of(["a", "a b", "", r"\n"]);
        let expiry = random.one_of(["0", "-1", "60", "1e9", "null"]);
        let refresh = match random.once_in(2) {
            true => format!(r#","refresh_token":"refresh-token-{number}""#),
            false => String::new(),
        };
        return ok(&format!(
            r#"{{"access_token":"access-token-{number}","token_type":"{kind}","expires_in":{expiry},"scope":"{scope}"{refresh}}}"#
        ));
    }
    match random.below(6) {
        0 => status(401),
        1 => challenge(401, r#"Bearer scope="a c", resource_metadata="http://10.0.0.1/x""#),
        2 => challenge(403, &format!(r#"Bearer error="insufficient_scope", scope="s{number}""#)),
        3 if request.field("dpop").is_some() => {
            let reply = Reply::new(401, "").field("www-authenticate", "DPoP error=use_dpop_nonce");
            reply.field("dpop-nonce", &format!("nonce-{number}")).into()
        }
        _ if request.field("authorization").is_none() => status(401),
        _ if place == MCP => mcp_answer(request),
        _ => status(404),
    }
}

fn options(random: &mut Random) -> AuthorizationOptions {
    let mut options = match random.below(9) {
        0 => AuthorizationOptions::client_credentials(),
        1 => AuthorizationOptions::assertion(),
        2 => AuthorizationOptions::enterprise(IdentityProvider::new(
            "https://idp.example",
            Location::parse("https://idp.example/token").expect("a URL"),
            "app-of-the-enterprise",
            password("password-at-the-provider"),
        ))
        .expect("a provider"),
        _ => code_bare(),
    };
    if random.once_in(2) {
        let app = client("app", Some(AS), password("password-of-the-app"));
        options = options.registered(app).expect("a client");
    }
    if random.once_in(2) {
        options = options.register_as(ClientMetadata::new("Demo", ApplicationType::Native));
    }
    if random.once_in(2) {
        let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
        let key = DpopKey::new("ES256", jwk);
        options = options.dpop(&key).expect("a key");
    }
    options.dpop_bound_access_tokens(random.once_in(4))
}

fn user(random: &mut Random) -> User {
    let iss = random.one_of(ISSUERS);
    // Another one each time: a code that was sent to one issuer must not be sent to a second one.
    let code = format!("injected-code-{}", random.below(1 << 32));
    match random.below(8) {
        0 => User::Stays,
        1 => User::Declines,
        2 => User::ComesBack("/?state=STATE&error=access_denied".into()),
        3 => User::ComesBack(format!("/?state=STATE&code={code}&iss={iss}")),
        4 => User::ComesBack(format!("/?state=wrong&code={code}")),
        _ => User::SignsIn(if random.once_in(2) { String::new() } else { format!("&iss={AS}") }),
    }
}

fn step(network: &mut TestNetwork, random: &mut Random) -> String {
    match random.below(12) {
        0 => network.user = user(random),
        1 => network.signs = !random.once_in(4),
        2 => network.loads = !random.once_in(4),
        3 | 4 => return network.advance(Duration::from_secs(random.below(400))),
        5 if random.once_in(3) => network.auth.forget(network.now),
        6 if random.once_in(3) => network.auth.authorize(network.now),
        7 if network.calls() > 0 => network.cancel(),
        8 if random.once_in(6) => network.auth.close(),
        9 => match random.below(2) {
            0 => network.reconnect(),
            _ => network.reconnect_at(Revision::V2025_11_25),
        },
        _ if network.is_open() => network.call(random.one_of(["a", "b"])),
        _ => {}
    }
    network.run()
}

#[test]
fn random_schedules_end_without_leaking_secrets() {
    let mut authorized = 0;
    let seeds = scaled(SEEDS);
    for seed in 1..=u64::from(seeds) {
        let mut random = Random::new(seed);
        let mut network = TestNetwork::new(options(&mut random));
        network.assertions = (0..1000).map(|it| Ok(format!("assertion-number-{it}-"))).collect();
        let (mut servers, mut number) = (random.clone(), 0);
        network.network = Box::new(move |request| Some(answer(request, &mut servers, &mut number)));
        // Every request and every output is searched for secrets.
        let mut text = network.run();
        for _ in 0..STEPS {
            let before = network.sent.len();
            text += &step(&mut network, &mut random);
            let made = network.sent.len() - before;
            assert!(made < 400, "seed {seed}: {made} exchanges in one step:\n{text}");
        }
        // No server answers from here on: every waiting request is sent or refused.
        network.network = Box::new(|_| Some(Answer::Silence));
        text += &network.advance(Duration::from_secs(50 * 60));
        assert!(network.waiting.is_empty(), "seed {seed}: requests still wait:\n{text}");
        assert_eq!(network.auth.poll_timeout(), None, "seed {seed}:\n{text}");
        assert_eq!(network.locked, None, "seed {seed}: the lock is still held:\n{text}");
        let state = format!("{:?}", network.auth).len();
        assert!(state < 128 * 1024, "seed {seed}: {state} bytes of state");
        authorized += text.matches("authorized by").count();
    }
    // Some schedules must reach a token.
    assert!(4 * authorized > seeds as usize, "{authorized}");
}
