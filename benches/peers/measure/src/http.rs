//! Servers on HTTP.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Effort;
use crate::http_connection::{Connection, connect};
use crate::messages::{self, STEPS};
use crate::process::Process;
use crate::programs::{Program, TYPESCRIPT};
use crate::table::{Table, number, spread};

const CONNECTIONS: usize = 16;
// Each takes two connections, and a server has a limit for those of one client.
const IDLE_SESSIONS: usize = 50;

/// How often the calls are measured.
const SERIES: u32 = 5;

const PROGRAMS: [Program; 6] = [
    Program::new("this project: tokio", "peer-sansio", "tokio"),
    Program::new("this project: std", "peer-sansio", "std"),
    Program::new("rmcp 3.11.0, as documented", "peer-rmcp", "documented"),
    Program::new("rmcp 3.11.0, router kept", "peer-rmcp", "cached"),
    Program::new("tower-mcp 0.25.0", "peer-tower-mcp", "documented"),
    Program::new("floor: hyper", "peer-floor", "hyper"),
];

/// Programs with and without a store of sessions and events. rmcp and the TypeScript SDK bring no store
/// that several processes can share, so theirs are in memory.
const STORING: [(Program, bool); 6] = [
    (Program::new("this project", "peer-sansio", "tokio"), false),
    (Program::new("with Redis", "peer-sansio", "tokio"), true),
    (Program::new("rmcp 3.11.0", "peer-rmcp", "cached"), false),
    (Program::new("with stores in memory", "peer-rmcp", "stored"), false),
    (Program::new("TypeScript SDK 2.4.0", TYPESCRIPT, "documented"), false),
    (Program::new("with an event store in memory", TYPESCRIPT, "stored"), false),
];

/// Compares the cost of stores.
pub(crate) fn compare_stores(effort: Effort) {
    let mut table = Table::default();
    for (program, with_redis) in STORING {
        let Some(path) = program.build() else { continue };
        let redis = with_redis.then(Redis::start);
        let server = Server { path: &path, variant: program.variant, redis: redis.as_ref() };
        let mut figures = server.calls(effort);
        figures.extend(server.progress(effort));
        table.column(program.title, figures);
    }
    table.print("On HTTP with a store, 2025-11-25");
}

/// Compares the servers.
pub(crate) fn compare(effort: Effort) {
    let mut table = Table::default();
    for program in PROGRAMS {
        let Some(path) = program.build() else { continue };
        let server = Server { path: &path, variant: program.variant, redis: None };
        let mut figures = server.calls(effort);
        // The floor sends no notifications before its response.
        if program.package != "peer-floor" {
            figures.extend(server.progress(effort));
        }
        figures.push(server.idle());
        table.column(program.title, figures);
    }
    table.print("On HTTP, 2025-11-25");
}

/// A server to start.
#[derive(Clone, Copy, Debug)]
struct Server<'a> {
    path: &'a Path,
    variant: &'a str,
    /// The store that it uses.
    redis: Option<&'a Redis>,
}

impl Server<'_> {
    fn calls(self, effort: Effort) -> Vec<(String, String)> {
        let (process, address) = self.start();
        let mut connections: Vec<_> = (0..CONNECTIONS).map(|_| Connection::open(address)).collect();
        let part = effort.time / SERIES;
        repeat(&mut connections, part, echo);
        let (mut costs, mut rates) = (Vec::new(), Vec::new());
        for _ in 0..SERIES {
            let (start, cpu) = (Instant::now(), process.cpu());
            let calls = repeat(&mut connections, part, echo);
            costs.push(micros_each(process.cpu() - cpu, calls));
            rates.push(f64::from(calls) / start.elapsed().as_secs_f64());
        }
        vec![
            (format!("echo 64 B, {CONNECTIONS} connections: CPU, µs"), spread(costs)),
            (format!("echo 64 B, {CONNECTIONS} connections: a second"), spread(rates)),
        ]
    }

    fn progress(self, effort: Effort) -> Vec<(String, String)> {
        let (process, address) = self.start();
        let name = format!("{STEPS} notifications: CPU, µs");
        let mut connections = [Connection::open(address)];
        if !reports(&mut connections[0]) {
            return vec![(name, "none come".into())];
        }
        repeat(&mut connections, effort.time / 5, report);
        let stored = || self.redis.map(|redis| redis.0.cpu());
        let (start, cpu, stored_before) = (Instant::now(), process.cpu(), stored());
        let calls = repeat(&mut connections, effort.time, report);
        let (time, cpu) = (start.elapsed(), process.cpu() - cpu);
        let mut figures = vec![
            (name, number(micros_each(cpu, calls))),
            (
                format!("{STEPS} notifications: calls a second"),
                number(f64::from(calls) / time.as_secs_f64()),
            ),
        ];
        if let (Some(before), Some(after)) = (stored_before, stored()) {
            let name = format!("{STEPS} notifications: CPU of Redis, µs");
            figures.push((name, number(micros_each(after - before, calls))));
        }
        figures
    }

    fn idle(self) -> (String, String) {
        let (process, address) = self.start();
        let open = |sessions: usize| -> Vec<_> {
            (0..sessions).map(|_| Connection::open(address).listen(address)).collect()
        };
        // The first sessions exclude one-time allocations.
        let _first = open(IDLE_SESSIONS / 10);
        let before = process.resident();
        let _others = open(IDLE_SESSIONS);
        let each = (process.resident() - before) / IDLE_SESSIONS as f64;
        ("idle session with a stream: resident, KiB".into(), number(each / 1024.0))
    }

    fn start(self) -> (Process, SocketAddr) {
        let address = free_address();
        let mut command = Command::new(self.path);
        command.args([self.variant, "http", &address.to_string()]);
        command.args(self.redis.map(Redis::url));
        (start(&mut command), address)
    }
}

/// A Redis that stores nothing on disk.
#[derive(Debug)]
struct Redis(Process, SocketAddr);

impl Redis {
    fn start() -> Self {
        let address = free_address();
        let port = address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"]);
        let redis = Self(start(&mut command), address);
        // This project's server does not start without it.
        drop(connect(address));
        redis
    }

    fn url(&self) -> String {
        format!("redis://{}", self.1)
    }
}

/// Returns an address that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

/// Starts a process without its standard streams.
fn start(command: &mut Command) -> Process {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().expect("the program is installed"))
}

/// Calls repeatedly for `time` on all connections, with one call at a time on each. Returns the
/// number of calls.
fn repeat(connections: &mut [Connection], time: Duration, call: fn(&mut Connection)) -> u32 {
    let start = Instant::now();
    thread::scope(|scope| {
        let work = move |connection: &mut Connection| {
            let mut calls = 0;
            while start.elapsed() < time {
                call(connection);
                calls += 1;
            }
            calls
        };
        let threads: Vec<_> = connections
            .iter_mut()
            .map(|connection| scope.spawn(move || work(connection)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("every response is correct")).sum()
    })
}

fn echo(connection: &mut Connection) {
    let id = take_id(connection);
    let answer = connection.call(&messages::echo(id));
    messages::check_echo(&answer, id);
}

fn report(connection: &mut Connection) {
    assert!(reports(connection), "some notifications are missing");
}

/// Calls `progress`. Returns whether the response came with all notifications.
fn reports(connection: &mut Connection) -> bool {
    let id = take_id(connection);
    messages::steps(&connection.call(&messages::progress(id))) == STEPS
}

fn take_id(connection: &mut Connection) -> u64 {
    connection.next_id += 1;
    connection.next_id - 1
}

fn micros_each(cpu: Duration, calls: u32) -> f64 {
    cpu.as_secs_f64() * 1e6 / f64::from(calls)
}
