//! Whatever is wrong with a server, `mcp-inspect` says so in one message and in time.

use std::time::{Duration, SystemTime};

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
fn last_words_are_passed_on() {
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
        assert!(message.contains("lines that are no messages"), "{message}");
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

#[test]
fn a_wrong_use_is_told_from_a_failure() {
    let wrong: [&[&str]; 8] = [
        &[],
        &["frobnicate", "--", "x"],
        &["info"],
        &["info", "--bogus", "--", "x"],
        &["info", "--revision", "2020-01-01", "--", "x"],
        &["info", "--timeout", "soon", "--", "x"],
        &["call", "echo", "[1]", "--", "x"],
        &["info", "--url", "http://localhost/mcp"],
    ];
    for words in wrong {
        let outcome = run("mcp-inspect", words);
        assert_eq!(outcome.code, Some(2), "{words:?}: {outcome:?}");
        assert!(outcome.stderr.starts_with("mcp-inspect: "), "{outcome:?}");
    }
    for server in ["everything-server", "bench-server"] {
        for words in [&[][..], &["--http", "127.0.0.1:0"], &["--bogus"], &["--runtime", "x"]] {
            assert_eq!(run(server, words).code, Some(2), "{server} {words:?}");
        }
        assert_eq!(run(server, ["--help"]).code, Some(0));
    }
    assert_eq!(run("mcp-inspect", ["--help"]).code, Some(0));
}
