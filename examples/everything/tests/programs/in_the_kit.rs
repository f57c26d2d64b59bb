//! The everything server in the test kit: without a process, a socket or a runtime.

use everything::runtime::Runtime;
use everything::{bench, server};
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::Host;
use mcp_sansio_test::{Identity, connect, connect_http};
use serde_json::{Value, json};

fn host(revision: Revision) -> Host {
    Host::new("test", "1.0.0").revisions(Revisions::only(revision))
}

#[test]
fn every_revision_and_transport_gets_the_same_answer() {
    let server = server::server(Runtime::Std, true);
    let echo = json!({ "text": "hello" });
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, &host(revision));
        let result = pair.run(client.call_tool("echo", &echo)).unwrap();
        assert_eq!(result.first_text(), Some("hello"), "{revision}");
        if revision == Revision::V2024_11_05 {
            // It has another transport over HTTP.
            continue;
        }
        let (client, mut pair) = connect_http(&server, &host(revision), Identity::new("ann"));
        let result = pair.run(client.call_tool("echo", &echo)).unwrap();
        assert_eq!(result.first_text(), Some("hello"), "{revision} over HTTP");
    }
}

#[test]
fn lists_are_complete_and_the_same_in_each_run() {
    let lists = || {
        let server = server::server(Runtime::Std, true);
        let (client, mut pair) = connect(&server, &host(Revision::LATEST));
        assert!(!pair.run(client.all_tools()).unwrap().is_empty());
        assert!(!pair.run(client.all_resources()).unwrap().is_empty());
        assert!(!pair.run(client.all_resource_templates()).unwrap().is_empty());
        assert!(!pair.run(client.all_prompts()).unwrap().is_empty());
        pair.transcript.to_string()
    };
    assert_eq!(lists(), lists());
}

#[test]
fn all_names_are_valid() {
    for tasks in [true, false] {
        server::server(Runtime::Std, tasks).endpoint(0).unwrap();
    }
    server::with_extensions(server::server(Runtime::Std, true)).endpoint(0).unwrap();
}

/// Returns what known hosts of models refuse in a part of a schema.
fn refused(schema: &Value) -> Vec<String> {
    const FORMATS: [&str; 9] =
        ["date", "date-time", "duration", "email", "hostname", "regex", "time", "uri", "uuid"];
    let mut found = Vec::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        let is_bad = match key.as_str() {
            "$schema" | "$defs" | "$ref" | "const" => true,
            "format" => !FORMATS.contains(&value.as_str().unwrap()),
            "properties" => value.as_object().unwrap().values().any(Value::is_boolean),
            "items" => value.is_boolean(),
            _ => false,
        };
        if is_bad {
            found.push(format!("{key}: {value}"));
        }
    }
    let parts = schema.as_object().into_iter().flat_map(|members| members.values());
    for part in parts.chain(schema.as_array().into_iter().flatten()) {
        found.extend(refused(part));
    }
    found
}

#[test]
fn no_derived_schema_has_what_hosts_of_models_refuse() {
    let everything = server::with_extensions(server::server(Runtime::Std, true));
    for server in [everything, bench::server()] {
        let (client, mut pair) = connect(&server, &host(Revision::LATEST));
        for tool in pair.run(client.all_tools()).unwrap() {
            // Written by hand, for the conformance suite.
            if tool.name == "json_schema_2020_12_tool" {
                continue;
            }
            for schema in [Some(tool.input_schema), tool.output_schema].into_iter().flatten() {
                let schema: Value = serde_json::from_str(schema.as_str()).unwrap();
                assert_eq!(refused(&schema), [""; 0], "{}: {schema}", tool.name);
                let choices = ["oneOf", "anyOf", "allOf"].map(|key| schema.get(key));
                assert_eq!(choices, [None; 3], "{}", tool.name);
            }
        }
    }
}
