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

/// A server of both eras whose only answer to a call is in `ANSWER`. It writes `START` first.
#[cfg(unix)]
const SERVER: &str = r#"
    printf "$START"
    answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%[,\}]*}
        case $line in
        *'"server/discover"'*)
            answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;
        *'"initialize"'*)
            answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"tools/list"'*) answer '"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) answer "$ANSWER" ;;
        esac
    done"#;

/// Runs a subcommand with [`SERVER`], and returns the exit status, the output and what is on
/// standard error.
#[cfg(unix)]
fn inspect(revision: &str, words: &[&str], answer: &str) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-inspect"))
        .args(words)
        .args(["--timeout", "20", "--revision", revision, "--", "sh", "-c", SERVER])
        .envs([("ANSWER", answer), ("START", r"\357\273\277")])
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.code(), out, err)
}

/// Calls a tool of [`SERVER`] and returns the output on standard error.
#[cfg(unix)]
fn failed_call(revision: &str, answer: &str) -> String {
    let (status, out, err) = inspect(revision, &["call", "t"], answer);
    assert_eq!((status, &*out), (Some(1), ""), "{err}");
    err
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

#[test]
#[cfg(unix)]
fn structured_content_is_shown_where_the_content_shows_nothing() {
    let call = |answer: &str| inspect("2025-11-25", &["call", "t"], answer);
    for content in ["", r#""content":[],"#, r#""content":[{"type":"text","text":""}],"#] {
        let answer = format!(r#""result":{{{content}"structuredContent":{{"a":1}}}}"#);
        assert_eq!(call(&answer), (Some(0), "{\"a\":1}\n".into(), String::new()));
        let (_, out, err) = inspect("2025-11-25", &["check"], &answer);
        assert!(out.contains(r#""text": "{\"a\":1}""#), "{out} {err}");
        let failed = answer.replace("structured", r#"isError":true,"structured"#);
        let why = "mcp-inspect: the tool failed: {\"a\":1}\n";
        assert_eq!(call(&failed), (Some(1), String::new(), why.into()));
        let (status, out, err) = inspect("2025-11-25", &["--json", "call", "t"], &failed);
        assert!(out.contains("\"isError\":true") && out.contains("{\"a\":1}"), "{out}");
        assert_eq!((status, err.as_str()), (Some(1), why));
    }
    let text = r#""result":{"content":[{"type":"text","text":"b"}],"structuredContent":{"a":1}}"#;
    assert_eq!(call(text), (Some(0), "b\n".into(), String::new()));
}

#[test]
#[cfg(unix)]
fn json_output_is_what_the_server_wrote() {
    let written =
        r#"{"own":{"b":1.0,"a":2},"content":[{"type":"hologram","x":[]}],"structuredContent":[1]}"#;
    let answer = format!("\"result\":{written}");
    let printed = inspect("2025-11-25", &["--json", "call", "t"], &answer);
    assert_eq!(printed, (Some(0), format!("{written}\n"), String::new()));
    let printed = inspect("2025-11-25", &["call", "t"], &answer);
    assert_eq!(printed.1, "{\"type\":\"hologram\",\"x\":[]}\n");
}

#[test]
#[cfg(unix)]
fn a_result_without_content_is_remarked() {
    let remark = "mcp-inspect: note: the result has neither content nor structured content\n";
    let called = inspect("2025-11-25", &["call", "t"], r#""result":{"toolResult":"x"}"#);
    assert_eq!(called, (Some(0), "\n".into(), remark.into()));
    let said = failed_call("2025-11-25", r#""result":{"task":{"taskId":"1","status":"working"}}"#);
    assert_eq!(
        said,
        "mcp-inspect: the answer is not valid: a task, which the call does not request\n"
    );
    let said = failed_call("2025-11-25", r#""result":{"isError":true}"#);
    assert_eq!(said, "mcp-inspect: the tool failed: the result does not say why\n");
}

#[test]
#[cfg(unix)]
fn the_data_of_an_error_is_shown() {
    let call = |error: &str| failed_call("2025-11-25", &format!("\"error\":{error}"));
    let said = call(r#"{"code":-32603,"message":"","data":"the disk is full"}"#);
    let prefix = "mcp-inspect: the server answered with an error: ";
    assert_eq!(said, format!("{prefix}(-32603); data: the disk is full\n"));
    let said = call(r#"{"code":-32020,"message":"`Mcp-Method` is missing"}"#);
    assert!(said.contains("something on the way may remove it"), "{said}");
    let said = call(r#"{"code":1,"message":"no","data":{"a":[1]}}"#);
    assert_eq!(said, format!("{prefix}no (1); data: {{\"a\":[1]}}\n"));
    let said = call(&format!(r#"{{"code":1,"message":"no","data":"{}"}}"#, "ä".repeat(9000)));
    assert_eq!(said, format!("{prefix}no (1); data: {}...\n", "ä".repeat(400)));
    let said = call(
        r#"{"code":-32042,"message":"sign in","data":{"elicitations":[
            {"mode":"url","elicitationId":"1","message":"to A","url":"https://a.example/1"},
            {"mode":"url","elicitationId":"2","message":"to B","url":"https://b.example/2"}]}}"#
            .replace('\n', "")
            .as_str(),
    );
    let urls =
        "; to go on, open https://a.example/1: to A; to go on, open https://b.example/2: to B";
    assert_eq!(said, format!("{prefix}sign in (-32042){urls}\n"));
    let said = call(
        r#"{"code":-32042,"message":"sign in","data":{"elicitations":[{"mode":"url","elicitationId":"1","message":"to A","url":"javascript:alert(1)"}]}}"#,
    );
    assert!(said.starts_with(&format!("{prefix}sign in (-32042)")), "{said}");
    assert!(!said.contains("to go on"), "{said}");
}

#[test]
fn a_configuration_says_why_it_has_no_such_server() {
    let file = std::env::temp_dir().join(format!("mcp-inspect-{}.json", std::process::id()));
    let refused = |servers: &str, name: &str| {
        std::fs::write(&file, format!(r#"{{"mcpServers":{{{servers}}}}}"#)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-inspect"));
        let output = command.arg("--config").arg(&file).args([name, "info"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let disabled = r#""a":{"command":"x","disabled":true}"#;
    let said = refused(disabled, "a");
    assert!(said.contains(": the server `a` is disabled\n"), "{said}");
    let said = refused(disabled, "b");
    assert!(said.contains(" has no server of this name, but no servers\n"), "{said}");
    let said = refused(r#""c":{"command":"x"},"d":{}"#, "b");
    assert!(said.contains(" has no server of this name, but c, d\n"), "{said}");
    std::fs::remove_file(&file).unwrap();
}
