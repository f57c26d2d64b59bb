//! The capabilities that a side declares, as a set of paths such as `tools.listChanged`.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Map, Value, json};

pub(crate) type Capabilities = BTreeSet<&'static str>;

/// Short path of the tasks extension.
pub(crate) const TASKS_EXTENSION: &str = "extensions.tasks";

const OF_SERVERS: [&str; 13] = [
    "tools",
    "tools.listChanged",
    "resources",
    "resources.subscribe",
    "resources.listChanged",
    "prompts",
    "prompts.listChanged",
    "logging",
    "completions",
    "tasks",
    "tasks.list",
    "tasks.cancel",
    TASKS_EXTENSION,
];

const OF_CLIENTS: [&str; 11] = [
    "roots",
    "roots.listChanged",
    "sampling",
    "sampling.tools",
    "elicitation",
    "elicitation.form",
    "elicitation.url",
    "tasks",
    "tasks.list",
    "tasks.cancel",
    TASKS_EXTENSION,
];

pub(crate) fn of_server() -> impl Strategy<Value = Capabilities> {
    some_of(&OF_SERVERS)
}

pub(crate) fn of_client() -> impl Strategy<Value = Capabilities> {
    some_of(&OF_CLIENTS)
}

/// Returns all paths in half of the cases, as a side without capabilities sends little, and any
/// subset otherwise.
fn some_of(all: &'static [&'static str]) -> impl Strategy<Value = Capabilities> {
    let part = subsequence(all, 0..=all.len());
    prop_oneof![part, Just(all.to_vec())].prop_map(|paths| paths.into_iter().collect())
}

/// Returns the JSON of a declaration: a flag is `true`, everything else an object. A flag implies
/// its parent.
pub(crate) fn to_json(declared: &Capabilities) -> Value {
    let mut all = Map::new();
    for path in declared {
        let (name, flag) = path.split_once('.').unwrap_or((path, ""));
        let flag = if *path == TASKS_EXTENSION { "io.modelcontextprotocol/tasks" } else { flag };
        let object = all.entry(name).or_insert_with(|| json!({}));
        if !flag.is_empty() {
            let is_bool = matches!(flag, "listChanged" | "subscribe");
            object[flag] = if is_bool { json!(true) } else { json!({}) };
        }
    }
    all.into()
}

/// Returns the JSON of a declaration with every missing flag as `false`. An application that omits
/// a flag leaves it to its catalog.
pub(crate) fn to_json_with_false(declared: &Capabilities) -> Value {
    let mut all = to_json(declared);
    for (name, flag) in OF_SERVERS.iter().filter_map(|path| path.split_once('.')) {
        let is_bool = matches!(flag, "listChanged" | "subscribe");
        if let Some(object) = all.get_mut(name).filter(|_| is_bool) {
            object[flag] = json!(declared.contains(&*format!("{name}.{flag}")));
        }
    }
    all
}

/// Adds the parent of each flag.
pub(crate) fn complete(declared: &Capabilities) -> Capabilities {
    let parents = declared.iter().filter_map(|path| path.split_once('.')).map(|(name, _)| name);
    declared.iter().copied().chain(parents).collect()
}
