//! Every feature over HTTP, from the example clients to the example servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::TEMPLATES;
use crate::http_server_process::HttpServerProcess;
use crate::process::{Outcome, run, run_in};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The transports by their paths: Streamable HTTP and HTTP+SSE.
const PATHS: [&str; 2] = ["/mcp", "/sse"];

fn inspect(url: &str, words: &[&str]) -> Outcome {
    run("mcp-inspect", words.iter().copied().chain(["--url", url]))
}

/// Returns the output of a successful run.
fn printed(url: &str, words: &[&str]) -> String {
    let outcome = inspect(url, words);
    assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
    outcome.stdout
}

/// Runs a check for each item at the same time, because most of each is waiting.
fn for_each<T: Copy + Send>(items: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    thread::scope(|scope| {
        for item in items {
            let check = &check;
            scope.spawn(move || check(item));
        }
    });
}

fn check(url: &str, words: &[&str]) -> Value {
    serde_json::from_str(&printed(url, &[&["check"], words].concat())).unwrap()
}

#[test]
fn every_revision_is_supported_at_one_address() {
    let http_server = HttpServerProcess::everything();
    for revision in REVISIONS {
        let summary = check(&http_server.url("/mcp"), &["--revision", revision]);
        assert_eq!(summary["protocolVersion"], revision);
        assert_eq!(summary["ok"], true);
        assert_eq!(summary["calls"][0]["text"], "hello");
        assert_eq!(summary["resourceTemplates"], json!(TEMPLATES));
        assert_eq!(summary["promptMessages"], 1);
    }
    assert_eq!(check(&http_server.url("/mcp"), &[])["protocolVersion"], "2026-07-28");
}

#[cfg(unix)]
#[test]
fn clients_and_servers_use_unix_domain_sockets() {
    let folder = std::env::temp_dir().join(format!("mcp-local-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mcp.sock");
    for runtime in ["tokio", "smol", "async-std", "std"] {
        // The previous server was killed and left its socket behind.
        let _http_server = HttpServerProcess::unix(&path, &["--runtime", runtime]);
        let words = ["check", "--unix", path.to_str().unwrap()];
        for url in [&[][..], &["--url", "http://localhost/mcp"]] {
            let outcome = run("mcp-inspect", words.iter().chain(url).copied());
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            let summary: Value = serde_json::from_str(&outcome.stdout).unwrap();
            assert_eq!(summary["ok"], true);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_runs_with_any_runtime_or_without_one() {
    for_each(crate::process::RUNTIMES, |runtime| {
        let http_server =
            HttpServerProcess::start("everything-server", &["--legacy-sse", "--runtime", runtime]);
        let url = http_server.url("/mcp");
        for revision in REVISIONS {
            let words = ["--revision", revision];
            assert_eq!(check(&url, &words)["ok"], true);
            let call = |tool| inspect(&url, &[&words[..], &["call", tool]].concat());
            let outcome = call("test_tool_with_progress");
            assert_eq!(outcome.stderr.matches("progress: ").count(), 3, "{outcome:?}");
        }
        for revision in &REVISIONS[2..] {
            let tool = "test_input_required_result_multi_round";
            let words = ["--revision", revision, "call", tool];
            assert_eq!(printed(&url, &words), "hello likes hello best.\n");
        }
        let words = ["call", "test_reconnection", "--revision", "2025-11-25"];
        assert_eq!(printed(&url, &words), "The result was worth the wait.\n");
        let words = ["--revision", "2025-11-25"];
        assert_eq!(check(&http_server.url("/sse"), &words)["calls"][0]["text"], "hello");
    });
}

#[test]
fn the_old_transport_is_detected_by_its_url() {
    let http_server = HttpServerProcess::everything();
    for revision in &REVISIONS[..4] {
        let summary = check(&http_server.url("/sse"), &["--revision", revision]);
        assert_eq!(summary["protocolVersion"], *revision);
        assert_eq!(summary["calls"][0]["text"], "hello");
    }
    assert_eq!(check(&http_server.url("/sse"), &[])["protocolVersion"], "2025-11-25");
}

#[test]
fn each_subcommand_prints_its_result() {
    let http_server = HttpServerProcess::everything();
    for path in PATHS {
        let print = |words: &[&str]| printed(&http_server.url(path), words);
        let revision = if path == "/mcp" { "2026-07-28" } else { "2025-11-25" };
        assert!(print(&["info"]).contains(&format!("revision      {revision}\n")));
        assert!(print(&["tools"]).starts_with("test_simple_text  Returns a text\n"));
        assert!(print(&["prompts"]).contains("test_prompt_with_image  "));
        assert!(print(&["resources"]).ends_with(concat!(
            "test://template/{id}/data  template\n",
            "test://scoped/{id}/data  scoped-template\n"
        )));
        assert!(print(&["read", "test://template/7/data"]).contains("Data for ID: 7"));
        assert_eq!(print(&["call", "echo", r#"{"text":"hi"}"#]), "hi\n");
        // A tool whose argument is also sent in a header.
        assert_eq!(print(&["call", "test_custom_header", r#"{"value":"Zoë"}"#]), "Zoë\n");
        let got = print(&["get", "test_prompt_with_arguments", r#"{"arg1":"a","arg2":2}"#]);
        assert_eq!(got, "user: Prompt with arguments: arg1='a', arg2='2'\n");
        let completed = print(&["complete", "prompt:test_prompt_with_arguments", "arg1", "par"]);
        assert_eq!(completed, "paris\npark\nparty\n");
        let json = print(&["call", "echo", r#"{"text":"hi"}"#, "--json", "--revision=2025-11-25"]);
        assert_eq!(json, "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n");
    }
}

#[test]
fn a_handler_that_asks_serves_both_eras() {
    let http_server = HttpServerProcess::everything();
    for (path, revision) in [
        ("/mcp", "2025-06-18"),
        ("/mcp", "2025-11-25"),
        ("/mcp", "2026-07-28"),
        ("/sse", "2025-11-25"),
    ] {
        let print = |tool| printed(&http_server.url(path), &["call", tool, "--revision", revision]);
        assert_eq!(
            print("test_input_required_result_multiple_inputs"),
            "Hello, hello! The model says: a made-up answer. There are 1 roots.\n"
        );
        assert_eq!(print("test_input_required_result_multi_round"), "hello likes hello best.\n");
    }
}

#[test]
fn progress_and_log_messages_arrive_before_the_result() {
    let http_server = HttpServerProcess::everything();
    for revision in REVISIONS {
        let call =
            |tool| inspect(&http_server.url("/mcp"), &["call", tool, "--revision", revision]);
        let outcome = call("test_tool_with_progress");
        assert_eq!(outcome.stderr.matches("progress: ").count(), 3, "{outcome:?}");
        let outcome = call("test_tool_with_logging");
        assert_eq!(outcome.stderr.matches("log: ").count(), 3, "{outcome:?}");
    }
}

#[test]
fn a_client_reconnects_for_long_work() {
    let http_server = HttpServerProcess::everything();
    let words = ["call", "test_reconnection", "--wire", "--revision", "2025-11-25"];
    let outcome = inspect(&http_server.url("/mcp"), &words);
    assert_eq!(outcome.stdout, "The result was worth the wait.\n", "{outcome:?}");
    assert!(outcome.stderr.contains("last-event-id: "), "{outcome:?}");
}

#[test]
fn listening_prints_changes_and_ends_after_the_timeout() {
    let http_server = HttpServerProcess::everything();
    let visitors = [("/mcp", "2025-11-25"), ("/mcp", "2026-07-28"), ("/sse", "2025-11-25")];
    let listeners = visitors.map(|(path, revision)| {
        let url = http_server.url(path);
        let words = ["listen", "test://watched-resource", "--timeout", "3", "--revision", revision];
        (path, revision, thread::spawn(move || inspect(&url, &words)))
    });
    // Repeat until all clients listen, as the timeout allows.
    for _ in 0..6 {
        thread::sleep(Duration::from_millis(300));
        printed(&http_server.url("/mcp"), &["call", "test_trigger_tool_change"]);
        printed(&http_server.url("/mcp"), &["call", "test_touch_watched_resource"]);
    }
    for (path, revision, listener) in listeners {
        let outcome = listener.join().unwrap();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stderr.starts_with("listening: {"), "{outcome:?}");
        for method in ["notifications/tools/list_changed", "notifications/resources/updated"] {
            assert!(outcome.stdout.contains(method), "{revision} {path}: {outcome:?}");
        }
    }
}

#[test]
fn exchanges_are_shown_without_secrets_and_the_session_ends() {
    let http_server = HttpServerProcess::everything();
    let words = ["info", "--wire", "--revision", "2025-11-25"];
    let shown = inspect(&format!("{}?key=secret", http_server.url("/mcp")), &words).stderr;
    for part in [
        "--> [1] POST http://",
        "/mcp?..\n",
        "\n      content-type: application/json\n",
        "\n      {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",",
        "\n<-- [1] 200\n",
        "\n      mcp-session-id: ..\n",
        "\n      mcp-protocol-version: 2025-11-25\n",
        "] DELETE http://",
        "] 204\n",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert_eq!(shown.matches("mcp-session-id: ").count(), shown.matches("-id: ..\n").count());
    assert!(!shown.contains("secret"), "{shown}");

    let shown = inspect(&http_server.url("/sse"), &["info", "--wire"]).stderr;
    assert!(shown.contains("event `endpoint`\n      /messages?..\n"), "{shown}");
}

#[test]
fn ids_of_events_that_contain_the_session_id_are_not_shown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length, mut is_post) = (String::new(), 0, false);
            while line != "\r\n" {
                line.clear();
                assert_ne!(stream.read_line(&mut line).unwrap(), 0, "a request");
                is_post |= line.starts_with("POST ");
                if let Some(count) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = count.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let is_initialize = String::from_utf8(body).unwrap().contains(r#""initialize""#);
            let answer = match (is_post, is_initialize) {
                (true, true) => {
                    "200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\
                     mcp-session-id: opensesame\r\n\r\nid: opensesame_1\ndata: {\"jsonrpc\":\"2.0\",\
                     \"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\
                     \"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}\n\n"
                }
                (true, false) => "202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                _ => "405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            };
            stream.get_mut().write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
        }
    });
    let shown = inspect(&url, &["info", "--wire", "--revision", "2025-11-25"]).stderr;
    assert!(shown.contains("event `message`, id ..\n"), "{shown}");
    assert!(!shown.contains("opensesame"), "{shown}");
}

#[test]
fn a_header_of_the_user_is_sent_and_its_value_is_not_shown() {
    let http_server = HttpServerProcess::everything();
    let url = http_server.url("/mcp");
    let outcome = inspect(&url, &["info", "--wire", "--header", "X-Api-Key: opensesame"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("\n      x-api-key: ..\n"), "{outcome:?}");
    assert!(!outcome.stderr.contains("opensesame"), "{outcome:?}");
    for header in ["opensesame", "Host: opensesame", "X-Api-Key: opensesame\n"] {
        let outcome = inspect(&url, &["info", "--header", header]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(!outcome.stderr.contains("opensesame"), "{outcome:?}");
    }
}

#[test]
fn a_check_calls_only_tools_that_are_read_only_if_asked() {
    let calls = |server: &HttpServerProcess, words: &[&str]| {
        check(&server.url("/mcp"), words)["calls"].clone()
    };
    // No tool of this one is annotated.
    let bench_server = HttpServerProcess::start("bench-server", &[]);
    assert_eq!(calls(&bench_server, &[])[0]["tool"], "echo");
    assert_eq!(calls(&bench_server, &["--read-only"]), json!([]));
    let http_server = HttpServerProcess::everything();
    for revision in REVISIONS {
        let called = calls(&http_server, &["--read-only", "--revision", revision]);
        // The first revision has no annotations.
        let expected = if revision == "2024-11-05" { json!(null) } else { json!("echo") };
        assert_eq!(called[0]["tool"], expected, "{revision}: {called}");
    }
    // Tools that change something are not annotated.
    let listed = printed(&http_server.url("/mcp"), &["tools", "--json"]);
    let tools = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let changes = tools.filter(|tool| tool["annotations"]["readOnlyHint"] != true);
    let changes: Vec<_> = changes.map(|tool| tool["name"].clone()).collect();
    for name in ["trigger_tool_change", "trigger_prompt_change", "touch_watched_resource"] {
        assert!(changes.contains(&json!(format!("test_{name}"))), "{changes:?}");
    }
    assert_eq!(inspect(&http_server.url("/mcp"), &["tools", "--read-only"]).code, Some(2));
}

#[test]
fn a_client_uses_every_feature() {
    let http_server = HttpServerProcess::everything();
    // Older revisions do not support elicitation, which some of the tools need.
    for_each(&REVISIONS[2..], |revision| {
        let environment = [("MCP_CONFORMANCE_PROTOCOL_VERSION", *revision)];
        let outcome = run_in("everything-client", [http_server.url("/mcp")], &environment);
        assert_eq!(outcome.code, Some(0), "{revision}: {outcome:?}");
    });
    for_each(PATHS, |path| {
        let outcome = run("everything-client", [http_server.url(path)]);
        assert_eq!(outcome.code, Some(0), "{path}: {outcome:?}");
    });
}

#[test]
fn every_step_of_the_benchmark_is_reported() {
    let http_server = HttpServerProcess::start("bench-server", &[]);
    for revision in ["2025-11-25", "2026-07-28"] {
        let words = ["call", "progress", r#"{"count":3000}"#, "--revision", revision];
        let outcome = inspect(&http_server.url("/mcp"), &words);
        assert_eq!(outcome.stdout, "3000 steps\n");
        assert_eq!(outcome.stderr.lines().count(), 3000);
        let words = ["read", "mem://blob", "--revision", revision];
        assert_eq!(printed(&http_server.url("/mcp"), &words).len(), 64 * 1024 + 1);
        let words = ["call", "add", r#"{"a":2,"b":3}"#, "--revision", revision];
        assert_eq!(printed(&http_server.url("/mcp"), &words), "5\n");
    }
}
