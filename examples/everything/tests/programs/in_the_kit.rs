//! The everything server in the test kit: without a process, a socket or a runtime.

use everything::runtime::Runtime;
use everything::server;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::Host;
use mcp_sansio_test::{Identity, connect, connect_http};
use serde_json::json;

fn host(revision: Revision) -> Host {
    Host::new("test", "1.0.0").revisions(Revisions::only(revision))
}

#[test]
fn every_revision_and_transport_gets_the_same_answer() {
    let server = server::server(Runtime::Std, true);
    let echo = json!({ "text": "hello" });
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, &host(revision));
        let result = pair.run(client.call_tool("echo", &echo)).unwrap();
        assert_eq!(result.first_text(), Some("hello"), "{revision}");
        if revision == Revision::V2024_11_05 {
            // It has another transport over HTTP.
            continue;
        }
        let (client, mut pair) = connect_http(&server, &host(revision), Identity::new("ann"));
        let result = pair.run(client.call_tool("echo", &echo)).unwrap();
        assert_eq!(result.first_text(), Some("hello"), "{revision} over HTTP");
    }
}

#[test]
fn lists_are_complete_and_the_same_in_each_run() {
    let lists = || {
        let server = server::server(Runtime::Std, true);
        let (client, mut pair) = connect(&server, &host(Revision::LATEST));
        assert!(!pair.run(client.all_tools()).unwrap().is_empty());
        assert!(!pair.run(client.all_resources()).unwrap().is_empty());
        assert!(!pair.run(client.all_resource_templates()).unwrap().is_empty());
        assert!(!pair.run(client.all_prompts()).unwrap().is_empty());
        pair.transcript.to_string()
    };
    assert_eq!(lists(), lists());
}

#[test]
fn all_names_are_valid() {
    for tasks in [true, false] {
        server::server(Runtime::Std, tasks).endpoint(0).unwrap();
    }
    server::with_extensions(server::server(Runtime::Std, true)).endpoint(0).unwrap();
}
