//! This project in the comparison: its `bench-server`, and its clients in the same process.

mod link;

use mcp_sansio::Revision;
use mcp_sansio_examples::bench;
use mcp_sansio_examples::runtime::{Place, Runtime};
use shape::{Subject, Task};

fn main() {
    let Subject { variant, task } = Subject::of_process();
    let http = match task {
        Task::Link { work, rounds } => {
            return match &*variant {
                "machines-2025-11-25" => link::machines(Revision::V2025_11_25, work, rounds),
                "machines-2026-07-28" => link::machines(Revision::V2026_07_28, work, rounds),
                "tokio-2025-11-25" => link::endpoints(Revision::V2025_11_25, work, rounds),
                "tokio-2026-07-28" => link::endpoints(Revision::V2026_07_28, work, rounds),
                _ => panic!("no variant {variant}"),
            };
        }
        Task::Stdio => None,
        Task::Http(address) => Some(address),
    };
    let runtime = match &*variant {
        "std" => Runtime::Std,
        "tokio" => Runtime::Tokio,
        _ => panic!("no variant {variant}"),
    };
    let place = Place { runtime, http, legacy_sse: false, auth: false, record: None };
    place.serve(bench::server(), "add").expect("serves");
}
