//! The page of the guide shows the table of methods that both machines consult.

use std::fmt::Write as _;

use mcp_sansio::gate::{Allowance, Gate, MethodKind, Phase, Row, TABLE};
use mcp_sansio::{Revision, Revisions, Side};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/gate-table.md");

const HEAD: &str = "\
# Who may send what

`UPDATE_GUIDE=1 cargo test -p mcp-sansio --test schema the_guide_shows_the_table` writes this page from the table that
both machines consult, in `core/machine/src/gate/method.rs`. A message that a row forbids is refused before it is
sent, and answered with an error where it arrives.

\"When\" is the phase of a legacy session: *opening*, the first message; *always*, before
initialization is complete too; *operating*, after it. The modern revision has no phases. A gate is
a capability that the side before the colon must have declared.

";

#[test]
fn the_guide_shows_the_table_of_methods() {
    if std::env::var_os("UPDATE_GUIDE").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PAGE).unwrap(), page());
}

fn page() -> String {
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
    let gates: Vec<String> = gates.iter().map(|gate| gate_text(gate, revisions)).collect();
    let (method, revisions) = (&row.method, spelled(revisions));
    let (gates, note) = (gates.join("; "), row.note());
    let _ = writeln!(text, "| `{method}` | {side} | {revisions} | {when} | {gates} | {note} |");
}

fn gate_text(gate: &Gate, revisions: Revisions) -> String {
    let text = format!("{}: `{}`", gate.declared_by, gate.capability);
    match gate.revisions.intersection(revisions) {
        gated if gated == revisions => text,
        gated => format!("{text} ({})", spelled(gated)),
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
