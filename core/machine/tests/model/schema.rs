//! The table of the model and the schemas.

use std::collections::BTreeSet;

use mcp_sansio::Side;
use serde_json::Value;

use crate::facts;
use crate::gate::{MODERN, VERSIONS, exists, is_notification, methods};

/// Returns the methods in a union of a schema, such as `ClientRequest`.
fn in_schema(definitions: &Value, union: &str) -> BTreeSet<String> {
    let definition = &definitions[union];
    let members = definition["anyOf"].as_array().into_iter().flatten();
    let of_reference = |member: &Value| {
        let name = member["$ref"].as_str()?.rsplit('/').next()?;
        definitions.get(name).cloned()
    };
    let members = members.filter_map(of_reference).chain([definition.clone()]);
    members.filter_map(|it| Some(it["properties"]["method"]["const"].as_str()?.into())).collect()
}

fn in_table(sender: Side, version: &str, notifications: bool) -> BTreeSet<String> {
    let of_extension = |method: &str| version == MODERN && method.contains("tasks");
    let own = methods().into_iter().filter(|method| is_notification(method) == notifications);
    let own = own.filter(|method| !of_extension(method) && exists(sender, method, version));
    own.map(String::from).collect()
}

#[test]
fn the_table_of_the_model_has_exactly_the_methods_of_each_schema() {
    for version in VERSIONS {
        let schema = facts::schema(version);
        let definitions = schema.get("$defs").unwrap_or_else(|| &schema["definitions"]);
        for (union, sender, notifications) in [
            ("ClientRequest", Side::Client, false),
            ("ServerRequest", Side::Server, false),
            ("ClientNotification", Side::Client, true),
            ("ServerNotification", Side::Server, true),
        ] {
            let official = in_schema(definitions, union);
            assert_eq!(official, in_table(sender, version, notifications), "{union} of {version}");
        }
    }
}
