//! Example programs, and servers that are used line by line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The runtimes of the servers.
pub(crate) const RUNTIMES: [&str; 4] = ["tokio", "smol", "async-std", "std"];

/// The timeout for a response, far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the path of a built program: a binary, or an example.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    let file = PathBuf::from(name).with_extension(std::env::consts::EXE_EXTENSION);
    let built = [folder.join(&file), folder.join("examples").join(&file)];
    let found = built.into_iter().find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not built: run `cargo build --workspace --bins --examples`")
    })
}

/// Returns the command line of the everything server.
pub(crate) fn everything(runtime: &str) -> Vec<String> {
    on_stdio("everything-server", runtime)
}

/// Returns the command line of a server on standard input and output.
pub(crate) fn on_stdio(name: &str, runtime: &str) -> Vec<String> {
    let path = example(name).to_str().unwrap().to_owned();
    vec![path, "--stdio".into(), "--runtime".into(), runtime.into()]
}

/// The exit code and the output of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs an example until it exits.
pub(crate) fn run<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Outcome {
    run_in(name, arguments, &[])
}

/// Like [`run`], with additional environment variables.
pub(crate) fn run_in<S: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = S>,
    environment: &[(&str, &str)],
) -> Outcome {
    let output = Command::new(example(name))
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server that the test sends messages to.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    lines: Option<Receiver<String>>,
}

impl Server {
    pub(crate) fn start(runtime: &str) -> Self {
        let words = everything(runtime);
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Self { child, input, output, lines: None }
    }

    /// Starts a server and opens a legacy session.
    pub(crate) fn open(runtime: &str) -> Self {
        let mut server = Self::start(runtime);
        let answer = server.ask(
            "hello",
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a message to a server that may have exited. Returns whether it was written.
    pub(crate) fn try_send(&mut self, message: &Value) -> bool {
        self.input.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).is_ok()
    }

    /// Closes the reading end of the server's output pipe after its next line.
    pub(crate) fn stop_listening(&mut self) {
        self.lines = None;
        self.output = None;
    }

    /// Returns the next message of the server. Reading starts with the first call.
    pub(crate) fn receive(&mut self) -> Value {
        let output = &mut self.output;
        let lines = self.lines.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            let output = BufReader::new(output.take().unwrap());
            thread::spawn(move || {
                for line in output.lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
            receiver
        });
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")),
            Err(RecvTimeoutError::Timeout) => panic!("the server sent no message in time"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server closed its output"),
        }
    }

    /// Sends a request and returns the next message, which must be its response.
    pub(crate) fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Asserts that the server is running and has no pending output.
    pub(crate) fn assert_alive(&mut self) {
        let answer = self.ask("alive?", "ping", json!({}));
        assert_eq!(answer["result"], json!({}));
    }

    /// Closes the input and waits for the exit.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        // Close the output first, so that unread output does not block the server.
        let unread = (self.output.take(), self.lines.take());
        let (mut left, pause) = (PATIENCE, Duration::from_millis(5));
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                drop(unread);
                return status;
            }
            assert!(!left.is_zero(), "the server does not exit");
            thread::sleep(pause);
            left = left.saturating_sub(pause);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // These fail if the server has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
