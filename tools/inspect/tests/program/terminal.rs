//! What is printed on a terminal, and in a pipe.
#![cfg(unix)]

use std::process::{Command, Output, Stdio};

use crate::INSPECT;

/// A server with two tools, one of which reports its progress.
const SERVER: &str = r#"
    say() { printf '%s\n' "$1"; }
    answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$1}}"; }
    progress() {
        say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$token,$1}}"
    }
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%[,\}]*}
        case $line in
        *'"initialize"'*)
            answer '"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}' ;;
        *'"tools/list"'*)
            answer '"tools":[{"name":"brew","description":"Makes tea\nin a pot","inputSchema":{"type":"object"}},{"name":"pour-out","inputSchema":{"type":"object"}}]' ;;
        *'"name":"fail"'*) answer '"isError":true,"content":[{"type":"text","text":"no water"}]' ;;
        *'"tools/call"'*)
            token=${line#*\"progressToken\":}
            token=${token%%[,\}]*}
            progress '"progress":1,"total":4,"message":"heating"'
            progress '"progress":3,"total":4,"message":"\u001b[2J"'
            answer '"content":[{"type":"text","text":"tea"}]' ;;
        esac
    done"#;

fn with_server(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(program)
        .args(arguments)
        .env_remove("NO_COLOR")
        .envs([("INSPECT", INSPECT), ("SERVER", SERVER), ("SHELL", "/bin/sh"), ("TERM", "xterm")])
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs the program on a terminal, and returns what it shows.
fn on_terminal(arguments: &str, environment: &[(&str, &str)]) -> Option<String> {
    // Of util-linux, which every distribution has; others name other options.
    let script = test_programs::find(&["script"])?;
    let line =
        format!(r#""$INSPECT" --timeout 20 --revision 2025-11-25 {arguments} -- sh -c "$SERVER""#);
    let output = with_server(script, &["-qec", &line, "/dev/null"], environment);
    Some(String::from_utf8(output.stdout).unwrap())
}

fn in_pipe(arguments: &[&str]) -> Output {
    let options = ["--timeout", "20", "--revision", "2025-11-25"];
    let arguments: Vec<_> =
        options.iter().chain(arguments).chain(&["--", "sh", "-c", SERVER]).copied().collect();
    with_server(INSPECT, &arguments, &[])
}

#[test]
#[cfg(target_os = "linux")]
fn a_list_is_a_table_on_a_terminal() {
    let Some(shown) = on_terminal("tools", &[]) else { return };
    let table =
        "\x1b[1mbrew    \x1b[0m  Makes tea\r\n          in a pot\r\n\x1b[1mpour-out\x1b[0m  \r\n";
    assert!(shown.contains(table), "{shown:?}");
    let plain = "brew      Makes tea\r\n          in a pot\r\npour-out  \r\n";
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = on_terminal("tools", &[environment]).unwrap();
        assert!(shown.contains(plain) && !shown.contains('\x1b'), "{shown:?}");
    }
    let coloured = on_terminal("tools", &[("NO_COLOR", "")]).unwrap();
    assert!(coloured.contains(table), "{coloured:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn progress_is_a_bar_on_a_terminal_which_the_result_replaces() {
    let Some(shown) = on_terminal("call brew", &[]) else { return };
    let bars = [
        "\r\x1b[K[######------------------]  25 % heating",
        "\r\x1b[K[##################------]  75 % \\u001b[2J",
        "\r\x1b[Ktea\r\n",
    ];
    assert!(shown.contains(&bars.concat()), "{shown:?}");
    for (arguments, environment) in
        [("call brew --wire", ("A", "")), ("call brew", ("TERM", "dumb"))]
    {
        let shown = on_terminal(arguments, &[environment]).unwrap();
        assert!(shown.contains("progress: 1 of 4: heating\r\n"), "{shown:?}");
        assert!(!shown.contains("25 %"), "{shown:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_failure_is_red_on_a_terminal() {
    let Some(shown) = on_terminal("call fail", &[]) else { return };
    let failure = "\x1b[31mmcp-inspect:\x1b[0m the tool failed: no water\r\n";
    assert!(shown.contains(failure), "{shown:?}");
}

#[test]
fn in_a_pipe_there_are_lines_without_control_sequences() {
    let listed = in_pipe(&["tools"]);
    assert_eq!(listed.stdout, b"brew  Makes tea in a pot\npour-out\n", "{listed:?}");
    let called = in_pipe(&["call", "brew"]);
    assert_eq!(called.stdout, b"tea\n", "{called:?}");
    let progress = "progress: 1 of 4: heating\nprogress: 3 of 4: \\u001b[2J\n";
    assert_eq!(String::from_utf8_lossy(&called.stderr), progress);
    let failed = in_pipe(&["call", "fail"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert_eq!(failed.stderr, b"mcp-inspect: the tool failed: no water\n", "{failed:?}");
}
