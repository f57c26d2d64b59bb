//! Random schedules of failures.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, Tally};
use crate::cluster::{Cluster, Outgoing};
use crate::handlers::TTL;

/// Counts of schedules.
#[derive(Clone, Debug, Default)]
struct Report {
    tally: Tally,
    /// Tasks whose end was lost and that ended otherwise.
    again: u32,
    probes: u32,
    kills: u32,
    pauses: u32,
    cuts: u32,
    outages: u32,
    emptied: u32,
    failovers: u32,
}

impl Report {
    fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.again += other.again;
        self.probes += other.probes;
        self.kills += other.kills;
        self.pauses += other.pauses;
        self.cuts += other.cuts;
        self.outages += other.outages;
        self.emptied += other.emptied;
        self.failovers += other.failovers;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faults {
    None,
    /// Only nodes fail.
    Nodes,
    All,
}

/// How long failures happen.
const FAILING: Duration = Duration::from_secs(60);
/// The bound for every task to end after that: a node that lives finds within the age of a write
/// that the store has lost it.
const LONGEST: Duration = Duration::from_secs(600);
/// How long after the failures each node knows what the others do.
const RECOVERY: Duration = Duration::from_secs(200);
const CALLS: u32 = 6;

/// Runs a schedule.
fn run(seed: u64, faults: Faults) -> Report {
    let mut cluster = Cluster::new(2 + seed as usize % 4, seed);
    let principals =
        [(Some("ann"), false), (Some("bob"), true), (None, false), (Some("ann"), true)];
    let client = |(number, (principal, legacy))| Client::new(number, principal, legacy, CALLS);
    let mut clients: Vec<Client> = principals.into_iter().enumerate().map(client).collect();
    let mut report = Report::default();
    for number in 0..clients.len() {
        let pause = cluster.random.millis(200);
        cluster.wake_client(number, pause);
    }
    let failing_until = cluster.now + FAILING;
    let end = failing_until + LONGEST;
    let mut probes = Vec::new();
    let mut settled = false;
    loop {
        if clients.iter().all(Client::is_done) {
            if settled || faults == Faults::None {
                break;
            }
            // When everything has recovered, all nodes agree.
            while cluster.step(failing_until + RECOVERY) {}
            settled = true;
            cluster.ends.settle();
            clients.iter_mut().for_each(|client| client.look_again(&mut cluster));
        }
        if faults != Faults::None && cluster.now < failing_until && cluster.random.once_in(80) {
            fail(&mut cluster, faults, &mut report);
        }
        if cluster.random.once_in(40)
            && let Some(probe) = probe(&mut cluster, &clients)
        {
            probes.push(probe);
        }
        let more = cluster.step(end);
        let mut woken = core::mem::take(&mut cluster.woken);
        woken.dedup();
        for number in woken {
            if let Some(client) = clients.get_mut(number) {
                client.wake(&mut cluster);
            }
        }
        assert!(more && cluster.now < end, "seed {seed}: {clients:?}");
    }
    for client in &clients {
        assert_eq!(client.tally.sum(), CALLS, "seed {seed}: each call ends once: {client:?}");
        report.tally.add(&client.tally);
    }
    for probe in probes {
        if let Some(answer) = cluster.replies[probe].answer(1) {
            let error = &answer["error"];
            let unknown = error["message"] == "unknown task" || error["code"] == -32603;
            assert!(unknown, "seed {seed}: another principal got {answer}");
            report.probes += u32::from(error["message"] == "unknown task");
        }
    }
    report.again = cluster.ends.again;
    // Nothing is left when the tasks have expired. It takes long.
    if seed.is_multiple_of(4) {
        let end = cluster.now + TTL + Duration::from_secs(60);
        while cluster.step(end) {}
        assert_eq!(cluster.running(), 0, "seed {seed}: running handlers");
        assert_eq!(cluster.store.task_count(cluster.now), 0, "seed {seed}: tasks in the store");
    }
    report
}

/// Another client asks for a task. Returns the reply.
fn probe(cluster: &mut Cluster, clients: &[Client]) -> Option<usize> {
    let owner = cluster.random.pick(clients)?;
    let (task, at) = (owner.task()?.to_owned(), cluster.any_node()?);
    let others = [Some("ann"), Some("bob"), Some("eve"), None];
    let principal = cluster.random.one_of(others);
    if principal == owner.principal {
        return None;
    }
    let method = cluster.random.one_of(["tasks/get", "tasks/cancel", "tasks/update"]);
    let params: Value = json!({ "taskId": task, "inputResponses": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "p", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": { "io.modelcontextprotocol/tasks": {} } } } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let (method, name) = (Some(method), Some(task));
    let request = Outgoing { session: None, method, name, body, principal };
    Some(cluster.request(at, usize::MAX, request))
}

/// Causes a failure.
fn fail(cluster: &mut Cluster, faults: Faults, report: &mut Report) {
    let at = cluster.random.index(cluster.nodes.len());
    let long = cluster.random.once_in(3);
    let pause = cluster.random.millis(if long { 40_000 } else { 3000 });
    let kind = cluster.random.below(if faults == Faults::Nodes { 5 } else { 10 });
    match kind {
        0..=2 => {
            report.kills += 1;
            cluster.kill(at, pause);
        }
        3 | 4 => {
            report.pauses += 1;
            cluster.nodes[at].paused_until = cluster.now + pause;
        }
        5 | 6 => {
            report.cuts += 1;
            cluster.nodes[at].cut_until = cluster.now + pause;
        }
        7 => {
            report.outages += 1;
            cluster.store_down_until = cluster.now + pause;
        }
        8 if cluster.random.once_in(2) => {
            report.emptied += 1;
            cluster.empty_store();
        }
        _ => {
            report.failovers += 1;
            let delay = cluster.random.millis(2000).min(Duration::from_millis(999));
            cluster.fail_over(delay);
            cluster.store_down_until = cluster.now + pause / 10;
        }
    }
}

fn run_all(first: u64, count: u64, faults: Faults) -> Report {
    let mut sum = Report::default();
    for seed in first..first + count {
        let _named = Named(seed);
        let report = run(seed, faults);
        // A store that works loses nothing.
        let lost = (report.tally.lost, report.again);
        assert!(faults != Faults::Nodes || lost == (0, 0), "{report:?}");
        sum.add(&report);
    }
    sum
}

/// Prints the seed of a schedule that fails.
struct Named(u64);

impl Drop for Named {
    #[allow(clippy::print_stderr, reason = "a failure has to name its schedule")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the schedule of seed {}", self.0);
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn without_failures_every_task_ends_as_its_handler_did() {
    // Rule: [TASK-013] [TASK-030] [TASK-035] [TASK-041].
    let Report { tally, again, probes, .. } = run_all(0, 20, Faults::None);
    let Tally { completed, cancelled, failed, lost, calls } = tally;
    assert_eq!(completed + cancelled, 20 * 4 * CALLS, "{tally:?}");
    assert_eq!((failed, lost, calls, again), (0, 0, 0, 0));
    assert!(cancelled > 0 && probes > 0);
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures of a long run")]
fn any_schedule_of_failures_ends_each_task_once() {
    // Rule: [TASK-009] [TASK-035] [TASK-041].
    let count = setting("MCP_SIM_SCHEDULES", 40);
    let first = setting("MCP_SIM_FIRST", 0);
    for faults in [Faults::Nodes, Faults::All] {
        let sum = run_all(first, count / 2, faults);
        if count >= 1000 {
            println!("{faults:?} {sum:#?}");
        }
        let Report { tally, probes, kills, pauses, .. } = &sum;
        let Tally { completed, cancelled, failed, calls, .. } = *tally;
        for happened in [completed, cancelled, failed, calls, *probes, *kills, *pauses] {
            assert!(happened > 0, "{sum:?}");
        }
    }
}

#[test]
fn a_schedule_is_the_same_for_its_seed() {
    let seed = setting("MCP_SIM_FIRST", 7);
    let texts = [(); 2].map(|()| format!("{:?}", run(seed, Faults::All)));
    assert_eq!(texts[0], texts[1]);
}
