//! Every message of a peer with an integer that has a fraction of zero, or with `null` in an
//! optional member: the machines treat it like the usual spelling and like absence.

use mcp_sansio::Revision;
use mcp_sansio::peer::Event;
use serde_json::{Value, json};

use crate::fixtures::*;
use crate::machine::{Machine, describe};
use crate::spec::Schema;
use crate::wire::{Wire, server};

/// The id of the request in flight that a cancellation may name.
const IN_FLIGHT: u64 = 9;

/// A message in an unusual spelling, with the usual one.
struct Pair {
    variant: Value,
    like: Value,
    place: String,
}

/// Generates messages from a schema.
struct Generator<'a> {
    schema: &'a Schema,
    revision: Revision,
}

impl Generator<'_> {
    /// Returns a value with the required members.
    fn least(&self, name: &str, schema: &Value) -> Value {
        let schema = self.first_branch(schema);
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema.get("enum") {
            return values[0].clone();
        }
        match schema.get("type").map(|it| it.as_array().map_or(it, |it| &it[0])) {
            Some(Value::String(kind)) => match kind.as_str() {
                "string" => json!(match name {
                    "protocolVersion" | "io.modelcontextprotocol/protocolVersion" => {
                        self.revision.as_str()
                    }
                    "uri" | "url" => "file:///a",
                    _ => "a",
                }),
                "integer" | "number" => json!(1),
                "boolean" => json!(true),
                "array" => json!([]),
                _ => self.least_object(schema),
            },
            _ => self.least_object(schema),
        }
    }

    fn least_object(&self, schema: &Value) -> Value {
        let (members, _) = self.schema.members(schema, None);
        let required = self.schema.required(schema, &json!({}));
        let value = |name: &str| {
            let member = members.iter().rfind(|(key, _)| *key == name);
            match (name, member) {
                ("requestId", _) => json!(IN_FLIGHT),
                ("id", _) => json!(20),
                (_, Some((_, member))) => self.least(name, member),
                (_, None) => json!({}),
            }
        };
        required.iter().map(|name| (name.clone(), value(name))).collect()
    }

    fn first_branch<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let schema = self.schema.resolve(schema);
        let branches = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
        branches.map_or(schema, |branches| self.first_branch(&branches[0]))
    }

    /// Lists the variants of all members at all depths, each in a message with the least others.
    fn pairs(&self, schema: &Value, depth: usize) -> Vec<Pair> {
        let schema = self.schema.resolve(schema);
        let branches = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
        if let Some(branches) = branches {
            return branches.iter().flat_map(|branch| self.pairs(branch, depth)).collect();
        }
        let pair = |variant, like, place: &str| Pair { variant, like, place: place.into() };
        let is = |kind: &str| match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|it| it == kind),
            other => other.is_some_and(|it| it == kind),
        };
        if is("integer") || is("number") {
            return vec![pair(json!(7.0), json!(7), "")];
        }
        let (members, _) = self.schema.members(schema, None);
        if depth == 0 || (!is("object") && members.is_empty()) {
            return Vec::new();
        }
        let (least, mut all) = (self.least_object(schema), Vec::new());
        let required = self.schema.required(schema, &least);
        let with = |name: &str, value| {
            let mut object = least.clone();
            object[name] = value;
            object
        };
        for (name, member) in members {
            if !required.contains(name) && !self.schema.allows_null(member) {
                all.push(pair(with(name, Value::Null), least.clone(), name));
            }
            for Pair { variant, like, place } in self.pairs(member, depth - 1) {
                let place = format!("{name}/{place}");
                all.push(pair(with(name, variant), with(name, like), &place));
            }
        }
        all
    }
}

/// Returns what a machine does with a message, without texts that are passed on.
fn effect<M: Machine>(wire: &mut Wire<M>, message: &Value) -> (Vec<String>, Vec<String>) {
    wire.take_all();
    let closed = wire.try_send(&message.to_string());
    let (lines, events) = wire.take_all();
    let mut told: Vec<String> = events
        .iter()
        .map(|event| match event {
            Event::Request(request) => format!("request {}", request.method),
            Event::Notification(it) => format!("notification {}", it.method),
            Event::InputRequested(input) => format!("input {}", input.method),
            other => describe(other),
        })
        .collect();
    told.extend(closed.err().map(|closed| closed.to_string()));
    (lines, told)
}

/// Compares both messages of each pair, each sent to a machine in the same state.
fn compare<M: Machine>(
    revision: Revision,
    unions: [&str; 2],
    connect: impl Fn(&str) -> Wire<M>,
) -> (usize, Vec<String>) {
    let schema = Schema::load(revision.as_str());
    let generator = Generator { schema: &schema, revision };
    let (mut count, mut faults) = (0, Vec::new());
    for union in unions {
        let Some(union) = schema.definition(union) else { continue };
        let members = union["anyOf"].as_array().cloned().unwrap_or_else(|| vec![union.clone()]);
        for member in &members {
            let method = schema.resolve(member)["properties"]["method"]["const"].clone();
            let method = method.as_str().unwrap();
            for Pair { variant, like, place } in generator.pairs(member, 6) {
                count += 1;
                let [got, wanted] =
                    [&variant, &like].map(|message| effect(&mut connect(method), message));
                if got != wanted {
                    faults.push(format!(
                        "{revision} {method} {place}:\n    {variant}\n    {got:?}\n    {wanted:?}"
                    ));
                }
            }
        }
    }
    (count, faults)
}

fn connected_server(revision: Revision, method: &str) -> Wire<crate::played::Server> {
    let options = full_server();
    if method == "initialize" || revision == Revision::LATEST {
        return server(options);
    }
    let mut wire = server_at(revision, "{}", options);
    wire.send(&request(&IN_FLIGHT.to_string(), "tools/call", r#"{"name":"t"}"#));
    wire
}

#[test]
fn a_server_reads_every_integer_with_a_fraction_of_zero_and_null_as_absence() {
    let (mut count, mut faults) = (0, Vec::new());
    for revision in Revision::ALL {
        let unions = ["ClientRequest", "ClientNotification"];
        let (more, found) = compare(revision, unions, |method| connected_server(revision, method));
        count += more;
        faults.extend(found);
    }
    assert!(faults.is_empty(), "{} of {count}\n{}", faults.len(), faults.join("\n"));
    assert!(count > 300, "{count}");
}

#[test]
fn a_client_reads_every_integer_with_a_fraction_of_zero_and_null_as_absence() {
    let (mut count, mut faults) = (0, Vec::new());
    for revision in Revision::ALL {
        let unions = ["ServerRequest", "ServerNotification"];
        let (more, found) = compare(revision, unions, |_| {
            let mut wire = client_at(revision, host());
            if revision != Revision::LATEST {
                wire.send(&request(&IN_FLIGHT.to_string(), "roots/list", "{}"));
            }
            wire
        });
        count += more;
        faults.extend(found);
    }
    assert!(faults.is_empty(), "{} of {count}\n{}", faults.len(), faults.join("\n"));
    assert!(count > 200, "{count}");
}
