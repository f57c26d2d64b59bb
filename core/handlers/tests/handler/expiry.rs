//! Streams end when the token that opened them expires, and clients reconnect with a new one.

use std::time::Duration;

use mcp_sansio::http::{
    Content, ExchangeId, HttpClientOptions, HttpServerOptions, Location, OutgoingRequest, Response,
    ResponseHead,
};
use mcp_sansio::peer::Status;
use mcp_sansio::protocol::{Resource, ResourceContents, SubscriptionFilter, TextResourceContents};
use mcp_sansio::{Instant, Method, Principal, Revision, Revisions};
use mcp_sansio_handlers::{Authorization, Call, Client, Host, NoArguments, ReadResource, Server};
use mcp_sansio_oauth::protected_resource::{
    ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_test::{Http, HttpPair, Pair, URL, VirtualClock};
use serde_json::{Value, json};

use crate::guarded::{METADATA, at_once, equipped};
use crate::protected_server::{ProtectedServer, legacy_call, request, resource};
use crate::task_client::{Gate, everything, request as modern_request};
use crate::text;

/// Lifetime of a token.
const LIFETIME: Duration = Duration::from_secs(60);

fn server(gate: &Gate) -> Server {
    let gate = gate.clone();
    Server::new("s", "1")
        .subscriptions()
        .resource(Resource::new("mem://a", "a"), |call: Call<ReadResource>| {
            ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "A"))
        })
        .tool("slow", "", move |_: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                gate.passed().await;
                "done"
            }
        })
}

fn get(fixture: &mut ProtectedServer, session: &str, last: Option<&str>) -> ExchangeId {
    let mut fields = vec![("authorization", "Bearer ann/use"), ("mcp-session-id", session)];
    fields.extend(last.map(|last| ("last-event-id", last)));
    fixture.begin("GET", "/mcp", &fields, "").unwrap()
}

fn last_id(text: &str) -> &str {
    text.lines().rev().find_map(|line| line.strip_prefix("id: ")).expect("an id")
}

#[test]
fn a_listen_stream_ends_with_its_result_when_its_token_expires() {
    // Rule: [SUBS-008] [AUTHS-001].
    let mut fixture = ProtectedServer::new(server(&Gate::default()));
    let filter = json!({ "notifications": { "resourceSubscriptions": ["mem://a"] } });
    let body = modern_request(7, "subscriptions/listen", filter, &everything());
    let fields = [
        ("authorization", "Bearer ann/use"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let stream = fixture.begin("POST", "/mcp", &fields, &body).unwrap();
    assert!(fixture.read(stream).text.contains("subscriptions/acknowledged"));
    fixture.advance(LIFETIME - Duration::from_secs(1));
    fixture.server.handle().resource_updated("mem://a").unwrap();
    fixture.advance(Duration::ZERO);
    assert!(fixture.read_on(stream).contains("resources/updated"));
    fixture.advance(Duration::from_secs(1));
    let rest = fixture.read_on(stream);
    let data = rest.lines().find_map(|line| line.strip_prefix("data: ")).expect("a result");
    let end: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(fixture.server.machine().exchange_count(), 0);
}

#[test]
fn a_stream_of_a_session_ends_with_its_token_and_resumes_with_another() {
    // Rule: [HSRV-014] [RESUME-006] [AUTHS-001].
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut fixture = ProtectedServer::new(server(&Gate::default()));
        let session = fixture.open_at(revision, "ann/use");
        let subscribe = request(3, "resources/subscribe", &json!({ "uri": "mem://a" }));
        assert_eq!(fixture.post("ann/use", &session, &subscribe).status, 200);
        let stream = get(&mut fixture, &session, None);
        let mut seen = fixture.read(stream).text;
        fixture.advance(LIFETIME - Duration::from_secs(1));
        fixture.server.handle().resource_updated("mem://a").unwrap();
        fixture.advance(Duration::ZERO);
        seen.push_str(&fixture.read_on(stream));
        assert!(seen.contains("resources/updated"), "{revision}");
        fixture.advance(Duration::from_secs(1));
        let end = fixture.read_on(stream);
        assert_eq!(end.contains("retry: "), revision == "2025-11-25", "{revision} {end}");
        seen.push_str(&end);
        assert_eq!(fixture.server.machine().exchange_count(), 0, "{revision}");
        assert_eq!(fixture.server.machine().session_count(), 1, "{revision}");
        fixture.server.handle().resource_updated("mem://a").unwrap();
        fixture.advance(Duration::from_secs(1));
        let stream = get(&mut fixture, &session, Some(last_id(&seen)));
        let rest = fixture.read(stream).text;
        assert_eq!(rest.matches("resources/updated").count(), 1, "{revision} {rest}");
    }
}

#[test]
fn a_running_call_is_polled_with_another_token() {
    // Rule: [SSE-006] [SSE-007] [AUTHS-001].
    let gate = Gate::default();
    let mut fixture = ProtectedServer::new(server(&gate));
    let session = fixture.open("ann/use");
    let fields = [("authorization", "Bearer ann/use"), ("mcp-session-id", session.as_str())];
    let stream = fixture.begin("POST", "/mcp", &fields, &legacy_call(4, "slow")).unwrap();
    fixture.advance(LIFETIME);
    let seen = fixture.read(stream).text;
    assert!(seen.contains("retry: ") && !seen.contains("done"), "{seen}");
    assert_eq!(fixture.server.machine().exchange_count(), 0);
    gate.open();
    fixture.advance(Duration::from_secs(1));
    let stream = get(&mut fixture, &session, Some(last_id(&seen)));
    assert!(fixture.read(stream).text.contains("done"));
}

#[test]
fn a_running_call_is_completed_if_its_response_belongs_on_its_stream() {
    // Rule: [SSE-002] [HSRV-028].
    for revision in ["2025-03-26", "2025-06-18", "2026-07-28"] {
        let gate = Gate::default();
        let mut fixture = ProtectedServer::new(server(&gate));
        let stream = if revision == "2026-07-28" {
            let call = json!({ "name": "slow", "arguments": {} });
            let body = modern_request(4, "tools/call", call, &everything());
            let fields = [
                ("authorization", "Bearer ann/use"),
                ("mcp-protocol-version", revision),
                ("mcp-method", "tools/call"),
                ("mcp-name", "slow"),
            ];
            fixture.begin("POST", "/mcp", &fields, &body).unwrap()
        } else {
            let session = fixture.open_at(revision, "ann/use");
            let fields =
                [("authorization", "Bearer ann/use"), ("mcp-session-id", session.as_str())];
            fixture.begin("POST", "/mcp", &fields, &legacy_call(4, "slow")).unwrap()
        };
        fixture.advance(LIFETIME * 2);
        assert_eq!(fixture.server.machine().exchange_count(), 1, "{revision}");
        gate.open();
        fixture.advance(Duration::ZERO);
        assert!(fixture.read(stream).text.contains("done"), "{revision}");
        assert_eq!(fixture.server.machine().exchange_count(), 0, "{revision}");
    }
}

#[test]
fn a_token_without_expiry_opens_streams_without_expiry() {
    let check = |check: TokenCheck| {
        let token = VerifiedToken::new(Principal::new("ann")).scope("use");
        Ok::<_, TokenRefusal>(token.audiences([check.resource()]))
    };
    let server = server(&Gate::default()).protect(resource(), check).unix_time(|| 1_000);
    let mut fixture = ProtectedServer::from_server(&server, HttpServerOptions::new());
    let session = fixture.open("ann/use");
    let stream = get(&mut fixture, &session, None);
    fixture.read(stream);
    fixture.advance(Duration::from_secs(24 * 3600));
    assert_eq!(fixture.server.machine().exchange_count(), 1);
}

// ---------------------------------------------------------------------- the client of this library

/// The protected resource that the server of the pair represents.
fn of_pair() -> ProtectedResource {
    ProtectedResource::new(URL, ["https://as.example"]).unwrap()
}

/// A client that signs in, and a protected server whose tokens have an expiry time.
fn pair(gate: &Gate, revision: Revision) -> (Client, HttpPair) {
    let clock = VirtualClock::default();
    let unix_time = {
        let clock = clock.clone();
        move || clock.unix_time()
    };
    let check = |check: TokenCheck| {
        let end = check.token().strip_prefix("until-").and_then(|it| it.parse().ok());
        let token = VerifiedToken::new(Principal::new("ann")).audiences([check.resource()]);
        end.map(|end| token.expires_at(end)).ok_or(TokenRefusal::Invalid)
    };
    let server = server(gate).protect(of_pair(), check);
    let authorization: Authorization = equipped(at_once()).unix_time(unix_time.clone());
    let host =
        Host::new("host", "1").authorization(authorization).revisions(Revisions::only(revision));
    let issuer = move |request: &OutgoingRequest| {
        let (_, place) = request.url().as_str().split_once("://").unwrap();
        let (status, body) = match place {
            "as.example/.well-known/oauth-authorization-server" => (200, METADATA.to_owned()),
            "as.example/token" => {
                let end = unix_time() + LIFETIME.as_secs();
                let token = json!({ "access_token": format!("until-{end}"),
                    "token_type": "Bearer", "expires_in": LIFETIME.as_secs() });
                (200, token.to_string())
            }
            _ if place.starts_with("as.example") => (404, String::new()),
            _ => return None,
        };
        let head = ResponseHead::new(Status(status), Some(Content::Json));
        Some(Response::new(head, body.into_bytes()))
    };
    let server = server.http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let options = HttpClientOptions::new(Location::parse(URL).unwrap());
    let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
    let mut pair = Pair::with_clock(Http::new(server, endpoint).intercept(issuer), clock);
    pair.run(client.opened()).unwrap();
    (client, pair)
}

#[test]
fn the_client_fetches_its_response_with_another_token() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let gate = Gate::default();
        let (client, mut pair) = pair(&gate, revision);
        let call = client.call_tool("slow", &NoArguments {}).timeout(LIFETIME * 10);
        let mut call = Box::pin(call.into_future());
        assert!(pair.poll(call.as_mut()).is_none());
        pair.advance(LIFETIME * 3);
        gate.open();
        let result = pair.run(call).unwrap();
        assert_eq!(text(&result), "done", "{revision}: {}", pair.transcript);
        let resumed =
            pair.transcript.lines().iter().filter(|line| line.starts_with("> GET")).count();
        let expected = if revision == Revision::V2025_11_25 { 3.. } else { 0.. };
        assert!(expected.contains(&resumed), "{revision}: {}", pair.transcript);
    }
}

#[test]
fn the_client_keeps_listening_with_another_token() {
    // Rule: [SUBS-008].
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = pair(&Gate::default(), revision);
        let filter = SubscriptionFilter::default().resource_subscriptions(["mem://a".to_owned()]);
        let mut subscription = client.subscribe(filter.clone());
        assert_eq!(pair.run(subscription.honoured()).unwrap(), filter, "{revision}");
        for round in 1..=3 {
            pair.advance(LIFETIME * round + Duration::from_secs(10) - pair.clock().elapsed());
            pair.transport.server.handle().resource_updated("mem://a").unwrap();
            let news = pair.run(subscription.next()).unwrap();
            let news = news.unwrap_or_else(|| panic!("{revision} {round}: {}", pair.transcript));
            assert_eq!(news.method, Method::ResourcesUpdated, "{revision}");
        }
        if revision == Revision::V2026_07_28 {
            let listened = pair.transcript.count("subscriptions/listen");
            assert!(listened >= 4, "{listened}: {}", pair.transcript);
            let now = pair.now();
            pair.transport.server.close(now);
            assert!(pair.run(subscription.next()).unwrap().is_none(), "the server is gone");
        }
    }
}
