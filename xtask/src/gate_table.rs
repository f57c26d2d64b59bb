//! The table of methods as Markdown, generated from the table that the machines use.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mcp_sansio::protocol::{Allowance, Gate, MethodKind, Phase, Row, Side, TABLE};
use mcp_sansio::{Revision, Revisions};

use crate::Failure;
use crate::files::root;

/// The page that shows the table.
const DOCUMENT: &str = "docs/guide/gate-table.md";

const HEAD: &str = "\
# Who may send what

Printed by `cargo run -p xtask -- gate-table --write` from the table that both machines consult, in
`core/machine/src/protocol/method.rs`. A message that a row forbids is refused before it is sent, and
answered with an error where it arrives.

\"When\" is the phase of a legacy session: *opening*, the first message; *always*, before
initialization is complete too; *operating*, after it. The modern revision has no phases. A gate is
a capability that the side before the colon must have declared.

";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let path = root().join(DOCUMENT);
    match arguments {
        [] => {
            print!("{}", document());
            Ok(())
        }
        ["--write"] => Ok(fs::write(path, document())?),
        ["--check"] => check(&path),
        _ => Err(Failure::Unable(String::from(
            "unknown arguments: `gate-table` takes --write, --check or nothing",
        ))),
    }
}

fn check(path: &Path) -> Result<(), Failure> {
    if fs::read_to_string(path)? == document() {
        println!("{DOCUMENT} is up to date");
        return Ok(());
    }
    let remedy = "run `cargo run -p xtask -- gate-table --write`";
    Err(Failure::Failed(format!("{DOCUMENT} is not up to date; {remedy}")))
}

fn document() -> String {
    let mut text = String::from(HEAD);
    for (title, kind) in
        [("Requests", MethodKind::Request), ("Notifications", MethodKind::Notification)]
    {
        let _ = writeln!(text, "## {title}\n");
        text.push_str("| Method | Sent by | Revisions | When | Gate | Remark |\n");
        text.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for row in TABLE.iter().filter(|row| row.kind == kind) {
            for side in [Side::Client, Side::Server] {
                line(&mut text, row, side);
            }
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn line(text: &mut String, row: &Row, side: Side) {
    let Allowance { revisions, phase, gates, .. } = *row.side(side);
    if revisions.is_empty() {
        return;
    }
    let when = match phase {
        Phase::Opening => "opening",
        Phase::Always => "always",
        Phase::Operating => "operating",
        other => unreachable!("{other:?} has no name in the table"),
    };
    let _ = writeln!(
        text,
        "| `{}` | {side} | {} | {when} | {} | {} |",
        row.method,
        spelled(revisions),
        gates.iter().map(|gate| gate_text(gate, revisions)).collect::<Vec<_>>().join("; "),
        row.note(),
    );
}

fn gate_text(gate: &Gate, revisions: Revisions) -> String {
    let text = format!("{}: `{}`", gate.declared_by, gate.capability);
    if gate.revisions.intersection(revisions) == revisions {
        text
    } else {
        format!("{text} ({})", spelled(gate.revisions.intersection(revisions)))
    }
}

/// Formats a contiguous set of revisions: one, or the first and the last.
fn spelled(revisions: Revisions) -> String {
    let members: Vec<Revision> = revisions.iter().collect();
    match members[..] {
        _ if revisions == Revisions::ALL => String::from("all"),
        [] => String::from("none"),
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
