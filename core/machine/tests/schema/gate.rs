//! The table of methods and the unions of the schemas for each side.

use std::collections::BTreeSet;

use mcp_sansio::gate::{MethodKind, TABLE};
use mcp_sansio::{Capability, Revision, Side};
use serde_json::Value;

use crate::spec::Schema;

/// Returns the methods in a union of the schema, such as `ClientRequest`.
fn in_schema(schema: &Schema, union: &str) -> BTreeSet<String> {
    let Some(definition) = schema.definition(union) else { return BTreeSet::new() };
    let method =
        |definition: &Value| definition["properties"]["method"]["const"].as_str().map(String::from);
    match definition["anyOf"].as_array() {
        None => method(definition).into_iter().collect(),
        Some(members) => members
            .iter()
            .map(|member| {
                let reference = member["$ref"].as_str().unwrap();
                let name = reference.rsplit('/').next().unwrap();
                method(schema.definition(name).unwrap()).unwrap()
            })
            .collect(),
    }
}

/// Returns the methods that `side` may send by the table, without those of extensions, which have
/// their own schemas.
fn in_table(revision: Revision, side: Side, kind: MethodKind) -> BTreeSet<String> {
    TABLE
        .iter()
        .filter(|row| row.kind == kind)
        .filter(|row| {
            let allowance = row.side(side);
            let of_extension = allowance.gates.iter().any(|gate| {
                gate.capability == Capability::TasksExtension && gate.revisions.contains(revision)
            });
            allowance.revisions.contains(revision) && !of_extension
        })
        .map(|row| row.method.as_str().to_owned())
        .collect()
}

#[test]
fn the_table_has_exactly_the_methods_of_each_schema() {
    for revision in Revision::ALL {
        let schema = Schema::load(revision.as_str());
        for (union, side, kind) in [
            ("ClientRequest", Side::Client, MethodKind::Request),
            ("ServerRequest", Side::Server, MethodKind::Request),
            ("ClientNotification", Side::Client, MethodKind::Notification),
            ("ServerNotification", Side::Server, MethodKind::Notification),
        ] {
            let (official, ours) = (in_schema(&schema, union), in_table(revision, side, kind));
            assert_eq!(official, ours, "{union} of {revision}");
        }
    }
}
