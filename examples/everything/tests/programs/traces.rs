//! Trace lines: the option `--trace` of the inspector and the server.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::process::{RUNTIMES, everything, on_stdio, run};

#[test]
fn the_inspector_prints_a_line_for_each_request() {
    for runtime in RUNTIMES {
        let options = ["tools", "--trace", "--revision", "2025-11-25", "--"];
        let options = options.into_iter().map(str::to_owned);
        let outcome = run("mcp-inspect", options.chain(everything(runtime)));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        for start in [
            "trace: sent initialize #1: ok, ",
            "trace: sent notifications/initialized: ok, ",
            "trace: sent tools/list #",
        ] {
            assert!(lines.iter().any(|line| line.starts_with(start)), "{start}: {outcome:?}");
        }
    }
}

#[test]
fn the_server_continues_the_trace_of_a_request() {
    let request = concat!(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"#,
        r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        "\n",
    );
    let bench_server = on_stdio("bench-server", "tokio");
    for command in RUNTIMES.map(everything).into_iter().chain([bench_server]) {
        let mut server = Command::new(&command[0])
            .args(&command[1..])
            .arg("--trace")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        server.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
        let output = server.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let is_meant = |line: &&str| line.starts_with("trace: received tools/list #7: ok, ");
        let line = stderr.lines().find(is_meant).unwrap_or_else(|| panic!("{command:?}: {stderr}"));
        assert!(line.contains(", trace 0af7651916cd43dd8448eb211c80319c span "), "{line}");
        assert!(line.ends_with(" parent 00f067aa0ba902b7"), "{line}");
    }
}
