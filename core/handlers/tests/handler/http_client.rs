//! The client side of HTTP, with the same handles and handlers as on a byte stream, connected to a
//! server of this library.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::http::{
    Content, HttpClientOptions, HttpServerOptions, Location, Response, ResponseHead,
};
use mcp_sansio::peer::{CloseReason, Failure, Status};
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, Resource, ResourceContents, SubscriptionFilter,
    TextResourceContents,
};
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::endpoint::{HttpEndpoint, HttpServer};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Connections, Elicit, Host, HostRequest, NoArguments, ReadResource,
    SendError, Server,
};

use mcp_sansio_test::{Faults, Http, HttpPair, Pair, URL, connect_http};

use crate::{ASKING, Place, text};

/// The revisions with Streamable HTTP.
const OVER_HTTP: [Revision; 4] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    /// Whether to continue.
    #[allow(dead_code, reason = "only its presence is checked")]
    sure: bool,
}

fn server() -> Server {
    Server::new("weather", "1")
        .tool("forecast", "Weather", async |call: Call<Place>| {
            Ok(format!("Sunny in {}", call.arguments.location))
        })
        .tool("book", "Book a table", async |call: Call<NoArguments>| {
            call.progress(1.0, Some(2.0), "looking");
            match call.input::<Confirmation>("confirm")? {
                None => call
                    .require_input("confirm", Elicit::form::<Confirmation>("Sure?"))
                    .into_result(),
                Some(answer) if answer.accepted() => Ok("Booked."),
                Some(_) => Ok("Not booked."),
            }
        })
        .tool("hang", "Never answers", async |_: Call<NoArguments>| {
            std::future::pending::<()>().await;
            "never"
        })
}

/// Creates the HTTP side of a server.
fn mount(server: &Server) -> HttpServer {
    server.http(HttpServerOptions::new(), [7; 32], 7).unwrap()
}

fn connect_host(
    server: &Server,
    host: Host,
    revision: Revision,
    piece: usize,
) -> (Client, HttpPair) {
    let host = host.revisions(Revisions::only(revision));
    let options = HttpClientOptions::new(Location::parse(URL).unwrap());
    let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
    let mut pair = Pair::new(Http::new(mount(server), endpoint));
    pair.set_faults(Faults::new(0).pieces(piece));
    pair.run(client.opened()).unwrap();
    assert_eq!(client.session().unwrap().revision, revision);
    (client, pair)
}

fn connect(server: &Server, revision: Revision) -> (Client, HttpPair) {
    connect_http(server, &Host::new("host", "1").revisions(Revisions::only(revision)), None)
}

fn oslo() -> Place {
    Place { location: "Oslo".to_owned() }
}

#[test]
fn a_call_gives_the_same_result_over_http_at_every_revision_and_chunk_size() {
    for revision in OVER_HTTP {
        for piece in [1, 7, usize::MAX] {
            let (client, mut pair) =
                connect_host(&server(), Host::new("host", "1"), revision, piece);
            let result = pair.run(client.call_tool("forecast", &oslo())).unwrap();
            assert_eq!(text(&result), "Sunny in Oslo", "{revision}");
            assert_eq!(pair.run(client.all_tools()).unwrap().len(), 3);
        }
    }
}

#[test]
fn a_call_with_progress_and_input_gives_the_same_result_in_both_eras() {
    for revision in ASKING {
        for piece in [1, 7, usize::MAX] {
            let host = Host::new("host", "1").on_elicit(async |_: HostRequest<ElicitParams>| {
                Ok(ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect()))
            });
            let (client, mut pair) = connect_host(&server(), host, revision, piece);
            let seen = Arc::new(Mutex::new(Vec::new()));
            let shown = Arc::clone(&seen);
            let call = client.call_tool("book", &NoArguments {}).on_progress(move |progress| {
                shown.lock().unwrap().push(progress.progress);
            });
            let result = pair.run(call).unwrap();
            assert_eq!(text(&result), "Booked.", "{revision}: {}", pair.transcript);
            assert!(seen.lock().unwrap().contains(&1.0), "{revision}: {}", pair.transcript);
        }
    }
}

#[test]
fn a_url_elicitation_has_an_id_over_http() {
    // Rule: [ELIC-014].
    let server = Server::new("tickets", "1").tool("pay", "", |call: Call<NoArguments>| match call
        .input::<()>("pay")?
    {
        None => {
            call.require_input("pay", Elicit::url("Pay", "https://pay.example/7")).into_result()
        }
        Some(_) => Ok("paid"),
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let host = Host::new("host", "1").on_elicit(move |question: HostRequest<ElicitParams>| {
        let ElicitParams::Url(params) = &question.params else { panic!("{question:?}") };
        asked.lock().unwrap().push(params.elicitation_id.clone().expect("an id"));
        ElicitResult::accept_url()
    });
    for _ in 0..2 {
        let (client, mut pair) =
            connect_host(&server, host.clone(), Revision::V2025_11_25, usize::MAX);
        for _ in 0..2 {
            let result = pair.run(client.call_tool("pay", &NoArguments {})).unwrap();
            assert_eq!(text(&result), "paid");
        }
    }
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|id| id.len() == 22 && !id.contains("pay")), "{seen:?}");
    // Each session has its own server, with the same secret.
    assert_eq!(seen[..2], seen[2..]);
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_call_that_is_dropped_is_cancelled_on_the_server() {
    // Rule: [CANC-017] [SSE-011].
    for revision in OVER_HTTP {
        let (client, mut pair) = connect(&server(), revision);
        {
            let mut call = Box::pin(client.call_tool("hang", &NoArguments {}).into_future());
            assert!(pair.poll(call.as_mut()).is_none());
            assert_eq!(pair.transport.pending_handlers(), 1);
        }
        pair.run_until_idle();
        assert_eq!(pair.transport.pending_handlers(), 0, "{revision}: {}", pair.transcript);
        let told = pair.transcript.count("notifications/cancelled");
        assert_eq!(told, usize::from(revision != Revision::V2026_07_28));
    }
}

#[test]
fn a_long_call_does_not_delay_others() {
    // Rule: [HCLI-001].
    for revision in OVER_HTTP {
        let (client, mut pair) = connect(&server(), revision);
        let mut long = Box::pin(client.call_tool("hang", &NoArguments {}).into_future());
        assert!(pair.poll(long.as_mut()).is_none());
        let result = pair.run(client.call_tool("forecast", &oslo())).unwrap();
        assert_eq!(text(&result), "Sunny in Oslo", "{revision}");
    }
}

#[test]
fn changes_reach_a_subscription() {
    for revision in OVER_HTTP {
        let server = server().subscriptions().resource(
            Resource::new("mem://a", "a"),
            |call: Call<ReadResource>| {
                ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "A"))
            },
        );
        let (client, mut pair) = connect(&server, revision);
        let filter = SubscriptionFilter::default().resource_subscriptions(["mem://a".to_owned()]);
        let mut subscription = client.subscribe(filter.clone());
        assert_eq!(pair.run(subscription.honoured()).unwrap(), filter, "{revision}");
        pair.transport.server.handle().resource_updated("mem://a").unwrap();
        let notification = pair.run(subscription.next()).unwrap().unwrap();
        assert_eq!(notification.params.get("uri").unwrap().as_str(), r#""mem://a""#);
    }
}

#[test]
fn a_new_session_replaces_the_one_that_the_server_forgot() {
    // Rule: [SESS-009].
    let opened = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&opened);
    let host = Host::new("host", "1").observe(move |event| {
        if matches!(event, mcp_sansio::peer::Event::Opened(_)) {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    let (client, mut pair) = connect_host(&server(), host, Revision::V2025_11_25, usize::MAX);
    let info = |client: &Client| client.session().unwrap().server_info.clone().unwrap();
    assert!(info(&client).as_str().contains(r#""version":"1""#));
    // The same server, restarted.
    let restarted =
        Server::new("weather", "2").tool("forecast", "Weather", |_: Call<Place>| "Rainy");
    let now = pair.now();
    pair.transport.restart(mount(&restarted), now);
    let result = pair.run(client.call_tool("forecast", &oslo())).unwrap();
    assert_eq!(text(&result), "Rainy", "{}", pair.transcript);
    assert_eq!(opened.load(Ordering::SeqCst), 2);
    assert!(info(&client).as_str().contains(r#""version":"2""#));
}

#[test]
fn closing_notifies_the_server_and_ends_pending_calls() {
    // Rule: [SESS-010].
    for revision in OVER_HTTP {
        let (client, mut pair) = connect(&server(), revision);
        let mut call = Box::pin(client.call_tool("hang", &NoArguments {}).into_future());
        assert!(pair.poll(call.as_mut()).is_none());
        client.close();
        let error = pair.run(call).unwrap_err();
        assert!(matches!(error, ClientError::Failed(_) | ClientError::Closed(_)), "{error}");
        pair.run_until_idle();
        assert_eq!(client.close_reason(), Some(CloseReason::Local));
        assert_eq!(pair.transcript.count("DELETE"), usize::from(revision != Revision::V2026_07_28));
        assert_eq!(pair.transport.server.machine().session_count(), 0);
        let endpoint = pair.transport.client.as_ref().unwrap();
        assert!(endpoint.is_closed() && endpoint.is_drained());
        let error = pair.run(client.call_tool("forecast", &oslo())).unwrap_err();
        assert!(matches!(error, ClientError::Closed(CloseReason::Local)), "{error}");
    }
}

#[test]
fn dropping_the_driver_closes_the_connection() {
    for revision in OVER_HTTP {
        let (client, mut pair) = connect(&server(), revision);
        let mut call = Box::pin(client.call_tool("hang", &NoArguments {}).into_future());
        assert!(pair.poll(call.as_mut()).is_none());
        pair.transport.client = None;
        pair.run(call).unwrap_err();
        assert_eq!(client.close_reason(), Some(CloseReason::Local));
    }
}

#[test]
fn a_connection_without_handles_closes() {
    let (client, mut pair) = connect(&server(), Revision::V2025_11_25);
    drop(client);
    pair.run_until_idle();
    assert!(pair.transport.client.as_ref().unwrap().is_drained(), "{}", pair.transcript);
    assert_eq!(pair.transcript.count("DELETE"), 1);
}

#[test]
fn a_subscription_fails_when_its_notifications_have_no_stream() {
    // Rule: [HCLI-009].
    // Whether the stream ends or is refused, and whether the subscription is made before that.
    for (events, early) in [(true, true), (true, false), (false, true), (false, false)] {
        let (client, endpoint) = Host::new("host", "1")
            .revisions(Revisions::only(Revision::V2025_11_25))
            .connect_http(HttpClientOptions::new(Location::parse(URL).unwrap()), 7, Instant::ZERO);
        let asked = AtomicUsize::new(0);
        let http = Http::new(mount(&server()), endpoint).intercept(move |request| {
            if request.method != "GET" {
                return None;
            }
            let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
            let (status, content, body) = match is_first && events {
                true => (Status::OK, Some(Content::EventStream), "retry: 1000\n\n"),
                false => (Status::METHOD_NOT_ALLOWED, None, ""),
            };
            Some(Response::new(ResponseHead::new(status, content), body.into()))
        });
        let mut pair = Pair::new(http);
        let subscribe = || client.subscribe(SubscriptionFilter::new().tools_list_changed(true));
        pair.run(client.opened()).unwrap();
        let mut before = early.then(subscribe);
        if let Some(before) = &mut before
            && events
        {
            assert_eq!(pair.run(before.honoured()).unwrap().tools_list_changed, Some(true));
        }
        pair.advance(Duration::from_secs(60));
        let mut subscription = before.unwrap_or_else(subscribe);
        let error = pair.run(subscription.next()).unwrap_err();
        assert!(matches!(error, ClientError::Failed(Failure::Transport(_))), "{error}");
        assert!(error.to_string().contains("405"), "{error}");
        assert!(pair.run(subscription.next()).unwrap().is_none());
        pair.run(client.call_tool("forecast", &oslo())).unwrap();
    }
}

#[test]
fn a_server_on_http_keeps_what_its_connections_edit() {
    let connections = Connections::new();
    let edit = || connections.edit_catalog(|_| ());
    let http = mount(&server().connections(&connections));
    assert_eq!(edit(), Ok(()));
    drop(http);
    assert_eq!(edit(), Err(SendError::Closed));
}
