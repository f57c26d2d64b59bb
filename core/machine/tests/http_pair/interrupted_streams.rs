//! Streams that break and are resumed.

use std::collections::BTreeMap;

use mcp_sansio::catalog::Changes;
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{
    CallHandle, CallOptions, ClientMachine, ClientOptions, Event, RequestHandle, ServerMachine,
    ServerOptions,
};
use mcp_sansio::protocol::{
    CallToolResult, CapabilitySettings, Implementation, ServerCapabilities, Tool,
};
use mcp_sansio::{Instant, LoggingLevel, Method, Revision, Revisions};

use crate::cuts::cut_step;
use crate::network::{Application, Cuts, Network};
use crate::played::HttpClient as Client;
use crate::played::HttpServer as Server;

const RESUMING: [Revision; 3] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// Progress notifications of each call.
const STEPS: u32 = 4;

/// The applications: a server whose tool reports progress, and a client that calls it.
#[derive(Default)]
struct Work {
    /// Calls to make once the connection is open.
    calls: usize,
    opened: usize,
    /// Progress and log messages of each call in the order of receipt, and the outcomes of each
    /// call.
    seen: BTreeMap<CallHandle, Vec<String>>,
    ended: BTreeMap<CallHandle, Vec<Result<Json, String>>>,
    list_changes: usize,
    /// Running requests of the server, with their current step.
    working: Vec<(RequestHandle, u32)>,
}

impl Work {
    fn of(calls: usize) -> Self {
        Self { calls, ..Self::default() }
    }

    /// Performs one step of each running request.
    fn advance(&mut self, server: &mut Server, now: Instant) -> bool {
        let working = std::mem::take(&mut self.working);
        let busy = !working.is_empty();
        for (request, step) in working {
            if step < STEPS {
                let step = step + 1;
                server.progress(request, f64::from(step), Some(f64::from(STEPS)), None, now);
                server.log(Some(request), LoggingLevel::Error, None, &step, now).unwrap();
                self.working.push((request, step));
            } else {
                let result = CallToolResult::text("done");
                // The request may have been cancelled.
                let _answered = server.respond(request, &result, now);
            }
        }
        busy
    }
}

impl Application for Work {
    fn on_client(&mut self, event: Event<'_>, client: &mut Client, now: Instant) {
        match event {
            Event::Opened(_) => {
                self.opened += 1;
                for _ in 0..std::mem::take(&mut self.calls) {
                    let params = RawJson::parse(r#"{"name":"work"}"#).unwrap();
                    let options = CallOptions::default().progress().log_level(LoggingLevel::Error);
                    let call = client.call(Method::ToolsCall, &params, &options, now).unwrap();
                    self.seen.insert(call, Vec::new());
                    self.ended.insert(call, Vec::new());
                }
            }
            Event::Progress(progress) => {
                let seen = self.seen.get_mut(&progress.call).unwrap();
                seen.push(format!("{}", progress.progress));
            }
            Event::Notification(notification)
                if notification.method == Method::ToolsListChanged =>
            {
                self.list_changes += 1;
            }
            Event::Ended(ended) => {
                let outcome = ended.outcome.map(Json::from).map_err(|error| error.to_string());
                self.ended.get_mut(&ended.call).unwrap().push(outcome);
            }
            Event::Violation(violation) => panic!("{violation}"),
            Event::DeliveryFailed(failed) => panic!("{failed}"),
            Event::EventStreamLost(failure) => panic!("{failure}"),
            Event::Closed(reason) => panic!("{reason}"),
            _ => {}
        }
    }

    fn on_server(&mut self, event: Event<'_>, _: &mut Server, _: Instant) {
        match event {
            Event::Request(request) => self.working.push((request.handle, 0)),
            Event::Violation(violation) => panic!("{violation}"),
            Event::Cancelled(cancelled) => {
                self.working.retain(|(request, _)| {
                    mcp_sansio::peer::Subject::Request(*request) != cancelled.subject
                });
            }
            _ => {}
        }
    }
}

fn network(revision: Revision, cuts: Cuts) -> Network {
    let mut server = ServerOptions::new(Implementation::new("server", "1"));
    let mut catalog = mcp_sansio::catalog::Catalog::new();
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    catalog.add_tool(Tool::new("work", schema)).unwrap();
    let capabilities = ServerCapabilities::default().logging(CapabilitySettings::default());
    server = server.catalog(catalog).capabilities(capabilities);
    let client = ClientOptions::new(Implementation::new("client", "1"));
    Network::new(client, server, Revisions::only(revision), cuts)
}

/// Runs `calls` calls until they end. The list of tools changes in the meantime.
fn run(revision: Revision, calls: usize, cuts: Cuts) -> (Work, Network) {
    let (mut work, mut network) = (Work::of(calls), network(revision, cuts));
    let mut changed = false;
    loop {
        network.run(&mut work, |network| network.now > Instant::ZERO);
        if !work.advance(&mut network.server, network.now) {
            let over = !work.ended.is_empty() && work.ended.values().all(|ended| !ended.is_empty());
            if over && (changed || revision >= Revision::V2026_07_28) {
                break;
            }
            if over {
                changed = true;
                let changes = Changes::new().tools(true);
                network.server.announce(changes, network.now);
            }
            let before = network.now;
            let settled = |network: &mut Network| network.now > before;
            network.run(&mut work, settled);
        }
    }
    // Everything in transit is delivered, and a client that waits to reconnect does so.
    let end = network.now + std::time::Duration::from_secs(60);
    network.run(&mut work, |network| network.now > end);
    (work, network)
}

fn expect_everything_once(work: &Work, revision: Revision, what: &str) {
    let steps: Vec<String> = (1..=STEPS).map(|step| step.to_string()).collect();
    for (call, seen) in &work.seen {
        assert_eq!(*seen, steps, "{revision} {what}: progress of {call:?}");
        let ended = &work.ended[call];
        assert_eq!(ended.len(), 1, "{revision} {what}: {ended:?}");
        let result = ended[0].as_ref().unwrap_or_else(|e| panic!("{revision} {what}: {e}"));
        assert!(result.as_str().contains("done"), "{revision} {what}");
    }
    assert_eq!(work.list_changes, 1, "{revision} {what}: list changes");
    assert_eq!(work.opened, 1, "{revision} {what}: sessions");
}

#[test]
fn a_stream_that_is_cut_at_any_byte_is_resumed_without_loss() {
    // Rule: [RESUME-004] [RESUME-006] [RESUME-007] [SSE-011].
    let step = cut_step();
    for revision in RESUMING {
        // A regular end in the middle of a stream is how a server makes clients poll.
        let manners: &[bool] =
            if revision == Revision::V2025_11_25 { &[false, true] } else { &[false] };
        for &politely in manners {
            let mut cut = 0;
            loop {
                let cuts = Cuts { after: Some(cut), politely, ..Cuts::default() };
                let (work, network) = run(revision, 2, cuts);
                if network.counts.cuts == 0 {
                    break;
                }
                // Before the first event there is no event id to resume from, so the messages of
                // the stream are lost, and the call fails.
                let what = format!("cut at {cut}, politely: {politely}");
                if network.counts.resumed > 0 || work.ended.values().all(|e| e[0].is_ok()) {
                    expect_everything_once(&work, revision, &what);
                } else {
                    for ended in work.ended.values() {
                        assert_eq!(ended.len(), 1, "{revision} {what}: {ended:?}");
                    }
                }
                cut += step;
            }
            assert!(cut > 500, "{revision}: the streams were only {cut} bytes long");
        }
    }
}

#[test]
fn streams_that_break_repeatedly_are_resumed_without_loss() {
    // Rule: [RESUME-004] [RESUME-006].
    for revision in RESUMING {
        for each in [300, 350, 400, 500, 700] {
            let (work, network) = run(revision, 3, Cuts { each: Some(each), ..Cuts::default() });
            assert!(network.counts.cuts > 1, "{revision}, {each}: {:?}", network.counts);
            expect_everything_once(&work, revision, &format!("a cut every {each} bytes"));
        }
    }
}

#[test]
fn a_modern_stream_that_is_cut_ends_its_call_once_and_cancels_its_request() {
    // Rule: [HCLI-012] [RESUME-008].
    let mut cut = 0;
    loop {
        let cuts = Cuts { after: Some(cut), ..Cuts::default() };
        let (work, network) = run(Revision::V2026_07_28, 2, cuts);
        assert_eq!(network.counts.resumed, 0);
        if network.counts.cuts == 0 {
            break;
        }
        let lost = work.ended.values().filter(|ended| ended[0].is_err()).count();
        assert!(work.ended.values().all(|ended| ended.len() == 1));
        assert!(lost <= 1, "cut at {cut}: {lost} calls are lost with one stream");
        assert!(work.working.is_empty(), "cut at {cut}: a request is still running");
        assert!(network.is_idle());
        cut += cut_step();
    }
    assert!(cut > 500, "the streams were only {cut} bytes long");
}
