use std::time::Duration;

use mcp_sansio::peer::Failure;
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::endpoint::ClientEndpoint;
use mcp_sansio_handlers::{Client, ClientError, Host, NoArguments};
use mcp_sansio_test::{Pair, Script, Stream};

use crate::{server, text};

const NOW: &str = r#"{"method":"tools/call","params":{"name":"now"}}"#;

/// Connects a client to a scripted server.
fn connect(script: Script, revision: Revision) -> (Client, Pair<Stream<Script, ClientEndpoint>>) {
    let host = Host::new("test", "1.0.0").revisions(Revisions::only(revision));
    let (client, endpoint) = host.connect(7, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    (client, pair)
}

#[test]
fn a_scripted_server_answers_late_refuses_and_closes_at_every_revision() {
    for revision in Revision::ALL {
        let late = r#"{"resultType":"complete","content":[{"type":"text","text":"late"}]}"#;
        let script = Script::server(revision)
            .expect(NOW)
            .wait(Duration::from_secs(3))
            .reply(late)
            .expect(NOW)
            .reply_error(-32603, "broken")
            .expect(NOW)
            .send("noise")
            .close();
        let (client, mut pair) = connect(script, revision);
        let call = || client.call_tool("now", &NoArguments {});
        assert_eq!(text(&pair.run(call()).unwrap()), "late");
        assert_eq!(pair.clock().elapsed(), Duration::from_secs(3));
        assert_eq!(pair.run(call()).unwrap_err().as_refusal().unwrap().code.0, -32603);
        let error = pair.run(call()).unwrap_err();
        assert!(matches!(error, ClientError::Failed(Failure::ConnectionLost)), "{error}");
        pair.transport.server.unwrap().assert_done();
    }
}

#[test]
fn a_scripted_client_calls_a_server_at_every_revision() {
    for revision in Revision::ALL {
        let client = Script::client(revision)
            .request("tools/call", r#"{"name":"now","arguments":{}}"#)
            .expect_result(r#"{"content":[{"type":"text","text":"noon"}]}"#)
            .request("no/such", "{}")
            .expect(r#"{"error":{"code":-32601}}"#)
            .close();
        let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), client));
        pair.run_until_idle();
        pair.transport.client.unwrap().assert_done();
    }
}

#[test]
#[should_panic(expected = r#"the script expects {"method":"tools/call","params":{"name":"now"}}"#)]
fn a_message_other_than_the_expected_one_fails_the_test() {
    let (client, mut pair) =
        connect(Script::server(Revision::LATEST).expect(NOW), Revision::LATEST);
    let _result = pair.run(client.call_tool("wait", &NoArguments {}));
}

#[test]
#[should_panic(expected = "the script does not expect")]
fn a_message_after_the_end_of_the_script_fails_the_test() {
    let (client, mut pair) = connect(Script::server(Revision::LATEST), Revision::LATEST);
    let _result = pair.run(client.call_tool("now", &NoArguments {}));
}

#[test]
#[should_panic(expected = "steps left")]
fn a_script_that_has_not_ended_fails_the_test() {
    Script::new().expect("{}").assert_done();
}

#[test]
fn a_scripted_request_keeps_the_metadata_that_the_test_gives() {
    for revision in Revision::ALL {
        let client = Script::client(revision)
            .request("tools/call", r#"{"name":"now","arguments":{},"_meta":{"progressToken":7}}"#)
            .expect_result(r#"{"content":[{"type":"text","text":"noon"}]}"#)
            .close();
        let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), client));
        pair.run_until_idle();
        pair.transport.client.unwrap().assert_done();
        let lines = pair.transcript.lines();
        assert!(lines.iter().any(|line| line.contains(r#""progressToken":7"#)), "{lines:?}");
    }
}
