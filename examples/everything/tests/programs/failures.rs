//! `mcp-inspect` reports every failure of a server in one message and in time.

use std::time::{Duration, SystemTime};

use crate::http_server_process::Behavior::{Responds, SendsFirst, Stalls};
use crate::http_server_process::foreign_server;
use crate::process::{Outcome, everything, run};

/// Inspects a server written in shell. Returns the outcome and the time that it took.
#[allow(clippy::disallowed_methods, reason = "the test measures time")]
fn inspect(words: &[&str]) -> (Outcome, Duration) {
    let start = SystemTime::now();
    let outcome = run("mcp-inspect", [&["info"][..], words].concat());
    (outcome, start.elapsed().unwrap_or_default())
}

fn failure(words: &[&str]) -> String {
    let (outcome, took) = inspect(words);
    assert_eq!(outcome.code, Some(1), "{words:?}: {outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.starts_with("mcp-inspect: "), "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    assert!(took < Duration::from_secs(8), "{words:?}: {took:?}");
    outcome.stderr
}

#[test]
fn a_missing_program_is_named() {
    let message = failure(&["--", "no-such-server", "--flag"]);
    assert!(message.contains("`no-such-server`") && message.contains("install it"), "{message}");
    let message = failure(&["--", "./no/such/server"]);
    assert!(message.contains("`./no/such/server`"), "{message}");
}

#[test]
fn stderr_is_forwarded() {
    let script = "echo 'no database' >&2; exit 3";
    let message = failure(&["--", "sh", "-c", script]);
    assert!(message.contains("exit status: 3"), "{message}");
    assert!(message.ends_with("\n  no database\n"), "{message}");
    // The same if it exits with a request in flight.
    let message = failure(&["--", "sh", "-c", &format!("read line; {script}")]);
    assert!(message.ends_with("\n  no database\n"), "{message}");
}

#[test]
fn a_silent_server_times_out() {
    for script in ["exec sleep 60", "trap '' TERM; while :; do sleep 1; done"] {
        let message = failure(&["--timeout", "0.5", "--", "sh", "-c", script]);
        assert!(message.contains("did not answer within 0.5 s"), "{message}");
    }
}

#[test]
fn invalid_output_is_reported_and_tolerated() {
    let quoted = everything("tokio").join(" ");
    let script = format!("echo starting up; exec {quoted}");
    let (outcome, _) = inspect(&["--", "sh", "-c", &script]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("`starting up`"), "{outcome:?}");

    let message = failure(&["--timeout", "1", "--", "yes"]);
    assert!(message.contains("lines that are not messages"), "{message}");
}

#[test]
fn a_server_that_exits_on_the_probe_is_started_again() {
    let quoted = everything("tokio").join(" ");
    let script = format!(
        "read -r line; case $line in *server/discover*) exit 1;; esac; \
         {{ echo \"$line\"; cat; }} | exec {quoted}"
    );
    let (outcome, _) = inspect(&["--", "sh", "-c", &script]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("revision      2025-11-25"), "{outcome:?}");
}

#[test]
fn a_protocol_violation_is_described() {
    let answers = [
        (r#"{"jsonrpc":"2.0","id":999,"result":{}}"#, "not in flight"),
        (r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#, "`result` is not an object"),
        (r#"{"id":1,"result":{}}"#, "malformed"),
    ];
    for (answer, what) in answers {
        let script = format!("read line; echo '{answer}'; exec sleep 9");
        let words = ["--timeout", "0.3", "--revision", "2025-11-25", "--", "sh", "-c", &script];
        let message = failure(&words);
        assert!(message.contains("broke a rule") && message.contains(what), "{message}");
    }
}

#[test]
fn a_server_that_echoes_its_input_is_rejected() {
    failure(&["--timeout", "2", "--", "cat"]);
}

/// Returns the failure of a connection to `url`.
fn failure_at(url: &str) -> String {
    failure(&["--timeout", "1", "--url", url])
}

#[test]
fn a_closed_port_differs_from_a_foreign_server() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=secret", closed.local_addr().unwrap());
    drop(closed);
    let message = failure_at(&url);
    assert!(message.contains("cannot be reached") && message.contains("refused"), "{message}");
    assert!(!message.contains("secret"), "{message}");

    let servers = [
        (Responds("SSH-2.0-OpenSSH_9.9\r\n\r\n"), "violates HTTP"),
        (Responds("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"), "HTTP status 404"),
        (Responds("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"), "HTTP status 500"),
        (
            Responds("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<br>"),
            "`text/html` is neither JSON nor an event stream: <br>",
        ),
        (
            Responds(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nhello",
            ),
            "not JSON",
        ),
        (
            Responds(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
            ),
            "the connection was lost",
        ),
        (
            Responds("HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"),
            "requires authorization (HTTP status 401): Bearer; use `--sign-in` to sign in",
        ),
        (
            Responds("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"),
            "denies access (HTTP status 403); ask its operator",
        ),
        (
            Responds(
                "HTTP/1.1 302 Found\r\nlocation: http://example.com/\r\ncontent-length: 0\r\n\r\n",
            ),
            "redirects to `http://example.com/`",
        ),
        (Stalls(""), "did not answer within 1 s"),
        (Stalls("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"), "did not answer"),
    ];
    for (behavior, what) in servers {
        let message = failure_at(&format!("http://{}/mcp", foreign_server(behavior)));
        assert!(message.contains(what), "`{what}` is not in `{message}`");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let message =
        failure_at(&format!("https://{}/mcp", foreign_server(SendsFirst("220 smtp.example\r\n"))));
    assert!(message.contains("no secure connection"), "{message}");
}

#[test]
fn usage_errors_differ_from_failures() {
    let wrong: [&[&str]; 15] = [
        &[],
        &["frobnicate", "--", "x"],
        &["info"],
        &["info", "--bogus", "--", "x"],
        &["info", "--revision", "2020-01-01", "--", "x"],
        &["info", "--timeout", "soon", "--", "x"],
        &["info", "--runtime", "smol", "--", "x"],
        &["call", "echo", "[1]", "--", "x"],
        &["info", "--url", "http://localhost/mcp", "--", "x"],
        &["info", "--url", "localhost/mcp"],
        &["info", "--url", "http://me:secret@localhost/mcp"],
        &["info", "--url"],
        &["info", "--unix"],
        &["info", "--unix", "x", "--", "x"],
        &["info", "--unix", "x", "--url", "https://example.com/mcp"],
    ];
    for words in wrong {
        let outcome = run("mcp-inspect", words);
        assert_eq!(outcome.code, Some(2), "{words:?}: {outcome:?}");
        assert!(outcome.stderr.starts_with("mcp-inspect: "), "{outcome:?}");
        assert!(!outcome.stderr.contains("secret"), "{outcome:?}");
    }
    for words in [&[][..], &["localhost"], &["http://localhost/mcp", "x"], &["--bogus"]] {
        let outcome = run("everything-client", words);
        assert!(matches!(outcome.code, Some(1 | 2)), "{words:?}: {outcome:?}");
    }
    for server in ["everything-server", "bench-server"] {
        for words in [
            &[][..],
            &["--http"],
            &["--http", "127.0.0.1:0", "--stdio"],
            &["--stdio", "--legacy-sse"],
            &["--unix"],
            &["--unix", "x", "--http", "127.0.0.1:0"],
            &["--unix", "x", "--auth"],
            &["--bogus"],
            &["--runtime", "x"],
        ] {
            assert_eq!(run(server, words).code, Some(2), "{server} {words:?}");
        }
        assert_eq!(run(server, ["--help"]).code, Some(0));
    }
    assert_eq!(run("mcp-inspect", ["--help"]).code, Some(0));
}

#[test]
fn keys_of_request_states_are_hexadecimal_and_complete() {
    let file = std::env::temp_dir().join(format!("mcp-seal-{}", std::process::id()));
    let start = || {
        let words =
            [everything("tokio"), vec!["--seal-key-file".into(), file.display().to_string()]];
        run("everything-server", &words.concat()[1..])
    };
    let key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fff";
    for wrong in ["", &key[1..], &key.replace('f', "g"), &format!("{key}\n{}", &key[2..])] {
        std::fs::write(&file, wrong).unwrap();
        let outcome = start();
        assert_eq!(outcome.code, Some(1), "{wrong}: {outcome:?}");
        assert!(outcome.stderr.contains("key"), "{outcome:?}");
    }
    std::fs::write(&file, format!("{key}\n{key}\n")).unwrap();
    let outcome = start();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    std::fs::remove_file(file).unwrap();
}
