//! Scenarios that are counted on every change, and compared with `benches/budgets.tsv`.

use core::num::NonZeroUsize;
use std::fmt;
use std::hint::black_box;

use mcp_sansio::Revision;
use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::framing::SseDecoder;
use mcp_sansio::jsonrpc::{RawJson, parse};
use mcp_sansio::peer::Limits;

use crate::{
    Echo, Endpoints, HttpCalls, HttpHarness, HttpLink, Link, LinkOptions, REVISIONS, echo_params,
    sse, tools,
};

/// Repeated work.
pub struct Scenario {
    /// The name in the file of budgets.
    pub name: String,
    /// Operations per run of the work: the counts are per operation.
    pub operations: u32,
    /// Number of runs before counting, and while counting.
    pub runs: u32,
    /// Creates the work, including its prerequisites.
    pub make: Make,
}

/// Creates a function to run repeatedly.
pub type Make = Box<dyn Fn() -> Box<dyn FnMut()>>;

/// An object that is opened once, and then idle.
pub struct Opening {
    /// The name in the file of budgets.
    pub name: String,
    /// Opens the object. The heap it retains is counted until the result is dropped.
    pub open: Box<dyn Fn() -> Box<dyn fmt::Debug>>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("name", &self.name).finish_non_exhaustive()
    }
}

const SHORT: usize = 64;
const LONG: usize = 64 * 1024;

/// Returns all scenarios, in the order of the file.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    #[cfg(feature = "telemetry")]
    return crate::telemetry::scenarios();
    #[cfg(not(feature = "telemetry"))]
    scenarios_without_telemetry()
}

#[cfg_attr(feature = "telemetry", expect(dead_code, reason = "counted without this feature"))]
fn scenarios_without_telemetry() -> Vec<Scenario> {
    let mut all = messages();
    all.extend(REVISIONS.into_iter().filter(|it| *it < Revision::V2026_07_28).map(ping));
    all.extend(REVISIONS.map(|revision| echo(revision, "64 B", SHORT)));
    all.extend(
        [16, 256]
            .into_iter()
            .flat_map(|count| REVISIONS.map(|revision| echo_at_once(revision, count))),
    );
    all.extend(REVISIONS[1..].iter().map(|revision| echo(*revision, "64 KiB", LONG)));
    all.extend(REVISIONS.map(echo_with_handlers));
    all.extend(REVISIONS[1..].iter().map(|revision| progress(*revision)));
    all.extend(REVISIONS[1..].iter().map(|revision| page(*revision)));
    all.extend(events());
    all.extend(REVISIONS[1..].iter().map(|revision| exchange(*revision)));
    all.push(replay());
    all.extend(REVISIONS[1..].iter().map(|revision| call_at_server(*revision)));
    all.extend(REVISIONS[1..].iter().map(|revision| read_at_server(*revision)));
    all
}

/// Returns all openings, in the order of the file.
#[must_use]
pub fn openings() -> Vec<Opening> {
    if cfg!(feature = "telemetry") {
        return Vec::new();
    }
    // Shared by all pairs.
    let options = Opening {
        name: "options of all pairs of machines".into(),
        open: Box::new(|| Box::new(LinkOptions::at(Revision::LATEST))),
    };
    let machines = REVISIONS.map(|revision| {
        let options = LinkOptions::at(revision);
        Opening {
            name: format!("idle pair of machines, {revision}"),
            open: Box::new(move || Box::new(Link::open(&options))),
        }
    });
    let handlers = REVISIONS.map(|revision| Opening {
        name: format!("idle pair with handlers, {revision}"),
        open: Box::new(move || Box::new(Endpoints::open_at(revision))),
    });
    let web = [REVISIONS[1], REVISIONS[2]].map(|revision| Opening {
        name: format!("idle pair over HTTP, {revision}"),
        open: Box::new(move || Box::new(HttpLink::open_at(revision))),
    });
    [options].into_iter().chain(machines).chain(handlers).chain(web).collect()
}

pub(crate) fn scenario<W: FnMut() + 'static>(
    name: impl Into<String>,
    operations: u32,
    runs: u32,
    make: impl Fn() -> W + 'static,
) -> Scenario {
    let make: Make = Box::new(move || Box::new(make()));
    Scenario { name: name.into(), operations, runs, make }
}

fn messages() -> Vec<Scenario> {
    let inputs = [
        ("parse a ping", crate::ping()),
        ("parse a call of 64 B", crate::echo(SHORT)),
        ("parse a call of 64 KiB", crate::echo(LONG)),
        ("parse a list of 20 tools", crate::tool_list(20)),
    ];
    let of = |(name, text): (&str, String)| {
        scenario(name, 1, 100, move || {
            let text = text.clone();
            move || {
                black_box(parse(black_box(text.as_bytes()), ParseLimits::default()).is_ok());
            }
        })
    };
    inputs.into_iter().map(of).collect()
}

fn ping(revision: Revision) -> Scenario {
    scenario(format!("ping, {revision}"), 1, 100, move || {
        let mut link = Link::open_at(revision);
        move || link.ping()
    })
}

fn echo(revision: Revision, length: &str, bytes: usize) -> Scenario {
    scenario(format!("echo {length}, {revision}"), 1, 100, move || {
        let (mut link, params) = (Link::open_at(revision), echo_params(bytes));
        move || link.echo(&params)
    })
}

fn echo_at_once(revision: Revision, count: u32) -> Scenario {
    scenario(format!("echo 64 B, {count} in flight, {revision}"), count, 20, move || {
        let (mut link, params) = (Link::open_at(revision), echo_params(SHORT));
        move || link.echo_at_once(&params, count)
    })
}

fn echo_with_handlers(revision: Revision) -> Scenario {
    scenario(format!("echo 64 B with handlers, {revision}"), 1, 100, move || {
        let (mut endpoints, echo) = (Endpoints::open_at(revision), Echo::new(SHORT));
        move || endpoints.echo(&echo)
    })
}

fn progress(revision: Revision) -> Scenario {
    scenario(format!("echo with 100 notifications of progress, {revision}"), 1, 20, move || {
        let (mut link, params) = (Link::open_at(revision), echo_params(SHORT));
        move || link.echo_with_progress(&params, 100)
    })
}

fn page(revision: Revision) -> Scenario {
    scenario(format!("tools/list, 100 of 10,000, {revision}"), 1, 20, move || {
        let page = NonZeroUsize::new(100).expect("not zero");
        let catalog = tools::catalog(10_000, page);
        let mut link = Link::open_with(revision, catalog, Limits::DEFAULT);
        let mut params = RawJson::EMPTY_OBJECT;
        // Advance into the list.
        for _ in 0..3 {
            let asked = params.clone();
            link.list_tools(&asked, &mut |result| {
                params = tools::next_page(result).expect("not the last page");
            });
        }
        move || link.list_tools(&params, &mut |_| {})
    })
}

fn events() -> Vec<Scenario> {
    const EVENTS: u32 = 1000;
    let decode = |name: &str, operations: u32, length: usize| {
        scenario(name, operations, 5, move || {
            let stream = sse::stream(operations as usize, length, false);
            let mut decoder = SseDecoder::growing(sse::EVENT_MAX);
            move || assert_eq!(sse::decode(&mut decoder, &stream), operations as usize)
        })
    };
    let encode = |name: &str, operations: u32, length: usize| {
        scenario(name, operations, 5, move || {
            let (mut out, data) = (Vec::new(), crate::echo(length));
            move || {
                out.clear();
                sse::encode(&mut out, operations as usize, data.as_bytes(), true);
                black_box(&out);
            }
        })
    };
    vec![
        decode("read an event of 100 B", EVENTS, 100),
        decode("read an event of 4 MiB in reads of 16 KiB", 1, 4 * 1024 * 1024),
        encode("write an event of 64 B, named", EVENTS, SHORT),
        encode("write an event of 4 MiB, named", 1, 4 * 1024 * 1024),
    ]
}

fn exchange(revision: Revision) -> Scenario {
    scenario(format!("echo 64 B over HTTP, {revision}"), 1, 100, move || {
        let (mut web, params) = (HttpLink::open_at(revision), echo_params(SHORT));
        move || web.echo(&params)
    })
}

/// The part of a call at a server that needs no lock, except for the handler itself.
fn read_at_server(revision: Revision) -> Scenario {
    scenario(format!("read a call of 64 B at a server on HTTP, {revision}"), 1, 100, move || {
        let calls = HttpCalls::open(revision, SHORT);
        move || calls.read()
    })
}

/// The work of a server for a call.
fn call_at_server(revision: Revision) -> Scenario {
    scenario(format!("echo 64 B at a server on HTTP, {revision}"), 1, 100, move || {
        let mut calls = HttpCalls::open(revision, SHORT);
        move || calls.call()
    })
}

/// The number of events that a resuming client has missed.
pub const MISSED: usize = 200;

/// Returns a server whose session has missed [`MISSED`] events, the session id, and the id of the
/// last event received.
///
/// # Panics
///
/// If the stream has no event ids.
#[must_use]
pub fn missed() -> (HttpHarness, String, String) {
    const URI: &str = "file:///resource";
    let mut harness = HttpHarness::new();
    let session = harness.session();
    harness.subscribe(&session, URI, true);
    let listening = harness.listen(&session, None);
    let last = listening.last_id.clone().expect("a stream begins with an id");
    harness.disconnect(&listening);
    for _ in 0..MISSED {
        harness.resource_updated(URI);
    }
    (harness, session, last)
}

fn replay() -> Scenario {
    scenario(format!("a client comes back for {MISSED} events"), 1, 20, || {
        let (mut harness, session, last) = missed();
        move || {
            let listening = harness.listen(&session, Some(&last));
            assert!(listening.length > MISSED * 100, "they come");
            harness.disconnect(&listening);
        }
    })
}
