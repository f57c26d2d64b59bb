//! The command line alone. The tests of the examples run the program with servers.

use std::process::Command;

#[test]
fn the_help_names_every_subcommand() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-inspect")).arg("--help").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let help = String::from_utf8(output.stdout).unwrap();
    let subcommands = [
        "info",
        "tools",
        "call",
        "resources",
        "read",
        "prompts",
        "get",
        "complete",
        "skills",
        "listen",
        "card",
        "check",
        "replay",
        "show",
        "completions",
    ];
    for subcommand in subcommands {
        assert!(help.contains(&format!("\n  {subcommand} ")), "{subcommand}: {help}");
    }
}

/// A server of both eras whose only answer to a call is in `ANSWER`.
#[cfg(unix)]
const SERVER: &str = r#"
    answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%[,\}]*}
        case $line in
        *'"server/discover"'*)
            answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;
        *'"initialize"'*)
            answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/call"'*) answer "$ANSWER" ;;
        esac
    done"#;

/// Calls a tool of [`SERVER`] and returns the output on standard error.
#[cfg(unix)]
fn failed_call(revision: &str, answer: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-inspect"))
        .args(["call", "t", "--timeout", "20", "--revision", revision, "--", "sh", "-c", SERVER])
        .env("ANSWER", answer)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
#[cfg(unix)]
fn another_revision_is_suggested_for_tools_that_cannot_ask_the_client() {
    // What servers on several SDKs answer at 2026-07-28.
    let answers = [
        r#""error":{"code":-32021,"message":"no"}"#,
        r#""error":{"code":-32600,"message":"no back-channel for 'roots/list'"}"#,
        r#""result":{"isError":true,"content":[{"type":"text","text":"Elicitation is unavailable"}]}"#,
        r#""result":{"isError":true,"content":[{"type":"text","text":"cannot send sampling/createMessage"}]}"#,
    ];
    for answer in answers {
        let advice = "try `--revision 2025-11-25`";
        let said = failed_call("2026-07-28", answer);
        assert!(said.contains(advice), "{said}");
        // The older revision is in use already.
        let said = failed_call("2025-11-25", answer);
        assert!(!said.contains(advice), "{said}");
    }
    let other = failed_call("2026-07-28", r#""error":{"code":-32603,"message":"disk full"}"#);
    assert_eq!(other, "mcp-inspect: the server answered with an error: disk full (-32603)\n");
}
