//! Which messages each side may send, at which revisions, and with which capabilities.

use mcp_sansio::Side;

use crate::capabilities::{Capabilities, TASKS_EXTENSION};

/// The revisions, oldest first.
pub(crate) const VERSIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

pub(crate) const MODERN: &str = "2026-07-28";

/// The sender, the method, the revisions by the letters of [`letter`], and the capabilities that
/// the server and the client must have declared.
type Row = (Sender, &'static str, &'static str, &'static str, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Server,
    Either,
}

use Sender::{Client, Either, Server};

/// The unions `ClientRequest`, `ServerRequest`, `ClientNotification` and `ServerNotification` of
/// each schema.json and of the tasks extension, and the capabilities that the specification
/// requires.
// [CAP-001] [CAP-002] [CAP-003] [CAP-004] [CAP-005] [CAP-006] [CAP-007] [CAP-008] [CAP-009].
// [CAP-011] [CAP-016] [CAP-018] [CAP-025] [LIFE-020] [PING-005] [LOG-006] [ROOT-005] [RPC-030].
const TABLE: &[Row] = &[
    (Client, "initialize", "ABCD", "", ""),
    (Client, "server/discover", "E", "", ""),
    (Either, "ping", "ABCD", "", ""),
    (Client, "tools/list", "ABCDE", "tools", ""),
    (Client, "tools/call", "ABCDE", "tools", ""),
    (Client, "resources/list", "ABCDE", "resources", ""),
    (Client, "resources/templates/list", "ABCDE", "resources", ""),
    (Client, "resources/read", "ABCDE", "resources", ""),
    (Client, "resources/subscribe", "ABCD", "resources.subscribe", ""),
    (Client, "resources/unsubscribe", "ABCD", "resources.subscribe", ""),
    (Client, "prompts/list", "ABCDE", "prompts", ""),
    (Client, "prompts/get", "ABCDE", "prompts", ""),
    (Client, "completion/complete", "A", "", ""),
    (Client, "completion/complete", "BCDE", "completions", ""),
    (Client, "logging/setLevel", "ABCD", "logging", ""),
    (Client, "subscriptions/listen", "E", "", ""),
    (Client, "tasks/get", "D", "tasks", ""),
    (Client, "tasks/result", "D", "tasks", ""),
    (Client, "tasks/list", "D", "tasks.list", ""),
    (Client, "tasks/cancel", "D", "tasks.cancel", ""),
    (Client, "tasks/get", "E", TASKS_EXTENSION, TASKS_EXTENSION),
    (Client, "tasks/update", "E", TASKS_EXTENSION, TASKS_EXTENSION),
    (Client, "tasks/cancel", "E", TASKS_EXTENSION, TASKS_EXTENSION),
    (Server, "sampling/createMessage", "ABCD", "", "sampling"),
    (Server, "roots/list", "ABCD", "", "roots"),
    (Server, "elicitation/create", "CD", "", "elicitation"),
    (Server, "tasks/get", "D", "", "tasks"),
    (Server, "tasks/result", "D", "", "tasks"),
    (Server, "tasks/list", "D", "", "tasks.list"),
    (Server, "tasks/cancel", "D", "", "tasks.cancel"),
    (Client, "notifications/initialized", "ABCD", "", ""),
    (Either, "notifications/cancelled", "ABCDE", "", ""),
    (Client, "notifications/progress", "ABCD", "", ""),
    (Server, "notifications/progress", "ABCDE", "", ""),
    (Client, "notifications/roots/list_changed", "ABCD", "", "roots.listChanged"),
    (Client, "notifications/tasks/status", "D", "", "tasks"),
    (Server, "notifications/tasks/status", "D", "tasks", ""),
    (Server, "notifications/message", "ABCDE", "logging", ""),
    (Server, "notifications/tools/list_changed", "ABCDE", "tools.listChanged", ""),
    (Server, "notifications/prompts/list_changed", "ABCDE", "prompts.listChanged", ""),
    (Server, "notifications/resources/list_changed", "ABCDE", "resources.listChanged", ""),
    (Server, "notifications/resources/updated", "ABCDE", "resources.subscribe", ""),
    (Server, "notifications/elicitation/complete", "D", "", "elicitation.url"),
    (Server, "notifications/subscriptions/acknowledged", "E", "", ""),
    (Server, "notifications/tasks", "E", TASKS_EXTENSION, TASKS_EXTENSION),
];

/// The verdict of the table on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Open,
    /// The revision has no such message, or not from this side.
    Absent,
    /// This side did not declare this capability.
    Lacks(Side, &'static str),
}

/// Returns whether `sender` may send `method` at `version`.
pub(crate) fn judge(
    sender: Side,
    method: &str,
    version: &str,
    server: &Capabilities,
    client: &Capabilities,
) -> Verdict {
    let own = if sender == Side::Client { Client } else { Server };
    let row = TABLE.iter().find(|(by, name, at, ..)| {
        (*by == own || *by == Either) && *name == method && at.contains(letter(version))
    });
    match row {
        None => Verdict::Absent,
        Some((.., needed, _)) if !declares(server, needed) => Verdict::Lacks(Side::Server, needed),
        Some((.., needed)) if !declares(client, needed) => Verdict::Lacks(Side::Client, needed),
        Some(_) => Verdict::Open,
    }
}

/// Returns whether `sender` may send `method` at `version` with some capabilities.
pub(crate) fn exists(sender: Side, method: &str, version: &str) -> bool {
    let none = Capabilities::new();
    judge(sender, method, version, &none, &none) != Verdict::Absent
}

/// Returns whether the protocol has the method.
pub(crate) fn is_known(method: &str) -> bool {
    TABLE.iter().any(|(_, name, ..)| *name == method)
}

// [RPC-012].
pub(crate) fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

/// Returns every method once.
pub(crate) fn methods() -> Vec<&'static str> {
    let mut all: Vec<_> = TABLE.iter().map(|(_, method, ..)| *method).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns every method, and some that do not exist.
pub(crate) fn methods_and_others() -> Vec<&'static str> {
    [methods(), vec!["no/such", "notifications/no/such"]].concat()
}

/// Returns whether forms are supported. An elicitation without a mode is a form, which an empty
/// declaration promises as well.
// [CAP-013] [ELIC-004].
pub(crate) fn offers_forms(client: &Capabilities) -> bool {
    client.contains("elicitation")
        && (client.contains("elicitation.form") || !client.contains("elicitation.url"))
}

fn declares(declared: &Capabilities, needed: &str) -> bool {
    match needed {
        "" => true,
        _ => declared.contains(needed),
    }
}

/// Returns the letter of a revision: A is the oldest.
fn letter(version: &str) -> char {
    let at = VERSIONS.iter().position(|known| *known == version).expect("a known revision");
    ['A', 'B', 'C', 'D', 'E'][at]
}
