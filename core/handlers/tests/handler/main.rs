//! Servers and clients written as handlers, connected to each other in memory.

#![cfg(feature = "schemars")]

#[cfg(feature = "http")]
mod authorization;
#[cfg(feature = "http")]
mod authorization_store;
#[cfg(feature = "http")]
mod bindings;
mod calls;
mod catalog_edit;
mod client_middleware;
mod client_tasks;
#[cfg(feature = "http")]
#[path = "../../../machine/tests/http_cluster/store.rs"]
#[allow(dead_code, reason = "these tests do not look at sessions")]
mod cluster_store;
mod completions;
mod connection;
mod connections;
#[cfg(feature = "http")]
mod debug_output;
#[cfg(feature = "http")]
mod driven;
mod dropped_futures;
#[cfg(feature = "http")]
mod duplicate_members;
#[cfg(feature = "http")]
mod duplicates;
#[cfg(feature = "http")]
mod duplicates_host;
#[cfg(feature = "http")]
mod durations;
#[cfg(feature = "http")]
mod endpoints;
mod errors;
#[cfg(feature = "http")]
mod expiry;
mod extension_messages;
mod extensions;
#[path = "../../../machine/tests/schema/facts.rs"]
mod facts;
mod followed_tasks;
#[cfg(feature = "http")]
mod guarded;
#[cfg(feature = "http")]
mod header_fields;
#[cfg(feature = "http")]
mod http_client;
mod legacy_task_client;
mod legacy_tasks;
#[cfg(feature = "http")]
mod legacy_tasks_http;
mod legacy_tasks_input;
mod legacy_tasks_limits;
mod mailbox_limits;
#[cfg(feature = "http")]
mod message_middleware;
mod middleware;
mod middleware_changes;
mod middleware_limits;
#[cfg(feature = "http")]
mod middleware_lists;
#[cfg(feature = "http")]
mod middleware_notifications;
mod omitted_elements;
mod panics;
#[cfg(feature = "http")]
mod protected_server;
#[cfg(feature = "http")]
mod protection;
mod questions;
#[cfg(feature = "http")]
mod refused_heads;
mod respawn;
mod response_cache;
mod scheduling;
mod schemas;
mod sealing;
mod server;
mod server_items;
mod servers;
mod servers_config;
#[cfg(feature = "http")]
mod session_items;
#[cfg(feature = "http")]
#[cfg(feature = "http")]
#[cfg(feature = "http")]
mod shared_legacy_tasks;
#[cfg(feature = "http")]
mod shared_proofs;
#[cfg(feature = "http")]
mod shared_tasks;
#[cfg(feature = "http")]
mod shares;
#[cfg(feature = "http")]
#[path = "../../../machine/tests/schema/spec.rs"]
#[allow(dead_code, reason = "these tests only list the members of a schema and validate nothing")]
mod spec;
mod state;
mod subscriptions;
mod task_client;
#[cfg(feature = "http")]
mod task_cluster;
mod tasks;
#[cfg(feature = "http")]
mod tasks_http;
mod tasks_input;
mod tasks_limits;
#[path = "../../../machine/tests/schema/validators.rs"]
mod validators;
#[cfg(feature = "http")]
mod visibility;

use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Client, Host, Server};
use mcp_sansio_test::StreamPair;

/// Arguments of a handler.
#[derive(Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Place {
    /// City name or postal code.
    location: String,
}

type Both<K = mcp_sansio_handlers::ThreadSafe> = (Client, StreamPair<K>);

/// Connects a host to a server at one revision.
fn connect_host<K: Threading>(server: &Server<K>, host: Host, revision: Revision) -> Both<K> {
    let host = host.revisions(Revisions::only(revision));
    let (client, pair) = mcp_sansio_test::connect(server, &host);
    assert_eq!(client.session().unwrap().revision, revision);
    (client, pair)
}

fn connect<K: Threading>(server: &Server<K>, revision: Revision) -> Both<K> {
    connect_host(server, Host::new("host", "1"), revision)
}

/// Returns the text of a tool result.
fn text(result: &CallToolResult) -> &str {
    result.content.iter().find_map(|block| block.as_text()).unwrap_or_default()
}

/// Revisions whose lists differ: without metadata, with it, and with cache hints.
#[cfg(feature = "http")]
const LEGACY_AND_MODERN: [Revision; 3] =
    [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28];

/// The revisions with elicitation, each of which does it differently.
const ASKING: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];
