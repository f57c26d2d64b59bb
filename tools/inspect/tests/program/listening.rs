//! Listening, and how signals end it.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::INSPECT;

/// A server that accepts the subscriptions of some resources, and writes to the file `NOTES` what
/// happens to it: its process id, then how it ends. `MODE` is `stubborn` if it ignores `SIGTERM`.
const SERVER: &str = r#"
    echo "$$" > "$NOTES"
    answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%[,\}]*}
        case $line in
        *'"initialize"'*)
            case $MODE in silent) exec sleep 60 ;; esac
            answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"resources/subscribe"'*) case $line in
            *'"x:good"'*) answer '"result":{}' ;;
            *'"x:bad"'*) answer '"error":{"code":-32603,"message":"no"}' ;;
            esac ;;
        esac
    done
    case $MODE in
    stubborn) trap '' TERM ;;
    *) trap 'echo terminated >> "$NOTES"; exit' TERM ;;
    esac
    echo 'end of input' >> "$NOTES"
    sleep 60 &
    wait
    wait"#;

/// The program, which inspects [`SERVER`].
struct Inspection {
    child: Child,
    stderr: BufReader<ChildStderr>,
    notes: PathBuf,
}

/// Starts the program with words in front of its command line.
fn start(before: &[&str], mode: &str, words: &[&str]) -> Inspection {
    let name = format!("mcp-inspect-{}-{mode}-{}", std::process::id(), before.len());
    let notes = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&notes);
    let server = ["--revision", "2025-11-25", "--", "sh", "-c", SERVER];
    let all = [with_signals(), before, &[INSPECT], words, &server].concat();
    let mut command = Command::new(all[0]);
    command.args(&all[1..]).env("MODE", mode).env("NOTES", &notes);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    Inspection { child, stderr, notes }
}

/// Returns what to write in front of a command line so that no signal is ignored from the start, as it
/// is if the tests run in the background of a shell. Nothing where `env` cannot do it.
fn with_signals() -> &'static [&'static str] {
    const ENV: [&str; 2] = ["env", "--default-signal"];
    let mut probe = Command::new(ENV[0]);
    let probe = probe.args([ENV[1], "true"]).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) { &ENV } else { &[] }
}

/// Waits, for a minute at most, until `found` returns a value.
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(value) = found() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

fn read(notes: &Path) -> String {
    std::fs::read_to_string(notes).unwrap_or_default()
}

impl Inspection {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Waits until the server has written a line that ends so.
    fn noted(&self, end: &str) {
        wait_for(end, || read(&self.notes).ends_with(end).then_some(()));
    }

    /// Sends a signal to the program alone.
    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end of the program and of the server. Returns the exit status, the rest of
    /// standard error and the notes of the server.
    fn end(mut self) -> (Option<i32>, String, String) {
        let status = wait_for("the program has not ended", || self.child.try_wait().unwrap());
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let notes = read(&self.notes);
        let (id, notes) = notes.split_once('\n').unwrap();
        // It is a zombie until the first process of the system waits for it.
        let runs =
            "case $(cat \"/proc/$0/stat\" 2>&-) in *') Z '*) exit 1 ;; esac; kill -0 \"$0\" 2>&-";
        wait_for("the server has not ended", || {
            let runs = Command::new("sh").args(["-c", runs, id]).status();
            (!runs.unwrap().success()).then_some(())
        });
        std::fs::remove_file(&self.notes).unwrap();
        (status.code(), rest, notes.to_owned())
    }
}

#[test]
fn a_signal_shuts_the_server_down_and_decides_the_exit_status() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mut inspection = start(&[], signal, &["listen", "x:good"]);
        let line = inspection.line();
        assert_eq!(line, "listening: {\"resourceSubscriptions\":[\"x:good\"]}\n");
        inspection.signal(signal);
        // Rule: [STDIO-015].
        let notes = "end of input\nterminated\n";
        assert_eq!(inspection.end(), (Some(status), String::new(), notes.into()));
    }
}

#[test]
fn a_second_signal_ends_the_program_and_the_server_at_once() {
    // A loaded machine may take longer for the second signal than the program for its shutdown.
    let ends_at_once = |_| {
        let mut inspection = start(&[], "stubborn", &["listen", "x:good"]);
        inspection.line();
        inspection.signal("INT");
        inspection.noted("end of input\n");
        inspection.signal("TERM");
        let (status, said, _) = inspection.end();
        assert_eq!(said, "");
        status == Some(143)
    };
    assert!((0..5).any(ends_at_once));
}

#[test]
fn a_signal_ends_the_opening_of_a_connection() {
    let inspection = start(&[], "silent", &["info"]);
    inspection.noted("\n");
    inspection.signal("TERM");
    assert_eq!(inspection.end(), (Some(143), String::new(), String::new()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let nohup = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];
    let mut inspection = start(&nohup, "", &["listen", "x:good"]);
    inspection.line();
    inspection.signal("HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(inspection.child.try_wait().unwrap(), None);
    inspection.signal("INT");
    assert_eq!(inspection.end().0, Some(130));
}

#[test]
fn resources_that_were_not_subscribed_are_named() {
    let mut inspection = start(&[], "some", &["listen", "x:bad", "x:good"]);
    assert_eq!(inspection.line(), "listening: {\"resourceSubscriptions\":[\"x:good\"]}\n");
    assert_eq!(inspection.line(), "mcp-inspect: note: not subscribed: x:bad\n");
    inspection.signal("INT");
    assert_eq!(inspection.end().0, Some(130));

    let (status, said, _) = start(&[], "none", &["listen", "x:bad"]).end();
    assert_eq!(status, Some(1), "{said}");
    let end = "not subscribed: x:bad\nmcp-inspect: the server accepted none of the subscriptions\n";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn listening_fails_if_the_server_does_not_answer_in_time() {
    let words = ["--timeout", "1", "listen", "x:ignored"];
    let (status, said, _) = start(&[], "late", &words).end();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the server did not answer within 1 s"), "{said}");
}

#[test]
fn listening_fails_if_the_server_has_no_event_stream() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut head, mut body) = (Vec::new(), Vec::new());
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_until(b'\n', &mut head).unwrap();
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            (&mut stream).take(length).read_to_end(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let (status, body) = match body.contains("\"initialize\"") {
                true => (
                    "200 OK",
                    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}"#,
                ),
                false if head.starts_with("get") => ("405 Method Not Allowed", ""),
                false => ("202 Accepted", ""),
            };
            let head = "Content-Type: application/json\r\nConnection: close";
            let answer = format!(
                "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    let words = ["--revision", "2025-11-25", "listen", "--url", &url];
    let output = Command::new(INSPECT).args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no more notifications: "), "{said}");
    assert!(said.contains("405"), "{said}");
}
