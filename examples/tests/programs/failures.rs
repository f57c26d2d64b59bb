//! Whatever is wrong with a server, `mcp-inspect` says so in one message and in time.

use std::time::{Duration, SystemTime};

use crate::http_server_process::Manner::{Blurts, Says, Trails};
use crate::http_server_process::stranger;
use crate::process::{Outcome, RUNTIMES, everything, run};

/// Looks into a server of a few words of shell, and says how long it took.
#[allow(clippy::disallowed_methods, reason = "a test with a watch")]
fn inspect(runtime: &str, words: &[&str]) -> (Outcome, Duration) {
    let start = SystemTime::now();
    let outcome = run("mcp-inspect", [&["info", "--runtime", runtime][..], words].concat());
    (outcome, start.elapsed().unwrap_or_default())
}

fn failure(runtime: &str, words: &[&str]) -> String {
    let (outcome, took) = inspect(runtime, words);
    assert_eq!(outcome.code, Some(1), "{words:?}: {outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.starts_with("mcp-inspect: "), "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    assert!(took < Duration::from_secs(8), "{words:?}: {took:?}");
    outcome.stderr
}

#[test]
fn a_program_that_is_not_there_is_named() {
    for runtime in RUNTIMES {
        let message = failure(runtime, &["--", "no-such-server", "--flag"]);
        assert!(
            message.contains("`no-such-server`") && message.contains("install it"),
            "{message}"
        );
        let message = failure(runtime, &["--", "./no/such/server"]);
        assert!(message.contains("`./no/such/server`"), "{message}");
    }
}

#[test]
fn stderr_is_forwarded() {
    for runtime in RUNTIMES {
        let script = "echo 'no database' >&2; exit 3";
        let message = failure(runtime, &["--", "sh", "-c", script]);
        assert!(message.contains("exit status: 3"), "{message}");
        assert!(message.ends_with("\n  no database\n"), "{message}");
        // Also where it dies with a request in hand.
        let message = failure(runtime, &["--", "sh", "-c", &format!("read line; {script}")]);
        assert!(message.ends_with("\n  no database\n"), "{message}");
    }
}

#[test]
fn silence_ends_in_time() {
    for runtime in RUNTIMES {
        for script in ["exec sleep 60", "trap '' TERM; while :; do sleep 1; done"] {
            let message = failure(runtime, &["--timeout", "0.5", "--", "sh", "-c", script]);
            assert!(message.contains("did not answer within 0.5 s"), "{message}");
        }
    }
}

#[test]
fn noise_is_reported_and_survived() {
    for runtime in RUNTIMES {
        let quoted = everything(runtime).join(" ");
        let script = format!("echo starting up; exec {quoted}");
        let (outcome, _) = inspect(runtime, &["--", "sh", "-c", &script]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stderr.contains("`starting up`"), "{outcome:?}");

        let message = failure(runtime, &["--timeout", "1", "--", "yes"]);
        assert!(message.contains("lines that are not messages"), "{message}");
    }
}

#[test]
fn a_broken_rule_is_named() {
    let answers = [
        (r#"{"jsonrpc":"2.0","id":999,"result":{}}"#, "not in flight"),
        (r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, "`result` is not an object"),
        (r#"{"id":1,"result":{}}"#, "malformed"),
    ];
    for runtime in RUNTIMES {
        for (answer, what) in answers {
            let script = format!("read line; echo '{answer}'; exec sleep 9");
            let words = ["--timeout", "0.3", "--revision", "2025-11-25", "--", "sh", "-c", &script];
            let message = failure(runtime, &words);
            assert!(message.contains("broke a rule") && message.contains(what), "{message}");
        }
    }
}

#[test]
fn a_server_that_repeats_everything_is_no_server() {
    for runtime in RUNTIMES {
        failure(runtime, &["--timeout", "2", "--", "cat"]);
    }
}

/// Looks for a server at a URL where there is none.
fn failure_at(url: &str) -> String {
    failure("tokio", &["--timeout", "1", "--url", url])
}

#[test]
fn a_closed_port_differs_from_a_foreign_server() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=secret", nobody.local_addr().unwrap());
    drop(nobody);
    let message = failure_at(&url);
    assert!(message.contains("cannot be reached") && message.contains("refused"), "{message}");
    assert!(!message.contains("secret"), "{message}");

    let strangers = [
        (Says("SSH-2.0-OpenSSH_9.9\r\n\r\n"), "breaks HTTP"),
        (Says("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"), "HTTP status 404"),
        (Says("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"), "HTTP status 500"),
        (
            Says("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<br>"),
            "content type is neither JSON nor an event stream",
        ),
        (
            Says(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nhello",
            ),
            "not JSON",
        ),
        (
            Says("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"),
            "the connection was lost",
        ),
        (
            Says("HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"),
            "requires authorization (HTTP status 401): Bearer; use `--sign-in` to sign in",
        ),
        (
            Says("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"),
            "requires authorization (HTTP status 403)",
        ),
        (
            Says(
                "HTTP/1.1 302 Found\r\nlocation: http://example.com/\r\ncontent-length: 0\r\n\r\n",
            ),
            "redirects to `http://example.com/`",
        ),
        (Trails(""), "did not answer within 1 s"),
        (Trails("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"), "did not answer"),
    ];
    for (manner, what) in strangers {
        let message = failure_at(&format!("http://{}/mcp", stranger(manner)));
        assert!(message.contains(what), "`{what}` is not in `{message}`");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let message = failure_at(&format!("https://{}/mcp", stranger(Blurts("220 smtp.example\r\n"))));
    assert!(message.contains("no secure connection"), "{message}");
}

#[test]
fn usage_errors_differ_from_failures() {
    let wrong: [&[&str]; 11] = [
        &[],
        &["frobnicate", "--", "x"],
        &["info"],
        &["info", "--bogus", "--", "x"],
        &["info", "--revision", "2020-01-01", "--", "x"],
        &["info", "--timeout", "soon", "--", "x"],
        &["call", "echo", "[1]", "--", "x"],
        &["info", "--url", "http://localhost/mcp", "--", "x"],
        &["info", "--url", "localhost/mcp"],
        &["info", "--url", "http://me:secret@localhost/mcp"],
        &["info", "--url"],
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
            &["--bogus"],
            &["--runtime", "x"],
        ] {
            assert_eq!(run(server, words).code, Some(2), "{server} {words:?}");
        }
        assert_eq!(run(server, ["--help"]).code, Some(0));
    }
    assert_eq!(run("mcp-inspect", ["--help"]).code, Some(0));
}
