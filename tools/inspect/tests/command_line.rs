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
    ];
    for subcommand in subcommands {
        assert!(help.contains(&format!("\n  {subcommand} ")), "{subcommand}: {help}");
    }
}
