//! Servers on HTTP.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Effort;
use crate::http_connection::Connection;
use crate::messages::{self, STEPS};
use crate::process::Process;
use crate::programs::Program;
use crate::table::{Table, number};

const CONNECTIONS: usize = 16;
const IDLE_SESSIONS: usize = 200;

const PROGRAMS: [Program; 6] = [
    Program::new("this project: tokio", "peer-sansio", "tokio"),
    Program::new("this project: std", "peer-sansio", "std"),
    Program::new("rmcp 3.9.0, as documented", "peer-rmcp", "documented"),
    Program::new("rmcp 3.9.0, router kept", "peer-rmcp", "cached"),
    Program::new("tower-mcp 0.25.0", "peer-tower-mcp", "documented"),
    Program::new("floor: hyper", "peer-floor", "hyper"),
];

pub(crate) fn compare(effort: Effort) {
    let mut table = Table::default();
    for program in PROGRAMS {
        let Some(path) = program.build() else { continue };
        let mut figures = calls(&path, program.variant, effort);
        // The floor sends no notifications before its response.
        if program.package != "peer-floor" {
            figures.push(progress(&path, program.variant, effort));
        }
        figures.push(idle(&path, program.variant));
        table.column(program.title, figures);
    }
    table.print("On HTTP, 2025-11-25");
}

fn calls(path: &Path, variant: &str, effort: Effort) -> Vec<(String, String)> {
    let (process, address) = serve(path, variant);
    let mut connections: Vec<_> = (0..CONNECTIONS).map(|_| Connection::open(address)).collect();
    repeat(&mut connections, effort.time / 5, echo);
    let (start, cpu) = (Instant::now(), process.cpu());
    let calls = repeat(&mut connections, effort.time, echo);
    let (time, cpu) = (start.elapsed(), process.cpu() - cpu);
    vec![
        (format!("echo 64 B, {CONNECTIONS} connections: CPU, µs"), micros_each(cpu, calls)),
        (
            format!("echo 64 B, {CONNECTIONS} connections: a second"),
            number(f64::from(calls) / time.as_secs_f64()),
        ),
    ]
}

fn progress(path: &Path, variant: &str, effort: Effort) -> (String, String) {
    let (process, address) = serve(path, variant);
    let name = format!("{STEPS} notifications: CPU, µs");
    let mut connections = [Connection::open(address)];
    if !reports(&mut connections[0]) {
        return (name, "none come".into());
    }
    repeat(&mut connections, effort.time / 5, report);
    let cpu = process.cpu();
    let calls = repeat(&mut connections, effort.time, report);
    (name, micros_each(process.cpu() - cpu, calls))
}

fn idle(path: &Path, variant: &str) -> (String, String) {
    let (process, address) = serve(path, variant);
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

/// Starts a server.
fn serve(path: &Path, variant: &str) -> (Process, SocketAddr) {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let mut command = Command::new(path);
    command.args([variant, "http", &address.to_string()]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    (Process(command.spawn().expect("the server starts")), address)
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

fn micros_each(cpu: Duration, calls: u32) -> String {
    number(cpu.as_secs_f64() * 1e6 / f64::from(calls))
}
