//! Every feature at every revision, from `mcp-inspect` to `everything-server`.

use serde_json::{Value, json};

use crate::TEMPLATES;
use crate::process::{Outcome, RUNTIMES, everything, run};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Runs `mcp-inspect` with a server on `runtime`.
fn inspect(runtime: &str, words: &[&str]) -> Outcome {
    let mut arguments: Vec<String> = words.iter().map(|word| (*word).into()).collect();
    arguments.push("--".into());
    arguments.extend(everything(runtime));
    run("mcp-inspect", arguments)
}

/// Returns the output of a successful run.
fn printed(runtime: &str, words: &[&str]) -> String {
    let outcome = inspect(runtime, words);
    assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
    outcome.stdout
}

fn check(runtime: &str, words: &[&str]) -> Value {
    serde_json::from_str(&printed(runtime, &[&["check"], words].concat())).unwrap()
}

#[test]
fn every_revision_is_supported() {
    for runtime in RUNTIMES {
        for revision in REVISIONS {
            let summary = check(runtime, &["--revision", revision]);
            assert_eq!(summary["protocolVersion"], revision);
            assert_eq!(summary["ok"], true);
            assert_eq!(summary["serverInfo"]["name"], "everything-server");
            assert_eq!(summary["tools"][0], "test_simple_text");
            assert_eq!(summary["calls"][0]["text"], "hello");
            assert_eq!(summary["resourceTemplates"], json!(TEMPLATES));
            assert_eq!(summary["promptMessages"], 1);
        }
    }
}

#[test]
fn the_latest_revision_is_the_default() {
    for runtime in RUNTIMES {
        assert_eq!(check(runtime, &[])["protocolVersion"], "2026-07-28");
    }
}

#[test]
fn a_handler_that_asks_serves_both_eras() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let tool = "test_input_required_result_multiple_inputs";
        assert_eq!(
            printed("std", &["call", tool, "--revision", revision]),
            "Hello, hello! The model says: a made-up answer. There are 1 roots.\n"
        );
        let tool = "test_input_required_result_multi_round";
        assert_eq!(
            printed("tokio", &["call", tool, "--revision", revision]),
            "hello likes hello best.\n"
        );
    }
}

#[test]
fn a_tool_that_cannot_ask_reports_the_missing_capability() {
    let outcome = inspect(
        "std",
        &["call", "test_elicitation", r#"{"message":"m"}"#, "--revision", "2025-03-26"],
    );
    assert_eq!(outcome.code, Some(1));
    assert_eq!(
        outcome.stderr,
        "mcp-inspect: the tool failed: the client does not offer `elicitation`\n"
    );
}

#[test]
fn each_subcommand_prints_its_result() {
    for runtime in RUNTIMES {
        let print = |words: &[&str]| printed(runtime, words);
        assert!(print(&["info"]).contains("revision      2026-07-28\n"));
        assert!(print(&["tools"]).starts_with("test_simple_text  Returns a text\n"));
        assert!(print(&["prompts"]).contains("test_prompt_with_image  "));
        assert!(print(&["resources"]).ends_with(concat!(
            "test://template/{id}/data  template\n",
            "test://scoped/{id}/data  scoped-template\n"
        )));
        assert!(print(&["read", "test://template/7/data"]).contains("Data for ID: 7"));
        assert_eq!(print(&["call", "echo", r#"{"text":"hi"}"#]), "hi\n");
        let got = print(&["get", "test_prompt_with_arguments", r#"{"arg1":"a","arg2":2}"#]);
        assert_eq!(got, "user: Prompt with arguments: arg1='a', arg2='2'\n");
        let completed = print(&["complete", "prompt:test_prompt_with_arguments", "arg1", "par"]);
        assert_eq!(completed, "paris\npark\nparty\n");
        let json = print(&["call", "echo", r#"{"text":"hi"}"#, "--json", "--revision=2025-11-25"]);
        assert_eq!(json, "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n");
    }
}

#[test]
fn progress_and_log_messages_arrive_before_the_result() {
    for revision in REVISIONS {
        let outcome =
            inspect("tokio", &["call", "test_tool_with_progress", "--revision", revision]);
        assert_eq!(outcome.stderr.lines().count(), 3, "{outcome:?}");
        let outcome = inspect("std", &["call", "test_tool_with_logging", "--revision", revision]);
        assert_eq!(outcome.stderr.matches("log: ").count(), 3, "{outcome:?}");
    }
}

#[test]
fn the_wire_is_shown_both_ways() {
    let outcome = inspect("std", &["info", "--wire", "--revision", "2025-11-25"]);
    let shown: Vec<&str> = outcome.stderr.lines().map(|line| &line[..5]).collect();
    assert_eq!(shown, ["--> {", "<-- {", "--> {"]);
}

#[test]
fn listening_ends_after_the_timeout() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let words =
            ["listen", "test://watched-resource", "--timeout", "0.3", "--revision", revision];
        let outcome = inspect("tokio", &words);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stderr.starts_with("listening: {"), "{outcome:?}");
    }
}
