//! A client that starts its server as a child process.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(clippy::print_stdout, reason = "figures shown with --no-capture")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adapter_tests::{Pinger, ping};
use mcp_sansio_tokio::adapter::child::GracePeriods;
use mcp_sansio_tokio::{ChildServer, Stderr, drive};
use tokio::process::Command;

const SERVER: &str = env!("CARGO_BIN_EXE_adapter-tests");

/// More than an event takes on a machine with many other processes; `sleep` in a script is longer.
const LOADED_MACHINE: Duration = Duration::from_secs(60);

/// Returns a server that answers pings.
fn pinged() -> std::process::Command {
    let mut command = std::process::Command::new(SERVER);
    command.arg("tokio");
    command
}

/// Returns a shell that acts as the server.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Returns grace periods within which every server that ends properly does so.
fn long_grace_periods() -> GracePeriods {
    let mut grace_periods = GracePeriods::default();
    (grace_periods.end_of_input, grace_periods.terminate) = (LOADED_MACHINE, LOADED_MACHINE);
    grace_periods
}

fn short_grace_periods() -> GracePeriods {
    let mut grace_periods = GracePeriods::default();
    (grace_periods.end_of_input, grace_periods.terminate) =
        (Duration::from_millis(100), Duration::from_millis(100));
    grace_periods
}

fn is_running(id: u32) -> bool {
    // A zombie that has not been reaped yet is not running.
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn gone(id: u32) {
    let start = Instant::now();
    while is_running(id) {
        assert!(start.elapsed() < LOADED_MACHINE, "still running");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_server_is_started_talked_to_and_exits_when_its_input_ends() {
    // Rule: [STDIO-007] [STDIO-016].
    const COUNT: usize = 100_000;
    let (child, stream) = ChildServer::spawn(pinged()).unwrap();
    let output: String = (0..COUNT).map(ping).collect();
    let mut driver = drive(Pinger::new(output.into_bytes(), COUNT), stream);
    let start = Instant::now();
    (&mut driver).await.unwrap();
    println!("{:.0} pings per second", COUNT as f64 / start.elapsed().as_secs_f64());
    assert_eq!(driver.endpoint().received, COUNT);
    let report = child.shutdown(long_grace_periods()).await.unwrap();
    assert!(report.status.success() && !report.forced);
    assert_eq!(report.to_string(), "the server exited: exit status: 0");
}

#[tokio::test]
async fn shutdown_closes_the_input_while_the_stream_is_driven() {
    // Rule: [STDIO-015] [STDIO-016].
    let (child, stream) = ChildServer::spawn(pinged()).unwrap();
    let driving = tokio::spawn(drive(Pinger::new(ping(1).into_bytes(), 2), stream));
    let report = child.shutdown(long_grace_periods()).await.unwrap();
    assert!(report.status.success() && !report.forced);
    driving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_ignores_eof_and_signals_is_killed_with_its_process_group() {
    // Rule: [STDIO-015] [STDIO-016].
    let script = "trap '' TERM; sleep 1000 & echo $! >&2; while :; do sleep 0.05; done";
    let (child, _stream) = ChildServer::spawn(shell(script)).unwrap();
    while child.stderr_tail().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let grandchild = child.stderr_tail()[0].parse().unwrap();
    assert!(is_running(grandchild));
    let start = Instant::now();
    let report = child.shutdown(short_grace_periods()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(report.forced);
    assert!(report.to_string().starts_with("the server was terminated: signal: 9 (SIGKILL)"));
    gone(grandchild).await;
}

#[tokio::test]
async fn a_server_that_ignores_eof_is_terminated() {
    // Rule: [STDIO-015] [STDIO-016].
    let script = "trap 'echo bye >&2; exit 3' TERM; echo up >&2; while :; do sleep 0.05; done";
    let (child, _stream) = ChildServer::spawn(shell(script)).unwrap();
    while child.stderr_tail().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut grace_periods = short_grace_periods();
    grace_periods.terminate = LOADED_MACHINE;
    let report = child.shutdown(grace_periods).await.unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(3), true));
    assert_eq!(report.stderr_tail.last().map(String::as_str), Some("bye"));
}

#[tokio::test]
async fn an_exit_is_reported_with_its_status_and_stderr_tail() {
    // Rule: [STDIO-005].
    let (mut child, stream) =
        ChildServer::spawn(shell("echo 'no such option' >&2; exit 2")).unwrap();
    drive(Pinger::new(Vec::new(), 1), stream).await.unwrap();
    let report = child.wait().await.unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(2), false));
    assert_eq!(
        report.to_string(),
        "the server exited: exit status: 2; last lines of its standard error:\n  no such option"
    );
    assert_eq!(child.id(), None);
}

#[tokio::test]
async fn a_server_with_much_stderr_is_not_blocked_and_only_the_tail_is_kept() {
    // Rule: [STDIO-004] [STDIO-005] [STDIO-006].
    let lines = Arc::new(Mutex::new((0, String::new())));
    let sink = Arc::clone(&lines);
    let sink = Stderr::Lines(Box::new(move |line| {
        let mut lines = sink.lock().unwrap();
        *lines = (lines.0 + 1, line.to_owned());
    }));
    let script = "yes some words for the standard error | head -n 100000 >&2; echo the end >&2";
    let (mut child, _stream) = ChildServer::spawn_with(shell(script), sink).unwrap();
    let report = child.wait().await.unwrap();
    assert!(report.status.success());
    assert_eq!(*lines.lock().unwrap(), (100_001, "the end".to_owned()));
    assert_eq!(report.stderr_tail.len(), 32);
    assert_eq!(report.stderr_tail[31], "the end");
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_grandchild_that_keeps_stderr_open() {
    let (mut child, _stream) =
        ChildServer::spawn(shell("sleep 1000 & echo $! >&2; printf unfinished >&2")).unwrap();
    let start = Instant::now();
    let report = child.wait().await.unwrap();
    assert!(start.elapsed() < LOADED_MACHINE);
    assert_eq!(report.stderr_tail[1], "unfinished");
    let _ = Command::new("kill").arg(&report.stderr_tail[0]).status().await;
}

#[tokio::test]
async fn dropping_a_server_kills_it() {
    let (child, _stream) = ChildServer::spawn(shell("trap '' TERM; sleep 1000")).unwrap();
    let id = child.id().unwrap();
    assert!(is_running(id));
    drop(child);
    gone(id).await;
}

#[tokio::test]
async fn a_server_that_cannot_start_is_reported_with_advice() {
    let failure = |command: Command| ChildServer::spawn(command).map(drop).unwrap_err();

    let error = failure(Command::new("no-such-server"));
    assert_eq!(
        error.to_string(),
        "cannot start the server `no-such-server`: it is in no directory of PATH; install it, or \
         give its full path"
    );
    assert_eq!(
        (error.program.as_str(), error.source.kind()),
        ("no-such-server", io::ErrorKind::NotFound)
    );

    let message = failure(Command::new("./no/such/server")).to_string();
    assert!(message.ends_with("there is no such file; check the path"), "{message}");

    let folder = std::env::temp_dir().join(format!("mcp-interpreters-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let outer = format!("#!{}/inner\n", folder.display());
    for (name, script, expected) in [
        (
            "inner",
            "#! /no/such/sh -e\n",
            "names the interpreter `/no/such/sh`, which does not exist",
        ),
        // A line end of Windows belongs to the name.
        ("crlf", "#!/bin/sh\r\n", "names the interpreter `/bin/sh\\u000d`, which does not exist"),
        ("outer", &outer, "the loader or interpreter that it needs does not"),
    ] {
        let path = folder.join(name);
        // By another process: a child that another test starts would hold the file open.
        let write = r#"printf %s "$1" > "$2" && chmod +x "$2""#;
        let mut writer = Command::new("sh");
        writer.args(["-c", write, "sh", script]).arg(&path);
        assert!(writer.status().await.unwrap().success());
        let message = failure(Command::new(&path)).to_string();
        assert!(message.contains(expected), "{message}");
        let mut command = Command::new(format!("./{name}"));
        command.current_dir(&folder);
        let message = failure(command).to_string();
        assert!(message.contains(expected), "{message}");
    }
    std::fs::remove_dir_all(&folder).unwrap();

    let message = failure(Command::new("/etc/passwd")).to_string();
    assert!(message.ends_with("it may not be executed; check its permissions"), "{message}");

    let mut command = Command::new("sh");
    command.current_dir("/no/such/directory");
    let message = failure(command).to_string();
    assert!(message.contains("working directory `/no/such/directory` does not exist"), "{message}");
}
