//! Protocol values with all of their fields, independent of the revision.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::ser::{SerializeMap, Serializer};

use crate::Revision;
use crate::jsonrpc::{Json, RawJson, write_string};

use super::{InputRequiredResult, SerializeAt};

/// Returns the text of a value with the fields of every revision, from which the value can be read
/// back. Reading ignores revisions, and the newest revision that has a field writes it completely.
/// Returns `null` if no revision can express the value.
pub(crate) fn whole<T: SerializeAt + ?Sized>(value: &T) -> RawJson<'static> {
    let newest_first = Revision::ALL.into_iter().rev();
    let texts: Vec<Json> = newest_first.filter_map(|it| value.to_json_at(it).ok()).collect();
    let whole = texts.iter().map(|json| json.as_str().to_string()).reduce(joined);
    whole.and_then(|text| Some(RawJson::parse(&text).ok()?.into_owned())).unwrap_or(RawJson::NULL)
}

/// Required input, whose requests have members that only revisions without input rounds know.
pub(crate) struct WholeInput<'a>(pub(crate) &'a InputRequiredResult);

impl SerializeAt for WholeInput<'_> {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resultType", "input_required")?;
        if let Some(requests) = &self.0.input_requests {
            map.serialize_entry("inputRequests", &requests.at(revision))?;
        }
        if let Some(state) = &self.0.request_state {
            map.serialize_entry("requestState", state)?;
        }
        if let Some(meta) = &self.0.meta {
            map.serialize_entry("_meta", &meta.at(revision))?;
        }
        map.end()
    }
}

/// Returns the newer value, plus any fields that only the older one has.
fn joined(newer: String, older: String) -> String {
    if newer == older {
        return newer;
    }
    match (newer.as_bytes().first(), older.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => joined_objects(&newer, &older),
        (Some(b'['), Some(b'[')) => joined_arrays(&newer, &older).unwrap_or(newer),
        _ => newer,
    }
}

fn joined_objects(newer: &str, older: &str) -> String {
    let (newer, older) = (RawJson::trusted(newer), RawJson::trusted(older));
    let mut out = String::from("{");
    let mut write = |name: &str, value: &str| {
        if out.len() > 1 {
            out.push(',');
        }
        write_string(&mut out, name);
        out.push(':');
        out.push_str(value);
    };
    for member in newer.members() {
        let value = member.value.as_str().to_string();
        let value = match older.get(&member.name()) {
            Some(older) => joined(value, older.as_str().to_string()),
            None => value,
        };
        write(&member.name(), &value);
    }
    for member in older.members().filter(|member| newer.get(&member.name()).is_none()) {
        write(&member.name(), member.value.as_str());
    }
    out.push('}');
    out
}

/// Joins the arrays element by element. Returns `None` if their elements differ.
fn joined_arrays(newer: &str, older: &str) -> Option<String> {
    let elements = |text| RawJson::trusted(text).decode::<Vec<Json>>().ok();
    let (newer, older) = (elements(newer)?, elements(older)?);
    if newer.len() != older.len() {
        return None;
    }
    let pairs = newer.iter().zip(&older);
    let joined: Vec<String> =
        pairs.map(|(n, o)| joined(n.as_str().to_string(), o.as_str().to_string())).collect();
    Some(["[", &joined.join(","), "]"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        Annotations, CapabilitySettings, ClientCapabilities, ElicitFormParams, ElicitParams,
        ElicitSchema, ElicitationCapability, InputRequest, Map, Meta, Prompt, PromptArgument,
        RootsCapability, TaskMetadata, TaskSupport, Tool, ToolAnnotations, ToolExecution,
    };

    fn comes_back<T: SerializeAt + serde::de::DeserializeOwned + PartialEq + core::fmt::Debug>(
        value: &T,
    ) {
        let text = whole(value);
        assert_eq!(serde_json::from_str::<T>(text.as_str()).unwrap(), *value, "{text}");
    }

    #[test]
    fn required_input_keeps_the_members_of_older_revisions() {
        let mut meta = Meta::new();
        meta.set("a/b", &1).unwrap();
        let form = ElicitFormParams::new("Who?", ElicitSchema::new());
        let form = form.meta(meta).task(TaskMetadata::new().ttl(1));
        let requests = Map::default().with("q", InputRequest::from(ElicitParams::Form(form)));
        let required = InputRequiredResult::new().input_requests(requests).request_state("s");
        let text = whole(&WholeInput(&required));
        assert_eq!(text.decode::<InputRequiredResult>().unwrap(), required, "{text}");
    }

    #[test]
    fn revision_specific_members_round_trip() {
        let schema = RawJson::parse(r#"{"type":"object", "x":[1,{"b":2}]}"#).unwrap();
        comes_back(
            &Tool::new("t", schema.clone())
                .title("T")
                .annotations(ToolAnnotations::new().title("A"))
                .execution(ToolExecution::new().task_support(TaskSupport::Optional))
                .output_schema(schema),
        );
        let argument = PromptArgument::new("a").title("A").required(true);
        comes_back(&Prompt::new("p").arguments(alloc::vec![argument]));
        comes_back(
            &ClientCapabilities::new()
                .roots(RootsCapability::new().list_changed(true))
                .elicitation(ElicitationCapability::new().url(CapabilitySettings::default())),
        );
        comes_back(&Annotations::new().priority(0.5));
    }
}
