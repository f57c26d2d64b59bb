//! Middleware around notifications.

use std::sync::{Arc, Mutex};

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{Resource, SubscriptionFilter, TextResourceContents};
use mcp_sansio::{LoggingLevel, Revision, Revisions, Side};
use mcp_sansio_handlers::extension::{Extension, ExtensionNotification};
use mcp_sansio_handlers::middleware::{MiddlewareMessage, NotificationAction};
use mcp_sansio_handlers::{Call, Client, Host, NoArguments, ReadResource, Server};
use mcp_sansio_test::{Pair, Transport};
use serde_json::{Value, json};

use crate::panics::guard;
use crate::task_client::Gate;

const ID: &str = "com.example/paint";
const STROKE: ExtensionNotification<Value> = ExtensionNotification::new(ID, "paint/stroke");
const DRAWN: ExtensionNotification<Value> =
    ExtensionNotification::new(ID, "paint/drawn").sent_by(Side::Server);

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

type Lines = Arc<Mutex<Vec<String>>>;

fn taken(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().unwrap())
}

fn replaced(value: &Value) -> NotificationAction {
    NotificationAction::Replace(Json::from_serialize(value).unwrap())
}

/// A server that reports progress twice, with a log message between, then waits, and sends the
/// others.
fn server(gate: &Gate, received: &Lines) -> Server {
    let (gate, received) = (gate.clone(), Arc::clone(received));
    let paint = Extension::new(ID).unwrap().notification(&STROKE, move |stroke: Value| {
        received.lock().unwrap().push(stroke.to_string());
    });
    Server::new("s", "1")
        .logging()
        .subscriptions()
        .extension(paint)
        .resource(Resource::new("a://b", "b"), |_: Call<ReadResource>| {
            TextResourceContents::new("a://b", "")
        })
        .tool("paint", "", move |call: Call<NoArguments>| {
            let gate = gate.clone();
            async move {
                call.progress(1.0, Some(9.0), "one");
                call.log((LoggingLevel::Error, "brush"), "secret");
                call.progress(2.0, None, "two");
                gate.passed().await;
                call.notify_extension(&DRAWN, &json!({ "length": 1, "_meta": { "a": 1 } }))?;
                call.resource_updated("a://b")?;
                call.progress(3.0, None, "three");
                Ok::<_, mcp_sansio_handlers::HandlerError>("painted")
            }
        })
}

/// Calls the tool, and returns what the client has seen before and after the gate, in order.
fn paint<T: Transport>(
    client: &Client,
    pair: &mut Pair<T>,
    gate: &Gate,
    seen: &Lines,
) -> [Vec<String>; 2] {
    let filter = SubscriptionFilter::new().resource_subscriptions(["a://b".to_owned()]);
    let _subscription = client.subscribe(filter);
    pair.run_until_idle();
    taken(seen);
    let progress = Arc::clone(seen);
    let call = client.call_tool("paint", &NoArguments {}).on_progress(move |it| {
        let message = it.message.as_deref().unwrap_or_default();
        progress.lock().unwrap().push(format!("progress {} {:?} {message}", it.progress, it.total));
    });
    let call = pair.start(call.log_level(LoggingLevel::Debug));
    pair.run_until_idle();
    let before = taken(seen);
    gate.open();
    assert_eq!(pair.run(call).unwrap().first_text(), Some("painted"));
    pair.run_until_idle();
    [before, taken(seen)]
}

fn host(revision: Revision, seen: &Lines) -> Host {
    let (observed, drawn) = (Arc::clone(seen), Arc::clone(seen));
    let paint = Extension::new(ID).unwrap().notification(&DRAWN, move |stroke: Value| {
        drawn.lock().unwrap().push(format!("drawn {stroke}"));
    });
    Host::new("h", "1").revisions(Revisions::only(revision)).extension(paint).observe(
        move |event| {
            if let Event::Notification(notification) = event
                && matches!(
                    notification.method.as_str(),
                    "notifications/message" | "notifications/resources/updated"
                )
            {
                let (level, data) =
                    (notification.params.get("level"), notification.params.get("data"));
                let shown = format!("{} {level:?} {data:?}", notification.method.as_str());
                observed.lock().unwrap().push(shown);
            }
        },
    )
}

/// Paints over both bindings.
fn on_each_binding(
    change: impl Fn(Server) -> Server,
    revision: Revision,
    check: impl Fn([Vec<String>; 2]),
) {
    let (seen, received) = (Lines::default(), Lines::default());
    let gate = Gate::default();
    let painter = change(server(&gate, &received));
    let (client, mut pair) = mcp_sansio_test::connect(&painter, &host(revision, &seen));
    check(paint(&client, &mut pair, &gate, &seen));
    let gate = Gate::default();
    let painter = change(server(&gate, &received));
    let (client, mut pair) = mcp_sansio_test::connect_http(&painter, &host(revision, &seen), None);
    check(paint(&client, &mut pair, &gate, &seen));
}

#[test]
fn each_message_of_a_stream_passes_before_the_next_one() {
    // Rule: [EXT-031] [EXT-032].
    for revision in REVISIONS {
        let plain = Mutex::new(Vec::new());
        on_each_binding(|server| server, revision, |seen| plain.lock().unwrap().push(seen));
        let plain = plain.into_inner().unwrap();
        assert_eq!((plain[0][0].len(), plain[0][1].len()), (3, 3), "{revision}: {plain:?}");
        let passed = Mutex::new(Vec::new());
        let order = Lines::default();
        let layers = |server: Server| {
            let note = |name: &'static str| {
                let order = Arc::clone(&order);
                move |notification: &MiddlewareMessage<'_>| {
                    let opens = matches!(
                        notification.method(),
                        "notifications/initialized" | "notifications/subscriptions/acknowledged"
                    );
                    if !opens {
                        assert_eq!(notification.sender(), Side::Server);
                        order.lock().unwrap().push(format!("{name} {}", notification.method()));
                    }
                    NotificationAction::Forward
                }
            };
            server.notification_middleware(note("outer")).notification_middleware(note("inner"))
        };
        on_each_binding(layers, revision, |seen| passed.lock().unwrap().push(seen));
        assert_eq!(passed.into_inner().unwrap(), plain, "{revision}");
        // Messages that are sent pass the inner one first, each before the next.
        let order = taken(&order);
        assert_eq!(
            order[..4],
            [
                "inner notifications/progress",
                "outer notifications/progress",
                "inner notifications/message",
                "outer notifications/message",
            ]
        );
        assert_eq!(order.len(), 2 * 2 * 6, "{order:?}");
    }
}

#[test]
fn notifications_are_changed_and_dropped() {
    let change = |server: Server| {
        server.notification_middleware(|notification| {
            let mut params: Value = notification.params().decode().unwrap();
            match notification.method() {
                "notifications/progress" if params["progress"] == 2.0 => NotificationAction::Drop,
                "notifications/progress" => {
                    params["message"] = json!("step");
                    replaced(&params)
                }
                "notifications/message" => {
                    params["data"] = json!("***");
                    replaced(&params)
                }
                "paint/drawn" => {
                    params["length"] = json!(7);
                    replaced(&params)
                }
                // Another resource has other subscribers.
                "notifications/resources/updated" => replaced(&json!({ "uri": "a://c" })),
                "notifications/initialized" | "notifications/subscriptions/acknowledged" => {
                    NotificationAction::Forward
                }
                other => panic!("{other}"),
            }
        })
    };
    for revision in REVISIONS {
        on_each_binding(change, revision, |[before, after]| {
            assert_eq!(before.len(), 2, "{before:?}");
            assert_eq!(before[0], "progress 1 Some(9.0) step");
            assert!(before[1].contains("***") && before[1].contains("error"), "{before:?}");
            let drawn = r#"drawn {"_meta":{"a":1},"length":7}"#;
            let mut after = after;
            after.sort_unstable();
            assert_eq!(after, [drawn, "progress 3 None step"], "{revision}");
        });
    }
}

#[test]
fn a_panic_and_parameters_of_another_form_drop_a_notification() {
    for broken in [
        |_: &MiddlewareMessage<'_>| panic!("broken"),
        |_: &MiddlewareMessage<'_>| replaced(&json!({ "message": 7 })),
        |_: &MiddlewareMessage<'_>| replaced(&json!([])),
    ] {
        let (gate, seen) = (Gate::default(), Lines::default());
        let painter = server(&gate, &seen).notification_middleware(broken);
        let (client, mut pair) = mcp_sansio_test::connect(&painter, &host(Revision::LATEST, &seen));
        mcp_sansio_handlers::endpoint::Endpoint::catch_panics(
            pair.transport.server.as_mut().unwrap(),
            guard(),
        );
        let [before, after] = paint(&client, &mut pair, &gate, &seen);
        assert!(before.is_empty(), "{before:?}");
        assert!(after.iter().all(|line| line.starts_with("drawn")), "{after:?}");
    }
}

#[test]
fn a_notification_of_a_client_passes_the_outermost_first() {
    let received = Lines::default();
    let outer = |notification: &MiddlewareMessage<'_>| {
        assert_eq!(notification.sender(), Side::Client);
        if notification.method() != "paint/stroke" {
            return NotificationAction::Forward;
        }
        let stroke: Value = notification.params().decode().unwrap();
        match stroke["length"].as_u64() {
            Some(1) => NotificationAction::Drop,
            Some(2) => replaced(&json!({ "length": 20 })),
            _ => NotificationAction::Forward,
        }
    };
    let inner = |notification: &MiddlewareMessage<'_>| {
        assert!(!notification.params().as_str().contains("\"length\":2}"));
        NotificationAction::Forward
    };
    let server = server(&Gate::default(), &received)
        .notification_middleware(outer)
        .notification_middleware(inner);
    // Later revisions have no notifications of clients to extensions.
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let host = host(revision, &Lines::default());
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        for length in 1..=3 {
            client.notify_extension(&STROKE, &json!({ "length": length })).unwrap();
        }
        pair.run_until_idle();
        assert_eq!(taken(&received), [r#"{"length":20}"#, r#"{"length":3}"#], "{revision}");
        let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
        for length in 1..=3 {
            client.notify_extension(&STROKE, &json!({ "length": length })).unwrap();
        }
        pair.run_until_idle();
        assert_eq!(taken(&received), [r#"{"length":20}"#, r#"{"length":3}"#], "{revision}");
    }
}

#[test]
fn a_cancellation_that_may_not_be_dropped_stays_as_the_middleware_before_left_it() {
    // Rule: [EXT-034].
    let is_cancelled =
        |message: &MiddlewareMessage<'_>| message.method() == "notifications/cancelled";
    let redact = move |message: &MiddlewareMessage<'_>| {
        if !is_cancelled(message) {
            return NotificationAction::Forward;
        }
        let mut params: Value = serde_json::from_str(message.params().as_str()).unwrap();
        params["reason"] = "redacted".into();
        replaced(&params)
    };
    let drop_it = move |message: &MiddlewareMessage<'_>| {
        if is_cancelled(message) { NotificationAction::Drop } else { NotificationAction::Forward }
    };
    let server = Server::new("s", "1").tool("wait", "", async |_: Call<NoArguments>| {
        std::future::pending::<()>().await;
    });
    // Messages that a host sends pass the last middleware first.
    let host = Host::new("h", "1")
        .revisions(Revisions::only(Revision::V2025_11_25))
        .notification_middleware(drop_it)
        .notification_middleware(redact);
    let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
    let call = pair.start(client.call_tool("wait", &NoArguments {}));
    drop(call);
    pair.run_until_idle();
    assert_eq!(pair.transcript.count("notifications/cancelled"), 1, "{}", pair.transcript);
    assert_eq!(pair.transcript.count("redacted"), 1, "{}", pair.transcript);
}
