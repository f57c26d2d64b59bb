//! Servers that run as real child processes.
#![cfg(unix)]

use std::future::poll_fn;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::task::Poll;
use std::time::Duration;

use mcp_sansio_handlers::{Host, Server};
use mcp_sansio_std::adapter::ByteStream;
use mcp_sansio_std::adapter::child::GracePeriods;
use mcp_sansio_std::runtime::ChildStream;
use mcp_sansio_std::{
    BackgroundDriver, ChildServer, Stderr, Wait as _, block_on, now, seed, serve_stdio,
};
use rustix::process::{Pid, test_kill_process};

/// Environment variable that makes a copy of this program run as a server, and selects which one.
const ROLE: &str = "MCP_SANSIO_STD_TEST_ROLE";

/// Not a test: [`this_program`] runs it in a child process as the server.
#[test]
fn server_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let server = Server::new("child", "1").endpoint(seed()).unwrap();
    if role == "noisy" {
        // A partial line printed before the first message must not end up between the messages.
        let _ = std::io::stdout().write_all(b"half a line");
    }
    let outcome = serve_stdio(server);
    std::process::exit(if outcome.is_ok() { 0 } else { 70 });
}

/// Returns a command that runs this program as a server.
fn this_program(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::server_process", "--nocapture"]).env(ROLE, role);
    command
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// More than an event takes on a machine with many other processes.
const LOADED_MACHINE: Duration = Duration::from_secs(60);

/// Grace periods within which every server that ends properly does so.
fn long_grace_periods() -> GracePeriods {
    let mut grace_periods = GracePeriods::default();
    (grace_periods.end_of_input, grace_periods.terminate) = (LOADED_MACHINE, LOADED_MACHINE);
    grace_periods
}

/// Grace periods for servers that have to be ended.
fn short_grace_periods() -> GracePeriods {
    let mut grace_periods = GracePeriods::default();
    (grace_periods.end_of_input, grace_periods.terminate) =
        (Duration::from_millis(50), Duration::from_millis(200));
    grace_periods
}

fn write_all(stream: &mut ChildStream, mut bytes: &[u8]) {
    block_on(poll_fn(|cx| {
        while !bytes.is_empty() {
            match stream.poll_write(cx, bytes) {
                Poll::Ready(count) => bytes = &bytes[count.unwrap()..],
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }));
}

fn close(stream: &mut ChildStream) {
    block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap();
}

fn read_to_end(stream: &mut ChildStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        match block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap() {
            0 => return String::from_utf8(text).unwrap(),
            length => text.extend_from_slice(&buffer[..length]),
        }
    }
}

/// Waits for the first output of the child.
fn wait_for_output(stream: &mut ChildStream) {
    let mut buffer = [0; 100];
    assert!(block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap() > 0);
}

fn is_gone(id: u32) -> bool {
    test_kill_process(Pid::from_raw(id.try_into().unwrap()).unwrap()).is_err()
}

#[test]
fn a_server_answers_all_and_exits_at_the_end_of_its_input() {
    // Rule: [STDIO-007] [STDIO-015] [STDIO-016] [STDIO-017].
    let (child, mut stream) = ChildServer::spawn(this_program("quiet")).unwrap();
    let id = child.id().unwrap();
    let mut pings = Vec::new();
    for id in 0..100_000 {
        writeln!(pings, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
    }
    // The last frame is truncated.
    pings.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    write_all(&mut stream, &pings);
    close(&mut stream);
    let answers = read_to_end(&mut stream);
    assert_eq!(answers.matches(r#""result":{}"#).count(), 100_000);
    let report = block_on(child.shutdown(long_grace_periods())).unwrap();
    assert!(report.status.success(), "{report}");
    assert!(!report.forced);
    assert!(is_gone(id));
}

#[test]
fn printed_output_of_a_server_goes_to_its_standard_error() {
    // Rule: [STDIO-002] [STDIO-005].
    let (child, stream) = ChildServer::spawn(this_program("noisy")).unwrap();
    let (client, endpoint) = Host::new("test", "1").connect(seed(), now());
    let connection = BackgroundDriver::spawn(endpoint, stream).unwrap();
    client.opened().wait().unwrap();
    client.close();
    connection.join().unwrap();
    let report = block_on(child.shutdown(long_grace_periods())).unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(0), false), "{report}");
    assert!(report.stderr_tail.iter().any(|line| line.ends_with("half a line")), "{report}");
}

#[test]
fn standard_error_redirected_to_standard_output_does_not_corrupt_messages() {
    let mut command = this_program("quiet");
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdin(std::process::Stdio::piped());
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n").unwrap();
    drop(stdin);
    let mut answers = String::new();
    std::io::Read::read_to_string(&mut reader, &mut answers).unwrap();
    assert!(answers.contains(r#""id":7,"result":{}"#), "{answers}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn dropping_the_stream_signals_end_of_input() {
    // Rule: [STDIO-015] [STDIO-016].
    let (child, stream) = ChildServer::spawn(Command::new("cat")).unwrap();
    drop(stream);
    let report = block_on(child.shutdown(long_grace_periods())).unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(0), false));
    assert_eq!(report.to_string(), "the server exited: exit status: 0");
}

#[test]
fn a_connection_in_use_ends_with_its_child() {
    // Rule: [STDIO-015] [STDIO-016].
    let (child, stream) = ChildServer::spawn(this_program("quiet")).unwrap();
    let (client, endpoint) = Host::new("test", "1").connect(seed(), now());
    let connection = BackgroundDriver::spawn(endpoint, stream).unwrap();
    client.opened().wait().unwrap();
    let report = block_on(child.shutdown(long_grace_periods())).unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(0), false), "{report}");
    connection.join().unwrap();
    client.list_tools(None).wait().unwrap_err();
}

#[test]
fn a_child_that_ignores_the_end_of_its_input_is_asked_to_exit() {
    // Rule: [STDIO-015] [STDIO-016].
    let (child, mut stream) = ChildServer::spawn(shell("echo ready; exec sleep 1000")).unwrap();
    wait_for_output(&mut stream);
    drop(stream);
    let mut grace_periods = short_grace_periods();
    grace_periods.terminate = LOADED_MACHINE;
    let report = block_on(child.shutdown(grace_periods)).unwrap();
    assert_eq!((report.status.signal(), report.forced), (Some(15), true));
}

#[test]
fn a_child_that_ignores_everything_is_killed() {
    // Rule: [STDIO-015] [STDIO-016].
    let script = "trap '' TERM; echo ready; echo stubborn >&2; while :; do sleep 1; done";
    let (child, mut stream) = ChildServer::spawn(shell(script)).unwrap();
    wait_for_output(&mut stream);
    drop(stream);
    let id = child.id().unwrap();
    let report = block_on(child.shutdown(short_grace_periods())).unwrap();
    assert_eq!((report.status.signal(), report.forced), (Some(9), true));
    assert_eq!(report.stderr_tail, ["stubborn"]);
    assert!(
        report.to_string().contains("(SIGKILL); last lines of its standard error:\n  stubborn"),
        "{report}"
    );
    assert!(is_gone(id));
}

#[test]
fn a_child_that_exits_is_reported_with_its_stderr_tail() {
    // Rule: [STDIO-005].
    let script = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo line $i >&2; done; exit 3";
    let (child, mut stream) = ChildServer::spawn(shell(script)).unwrap();
    // The child exits although its input stays empty and its standard error is not read.
    assert_eq!(read_to_end(&mut stream), "");
    let report = block_on(child.shutdown(long_grace_periods())).unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(3), false));
    assert_eq!(report.stderr_tail.len(), 32);
    assert_eq!(report.stderr_tail[29..], ["line 29998", "line 29999", "line 30000"]);
}

#[test]
fn the_standard_error_can_be_forwarded() {
    // Rule: [STDIO-005].
    let (told, tell) = std::sync::mpsc::channel();
    let sink = Stderr::Lines(Box::new(move |line| told.send(line.to_owned()).unwrap()));
    let (child, stream) =
        ChildServer::spawn_with(shell("echo one >&2; printf two >&2"), sink).unwrap();
    drop(stream);
    let report = block_on(child.shutdown(long_grace_periods())).unwrap();
    assert_eq!(report.stderr_tail, ["one", "two"]);
    assert_eq!(tell.iter().collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn a_killed_child_takes_its_descendants_with_it() {
    // Every process started from here on inherits this pipe and keeps it open.
    let (mut held, holder) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&holder, rustix::io::FdFlags::empty()).unwrap();
    let script = "trap '' TERM; sleep 600 & echo ready; while :; do sleep 1; done";
    let (child, mut stream) = ChildServer::spawn(shell(script)).unwrap();
    drop(holder);
    wait_for_output(&mut stream);
    assert!(block_on(child.shutdown(short_grace_periods())).unwrap().forced);
    assert_eq!(std::io::Read::read(&mut held, &mut [0]).unwrap(), 0);
}

#[test]
fn a_dropped_child_is_ended_and_leaves_no_zombie() {
    let (child, stream) = ChildServer::spawn(shell("echo ready; exec sleep 1000")).unwrap();
    let id = child.id().unwrap();
    drop(child);
    // A thread of the child's own waits for its end.
    let gone = (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_gone(id)
    });
    assert!(gone, "the process {id} is left");
    drop(stream);
}

#[test]
fn calls_to_a_crashed_server_fail_and_its_exit_status_is_available() {
    let script = "read line; echo the disk is on fire >&2; exit 9";
    let (mut child, stream): (ChildServer, _) = ChildServer::spawn(shell(script)).unwrap();
    let (client, endpoint) = Host::new("test", "1").connect(seed(), now());
    let connection = BackgroundDriver::spawn(endpoint, stream).unwrap();
    client.opened().wait().unwrap_err();
    connection.join().unwrap();
    let report = block_on(child.wait()).unwrap();
    assert_eq!((report.status.code(), report.forced), (Some(9), false));
    assert_eq!(child.id(), None);
    assert_eq!(report.stderr_tail, ["the disk is on fire"]);
}
