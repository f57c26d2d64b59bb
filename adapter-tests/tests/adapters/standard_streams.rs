//! A server on standard input and output against a client that only uses pipes.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(clippy::print_stdout, reason = "figures shown with --no-capture")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use adapter_tests::{Runtime, ping};
use mcp_sansio_handlers::{Host, NoArguments};
use rustix::fs::{OFlags, fcntl_getfl};

fn server(runtime: Runtime) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adapter-tests"));
    command.arg(runtime.name());
    command
}

fn piped(runtime: Runtime) -> Child {
    server(runtime).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn pings(count: usize) -> String {
    (0..count).map(ping).collect()
}

/// Waits for the exit, up to a minute: the machine may have many other processes.
fn exit(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "still running");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn pings_may_all_be_written_before_the_first_answer_is_read() {
    const COUNT: usize = 100_000;
    for runtime in Runtime::ALL {
        let mut child = piped(runtime);
        let input = pings(COUNT);
        let start = Instant::now();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let elapsed = start.elapsed();
        assert!(exit(child).success());
        assert_eq!(output.lines().count(), COUNT);
        assert!(output.lines().all(|line| line.contains("\"result\":{")));
        println!("{runtime:?}: {:.0} pings per second", COUNT as f64 / elapsed.as_secs_f64());
    }
}

#[test]
fn one_ping_at_a_time_is_answered_at_once() {
    const COUNT: usize = 2000;
    for runtime in Runtime::ALL {
        let mut child = piped(runtime);
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut buffer = [0; 4096];
        let start = Instant::now();
        for id in 0..COUNT {
            stdin.write_all(ping(id).as_bytes()).unwrap();
            let length = stdout.read(&mut buffer).unwrap();
            assert!(buffer[..length].ends_with(b"\n"));
        }
        println!(
            "{runtime:?}: {:.1} us per round trip",
            start.elapsed().as_secs_f64() * 1e6 / COUNT as f64
        );
        drop(stdin);
        assert!(exit(child).success());
    }
}

#[test]
fn the_end_of_input_within_a_frame_ends_the_server_with_everything_answered() {
    // Rule: [STDIO-017].
    for runtime in Runtime::ALL {
        let mut child = piped(runtime);
        let input = pings(1000) + "{\"jsonrpc\":\"2.0\",\"id\":";
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let mut stdout = child.stdout.take().unwrap();
        assert!(exit(child).success());
        let mut output = String::new();
        stdout.read_to_string(&mut output).unwrap();
        assert_eq!(output.matches("\"result\":{").count(), 1000);
        assert_eq!(output.matches("-32700").count(), 1);
    }
}

#[test]
fn a_client_that_disconnects_ends_the_server_without_an_error() {
    for runtime in Runtime::ALL {
        let mut child = piped(runtime);
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        let mut id = 0;
        let start = Instant::now();
        let status = loop {
            assert!(start.elapsed() < Duration::from_secs(60), "still running");
            // Again and again: a process that another test is starting has this pipe open until it
            // executes its program, so the first answers may find a reader. The server may be gone.
            let _written = stdin.write_all(ping(id).as_bytes());
            id += 1;
            std::thread::sleep(Duration::from_millis(5));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
        };
        assert!(status.success());
    }
}

#[test]
fn a_socket_used_as_both_streams_is_blocking_again_afterwards() {
    for runtime in Runtime::ALL {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let observed = theirs.try_clone().unwrap();
        let stream = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
        let child = server(runtime).stdin(stream()).stdout(stream()).spawn().unwrap();
        drop(theirs);
        ours.write_all(pings(20_000).as_bytes()).unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        let mut output = String::new();
        // The server shuts the socket down for writing, although this process holds another handle
        // to it.
        ours.read_to_string(&mut output).unwrap();
        assert_eq!(output.lines().count(), 20_000);
        assert!(exit(child).success());
        assert!(!fcntl_getfl(&observed).unwrap().contains(OFlags::NONBLOCK));
    }
}

#[test]
fn streams_shared_with_standard_error_stay_blocking() {
    for runtime in Runtime::ALL {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let observed = theirs.try_clone().unwrap();
        let stream = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
        let child =
            server(runtime).stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
        ours.write_all(ping(1).as_bytes()).unwrap();
        assert!(ours.read(&mut [0; 4096]).unwrap() > 0);
        assert!(!fcntl_getfl(&observed).unwrap().contains(OFlags::NONBLOCK));
        ours.shutdown(Shutdown::Write).unwrap();
        assert!(exit(child).success());
    }
}

#[test]
fn files_can_be_used_as_streams() {
    for runtime in Runtime::ALL {
        let folder = std::env::temp_dir().join(format!("adapter-tests-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (input, output) = (folder.join("input"), folder.join("output"));
        std::fs::write(&input, pings(1000)).unwrap();
        let child = server(runtime)
            .stdin(File::open(&input).unwrap())
            .stdout(File::create(&output).unwrap())
            .spawn()
            .unwrap();
        assert!(exit(child).success());
        assert_eq!(std::fs::read_to_string(&output).unwrap().lines().count(), 1000);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn what_a_handler_prints_does_not_get_between_the_messages_in_a_file() {
    // Rule: [STDIO-002].
    const PRINT: &str = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"print","arguments":{},"#,
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        "\n"
    );
    // tokio writes to files with the standard output of the process: the guide says so.
    for runtime in [Runtime::Smol, Runtime::AsyncStd] {
        let name = format!("adapter-tests-print-{}-{}", runtime.name(), std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let [input, output, error] = ["input", "output", "error"].map(|name| folder.join(name));
        std::fs::write(&input, PRINT).unwrap();
        let child = server(runtime)
            .arg("fragile")
            .stdin(File::open(&input).unwrap())
            .stdout(File::create(&output).unwrap())
            .stderr(File::create(&error).unwrap())
            .spawn()
            .unwrap();
        assert!(exit(child).success());
        let [messages, printed] =
            [&output, &error].map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(messages.lines().count(), 1, "{messages}");
        assert!(messages.contains(r#""text":"printed""#), "{messages}");
        assert_eq!(printed, "partial\nrest");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[tokio::test]
async fn what_a_handler_prints_does_not_get_between_the_messages() {
    // Rule: [STDIO-002].
    for runtime in Runtime::ALL {
        let mut command = server(runtime);
        command.arg("fragile");
        let client = mcp_sansio_tokio::spawn(command, &Host::new("host", "1")).await.unwrap();
        for _ in 0..3 {
            let result = client.call_tool("print", &NoArguments {}).await.unwrap();
            assert_eq!(result.first_text(), Some("printed"), "{runtime:?}");
        }
        let report = client.shutdown().await.unwrap();
        assert!(report.status.success(), "{report}");
        assert_eq!(report.stderr_tail, ["partial", "restpartial", "restpartial", "rest"]);
    }
}

#[tokio::test]
async fn a_server_that_prints_is_reported_with_its_first_line() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo Starting up; echo '{'; exit 1"]);
    let error = mcp_sansio_tokio::spawn(command, &Host::new("host", "1")).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("a line that is not a message: `Starting up`"), "{error}");
}
