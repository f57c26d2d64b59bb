//! This project in the comparison: its `bench-server`, and its clients in the same process.

mod link;

use everything::bench;
use everything::runtime::parse_server;
use mcp_sansio::Revision;
use mcp_sansio_cli::arguments::Arguments;
use shape::{Subject, Task};

fn main() {
    let Subject { variant, task } = Subject::from_args();
    let mut arguments = vec!["--no-tasks".to_owned()];
    match task {
        Task::Link { work, rounds } => {
            return match in_process(&variant) {
                (true, revision) => link::machines(revision, work, rounds),
                (false, revision) => on_tokio(link::endpoints(revision, work, rounds)),
            };
        }
        Task::Pairs(count) => {
            return match in_process(&variant) {
                (true, revision) => link::idle_machines(revision, count),
                (false, revision) => on_tokio(link::idle_endpoints(revision, count)),
            };
        }
        Task::Stdio => arguments.push("--stdio".into()),
        Task::Http { address, redis } => {
            arguments.extend(["--http".into(), address]);
            arguments.extend(redis.into_iter().flat_map(|url| ["--store".into(), url]));
        }
    }
    arguments.extend(["--runtime".into(), variant]);
    let place = parse_server(Arguments::from_iter(arguments)).expect("a valid command line");
    place.serve(bench::server(), "add").expect("serves");
}

/// Returns whether the variant uses the bare machines, and its revision.
fn in_process(variant: &str) -> (bool, Revision) {
    match variant {
        "machines-2025-11-25" => (true, Revision::V2025_11_25),
        "machines-2026-07-28" => (true, Revision::V2026_07_28),
        "tokio-2025-11-25" => (false, Revision::V2025_11_25),
        "tokio-2026-07-28" => (false, Revision::V2026_07_28),
        _ => panic!("unknown variant {variant}"),
    }
}

fn on_tokio(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work);
}
