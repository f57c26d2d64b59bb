//! Messages that name the task they belong to.

use alloc::string::String;

use mcp_sansio::Revision;
use mcp_sansio::jsonrpc::{Json, RawJson, write_string};
use mcp_sansio::protocol::{ElicitParams, InputRequest, Meta, RelatedTask, SerializeAt};

/// Adds the task id to the metadata of an input request.
// MCP 2025-11-25 basic/utilities/tasks#associating-task-related-messages [TASK-014] [TASK-015]
pub(super) fn relate(question: &mut InputRequest, task: &str) {
    let meta = match question {
        InputRequest::CreateMessage(params) => &mut params.meta,
        InputRequest::ListRoots(params) => &mut params.meta,
        InputRequest::Elicit(ElicitParams::Form(params)) => &mut params.meta,
        InputRequest::Elicit(ElicitParams::Url(params)) => &mut params.meta,
        _ => return,
    };
    relate_meta(meta.get_or_insert_default(), task);
}

/// Adds the task id to `meta`.
pub(super) fn relate_meta(meta: &mut Meta, task: &str) {
    if let Ok(related) = RelatedTask::new(task).to_json_at(Revision::V2025_11_25) {
        meta.insert(Meta::RELATED_TASK, related);
    }
}

/// Returns the result with the task id added to its metadata, and otherwise unchanged.
// MCP 2025-11-25 basic/utilities/tasks#related-task-metadata [TASK-014] [META-015]
pub(super) fn related(result: &Json, task: &str) -> Json {
    let text = result.as_str();
    let whole = result.as_raw();
    let meta = whole.members().find(|member| member.is_named("_meta"));
    let mut own = String::new();
    write_string(&mut own, Meta::RELATED_TASK);
    own.push_str(r#":{"taskId":"#);
    write_string(&mut own, task);
    own.push('}');
    let mut out = String::with_capacity(text.len() + own.len() + 16);
    match meta.filter(|meta| meta.value.is_object()) {
        Some(meta) => {
            out.push_str(&text[..=meta.range.start]);
            out.push_str(&own);
            for member in meta.value.members().filter(|it| !it.is_named(Meta::RELATED_TASK)) {
                out.push(',');
                write_string(&mut out, &member.name());
                out.push(':');
                out.push_str(member.value.as_str());
            }
            out.push('}');
            out.push_str(&text[meta.range.end..]);
        }
        None => {
            out.push_str(r#"{"_meta":{"#);
            out.push_str(&own);
            out.push('}');
            for member in whole.members() {
                out.push(',');
                write_string(&mut out, &member.name());
                out.push(':');
                out.push_str(member.value.as_str());
            }
            out.push('}');
        }
    }
    RawJson::trusted_string(out).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_keeps_its_members_and_names_its_task() {
        // Rule: [TASK-014] [META-015].
        let task = r#""io.modelcontextprotocol/related-task":{"taskId":"t\"1"}"#;
        for (before, after) in [
            ("{}", alloc::format!(r#"{{"_meta":{{{task}}}}}"#)),
            (r#"{"a":[1],"b":2}"#, alloc::format!(r#"{{"_meta":{{{task}}},"a":[1],"b":2}}"#)),
            (r#"{"a":1, "_meta": {} }"#, alloc::format!(r#"{{"a":1, "_meta": {{{task}}} }}"#)),
            (
                r#"{"_meta":{"x":{"y":1}},"a":1}"#,
                alloc::format!(r#"{{"_meta":{{{task},"x":{{"y":1}}}},"a":1}}"#),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"other"}}}"#,
                alloc::format!(r#"{{"_meta":{{{task}}}}}"#),
            ),
        ] {
            let before: Json = RawJson::parse(before).unwrap().into_owned().into();
            let result = related(&before, "t\"1");
            assert_eq!(result.as_str(), after);
            assert!(RawJson::parse(result.as_str()).is_ok());
        }
    }
}
