//! Checks values against definitions, and records which definitions were checked.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use mcp_sansio::protocol::SerializeAt;
use mcp_sansio::{Revision, Revisions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::spec::{Schema, object};
use super::tolerance::Subject;

/// The envelope that the values of a definition need to be checked.
#[derive(Clone, Copy, PartialEq)]
enum Wrapping {
    None,
    /// The values are the parameters of this method.
    Params(&'static str),
    /// The values are the data of the error with this code.
    ErrorData(i32),
}

pub(crate) struct Report {
    schemas: BTreeMap<Revision, Schema>,
    extension: Schema,
    /// The results by schema and definition.
    verdicts: BTreeMap<(&'static str, &'static str), Verdict>,
    faults: Vec<String>,
    /// How many variants of messages were read, and how many results with a malformed element.
    variants: (usize, usize),
    /// The results with a list of objects.
    lists: BTreeSet<(Revision, &'static str)>,
}

impl Report {
    pub(crate) fn new() -> Self {
        let load = |revision: Revision| (revision, Schema::load(revision.as_str()));
        Self {
            schemas: Revision::ALL.into_iter().map(load).collect(),
            extension: Schema::load("ext-tasks"),
            verdicts: BTreeMap::new(),
            faults: Vec::new(),
            variants: (0, 0),
            lists: BTreeSet::new(),
        }
    }

    /// Checks values of a definition: results, or data inside messages.
    ///
    /// `revisions` must be exactly those whose schema has the definition.
    pub(crate) fn data<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &'static str,
        revisions: Revisions,
        values: &[T],
    ) {
        self.round_trip(definition, revisions, values);
        self.tolerance(definition, revisions, Wrapping::None, values);
        self.check(definition, revisions, Wrapping::None, values);
    }

    /// Checks values that are the parameters of a request or notification.
    pub(crate) fn params<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &'static str,
        method: &'static str,
        revisions: Revisions,
        values: &[T],
    ) {
        self.round_trip(definition, revisions, values);
        self.tolerance(definition, revisions, Wrapping::Params(method), values);
        self.check(definition, revisions, Wrapping::Params(method), values);
    }

    /// Checks values that are the data of an error.
    pub(crate) fn error_data<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &'static str,
        code: i32,
        revisions: Revisions,
        values: &[T],
    ) {
        self.round_trip(definition, revisions, values);
        self.tolerance(definition, revisions, Wrapping::ErrorData(code), values);
        self.check(definition, revisions, Wrapping::ErrorData(code), values);
    }

    /// Checks parameters whose types borrow from a frame, without a round trip.
    pub(crate) fn borrowed_params<T: SerializeAt>(
        &mut self,
        definition: &'static str,
        method: &'static str,
        revisions: Revisions,
        values: &[T],
    ) {
        self.check(definition, revisions, Wrapping::Params(method), values);
    }

    /// Checks one more value of a definition that only some revisions can express; the older ones
    /// must refuse it.
    pub(crate) fn since<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &'static str,
        method: Option<&'static str>,
        revisions: Revisions,
        value: &T,
    ) {
        self.round_trip(definition, revisions, std::slice::from_ref(value));
        for (&revision, schema) in &self.schemas {
            if revisions.contains(revision) {
                let wrapping = method.map_or(Wrapping::None, Wrapping::Params);
                let written = vec![to_value(value, revision)];
                let verdict = judge(schema, definition, revision, wrapping, false, written);
                note(&mut self.verdicts, revision.as_str(), definition, verdict);
            } else if value.to_json_at(revision).is_ok() {
                self.faults.push(format!("{revision} {definition}: not refused"));
            }
        }
    }

    /// Checks values of the tasks extension, which has its own schema.
    pub(crate) fn extension<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &'static str,
        method: Option<&'static str>,
        values: &[T],
    ) {
        let revision = Revision::V2026_07_28;
        self.round_trip(definition, Revisions::only(revision), values);
        let wrapping = method.map_or(Wrapping::None, Wrapping::Params);
        let written: Vec<Value> = values.iter().map(|value| to_value(value, revision)).collect();
        let verdict = judge(&self.extension, definition, revision, wrapping, true, written);
        note(&mut self.verdicts, "extension", definition, verdict);
    }

    /// Checks whole messages, or results, that a machine wrote at each revision.
    pub(crate) fn written(
        &mut self,
        definition: &'static str,
        revisions: Revisions,
        messages: impl Fn(Revision) -> Vec<Value>,
    ) {
        self.check_each(definition, revisions, |schema, revision| {
            judge_whole(schema, definition, revision, messages(revision))
        });
    }

    fn check<T: SerializeAt>(
        &mut self,
        definition: &'static str,
        revisions: Revisions,
        wrapping: Wrapping,
        values: &[T],
    ) {
        self.check_each(definition, revisions, |schema, revision| {
            let written = values.iter().map(|value| to_value(value, revision)).collect();
            judge(schema, definition, revision, wrapping, false, written)
        });
    }

    /// Notes the result at each revision that has the definition.
    fn check_each(
        &mut self,
        definition: &'static str,
        revisions: Revisions,
        judge: impl Fn(&Schema, Revision) -> Verdict,
    ) {
        for (&revision, schema) in &self.schemas {
            let exists = schema.definition(definition).is_some();
            if exists != revisions.contains(revision) {
                let fault = format!("{revision} {definition}: defined there? {exists}");
                self.faults.push(fault);
                continue;
            }
            if !exists {
                continue;
            }
            let verdict = judge(schema, revision);
            note(&mut self.verdicts, revision.as_str(), definition, verdict);
        }
    }

    /// Checks that variants of the output of each revision are read like it, and that a malformed
    /// element of a list in a result of a server does not hide the others.
    fn tolerance<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &'static str,
        revisions: Revisions,
        wrapping: Wrapping,
        values: &[T],
    ) {
        for revision in revisions.iter() {
            let schema = &self.schemas[&revision];
            let Some(payload) = payload(schema, definition, wrapping) else { continue };
            let is_result = schema.is_in_union(definition, "ServerResult");
            for value in values {
                let value = to_value(value, revision);
                let subject = Subject { schema, definition: payload, value, revision };
                let (count, faults) = subject.faults::<T>();
                self.variants.0 += count;
                let named = |fault: String| format!("{revision} {definition}: {fault}");
                self.faults.extend(faults.into_iter().map(named));
                if is_result {
                    let (count, faults) = subject.faults_of_lists::<T>();
                    self.variants.1 += count;
                    self.faults.extend(faults.into_iter().map(named));
                    if count > 0 {
                        self.lists.insert((revision, definition));
                    }
                }
            }
        }
    }

    /// Checks that the output of each revision is read and written again unchanged.
    fn round_trip<T: SerializeAt + DeserializeOwned>(
        &mut self,
        definition: &str,
        revisions: Revisions,
        values: &[T],
    ) {
        for revision in revisions.iter() {
            for value in values {
                let text = value.to_json_at(revision).unwrap();
                match text.decode::<T>() {
                    Ok(read) => {
                        let again = read.to_json_at(revision).unwrap();
                        if again != text {
                            let fault = format!("{revision} {definition}: {text:?} -> {again:?}");
                            self.faults.push(fault);
                        }
                    }
                    Err(error) => self.faults.push(format!("{revision} {definition}: {error}")),
                }
            }
        }
    }

    /// Asserts that no value had a fault, that each member in a schema was written by some value,
    /// and that every definition that is not in `elsewhere` was checked at every revision that has
    /// it.
    pub(crate) fn finish(mut self, elsewhere: &[&str]) {
        for ((place, name), verdict) in &self.verdicts {
            self.faults.extend(verdict.faults.iter().cloned());
            let missing = verdict.missing.iter();
            self.faults.extend(missing.map(|key| format!("{place} {name}: {key} never written")));
        }
        let mut excused = BTreeSet::new();
        for (&revision, schema) in &self.schemas {
            for name in schema.names() {
                if elsewhere.contains(&name) {
                    excused.insert(name);
                } else if !self.verdicts.contains_key(&(revision.as_str(), name)) {
                    self.faults.push(format!("{revision} {name}: no value was checked"));
                }
            }
        }
        for name in elsewhere {
            if !excused.contains(name) {
                self.faults.push(format!("{name}: excused, but defined nowhere"));
            }
        }
        assert!(self.faults.is_empty(), "\n{}", self.faults.join("\n"));
        // The checks above were made.
        assert!(self.variants.0 > 3000 && self.variants.1 > 1000, "{:?}", self.variants);
        let newest = self.lists.iter().filter(|(revision, _)| *revision == Revision::LATEST);
        assert!(newest.count() > 6, "{:?}", self.lists);
    }
}

fn note(
    verdicts: &mut BTreeMap<(&'static str, &'static str), Verdict>,
    place: &'static str,
    definition: &'static str,
    verdict: Verdict,
) {
    match verdicts.entry((place, definition)) {
        Entry::Vacant(entry) => drop(entry.insert(verdict)),
        Entry::Occupied(mut entry) => entry.get_mut().merge(verdict),
    }
}

fn to_value<T: SerializeAt>(value: &T, revision: Revision) -> Value {
    serde_json::to_value(value.at(revision)).unwrap()
}

/// The result of checking values of one definition.
#[derive(Default)]
struct Verdict {
    faults: Vec<String>,
    /// The members that the schema lists and no value has had so far.
    missing: BTreeSet<String>,
}

impl Verdict {
    /// Adds the result of further values of the same definition.
    fn merge(&mut self, other: Self) {
        self.faults.extend(other.faults);
        self.missing.retain(|member| other.missing.contains(member));
    }
}

/// Returns the schema of the values of a definition, without their envelope.
fn payload<'s>(schema: &'s Schema, name: &str, wrapping: Wrapping) -> Option<&'s Value> {
    let definition = schema.definition(name)?;
    let member = |of: &'s Value, name: &str| {
        let (listed, _) = schema.members(of, None);
        listed.into_iter().rfind(|(key, _)| *key == name).map(|(_, member)| member)
    };
    match wrapping {
        Wrapping::None => Some(definition),
        Wrapping::Params(_) => member(definition, "params"),
        Wrapping::ErrorData(_) => member(member(definition, "error")?, "data"),
    }
}

fn judge(
    schema: &Schema,
    name: &str,
    revision: Revision,
    wrapping: Wrapping,
    metadata_is_implied: bool,
    written: Vec<Value>,
) -> Verdict {
    let definition = schema.definition(name).unwrap();
    let (listed, _) = schema.members(definition, None);
    let member =
        |name: &str| listed.iter().rfind(|(key, _)| *key == name).map(|(_, member)| *member);
    let payload = payload(schema, name, wrapping);
    let members = payload.map(|payload| schema.members(payload, None).0).unwrap_or_default();
    let mut verdict = Verdict::default();
    verdict.missing.extend(members.iter().map(|(key, _)| String::from(*key)));
    for mut value in written {
        for (key, _) in value.as_object().into_iter().flatten() {
            verdict.missing.remove(key);
        }
        if let Wrapping::Params(method) = wrapping {
            let modern = revision == Revision::V2026_07_28;
            let required = payload.map(|payload| &schema.resolve(payload)["required"]);
            if required.and_then(Value::as_array).is_some_and(|all| all.contains(&json!("_meta"))) {
                add_request_meta(&mut value);
                verdict.missing.remove("_meta");
            }
            // The base definition of all legacy requests and notifications has metadata, which many
            // derived definitions do not repeat; nor does the extension.
            let unlisted = members.iter().all(|(key, _)| *key != "_meta");
            if unlisted && (!modern || metadata_is_implied) {
                object(&mut value).remove("_meta");
            }
            let mut message = json!({ "method": method, "params": value });
            if member("jsonrpc").is_some() {
                message["jsonrpc"] = json!("2.0");
            }
            if member("id").is_some() {
                message["id"] = json!(1);
            }
            value = message;
        }
        if let Wrapping::ErrorData(code) = wrapping {
            let error = json!({ "code": code, "message": "m", "data": value });
            value = json!({ "jsonrpc": "2.0", "id": 1, "error": error });
        }
        let found = schema.faults(&value, &json!({ "$ref": reference(schema, name) }));
        verdict.faults.extend(
            found.into_iter().map(|fault| format!("{revision} {name}: {fault}\n    {value}")),
        );
    }
    verdict
}

/// Checks messages with the envelope that a machine wrote. They may lack metadata, which is the
/// application's unless the schema requires it.
fn judge_whole(schema: &Schema, name: &str, revision: Revision, messages: Vec<Value>) -> Verdict {
    let definition = schema.definition(name).unwrap();
    let (envelope, _) = schema.members(definition, None);
    let params = envelope.iter().rfind(|(key, _)| *key == "params").map(|(_, params)| *params);
    let (members, _) = schema.members(params.unwrap_or(definition), None);
    let names = members.iter().map(|(key, _)| String::from(*key)).filter(|key| key != "_meta");
    let mut verdict = Verdict { missing: names.collect(), ..Verdict::default() };
    if messages.is_empty() {
        verdict.faults.push(format!("{revision} {name}: no machine sent any"));
    }
    for mut message in messages {
        // The older schemas describe messages without the members of JSON-RPC.
        for member in ["jsonrpc", "id"] {
            if envelope.iter().all(|(key, _)| *key != member) {
                object(&mut message).remove(member);
            }
        }
        let payload = if params.is_some() { &message["params"] } else { &message };
        for (key, _) in payload.as_object().into_iter().flatten() {
            verdict.missing.remove(key);
        }
        let found = schema.faults(&message, &json!({ "$ref": reference(schema, name) }));
        verdict.faults.extend(
            found.into_iter().map(|fault| format!("{revision} {name}: {fault}\n    {message}")),
        );
    }
    verdict
}

fn reference(schema: &Schema, name: &str) -> String {
    format!("#/{}/{name}", schema.keyword())
}

/// Adds the metadata that the machine adds to every request.
pub(crate) fn add_request_meta(params: &mut Value) {
    let meta = object(params).entry("_meta").or_insert_with(|| json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
}

#[test]
fn the_checker_finds_invalid_missing_and_unlisted_members() {
    let schema = Schema::load("2025-06-18");
    let judge =
        |value| judge(&schema, "Tool", Revision::V2025_06_18, Wrapping::None, false, vec![value]);
    let whole = json!({
        "name": "t", "title": "T", "description": "d", "inputSchema": { "type": "object" },
        "outputSchema": { "type": "object" }, "annotations": { "title": "a" }, "_meta": { "k": 1 },
    });
    let verdict = judge(whole.clone());
    assert!(verdict.faults.is_empty() && verdict.missing.is_empty(), "{:?}", verdict.faults);
    for (member, value, expected) in [
        ("icons", json!([]), "/icons: not listed"),
        ("annotations", json!({ "hint": true }), "/annotations/hint: not listed"),
        ("name", json!(7), "/name: 7 is not of type"),
    ] {
        let mut wrong = whole.clone();
        wrong[member] = value;
        let faults = judge(wrong).faults;
        assert!(faults.len() == 1 && faults[0].contains(expected), "{faults:?}");
    }
    let mut partial = whole;
    object(&mut partial).remove("title");
    assert!(judge(partial).missing.iter().eq(["title"]));
}
