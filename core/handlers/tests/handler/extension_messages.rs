//! Notifications of extensions in both directions, and requests of a server's handler to the host.

use std::sync::{Arc, Mutex};

use mcp_sansio::{Revision, Revisions, Side};
use mcp_sansio_handlers::extension::{
    Extension, ExtensionGateError, ExtensionMethod, ExtensionNotification,
};
use mcp_sansio_handlers::{
    Call, Client, ClientError, HandlerError, Host, HostRequest, NoArguments, Server,
};
use mcp_sansio_test::{Pair, Script, Stream, Transport};

use crate::{connect_host, text};

const ID: &str = "com.example/paint";
const STROKE: ExtensionNotification<Stroke> = ExtensionNotification::new(ID, "paint/stroke");
const DRAWN: ExtensionNotification<Stroke> =
    ExtensionNotification::new(ID, "paint/drawn").sent_by(Side::Server);
const COLOUR: ExtensionMethod<Stroke, Colour> =
    ExtensionMethod::new(ID, "paint/colour").sent_by(Side::Server);

/// The legacy revisions at which extensions are declared.
const LEGACY: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
struct Stroke {
    length: u32,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Colour {
    name: String,
}

type Strokes = Arc<Mutex<Vec<u32>>>;

fn keep(strokes: &Strokes) -> impl Fn(Stroke) + Send + Sync + 'static {
    let strokes = Arc::clone(strokes);
    move |stroke| strokes.lock().unwrap().push(stroke.length)
}

/// Returns a server that keeps the strokes that it receives.
fn server(received: &Strokes) -> Server {
    let paint = Extension::new(ID).unwrap().notification(&STROKE, keep(received));
    Server::new("s", "1")
        .extension(paint)
        .tool("draw", "", |call: Call<NoArguments>| {
            for length in 1..=2 {
                call.notify_extension(&DRAWN, &Stroke { length })?;
            }
            Ok::<_, HandlerError>("drawn")
        })
        .tool("ask", "", |call: Call<NoArguments>| {
            let Some(colour) = call.extension_result(&COLOUR, "colour")? else {
                let request = call.extension_request(&COLOUR, &Stroke { length: 3 })?;
                return call.require_input("colour", request).into_result();
            };
            Ok(colour.name)
        })
}

/// Returns a host that keeps the strokes that it receives.
fn host(received: &Strokes) -> Host {
    let paint = Extension::new(ID).unwrap().notification(&DRAWN, keep(received)).request(
        &COLOUR,
        |request: HostRequest<Stroke>| match request.params.length {
            3 => Ok(Colour { name: "blue".into() }),
            _ => Err(HandlerError::invalid_params("no such stroke")),
        },
    );
    Host::new("h", "1").extension(paint)
}

/// Runs a check over a byte stream and over HTTP.
fn on_each_binding(
    server: &Server,
    host: &Host,
    revision: Revision,
    check: impl Fn(&Client, &mut dyn Drive),
) {
    let (client, mut pair) = connect_host(server, host.clone(), revision);
    check(&client, &mut pair);
    #[cfg(feature = "http")]
    {
        let host = host.clone().revisions(Revisions::only(revision));
        let (client, mut pair) = mcp_sansio_test::connect_http(server, &host, None);
        check(&client, &mut pair);
    }
}

trait Drive {
    fn call(&mut self, client: &Client, tool: &str) -> String;
    fn settle(&mut self);
}

impl<T: Transport> Drive for Pair<T> {
    fn call(&mut self, client: &Client, tool: &str) -> String {
        text(&self.run(client.call_tool(tool, &NoArguments {})).unwrap()).to_owned()
    }

    fn settle(&mut self) {
        self.run_until_idle();
    }
}

#[test]
fn a_client_notifies_a_legacy_server() {
    // Rule: [EXT-025].
    for revision in LEGACY {
        let received = Strokes::default();
        on_each_binding(
            &server(&received),
            &host(&Strokes::default()),
            revision,
            |client, pair| {
                received.lock().unwrap().clear();
                for length in [1, 2] {
                    client.notify_extension(&STROKE, &Stroke { length }).unwrap();
                }
                pair.settle();
                assert_eq!(*received.lock().unwrap(), [1, 2], "{revision}");
            },
        );
    }
}

#[test]
fn a_handler_notifies_the_client_of_its_request_at_every_revision_that_declares_extensions() {
    // Rule: [EXT-025].
    for revision in [LEGACY[0], LEGACY[1], Revision::V2026_07_28] {
        let received = Strokes::default();
        on_each_binding(
            &server(&Strokes::default()),
            &host(&received),
            revision,
            |client, pair| {
                received.lock().unwrap().clear();
                assert_eq!(pair.call(client, "draw"), "drawn");
                assert_eq!(*received.lock().unwrap(), [1, 2], "{revision}");
            },
        );
        // A client without the extension gets none.
        let (client, mut pair) =
            connect_host(&server(&Strokes::default()), Host::new("h", "1"), revision);
        let result = pair.run(client.call_tool("draw", &NoArguments {})).unwrap();
        assert!(text(&result).contains("did not declare"), "{result:?}");
        assert_eq!(pair.transcript.count("paint/drawn"), 1, "only in the error");
    }
}

#[test]
fn a_handler_asks_a_legacy_host_with_a_method_of_an_extension() {
    // Rule: [EXT-025].
    let nothing = Strokes::default();
    for revision in LEGACY {
        on_each_binding(&server(&nothing), &host(&nothing), revision, |client, pair| {
            assert_eq!(pair.call(client, "ask"), "blue", "{revision}");
        });
        let (client, mut pair) = connect_host(&server(&nothing), Host::new("h", "1"), revision);
        let result = pair.run(client.call_tool("ask", &NoArguments {})).unwrap();
        assert_eq!(result.is_error, Some(true), "{revision}");
        assert!(!text(&result).is_empty());
    }
    // Modern servers send no requests.
    let (client, mut pair) = connect_host(&server(&nothing), host(&nothing), Revision::V2026_07_28);
    let result = pair.run(client.call_tool("ask", &NoArguments {})).unwrap();
    assert!(text(&result).contains("does not exist at revision"), "{result:?}");
}

#[test]
fn a_notification_is_not_sent_where_it_does_not_exist() {
    // Rule: [EXT-025].
    let nothing = Strokes::default();
    let stroke = Stroke { length: 1 };
    let (client, _pair) = connect_host(&server(&nothing), host(&nothing), Revision::V2026_07_28);
    let sent = client.notify_extension(&STROKE, &stroke);
    let Err(ClientError::Extension(ExtensionGateError::NotAtRevision { .. })) = sent else {
        panic!("{sent:?}")
    };
    let (client, _pair) = connect_host(&server(&nothing), host(&nothing), LEGACY[1]);
    let sent = client.notify_extension(&DRAWN, &stroke);
    let Err(ClientError::Extension(ExtensionGateError::WrongDirection { .. })) = sent else {
        panic!("{sent:?}")
    };
    for (server, host) in
        [(Server::new("s", "1"), host(&nothing)), (server(&nothing), Host::new("h", "1"))]
    {
        let (client, mut pair) = connect_host(&server, host, LEGACY[1]);
        let sent = client.notify_extension(&STROKE, &stroke);
        let Err(ClientError::Extension(ExtensionGateError::NotDeclared { .. })) = sent else {
            panic!("{sent:?}")
        };
        pair.run_until_idle();
        assert_eq!(pair.transcript.count("paint/stroke"), 0);
    }
}

#[test]
fn notifications_of_another_type_or_without_the_extension_are_dropped() {
    // Rule: [EXT-025].
    let received = Strokes::default();
    let note =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","method":"paint/stroke","params":{params}}}"#);
    let script = Script::client(LEGACY[1])
        .send(&note(r#"{"length":"long"}"#))
        .send(&note("{}"))
        .send(&note(r#"{"length":5}"#))
        .request("ping", "{}")
        .expect_result("{}");
    let mut pair = Pair::new(Stream::new(server(&received).endpoint(7).unwrap(), script));
    pair.run_until_idle();
    pair.transport.client.expect("the script").assert_done();
    assert_eq!(*received.lock().unwrap(), [5]);
    // A server that did not declare the extension.
    let received = Strokes::default();
    let note = r#"{"jsonrpc":"2.0","method":"paint/drawn","params":{"length":5}}"#;
    let script = Script::server(LEGACY[1]).send(note);
    let host = host(&received).revisions(Revisions::only(LEGACY[1]));
    let (client, endpoint) = host.connect(7, mcp_sansio::Instant::ZERO);
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    pair.run_until_idle();
    assert!(received.lock().unwrap().is_empty());
}
