//! An MCP server that is never content.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationFailure, ClientMetadata, ClientOptions, DpopKey,
};

use crate::answers::{Answer, Reply, challenge, issuer, ok, status};
use crate::network::{AS, MCP, PRM, TOKEN, TestNetwork, User, client, code, code_bare, password};
use crate::sent::Sent;

fn secret() -> ClientOptions {
    let app = client("app", Some(AS), password("password-of-the-app"));
    code_bare().registered(app).expect("a client")
}

/// A token endpoint that always gives another token, bound or not.
fn another(request: &Sent, number: &mut u32) -> Option<Answer> {
    request.form("grant_type")?;
    *number += 1;
    let bound = if request.field("dpop").is_some() { "DPoP" } else { "Bearer" };
    Some(ok(&format!(
        r#"{{"access_token":"access-token-{number}","refresh_token":"refresh-token-{number}","token_type":"{bound}","scope":"s{number}"}}"#
    )))
}

/// A world that is connected, whose calls are refused from now on as `refuse` says.
fn refusing(
    options: ClientOptions,
    mut refuse: impl FnMut(u32) -> Answer + 'static,
) -> TestNetwork {
    let mut world = TestNetwork::new(options);
    let (mut tokens, mut calls) = (0, 0);
    world.network = Box::new(move |request| match &*request.asks() {
        "tools/call" => {
            calls += 1;
            Some(refuse(calls))
        }
        "server/discover" if request.field("authorization").is_some() => {
            Some(crate::answers::mcp_answer(request))
        }
        _ => another(request, &mut tokens),
    });
    world.run();
    world
}

/// What can be done about `calls` calls at the same time.
fn exchanges(world: &mut TestNetwork, calls: usize) -> usize {
    let before = world.sent.len();
    for _ in 0..calls {
        world.call("a");
    }
    let text = world.run();
    assert!(world.waiting.is_empty(), "{text}");
    assert_eq!(text.matches("\ncall ").count(), calls, "{text}");
    world.sent.len() - before
}

#[test]
fn repeated_refusals_end_the_flow() {
    // Rule: [AUTHC-054].
    let refusals: [fn(u32) -> Answer; 6] = [
        |_| status(401),
        |number| challenge(401, &format!(r#"Bearer scope="x{number}""#)),
        |_| challenge(403, same_scopes()),
        |number| challenge(403, &new_scopes(number)),
        |number| match number % 2 {
            0 => status(401),
            _ => challenge(403, &new_scopes(number)),
        },
        |number| match number % 3 {
            0 => challenge(403, &new_scopes(number)),
            _ => status(401),
        },
    ];
    for (at, refuse) in refusals.into_iter().enumerate() {
        for calls in [1, 2, 40] {
            let mut world = refusing(secret(), refuse);
            let made = exchanges(&mut world, calls);
            // Each call is sent a handful of times; few of them need an authorization of their own.
            assert!(made <= 30 * calls, "{at}: {calls} calls, {made} exchanges");
            assert!(world.authorizations.len() <= 1 + 5 * calls, "{at}");
            // Once more is not for ever, either.
            let again = exchanges(&mut world, 1);
            assert!(again <= 30, "{at}: {again}");
        }
    }
}

fn same_scopes() -> &'static str {
    r#"Bearer error="insufficient_scope", scope="x""#
}

fn new_scopes(number: u32) -> String {
    format!(r#"Bearer error="insufficient_scope", scope="x{number}""#)
}

#[test]
fn a_call_is_told_why_it_is_refused() {
    let mut world = refusing(secret(), |_| status(401));
    exchanges(&mut world, 1);
    assert_eq!(world.failures, [AuthorizationFailure::NotAccepted]);
    let mut world = refusing(secret(), |number| challenge(403, &new_scopes(number)));
    exchanges(&mut world, 1);
    let [AuthorizationFailure::InsufficientScope { scope: Some(scope) }] = &*world.failures else {
        panic!("{:?}", world.failures)
    };
    assert!(scope.starts_with('x'), "{scope}");
}

#[test]
fn nonces_without_end_are_not_followed() {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let key = DpopKey { algorithm: "ES256".into(), jwk: jwk.into() };
    let options = || code().dpop(&key).expect("a key");
    let wants = |number: u32| {
        let text = r#"DPoP error="use_dpop_nonce""#;
        let reply = Reply::new(401, "").field("www-authenticate", text);
        reply.field("dpop-nonce", &format!("nonce-{number}")).into()
    };
    let mut world = refusing(options(), wants);
    let made = exchanges(&mut world, 1);
    assert!(made <= 6, "{made}");
    // With every other refusal for the scopes, too.
    let mut world = refusing(options(), move |number| match number % 3 {
        0 => challenge(403, &new_scopes(number)),
        _ => wants(number),
    });
    let made = exchanges(&mut world, 1);
    assert!(made <= 30, "{made}");
    // And at the token endpoint.
    let mut world = TestNetwork::new(options());
    let mut number = 0;
    world.network = Box::new(move |request| {
        request.form("grant_type")?;
        number += 1;
        let reply = Reply::new(400, r#"{"error":"use_dpop_nonce"}"#);
        Some(reply.field("dpop-nonce", &format!("nonce-{number}")).into())
    });
    world.run();
    assert!(matches!(world.failures[0], AuthorizationFailure::Token { .. }));
    assert_eq!(world.sent_to(TOKEN).len(), 4);
}

#[test]
fn a_challenge_may_be_as_long_as_it_likes() {
    let schemes: Vec<_> = (0..500).map(|it| format!("Scheme{it} realm=\"x\"")).collect();
    let schemes = schemes.join(", ");
    let long = format!(r#"Bearer resource_metadata="https://evil.example/{}""#, "x".repeat(65_536));
    for text in
        [&*schemes, &long, "Bearer", "", ",,,,", "Bearer realm=\"", "\u{1b}[31m", "Negotiate a=="]
    {
        let mut world = TestNetwork::new(secret());
        let text = text.to_string();
        world.mcp = Box::new(move |request| {
            request.field("authorization").is_none().then(|| challenge(401, &text))
        });
        assert!(world.run().contains("authorized by https://as.example\n"));
        assert_eq!(world.bytes_to("https://evil.example"), "");
    }
}

#[test]
fn a_server_that_moves_each_time_gets_no_secret_of_another_issuer() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    let mut world = TestNetwork::new(code_bare().register_as(metadata));
    world.user = User::SignsIn(String::new());
    let mut moves = 0;
    world.network = Box::new(move |request| {
        let place = request.place();
        if request.url == PRM {
            moves += 1;
            let name = format!("https://a{moves}.example");
            return Some(ok(&format!(
                r#"{{"resource":"{MCP}","authorization_servers":["{name}"]}}"#
            )));
        }
        let origin = place.split('/').take(3).collect::<Vec<_>>().join("/");
        let name = origin.trim_start_matches("https://").to_string();
        if place.ends_with("oauth-authorization-server") {
            let endpoint = format!(r#","registration_endpoint":"{origin}/register""#);
            return Some(issuer(&origin, &endpoint));
        }
        if place.ends_with("/register") {
            let body =
                format!(r#"{{"client_id":"c-{name}","client_secret":"password-of-{name}"}}"#);
            return Some(Reply::new(201, &body).into());
        }
        request.form("grant_type")?;
        Some(ok(&format!(
            r#"{{"access_token":"access-of-{name}","refresh_token":"refresh-of-{name}","token_type":"Bearer"}}"#
        )))
    });
    // What is a secret of whom is looked at in every request.
    world.run();
    for _ in 0..5 {
        world.reconnect();
        world.run();
    }
    assert!(world.authorizations.len() >= 5);
    assert!(world.sent.len() < 80, "{}", world.sent.len());
    assert!(world.waiting.is_empty());
}

#[test]
fn a_stream_that_gets_no_token_asks_no_user_again() {
    let mut world = TestNetwork::new(code());
    world.run();
    world.reconnect_at(Revision::V2025_11_25);
    world.mcp = Box::new(|request| (request.method == "GET").then(|| status(401)));
    world.user = User::Declines;
    world.run();
    world.advance(Duration::from_secs(3600));
    assert_eq!(world.authorizations.len(), 2);
    // Calls go on.
    world.call("a");
    assert!(world.run().ends_with("call 1 done\n"));
}

#[test]
fn a_notification_and_the_end_of_a_session_come_to_an_end_too() {
    let mut world = TestNetwork::new(code());
    world.run();
    world.reconnect_at(Revision::V2025_11_25);
    world.mcp = Box::new(|request| {
        let refused = request.method == "DELETE" || request.asks().starts_with("notifications/");
        refused.then(|| status(401))
    });
    world.run();
    assert!(world.waiting.is_empty());
    let before = world.sent.len();
    world.http.close(world.now);
    world.run();
    assert!(world.sent.len() - before <= 1);
    assert!(world.waiting.is_empty());
    world.advance(Duration::from_secs(60));
    assert_eq!(world.auth.poll_timeout(), None);
}

#[test]
fn a_token_goes_to_no_other_origin_and_into_no_url() {
    // Rule: [AUTHC-043] [AUTHC-044] [AUTHC-045].
    for status in [301, 302, 307, 308] {
        for to in
            ["https://evil.example/mcp", "http://mcp.example/mcp", "https://mcp.example:444/mcp"]
        {
            let mut world =
                refusing(secret(), move |_| Reply::new(status, "").field("location", to).into());
            exchanges(&mut world, 1);
            assert_eq!(world.bytes_to("https://evil.example"), "");
            assert!(!world.sent.iter().any(|it| it.url.contains("access-token")));
            assert!(
                world.sent.iter().all(|it| it.url != to || it.field("authorization").is_none())
            );
        }
    }
}

#[test]
fn an_application_that_wants_a_token_is_told_what_came_of_it() {
    // What was kept is about to end, and its refresh token is of no use.
    let mut world = TestNetwork::new(code());
    let rest = r#","expires_in":60,"refresh_token":"refresh-token-one""#;
    world.post(TOKEN, crate::answers::token("t1", rest));
    world.run();
    let mut world = world.again(code());
    world.post(TOKEN, Reply::new(400, r#"{"error":"invalid_grant"}"#));
    world.auth.handle_unix_time(crate::network::START + 50, world.now);
    world.auth.authorize(world.now);
    let text = world.run();
    assert!(text.contains("no token: "), "{text}");
    assert_eq!(world.authorizations.len(), 1, "{text}");
}
