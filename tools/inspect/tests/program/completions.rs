//! The scripts of `completions`, in the shells that read them.
#![cfg(unix)]

use std::process::Command;

use crate::INSPECT;

fn script(shell: &str) -> String {
    let output = Command::new(INSPECT).args(["completions", shell]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn run(shell: &str, arguments: &[&str]) -> String {
    let output = Command::new(shell).args(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what bash suggests for the last word.
fn in_bash(script: &str, words: &[&str]) -> String {
    let code = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _mcp_inspect; echo \"${{COMPREPLY[*]}}\"",
        words.join(" "),
        words.len() - 1
    );
    run("bash", &["-c", &code]).trim_end().to_owned()
}

#[test]
fn bash_completes_subcommands_options_and_values() {
    let Some(_) = test_programs::find(&["bash"]) else { return };
    let script = script("bash");
    for (words, suggested) in [
        (&["mcp-inspect", "ca"] as &[_], "call card"),
        (&["mcp-inspect", "--json", "sk"], "skills"),
        (&["mcp-inspect", "comp"], "complete completions"),
        (&["mcp-inspect", "--re"], "--revision --record --read-only"),
        (&["mcp-inspect", "check", "--read"], "--read-only"),
        (&["mcp-inspect", "--revision", "2025-0"], "2025-03-26 2025-06-18"),
        (&["mcp-inspect", "--runtime", "t"], "tokio"),
        (&["mcp-inspect", "--header", "t"], ""),
        // Left to the completion of files.
        (&["mcp-inspect", "show", "ca"], ""),
        (&["mcp-inspect", "tools", "--", "ca"], ""),
        (&["mcp-inspect", "tools", "--", "--re"], ""),
    ] {
        assert_eq!(in_bash(&script, words), suggested, "{words:?}");
    }
    let file = format!("{}/Cargo.tom", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(in_bash(&script, &["mcp-inspect", "--config", &file]), file + "l");
}

#[test]
fn fish_completes_subcommands_options_and_values() {
    let Some(fish) = test_programs::find(&["fish"]) else { return };
    let script = script("fish");
    for (line, suggested) in [
        ("mcp-inspect ca", "call\tcalls a tool with arguments, a JSON object"),
        ("mcp-inspect check --read", "--read-only\twith check"),
        ("mcp-inspect --revision 2025-1", "2025-11-25\t"),
    ] {
        let code = format!("{script}\ncomplete -C '{line}'");
        let suggestions = run(fish, &["--no-config", "-c", &code]);
        assert!(suggestions.contains(suggested), "{line}: {suggestions}");
    }
}

#[test]
fn zsh_reads_its_script() {
    let Some(zsh) = test_programs::find(&["zsh"]) else { return };
    let script = script("zsh");
    assert!(script.starts_with("#compdef mcp-inspect\n"), "{script}");
    // The arguments of `_arguments`, as the shell reads them.
    let code = format!("_arguments() {{ print -rl -- $@ }}\n{script}");
    let arguments = run(zsh, &["-f", "-c", &code]);
    for expected in ["--json[print results as JSON]\n", "--config[", ":file:_files\n", "call\\:\""]
    {
        assert!(arguments.contains(expected), "{expected}: {arguments}");
    }
}

#[test]
fn an_unknown_shell_is_a_wrong_command_line() {
    for arguments in [&["completions"] as &[_], &["completions", "tcsh"]] {
        let output = Command::new(INSPECT).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("bash, zsh"), "{output:?}");
    }
}
