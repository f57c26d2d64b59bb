//! An MCP server that refuses every token.

use mcp_sansio::peer::ClientMachine;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationFailure, AuthorizationOptions, ClientMetadata, DpopKey,
};

use crate::answers::{Answer, Reply, challenge, issuer, ok, status};
use crate::network::{AS, MCP, PRM, TOKEN, TestNetwork, User, client, code, code_bare, password};
use crate::sent::Sent;

fn secret() -> AuthorizationOptions {
    let app = client("app", Some(AS), password("password-of-the-app"));
    code_bare().registered(app).expect("a client")
}

/// Returns the answer of a token endpoint that gives a new token each time, bound to a key on
/// request.
fn another(request: &Sent, number: &mut u32) -> Option<Answer> {
    request.form("grant_type")?;
    *number += 1;
    let bound = if request.field("dpop").is_some() { "DPoP" } else { "Bearer" };
    Some(ok(&format!(
        r#"{{"access_token":"access-token-{number}","refresh_token":"refresh-token-{number}","token_type":"{bound}","scope":"s{number}"}}"#
    )))
}

/// Returns a connected network whose calls are refused from now on as `refuse` decides.
fn refusing(
    options: AuthorizationOptions,
    mut refuse: impl FnMut(u32) -> Answer + 'static,
) -> TestNetwork {
    let mut network = TestNetwork::new(options);
    let (mut tokens, mut calls) = (0, 0);
    network.network = Box::new(move |request| match &*request.asks() {
        "tools/call" => {
            calls += 1;
            Some(refuse(calls))
        }
        "server/discover" if request.field("authorization").is_some() => {
            Some(crate::answers::mcp_answer(request))
        }
        _ => another(request, &mut tokens),
    });
    network.run();
    network
}

/// Makes `calls` calls at the same time and returns the number of requests that were sent.
fn exchanges(network: &mut TestNetwork, calls: usize) -> usize {
    let before = network.sent.len();
    for _ in 0..calls {
        network.call("a");
    }
    let text = network.run();
    assert!(network.waiting.is_empty(), "{text}");
    assert_eq!(text.matches("\ncall ").count(), calls, "{text}");
    network.sent.len() - before
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
        for calls in [1, 2, 20] {
            let mut network = refusing(secret(), refuse);
            let made = exchanges(&mut network, calls);
            // Each call is sent a few times; few of them need an authorization of their own.
            assert!(made <= 30 * calls, "{at}: {calls} calls, {made} exchanges");
            assert!(network.authorizations.len() <= 1 + 5 * calls, "{at}");
            // Another call is limited, too.
            let again = exchanges(&mut network, 1);
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
fn a_refused_call_ends_with_the_reason() {
    let mut network = refusing(secret(), |_| status(401));
    exchanges(&mut network, 1);
    assert_eq!(network.failures, [AuthorizationFailure::NotAccepted { reason: None }]);
    let text = r#"Bearer error="invalid_token", error_description="access-token-3 is for another""#;
    let mut network = refusing(secret(), move |_| challenge(401, text));
    exchanges(&mut network, 1);
    let reason = Some(".. is for another".into());
    assert_eq!(network.failures, [AuthorizationFailure::NotAccepted { reason }]);
    let mut network = refusing(secret(), |number| challenge(403, &new_scopes(number)));
    exchanges(&mut network, 1);
    let [AuthorizationFailure::InsufficientScope { scope: Some(scope), .. }] = &*network.failures
    else {
        panic!("{:?}", network.failures)
    };
    assert!(scope.starts_with('x'), "{scope}");
}

#[test]
fn the_number_of_nonces_per_request_is_bounded() {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let key = DpopKey::new("ES256", jwk);
    let options = || code().dpop(&key).expect("a key");
    let wants = |number: u32| {
        let text = r#"DPoP error="use_dpop_nonce""#;
        let reply = Reply::new(401, "").field("www-authenticate", text);
        reply.field("dpop-nonce", &format!("nonce-{number}")).into()
    };
    let mut network = refusing(options(), wants);
    let made = exchanges(&mut network, 1);
    assert!(made <= 6, "{made}");
    // Every third refusal asks for new scopes.
    let mut network = refusing(options(), move |number| match number % 3 {
        0 => challenge(403, &new_scopes(number)),
        _ => wants(number),
    });
    let made = exchanges(&mut network, 1);
    assert!(made <= 30, "{made}");
    // The same applies to the token endpoint.
    let mut network = TestNetwork::new(options());
    let mut number = 0;
    network.network = Box::new(move |request| {
        request.form("grant_type")?;
        number += 1;
        let reply = Reply::new(400, r#"{"error":"use_dpop_nonce"}"#);
        Some(reply.field("dpop-nonce", &format!("nonce-{number}")).into())
    });
    network.run();
    assert!(matches!(network.failures[0], AuthorizationFailure::Token { .. }));
    assert_eq!(network.sent_to(TOKEN).len(), 4);
}

#[test]
fn a_challenge_of_any_length_is_handled() {
    let schemes: Vec<_> = (0..500).map(|it| format!("Scheme{it} realm=\"x\"")).collect();
    let schemes = schemes.join(", ");
    let long = format!(r#"Bearer resource_metadata="https://evil.example/{}""#, "x".repeat(65_536));
    for text in
        [&*schemes, &long, "Bearer", "", ",,,,", "Bearer realm=\"", "\u{1b}[31m", "Negotiate a=="]
    {
        let mut network = TestNetwork::new(secret());
        let text = text.to_string();
        network.mcp = Box::new(move |request| {
            request.field("authorization").is_none().then(|| challenge(401, &text))
        });
        assert!(network.run().contains("authorized by https://as.example\n"));
        assert_eq!(network.bytes_to("https://evil.example"), "");
    }
}

#[test]
fn a_server_that_changes_its_issuer_each_time_gets_no_secret_of_another_issuer() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    let mut network = TestNetwork::new(code_bare().register_as(metadata));
    network.user = User::SignsIn(String::new());
    let mut moves = 0;
    network.network = Box::new(move |request| {
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
    // `TestNetwork` checks every request for secrets of other issuers.
    network.run();
    for _ in 0..5 {
        network.reconnect();
        network.run();
    }
    assert!(network.authorizations.len() >= 5);
    assert!(network.sent.len() < 80, "{}", network.sent.len());
    assert!(network.waiting.is_empty());
}

#[test]
fn a_server_that_refuses_only_the_stream_does_not_ask_the_user_again() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.reconnect_at(Revision::V2025_11_25);
    network.mcp = Box::new(|request| (request.method == "GET").then(|| status(401)));
    network.user = User::Declines;
    network.run();
    network.advance(Duration::from_secs(3600));
    assert_eq!(network.authorizations.len(), 1);
    // Calls still work.
    network.call("a");
    assert!(network.run().ends_with("call 1 done\n"));
}

#[test]
fn retries_of_notifications_and_session_deletions_are_bounded() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.reconnect_at(Revision::V2025_11_25);
    network.mcp = Box::new(|request| {
        let refused = request.method == "DELETE" || request.asks().starts_with("notifications/");
        refused.then(|| status(401))
    });
    network.run();
    assert!(network.waiting.is_empty());
    let before = network.sent.len();
    network.http.close(network.now);
    network.run();
    assert!(network.sent.len() - before <= 1);
    assert!(network.waiting.is_empty());
    network.advance(Duration::from_secs(60));
    assert_eq!(network.auth.poll_timeout(), None);
}

#[test]
fn a_token_is_not_sent_to_another_origin_or_in_a_url() {
    // Rule: [AUTHC-043] [AUTHC-044] [AUTHC-045].
    for status in [301, 302, 307, 308] {
        for to in
            ["https://evil.example/mcp", "http://mcp.example/mcp", "https://mcp.example:444/mcp"]
        {
            let mut network =
                refusing(secret(), move |_| Reply::new(status, "").field("location", to).into());
            exchanges(&mut network, 1);
            assert_eq!(network.bytes_to("https://evil.example"), "");
            assert!(!network.sent.iter().any(|it| it.url.contains("access-token")));
            assert!(
                network.sent.iter().all(|it| it.url != to || it.field("authorization").is_none())
            );
        }
    }
}

#[test]
fn authorize_reports_its_outcome_for_a_token_that_is_about_to_expire() {
    // The stored token is about to expire, and its refresh token is refused.
    let mut network = TestNetwork::new(code());
    let rest = r#","expires_in":60,"refresh_token":"refresh-token-one""#;
    network.post(TOKEN, crate::answers::token("t1", rest));
    network.run();
    let mut network = network.again(code());
    network.post(TOKEN, Reply::new(400, r#"{"error":"invalid_grant"}"#));
    network.auth.handle_unix_time(crate::network::START + 50, network.now);
    network.auth.authorize(network.now);
    let text = network.run();
    assert!(text.contains("no token: "), "{text}");
    assert_eq!(network.authorizations.len(), 1, "{text}");
}
