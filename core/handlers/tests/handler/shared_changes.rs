//! Changes that the application announces on one of several nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_sansio::http::SharedOptions;
use mcp_sansio::protocol::{Resource, TextResourceContents};
use mcp_sansio_handlers::middleware::ResultCache;
use mcp_sansio_handlers::{Call, ReadResource, Server};
use serde_json::json;

use crate::task_cluster::{ClusterClient, TaskCluster};

/// A node's server with a cache of its own, and the resource that all nodes have.
fn server(version: &Arc<AtomicUsize>) -> Server {
    let version = Arc::clone(version);
    let read = move |call: Call<ReadResource>| {
        let version = version.load(Ordering::SeqCst);
        TextResourceContents::new(call.arguments.uri.clone(), format!("version {version}"))
    };
    Server::new("s", "1")
        .middleware(ResultCache::new(Duration::from_secs(600)))
        .resource(Resource::new("mem://a", "a"), read)
}

#[test]
fn a_client_that_is_told_of_a_change_reads_the_new_value_at_any_node() {
    // Rule: [RSRC-005].
    let version = Arc::new(AtomicUsize::new(1));
    let servers = [server(&version), server(&version)];
    let mut cluster = TaskCluster::of([&servers[0], &servers[1]], &SharedOptions::new());
    let client = cluster.enter(0, None);
    let read = |cluster: &mut TaskCluster, at, client: &ClusterClient| {
        let read = cluster.send(at, client, "resources/read", json!({ "uri": "mem://a" }));
        let read = cluster.read(read).only();
        read["result"]["contents"][0]["text"].as_str().expect("a text").to_owned()
    };
    for at in [0, 1, 0, 1] {
        assert_eq!(read(&mut cluster, at, &client), "version 1");
    }
    version.store(2, Ordering::SeqCst);
    for at in [0, 1] {
        assert_eq!(read(&mut cluster, at, &client), "version 1", "it is kept");
    }
    for told_at in [0, 1] {
        version.fetch_add(1, Ordering::SeqCst);
        cluster.handle(told_at).resource_updated("mem://a").expect("the node runs");
        cluster.settle();
        let new = format!("version {}", version.load(Ordering::SeqCst));
        for at in [0, 1] {
            assert_eq!(read(&mut cluster, at, &client), new, "at {at} if told at {told_at}");
        }
    }
}
