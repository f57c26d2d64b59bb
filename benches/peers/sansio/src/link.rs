use benches::{Link, LinkOptions};
use everything::bench;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_tokio::{Client, Host, Server, TokioStream, drive, now, seed};
use serde::Serialize;
use shape::{MemoryReport, Meter, Work};

/// The arguments of the tool as an application type.
#[derive(Serialize)]
struct Echo<'a> {
    text: &'a str,
}

/// The size of a typical socket buffer.
const BUFFER_LENGTH: usize = 256 * 1024;

/// Runs round trips between the bare machines without a runtime.
pub(crate) fn machines(revision: Revision, work: Work, rounds: u64) {
    let mut link = Link::open_at(revision);
    let params = benches::echo_params(work.text().len());
    let meter = Meter::start();
    for _ in 0..rounds {
        match work {
            Work::Ping => link.ping(),
            Work::Echo(_) => link.echo(&params),
        }
    }
    meter.report();
}

/// Runs round trips between a client and a server with handlers as tokio tasks.
pub(crate) async fn endpoints(revision: Revision, work: Work, rounds: u64) {
    let client = open(&bench::server(), &host_at(revision)).await;
    run_rounds(&client, work, rounds).await;
}

fn host_at(revision: Revision) -> Host {
    Host::new("peers", "1.0.0").revisions(Revisions::only(revision))
}

/// Opens a connection from `host` to `server`.
async fn open(server: &Server, host: &Host) -> Client {
    let (near, far) = tokio::io::duplex(BUFFER_LENGTH);
    let endpoint = server.endpoint(seed()).expect("the server is valid");
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(drive(endpoint, TokioStream::new(reader, writer)));
    let (client, endpoint) = host.connect(seed(), now());
    let (reader, writer) = tokio::io::split(near);
    tokio::spawn(drive(endpoint, TokioStream::new(reader, writer)));
    client.opened().await.expect("opens");
    client
}

/// Measures idle machines.
pub(crate) fn idle_machines(revision: Revision, count: usize) {
    // The first pair excludes one-time allocations.
    let options = LinkOptions::at(revision);
    let _first = Link::open(&options);
    let mut pairs = Vec::with_capacity(count);
    let memory_report = MemoryReport::start();
    pairs.extend((0..count).map(|_| Link::open(&options)));
    memory_report.report();
}

/// Measures idle clients and servers with handlers.
pub(crate) async fn idle_endpoints(revision: Revision, count: usize) {
    // The shared parts are created once, and the first pair excludes one-time allocations.
    let (server, host) = (bench::server(), host_at(revision));
    let _first = open(&server, &host).await;
    let mut pairs = Vec::with_capacity(count);
    let memory_report = MemoryReport::start();
    for _ in 0..count {
        pairs.push(open(&server, &host).await);
    }
    // Let the tasks finish their pending work.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    memory_report.report();
}

async fn run_rounds(client: &Client, work: Work, rounds: u64) {
    let text = work.text();
    let meter = Meter::start();
    for _ in 0..rounds {
        match work {
            Work::Ping => drop(client.ping().await.expect("an answer")),
            Work::Echo(_) => {
                let result = client.call_tool("echo", &Echo { text: &text }).await;
                let result = result.expect("an answer");
                assert_eq!(result.content[0].as_text(), Some(&*text));
            }
        }
    }
    meter.report();
}
