//! Servers whose texts would control the terminal of the user.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// As JSON: writes to the clipboard, erases the screen, moves the cursor up, reverses text, and
/// returns to the start of the line.
const HOSTILE: &str =
    r"clip\u001b]52;c;ZXZpbA==\u0007 \u009b2J\u001b[1A rev\u202eersed\u2066 del\u007f cr\rforged";

/// Answers every request of a 2025-06-18 client, with hostile texts wherever a server may choose
/// one.
const SERVER: &str = r#"
    printf 'stderr \033]52;c;eA==\007\n' >&2
    case $MODE in noise) printf 'noise \033[2J\n' ;; esac
    say() { printf '%s\n' "$1"; }
    answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$1}}"; }
    content='[{"type":"text","text":"HOSTILE"},{"type":"resource_link","name":"n","uri":"x:HOSTILE"}]'
    while read -r line; do
        id=${line#*\"id\":}
        id=${id%%[,\}]*}
        case $line in
        *'"method":"initialize"'*)
            answer '"protocolVersion":"2025-06-18","instructions":"HOSTILE",
                "serverInfo":{"name":"HOSTILE","version":"HOSTILE"},
                "capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{},"completions":{}}' ;;
        *'"method":"notifications/'*) ;;
        *) case $MODE in
            exit) exit 3 ;;
            refuse) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32603,\"message\":\"HOSTILE\"}}" ;;
            omit) answer "\"tools\":[{\"name\":\"bad\",\"inputSchema\":\"HOSTILE\",\"_meta\":\"HOSTILE\"},{\"name\":\"good\",\"inputSchema\":{}}]" ;;
            fail) answer "\"isError\":true,\"content\":$content" ;;
            *) case $line in
                *'"method":"tools/list"'*)
                    answer '"tools":[{"name":"HOSTILE","description":"HOSTILE","inputSchema":{"type":"object"}}]' ;;
                *'"method":"tools/call"'*)
                    token=${line#*\"progressToken\":}
                    token=${token%%[,\}]*}
                    say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"HOSTILE\"}}"
                    say "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$token,\"progress\":1,\"message\":\"HOSTILE\"}}"
                    answer "\"content\":$content" ;;
                *'"method":"resources/list"'*) answer '"resources":[{"uri":"x:HOSTILE","name":"HOSTILE"}]' ;;
                *'"method":"resources/templates/list"'*)
                    answer '"resourceTemplates":[{"uriTemplate":"x:HOSTILE","name":"HOSTILE"}]' ;;
                *'"method":"resources/read"'*) answer '"contents":[{"uri":"x:a","text":"HOSTILE"}]' ;;
                *'"method":"prompts/list"'*) answer '"prompts":[{"name":"HOSTILE","description":"HOSTILE"}]' ;;
                *'"method":"prompts/get"'*)
                    answer '"messages":[{"role":"user","content":{"type":"text","text":"HOSTILE"}}]' ;;
                *'"method":"completion/complete"'*) answer '"completion":{"values":["HOSTILE"]}' ;;
                *) answer '' ;;
            esac ;;
        esac ;;
        esac
    done"#;

fn inspect(mode: &str, arguments: &[&str]) -> Output {
    let script = SERVER.replace("HOSTILE", HOSTILE);
    // A message is one line.
    let script = script
        .replace("\",\n                \"", "\",\"")
        .replace("},\n                \"", "},\"");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-inspect"));
    command.args(["--timeout", "20", "--revision", "2025-06-18"]).args(arguments);
    command.args(["--", "sh", "-c", &script]).env("MODE", mode).output().unwrap()
}

/// Returns whether a terminal may obey a character.
fn controls(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn no_text_of_a_server_controls_the_terminal() {
    let results: [&[&str]; 8] = [
        &["info"],
        &["tools"],
        &["call", "t"],
        &["resources"],
        &["read", "x:a"],
        &["prompts"],
        &["get", "p"],
        &["check"],
    ];
    let mut runs = Vec::new();
    for result in results {
        runs.push(("", result.to_vec()));
        runs.push(("", [result, &["--json"]].concat()));
    }
    runs.push(("", vec!["call", "t", "--wire"]));
    runs.push(("", vec!["call", "t", "--trace"]));
    for mode in ["exit", "refuse", "fail", "noise"] {
        runs.push((mode, vec!["call", "t"]));
    }
    runs.push(("omit", vec!["tools"]));
    for (mode, arguments) in runs {
        let output = inspect(mode, &arguments);
        let succeeds = ["", "noise", "omit"].contains(&mode);
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        let printed = printed.concat();
        assert_eq!(output.status.success(), succeeds, "{mode} {arguments:?}: {printed}");
        assert_eq!(printed.find(controls), None, "{mode} {arguments:?}: {printed:?}");
        let hostile = if mode == "exit" { r"stderr \u001b]52" } else { r"\u001b" };
        assert!(printed.contains(hostile), "{mode} {arguments:?}: {printed}");
    }
}

#[test]
fn a_malformed_tool_is_named_and_the_others_are_listed() {
    let output = inspect("omit", &["tools"]);
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(out, "good\n");
    let note = "mcp-inspect: note: left out of the result: `/tools/0`: `/_meta`: invalid type: string \"clip\\u001b]";
    assert_eq!(err.lines().filter(|line| line.starts_with(note)).count(), 1, "{err}");
}

#[test]
fn json_keeps_what_is_not_printed() {
    let output = inspect("", &["read", "x:a", "--json"]);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text: String = serde_json::from_str(&format!("\"{HOSTILE}\"")).unwrap();
    assert_eq!(result["contents"][0]["text"], text);
}

#[test]
fn only_its_owner_can_read_a_recording() {
    let folder = std::env::temp_dir().join(format!("mcp-inspect-recording-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = folder.join("one.jsonl");
    // One that others could read before.
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let path = file.to_str().unwrap();
    let output = inspect("", &["info", "--record", path]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(mode(&file), 0o600);
    let page = Command::new(env!("CARGO_BIN_EXE_mcp-inspect")).args(["show", path]).output();
    assert!(page.unwrap().status.success());
    assert_eq!(mode(&file.with_extension("html")), 0o600);
    std::fs::remove_dir_all(&folder).unwrap();
}
