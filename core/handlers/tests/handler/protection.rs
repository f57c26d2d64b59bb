//! Protected servers, and how they refuse requests whose token is missing, invalid or insufficient.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use mcp_sansio::http::{HttpServerOptions, Location, RequestHead};
use mcp_sansio::protocol::{
    ElicitSchema, Resource, ResourceContents, ResourceTemplate, TextResourceContents,
};
use mcp_sansio::{Caller, Instant, Principal, Revision};
use mcp_sansio_handlers::{Call, Elicit, NoArguments, ReadResource, Server, TokenRequirement};
use mcp_sansio_oauth::protected_resource::{
    Operation, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_oauth::{MetadataUrls, ProtectedResourceMetadata};
use serde_json::{Value, json};

use crate::protected_server::{
    METADATA, ProtectedServer, URI, check, legacy_call, request, resource,
};
use crate::task_client::{everything, request as task_request, settings};
use crate::{connect, text};

/// Tools: `who` returns the caller and its scopes, `delete` does nothing, `look` requires `write`
/// in its handler, `late` does so after sending a message, `ask` after requesting input.
fn server() -> Server {
    Server::new("s", "1")
        .tool("who", "", |call: Call<NoArguments>| {
            let who = call.principal().map_or("nobody", Principal::as_str);
            format!("{who}: {}", call.scopes().join(" "))
        })
        .tool("delete", "", |_: Call<NoArguments>| "deleted")
        .tool("look", "", |call: Call<NoArguments>| {
            call.require_scopes(&["write", "mail"])?;
            Ok("written")
        })
        .tool("late", "", async |call: Call<NoArguments>| {
            call.progress(1.0, None, "so far");
            call.require_scopes(&["write"])?;
            Ok("written")
        })
        .tool("ask", "", |call: Call<NoArguments>| match call.input::<Value>("sure")? {
            None => call
                .require_input("sure", Elicit::form_with("Sure?", ElicitSchema::new()))
                .into_result(),
            Some(_) => {
                call.require_scopes(&["write"])?;
                Ok(call.scopes().join(" "))
            }
        })
}

fn protected_server() -> ProtectedServer {
    ProtectedServer::new(server())
}

fn refusal(status: u16, error: &str, scope: &str) -> (u16, Option<String>, Option<String>) {
    (status, Some(error.into()), Some(scope.into()))
}

#[test]
fn a_client_finds_the_authorization_server_from_the_challenge() {
    // Rule: [AUTHS-001] [AUTHS-008] [AUTHS-009] [AUTHS-010] [AUTHS-011].
    let mut fixture = protected_server();
    let refused = fixture.call_with(&[], "who");
    assert_eq!(refused.refusal(), (401, None, Some("use".into())));
    let named = refused.challenge().and_then(|it| it.resource_metadata);
    assert_eq!(named.as_deref(), Some(METADATA));
    let server = Location::parse(URI).unwrap();
    let url = MetadataUrls::for_resource(Revision::LATEST, &server, named.as_deref()).next();
    let answer = fixture.send("GET", url.unwrap().path_and_query(), &[], "");
    let metadata = ProtectedResourceMetadata::parse(answer.text.as_bytes()).unwrap();
    assert_eq!(metadata.issuers().unwrap(), ["https://auth.example.com"]);
    assert_eq!(metadata.resource_for(&server).unwrap().as_str(), URI);
    assert_eq!(metadata.scopes_supported.unwrap(), ["use"]);
    let answer = fixture.call("ann/use", "who");
    assert_eq!(answer.status, 200);
    assert!(answer.text.contains("ann: use"), "{answer:?}");
}

#[test]
fn a_rejected_token_is_answered_401_and_one_that_cannot_be_checked_503() {
    // Rule: [AUTHS-001] [AUTHS-012] [AUTHS-013] [SEC-008] [SEC-011].
    let mut fixture = protected_server();
    for token in ["ann/use/forged", "ann/use/revoked", "ann/use/old", "ann/use/other"] {
        let answer = fixture.call(token, "who");
        assert_eq!(answer.refusal(), refusal(401, "invalid_token", "use"), "{token}");
    }
    let answer = fixture.call("ann/use/dark", "who");
    assert_eq!(answer.refusal(), (503, None, None));
    assert!(answer.field("retry-after").is_some());
    assert_eq!(fixture.server.machine().exchange_count(), 0);
}

#[test]
fn a_malformed_token_is_answered_400_without_a_check() {
    // Rule: [AUTHS-002].
    let mut fixture = protected_server();
    for fields in [
        &[("authorization", "Bearer")][..],
        &[("authorization", "Bearer ann/use"), ("authorization", "Bearer ann/use")],
    ] {
        let answer = fixture.call_with(fields, "who");
        assert_eq!(answer.refusal(), (400, Some("invalid_request".into()), None));
    }
    let answer = fixture.send("POST", "/mcp?access_token=ann/use", &[], "{}");
    assert_eq!(answer.refusal(), (400, Some("invalid_request".into()), None));
    assert_eq!(fixture.checks.load(Ordering::SeqCst), 0);
}

#[test]
fn unknown_paths_do_not_require_a_token() {
    let mut fixture = protected_server();
    for (method, target, status) in [
        ("POST", "/other", 404),
        // The path where clients of 2025-03-26 look for an authorization server.
        ("GET", "/.well-known/oauth-authorization-server", 404),
        ("PUT", "/mcp", 405),
    ] {
        let answer = fixture.send(method, target, &[("authorization", "Bearer a/use")], "");
        assert_eq!(answer.refusal(), (status, None, None), "{method} {target}");
    }
    assert_eq!(fixture.checks.load(Ordering::SeqCst), 0);
    let answer = fixture.send("GET", "/mcp", &[], "");
    assert_eq!(answer.refusal(), (401, None, Some("use".into())));
}

#[test]
fn other_origins_can_read_the_metadata_only() {
    let mut fixture = protected_server();
    let origin = [("origin", "https://evil.example"), ("authorization", "Bearer ann/use")];
    let target = "/.well-known/oauth-protected-resource/mcp";
    let answer = fixture.send("GET", target, &origin, "");
    assert_eq!((answer.status, answer.field("access-control-allow-origin")), (200, Some("*")));
    assert_eq!(fixture.call_with(&origin, "who").status, 403);
    assert_eq!(fixture.checks.load(Ordering::SeqCst), 0);
}

#[test]
fn an_operation_without_its_scopes_is_refused_before_it_starts_in_both_eras() {
    // Rule: [AUTHS-002] [AUTHS-015] [AUTHS-016] [AUTHS-017] [AUTHS-018] [AUTHS-019].
    let mut fixture = protected_server();
    let session = fixture.open("ann/use");
    let wanted = refusal(403, "insufficient_scope", "use write");
    for answer in [
        fixture.call("ann/use", "delete"),
        fixture.post("ann/use", &session, &legacy_call(4, "delete")),
        fixture.call("ann/", "delete"),
    ] {
        assert_eq!(answer.refusal(), wanted);
        assert_eq!(answer.challenge().unwrap().resource_metadata.as_deref(), Some(METADATA));
        assert!(!answer.text.contains("deleted"));
    }
    for token in ["ann/use+write", "ann/use+all"] {
        for answer in [
            fixture.call(token, "delete"),
            fixture.post(token, &session, &legacy_call(4, "delete")),
        ] {
            assert!(answer.text.contains("deleted"), "{token}: {answer:?}");
        }
    }
}

#[test]
fn a_handler_can_refuse_a_request_for_missing_scopes() {
    // Rule: [AUTHS-002] [AUTHS-015] [AUTHS-016] [AUTHS-018].
    let mut fixture = protected_server();
    let session = fixture.open("ann/use");
    for answer in [
        fixture.call("ann/use", "look"),
        fixture.post("ann/use", &session, &legacy_call(4, "look")),
    ] {
        assert_eq!(answer.refusal(), refusal(403, "insufficient_scope", "use write mail"));
        let body: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(body["error"]["code"], -32600);
    }
    let answer = fixture.call("ann/use+all+mail", "look");
    assert!(answer.status == 200 && answer.text.contains("written"), "{answer:?}");
}

#[test]
fn a_handler_that_sent_messages_can_no_longer_refuse_the_request() {
    let mut fixture = protected_server();
    let answer = fixture.call("ann/use", "late");
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("text/event-stream")));
    assert!(answer.text.contains("so far") && answer.text.contains("-32600"), "{answer:?}");
    assert!(fixture.call("ann/use+write", "late").text.contains("written"));
}

#[test]
fn a_session_belongs_to_the_principal_of_the_token() {
    // Rule: [SESS-014] [SEC-011].
    let mut fixture = protected_server();
    let session = fixture.open("ann/use");
    let call = legacy_call(4, "who");
    assert_eq!(fixture.post("bob/use", &session, &call).status, 404);
    // Another token of the same principal is accepted.
    let answer = fixture.post("ann/use+write", &session, &call);
    assert!(answer.text.contains("ann: use write"), "{answer:?}");
    for (token, status) in [("bob/use", 404), ("ann/use/forged", 401), ("ann/write", 403)] {
        let bearer = format!("Bearer {token}");
        let fields = [("authorization", bearer.as_str()), ("mcp-session-id", session.as_str())];
        for method in ["GET", "DELETE"] {
            assert_eq!(
                fixture.send(method, "/mcp", &fields, "").status,
                status,
                "{method} {token}"
            );
        }
        for body in [call.as_str(), "{"] {
            assert_eq!(
                fixture.send("POST", "/mcp", &fields, body).status,
                status,
                "{token} {body}"
            );
        }
    }
    assert_eq!(fixture.server.machine().session_count(), 1);
}

#[test]
fn every_request_of_a_batch_has_the_scopes_of_the_token() {
    // Rule: [BATCH-007].
    let mut fixture = protected_server();
    let session = fixture.open_at("2025-03-26", "ann/use+write+mail");
    let calls = [4, 5, 6].map(|id| legacy_call(id, if id == 6 { "who" } else { "look" }));
    let answer = fixture.post("ann/use+write+mail", &session, &format!("[{}]", calls.join(",")));
    assert_eq!(answer.text.matches("written").count(), 2, "{answer:?}");
    assert!(answer.text.contains("ann: use write mail"), "{answer:?}");
    // A later batch with another token has the scopes of that token.
    let answer = fixture.post("ann/use", &session, &format!("[{}]", calls.join(",")));
    assert_eq!(answer.text.matches("written").count(), 0, "{answer:?}");
    assert!(answer.text.contains("ann: use\""), "{answer:?}");
}

#[test]
fn a_later_round_has_the_scopes_of_its_request() {
    let mut fixture = protected_server();
    for (scopes, expected) in [("use+write", "use write"), ("use", "-32600")] {
        let token = format!("ann/{scopes}");
        let session = fixture.open(&token);
        let bearer = format!("Bearer {token}");
        let fields = [("authorization", bearer.as_str()), ("mcp-session-id", session.as_str())];
        let exchange = fixture.begin("POST", "/mcp", &fields, &legacy_call(4, "ask")).unwrap();
        let asked = fixture.read(exchange);
        let data = asked.text.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut messages = data.filter_map(|it| serde_json::from_str::<Value>(it).ok());
        let question = messages.next().expect("a question");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"],
            "result": { "action": "accept", "content": {} } });
        // The answer may be sent with another token.
        assert_eq!(fixture.post("ann/use", &session, &answer.to_string()).status, 202);
        let rest = fixture.read_on(exchange);
        assert!(rest.contains(expected), "{rest}");
    }
}

#[test]
fn a_task_has_the_scopes_of_its_request() {
    let server = server().tasks(settings()).tool("later", "", |call: Call<NoArguments>| {
        call.run_as_task();
        match call.input::<Value>("sure")? {
            None => call
                .require_input("sure", Elicit::form_with("Sure?", ElicitSchema::new()))
                .into_result(),
            Some(_) => Ok(call.scopes().join(" ")),
        }
    });
    let mut fixture = ProtectedServer::new(server);
    let mut ask = |token: &str, method: &str, name: &str, params: Value| -> Value {
        let bearer = format!("Bearer {token}");
        let fields = [
            ("authorization", bearer.as_str()),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", name),
        ];
        let body = task_request(1, method, params, &everything());
        serde_json::from_str(&fixture.send("POST", "/mcp", &fields, &body).text).unwrap()
    };
    let call = json!({ "name": "later", "arguments": {} });
    let created = ask("ann/use+write", "tools/call", "later", call);
    let task = created["result"]["taskId"].as_str().expect("a task").to_owned();
    let yes = json!({ "sure": { "action": "accept", "content": {} } });
    let update = json!({ "taskId": task, "inputResponses": yes });
    assert!(ask("bob/use", "tasks/update", &task, update.clone())["error"].is_object());
    ask("ann/use", "tasks/update", &task, update);
    let done = ask("ann/use", "tasks/get", &task, json!({ "taskId": task }));
    let said = &done["result"]["result"]["content"][0]["text"];
    assert_eq!(*said, "use write", "{done}");
}

/// Returns a request to subscribe to a resource, in a legacy session. `uri` may contain escapes.
fn subscribe(uri: &str) -> String {
    let params = format!(r#"{{"uri":"{uri}"}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":6,"method":"resources/subscribe","params":{params}}}"#)
}

/// Returns the status of a modern subscription to a resource.
fn listen(fixture: &mut ProtectedServer, token: &str, uri: &str) -> u16 {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let filter = format!(r#"{{"resourceSubscriptions":["mem://other","{uri}"]}}"#);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{{"_meta":{meta},"notifications":{filter}}}}}"#
    );
    let token = format!("Bearer {token}");
    let fields = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
        ("authorization", token.as_str()),
    ];
    fixture.send("POST", "/mcp", &fields, &body).status
}

#[test]
fn a_resource_requires_the_scopes_of_the_template_that_handles_it() {
    // Rule: [AUTHS-015] [AUTHS-018].
    let said = |what: &'static str| {
        move |call: Call<ReadResource>| {
            ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, what))
        }
    };
    let server = Server::new("s", "1")
        .resource(Resource::new("file:///open/readme", "readme"), said("the resource"))
        .resource_template(ResourceTemplate::new("file:///open/{name}", "open"), said("the first"))
        .resource_template(ResourceTemplate::new("file:///{a}/{b}", "all"), said("the second"));
    let resource = resource()
        .scopes_for(Operation::template("file:///open/{name}"), ["first"])
        .and_then(|it| it.scopes_for(Operation::template("file:///{a}/{b}"), ["second"]))
        .and_then(|it| it.scopes_for(Operation::prompt("file:///open/x"), ["none"]))
        .unwrap();
    let server = server.protect(resource, |asked: TokenCheck| check(&asked)).unix_time(|| 1_000);
    let mut fixture = ProtectedServer::from_server(&server, HttpServerOptions::new());
    let session = fixture.open("ann/use");
    for (uri, scope, what) in [
        // Both templates match, but the resource has a handler of its own.
        ("file:///open/readme", None, "the resource"),
        // Both templates match, and the first one handles it, however the URI is escaped.
        ("file:///open/x", Some("first"), "the first"),
        (r"file:///open/\u0078", Some("first"), "the first"),
        ("file:///closed/x", Some("second"), "the second"),
    ] {
        let read = |id| {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{params}}}"#)
        };
        if let Some(scope) = scope {
            for lacking in
                ["use", "use+write", if scope == "first" { "use+second" } else { "use+first" }]
            {
                let answer = fixture.post(&format!("ann/{lacking}"), &session, &read(4));
                assert_eq!(answer.status, 403, "{uri} {lacking}: {answer:?}");
                let named = answer.refusal().2.unwrap_or_default();
                assert!(named.split(' ').any(|it| it == scope), "{uri}: {named}");
            }
        }
        let subscribed = fixture.post("ann/use", &session, &subscribe(uri));
        assert_eq!(subscribed.status == 403, scope.is_some(), "{uri}: {subscribed:?}");
        assert_eq!(listen(&mut fixture, "ann/use", uri) == 403, scope.is_some(), "{uri}");
        let token = format!("ann/use+{}", scope.unwrap_or("read"));
        assert_eq!(fixture.post(&token, &session, &subscribe(uri)).status, 200, "{uri}");
        assert_eq!(listen(&mut fixture, &token, uri), 200, "{uri}");
        let answer = fixture.post(&token, &session, &read(5));
        assert!(answer.text.contains(what), "{uri}: {answer:?}");
    }
}

#[test]
fn a_request_without_a_token_check_is_refused() {
    // Rule: [AUTHS-012] [SEC-011].
    let mut fixture = protected_server();
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("content-type", b"application/json");
    head.field("authorization", b"Bearer ann/use");
    let body = request(0, "initialize", &json!({}));
    let ann = Principal::new("ann");
    let (exchange, work) =
        fixture.server.handle_request(&head, body.as_bytes(), &ann.into(), Instant::ZERO);
    assert!(work.is_none());
    assert_eq!(fixture.read(exchange).refusal(), (401, None, Some("use".into())));
    // A grant of another server is refused, even if the servers have the same name.
    let other = protected_server();
    let TokenRequirement::Check(mut checking) = other.server.authorize(&head, &Caller::ANONYMOUS)
    else {
        panic!("no check")
    };
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(grant)) = std::pin::Pin::new(&mut checking).poll(&mut cx) else {
        panic!("no grant")
    };
    let (exchange, work) =
        fixture.server.handle_request(&head, body.as_bytes(), &grant.into(), Instant::ZERO);
    assert!(work.is_none());
    assert_eq!(fixture.read(exchange).status, 401);
}

#[test]
fn a_token_that_expires_during_its_check_is_refused() {
    // Rule: [AUTHS-001].
    let clock = Arc::new(AtomicU64::new(1_000));
    let (asked, time) = (Arc::clone(&clock), Arc::clone(&clock));
    let slow = move |check: TokenCheck| {
        let clock = Arc::clone(&asked);
        async move {
            let mut polled = false;
            std::future::poll_fn(|_| {
                if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            clock.fetch_add(10, Ordering::SeqCst);
            let token = VerifiedToken::new(Principal::new("ann")).scope("use");
            Ok::<_, TokenRefusal>(token.audiences([check.resource()]).expires_at(1_020))
        }
    };
    let server = server().protect(resource(), slow).unix_time(move || time.load(Ordering::SeqCst));
    let mut fixture = ProtectedServer::from_server(&server, HttpServerOptions::new());
    assert_eq!(fixture.call("x", "who").status, 200);
    assert_eq!(fixture.call("x", "who").refusal(), refusal(401, "invalid_token", "use"));
}

#[test]
fn a_token_check_whose_future_panics_when_it_is_dropped_counts() {
    struct Checked(TokenCheck);
    impl Future for Checked {
        type Output = Result<VerifiedToken, TokenRefusal>;
        fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(check(&self.0))
        }
    }
    impl Drop for Checked {
        fn drop(&mut self) {
            panic!("a destructor");
        }
    }
    let server = server().protect(resource(), Checked).unix_time(|| 1_000);
    let mut fixture = ProtectedServer::from_server(&server, HttpServerOptions::new());
    fixture.server.catch_panics(crate::panics::guard());
    assert_eq!(fixture.call("ann/use", "who").status, 200);
}

#[test]
fn the_number_of_pending_token_checks_is_bounded() {
    let endless = async |_: TokenCheck| std::future::pending().await;
    let server = server().protect(resource().checks_max(2), endless).unix_time(|| 0);
    let http = server.http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("authorization", b"Bearer ann/use");
    let ask = || match http.authorize(&head, &Caller::ANONYMOUS) {
        TokenRequirement::Check(checking) => Ok(checking),
        TokenRequirement::Respond(response) => Err(response.head.status.0),
        TokenRequirement::NotNeeded => panic!("no token is required"),
    };
    let (first, _second) = (ask().unwrap(), ask().unwrap());
    assert_eq!(ask().err(), Some(503));
    drop(first);
    let _third = ask().unwrap();
    assert_eq!(ask().err(), Some(503));
}

#[test]
fn an_observer_learns_why_a_token_was_refused_and_the_client_does_not() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let shown = Arc::clone(&seen);
    let check = |check: TokenCheck| {
        let token = VerifiedToken::new(Principal::new("ann")).scope("use");
        match check.token() {
            "down" => Err(TokenRefusal::Unavailable.because("the certificate has expired")),
            "bad" => Err(TokenRefusal::Invalid.because("unknown key").because("again")),
            "other" => Ok(token.audiences(["https://other.example.com"])),
            _ => Ok(token.audiences([check.resource()])),
        }
    };
    let server = server()
        .observe_refused_tokens(move |cause, _| shown.lock().unwrap().push(cause.to_owned()))
        .protect(resource(), check)
        .unix_time(|| 0);
    let mut fixture = ProtectedServer::from_server(&server, HttpServerOptions::new());
    for (token, status, cause) in [
        ("down", 503, Some("certificate has expired")),
        ("bad", 401, Some("unknown key")),
        ("other", 401, Some("not valid for this resource")),
        ("good", 200, None),
    ] {
        let reply = fixture.call(token, "who");
        assert_eq!(reply.status, status);
        let told = format!("{reply:?}");
        assert!(!told.contains("certificate") && !told.contains("unknown key"), "{told}");
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen.len(), usize::from(cause.is_some()), "{seen:?}");
        assert!(seen.iter().all(|seen| seen.contains(cause.unwrap())), "{seen:?}");
    }
}

#[test]
fn tokens_expire_by_the_clock_of_the_adapter_unless_the_server_has_its_own() {
    let check = |check: TokenCheck| {
        let token = VerifiedToken::new(Principal::new("ann")).scope("use");
        Ok::<_, TokenRefusal>(token.audiences([check.resource()]).expires_at(1_000))
    };
    let status = |server: &Server, clock: Option<u64>| {
        let mut fixture = ProtectedServer::from_server(server, HttpServerOptions::new());
        if let Some(now) = clock {
            fixture.server.set_unix_time(Box::new(move || now));
        }
        fixture.call("x", "who").status
    };
    let causes = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&causes);
    let server = server()
        .protect(resource(), check)
        .observe_refused_tokens(move |cause, _| seen.lock().unwrap().push(cause.to_owned()));
    assert_eq!(status(&server, None), 503);
    assert!(causes.lock().unwrap()[0].contains("Server::unix_time"));
    assert_eq!(status(&server, Some(999)), 200);
    assert_eq!(status(&server, Some(1_000)), 401);
    let server = server.unix_time(|| 999);
    assert_eq!(status(&server, Some(1_000)), 200);
}

#[test]
fn local_handlers_can_check_tokens() {
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&seen);
    let server = Server::local("s", "1").unix_time(|| 0).protect(
        resource(),
        async move |asked: TokenCheck| {
            count.set(count.get() + 1);
            check(&asked)
        },
    );
    let server = server.http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("authorization", b"Bearer ann/use");
    let TokenRequirement::Check(mut checking) = server.authorize(&head, &Caller::ANONYMOUS) else {
        panic!("no check")
    };
    let mut cx = Context::from_waker(Waker::noop());
    let granted = std::pin::Pin::new(&mut checking).poll(&mut cx);
    assert!(matches!(granted, Poll::Ready(Ok(grant)) if grant.principal().as_str() == "ann"));
    assert_eq!(seen.get(), 1);
}

#[test]
fn the_host_of_the_resource_is_allowed_in_addition_to_those_of_the_options() {
    let issuer = "https://auth.example.com";
    let resource = ProtectedResource::new("https://mcp.example.com/mcp", [issuer]).unwrap();
    let check = |_: TokenCheck| Err(TokenRefusal::Invalid);
    let options = HttpServerOptions::new().allow_host("other.example.com").unwrap();
    for (server, is_allowed) in [(server(), false), (server().protect(resource, check), true)] {
        let http = server.http(options.clone(), [7; 32], 7).unwrap();
        for (host, is_allowed) in [
            ("mcp.example.com", is_allowed),
            ("other.example.com", true),
            ("localhost", true),
            ("evil.example.com", false),
        ] {
            let mut head = RequestHead::new("POST", "/mcp");
            head.field("host", host.as_bytes());
            head.field("content-type", b"application/json");
            head.field("accept", b"application/json, text/event-stream");
            assert_eq!(http.admit(&head).is_ok(), is_allowed, "{host}");
        }
    }
}

#[test]
fn byte_streams_are_not_protected() {
    // Rule: [AUTHC-003].
    let server = server().protect(resource(), |asked: TokenCheck| check(&asked));
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect(&server, revision);
        for (tool, said) in [("look", "written"), ("delete", "deleted"), ("who", "nobody: ")] {
            let result = pair.run(client.call_tool(tool, &NoArguments {})).unwrap();
            assert_eq!(text(&result), said);
        }
    }
}

#[test]
fn a_server_without_token_checks_has_no_scopes() {
    let server = server().http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    assert!(matches!(server.authorize(&head, &Caller::ANONYMOUS), TokenRequirement::NotNeeded));
    let mut fixture = crate::tasks_http::TaskServer::from_server(&self::server());
    let params = json!({ "name": "look", "arguments": {} });
    let crate::tasks_http::Response(status, messages) =
        fixture.response("tools/call", params, Some("look"), Some(&Principal::new("ann")));
    assert_eq!((status, &messages[0]["result"]["isError"]), (200, &json!(true)));
}

#[test]
fn a_token_does_not_appear_in_debug_output_or_events() {
    let seen = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&seen);
    let server = server()
        .tool("show", "", |call: Call<NoArguments>| format!("{call:?}"))
        .observe(move |event| log.lock().unwrap().push_str(&format!("{event:?}")));
    let mut fixture = ProtectedServer::new(server);
    let answer = fixture.call("secret-part/use", "show");
    assert_eq!(answer.status, 200);
    let refused = fixture.call("secret-part/use/forged", "show");
    let log = seen.lock().unwrap().clone();
    assert!(!log.is_empty());
    let shown = format!("{answer:?} {refused:?} {log} {:?}", fixture.server);
    assert!(!shown.contains("secret-part/use"), "{shown}");
    // The principal is all that is kept, and it is not shown either.
    assert!(!shown.contains("secret"), "{shown}");
}
