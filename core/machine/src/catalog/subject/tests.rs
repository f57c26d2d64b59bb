use alloc::string::String;

use super::*;
use crate::protocol::{PromptArgument, Resource, ResourceTemplate, ToolExecution};

fn raw(text: &str) -> RawJson<'_> {
    RawJson::parse(text).unwrap()
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    catalog.add_tool(Tool::new("t", raw(r#"{"type":"object"}"#))).unwrap();
    catalog.add_resource(Resource::new("mem://a", "a")).unwrap();
    catalog.add_resource_template(ResourceTemplate::new("db://{table}/{+path}", "row")).unwrap();
    let must = PromptArgument::new("must").required(true);
    let may = PromptArgument::new("may");
    catalog.add_prompt(Prompt::new("p").arguments([must, may])).unwrap();
    catalog.add_prompt(Prompt::new("free")).unwrap();
    catalog
}

fn check_at(
    catalog: &Catalog,
    method: Method,
    params: &str,
    revision: Revision,
) -> Result<(), ErrorObject<'static>> {
    let params = raw(params);
    let subject = text(&params, "name").or_else(|| text(&params, "uri"));
    catalog.resolve(method, subject.as_deref(), &params, revision, &Caller::OWNER).map(|_| ())
}

fn refused(method: Method, params: &str) -> String {
    let mut found = None;
    for revision in Revision::ALL {
        let error = check_at(&catalog(), method, params, revision).unwrap_err();
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{params} at {revision}");
        found = Some(error.message.into_owned());
    }
    found.unwrap()
}

fn passes(method: Method, params: &str) {
    for revision in Revision::ALL {
        assert_eq!(check_at(&catalog(), method, params, revision), Ok(()), "{params} {revision}");
    }
}

#[test]
fn a_call_requires_a_tool_name_and_object_arguments() {
    // Rule: [TOOL-004] [TOOL-007].
    passes(Method::ToolsCall, r#"{"name":"t"}"#);
    passes(Method::ToolsCall, r#"{"name":"t","arguments":{"a":1},"task":{}}"#);
    assert_eq!(refused(Method::ToolsCall, r#"{"name":"T"}"#), "unknown tool: T");
    assert_eq!(refused(Method::ToolsCall, r#"{"name":1}"#), "`name` must be a string");
    let list = r#"{"name":"t","arguments":[1]}"#;
    assert_eq!(refused(Method::ToolsCall, list), "`arguments` must be an object");
    let long = alloc::format!("{{\"name\":\"{}\"}}", "é".repeat(1000));
    assert!(refused(Method::ToolsCall, &long).chars().count() < 100);
}

#[test]
fn a_tool_runs_as_a_task_only_if_it_and_the_revision_support_tasks() {
    // Rule: [TASK-004] [TASK-005] [TASK-006].
    let mut catalog = catalog();
    for support in [TaskSupport::Forbidden, TaskSupport::Optional, TaskSupport::Required] {
        let tool = Tool::new(support.as_str(), raw(r#"{"type":"object"}"#));
        catalog.add_tool(tool.execution(ToolExecution::new().task_support(support))).unwrap();
    }
    for (name, plain, as_task) in [
        ("t", true, false),
        ("forbidden", true, false),
        ("optional", true, true),
        ("required", false, true),
    ] {
        for (params, fits) in [
            (alloc::format!(r#"{{"name":"{name}"}}"#), plain),
            (alloc::format!(r#"{{"name":"{name}","task":{{"ttl":1}}}}"#), as_task),
        ] {
            for revision in Revision::ALL {
                let checked = check_at(&catalog, Method::ToolsCall, &params, revision);
                if fits || revision != Revision::V2025_11_25 {
                    assert_eq!(checked, Ok(()), "{params} at {revision}");
                } else {
                    assert_eq!(checked.unwrap_err().code, ErrorCode::METHOD_NOT_FOUND, "{params}");
                }
            }
        }
    }
    for name in ["optional", "required"] {
        catalog.remove_tool(name).unwrap();
    }
    let ignored = r#"{"name":"t","task":{}}"#;
    let revision = Revision::V2025_11_25;
    assert_eq!(check_at(&catalog, Method::ToolsCall, ignored, revision), Ok(()));
}

#[test]
fn a_prompt_must_exist_and_its_required_arguments_must_be_strings() {
    // Rule: [PRMT-002] [PRMT-006] [PRMT-007].
    passes(Method::PromptsGet, r#"{"name":"p","arguments":{"must":"x"}}"#);
    passes(Method::PromptsGet, r#"{"name":"p","arguments":{"m\u0075st":"x","may":"","z":""}}"#);
    assert_eq!(refused(Method::PromptsGet, r#"{"name":"q"}"#), "unknown prompt: q");
    assert_eq!(refused(Method::PromptsGet, "{}"), "`name` must be a string");
    let missing = "missing required argument: must";
    assert_eq!(refused(Method::PromptsGet, r#"{"name":"p"}"#), missing);
    assert_eq!(refused(Method::PromptsGet, r#"{"name":"p","arguments":{"may":"x"}}"#), missing);
    let number = r#"{"name":"p","arguments":{"must":"x","may":1}}"#;
    assert_eq!(refused(Method::PromptsGet, number), "the argument `may` must be a string");
    let text = r#"{"name":"p","arguments":"must"}"#;
    assert_eq!(refused(Method::PromptsGet, text), "`arguments` must be an object");
}

#[test]
fn null_is_a_missing_argument_of_a_prompt() {
    passes(Method::PromptsGet, r#"{"name":"p","arguments":{"must":"x","may":null,"z":null}}"#);
    let message = refused(Method::PromptsGet, r#"{"name":"p","arguments":{"must":null}}"#);
    assert_eq!(message, "missing required argument: must");
}

#[test]
fn a_resource_must_be_listed_or_match_a_template() {
    // Rule: [RSRC-009] [RSRC-010] [RSRC-012] [RSRC-014].
    for method in [Method::ResourcesRead, Method::ResourcesSubscribe] {
        passes(method, r#"{"uri":"mem://a"}"#);
        passes(method, r#"{"uri":"db://users/1/name"}"#);
        assert_eq!(refused(method, "{}"), "`uri` must be a string");
        for uri in ["mem://b", "db://users", "db://users/a b", "nonsense", ""] {
            for revision in Revision::ALL {
                let params = alloc::format!(r#"{{"uri":"{uri}"}}"#);
                let error = check_at(&catalog(), method, &params, revision).unwrap_err();
                let code = if revision == Revision::V2026_07_28 {
                    ErrorCode::INVALID_PARAMS
                } else {
                    ErrorCode::RESOURCE_NOT_FOUND
                };
                assert_eq!(error.code, code);
                assert!(error.code.is_emittable_at(revision));
                assert_eq!(error.data.unwrap().as_str(), params);
            }
        }
    }
    passes(Method::ResourcesUnsubscribe, r#"{"uri":"mem://gone"}"#);
}

#[test]
fn a_completion_requires_a_known_prompt_or_resource_template() {
    // Rule: [COMP-001] [COMP-002] [COMP-004].
    let method = Method::CompletionComplete;
    let argument = r#""argument":{"name":"may","value":""}"#;
    for (reference, name, known) in [
        (r#"{"type":"ref/prompt","name":"p"}"#, "may", true),
        (r#"{"type":"ref/prompt","name":"p"}"#, "n", false),
        (r#"{"type":"ref/prompt","name":"free"}"#, "n", true),
        (r#"{"type":"ref/resource","uri":"db://{table}/{+path}"}"#, "path", true),
        (r#"{"type":"ref/resource","uri":"db://{table}/{+path}"}"#, "+path", false),
        (r#"{"type":"ref/resource","uri":"db://users/1"}"#, "table", true),
        (r#"{"type":"ref/resource","uri":"db://users/1"}"#, "users", false),
        (r#"{"type":"ref/resource","uri":"mem://a"}"#, "n", true),
    ] {
        let argument = alloc::format!(r#"{{"name":"{name}","value":""}}"#);
        let params = alloc::format!(r#"{{"ref":{reference},"argument":{argument}}}"#);
        if known {
            passes(method, &params);
        } else {
            assert_eq!(refused(method, &params), "there is no argument of this name");
        }
        let none = alloc::format!(r#"{{"ref":{reference},"argument":{{"name":"n"}}}}"#);
        assert!(refused(method, &none).contains("`argument`"));
    }
    for (reference, message) in [
        (r#"{"type":"ref/prompt","name":"q"}"#, "unknown prompt: q"),
        (r#"{"type":"ref/prompt"}"#, "`ref.name` must be a string"),
        (r#"{"type":"ref/resource","uri":"x:y"}"#, "unknown resource template: x:y"),
        (r#"{"type":"ref/resource","name":"p"}"#, "`ref.uri` must be a string"),
        (r#"{"type":"ref/tool","name":"t"}"#, "`ref.type` must be `ref/prompt` or `ref/resource`"),
        (r#""p""#, "`ref` must be an object"),
    ] {
        let params = alloc::format!(r#"{{"ref":{reference},{argument}}}"#);
        assert_eq!(refused(method, &params), message);
    }
    let context = |text: &str| {
        let reference = r#"{"type":"ref/prompt","name":"p"}"#;
        alloc::format!(r#"{{"ref":{reference},{argument},"context":{text}}}"#)
    };
    passes(method, &context(r#"{"arguments":{"a":"b"}}"#));
    let numbers = context(r#"{"arguments":{"a":1}}"#);
    for revision in Revision::ALL {
        let checked = check_at(&catalog(), method, &numbers, revision);
        assert_eq!(checked.is_err(), revision >= Revision::V2025_06_18, "{revision}");
    }
}

#[test]
fn a_completion_refers_to_its_item_and_argument() {
    // Rule: [COMP-001].
    let catalog = catalog();
    let template = catalog.find_template("db://users/1").unwrap().template();
    for (reference, name, item) in [
        (r#"{"type":"ref/prompt","name":"p"}"#, "may", catalog.prompts.resolve("p").unwrap().0),
        (r#"{"type":"ref/resource","uri":"db://{table}/{+path}"}"#, "path", template),
        (r#"{"type":"ref/resource","uri":"db://users/1"}"#, "path", template),
        (
            r#"{"type":"ref/resource","uri":"mem://a"}"#,
            "n",
            catalog.resources.resolve("mem://a").unwrap().0,
        ),
    ] {
        let params =
            alloc::format!(r#"{{"ref":{reference},"argument":{{"name":"{name}","value":""}}}}"#);
        let method = Method::CompletionComplete;
        let caller = &Caller::OWNER;
        let target =
            catalog.resolve(method, None, &raw(&params), Revision::LATEST, caller).unwrap();
        let Target::Completion(argument) = target else { panic!("{target:?}") };
        assert_eq!((argument.item(), argument.name()), (item, name));
    }
}

#[test]
fn methods_without_an_item_pass() {
    for method in [Method::Ping, Method::ToolsList, Method::TasksGet, Method::SubscriptionsListen] {
        passes(method, r#"{"name":"nobody"}"#);
    }
}

#[test]
fn the_subject_is_found_in_the_member_of_its_kind() {
    let params = RawJson::trusted(r#"{"name":"n","uri":"u","taskId":"t","ref":{"uri":"r"}}"#);
    for (method, expected) in [
        (Method::ToolsCall, Some((SubjectKind::Tool, "n"))),
        (Method::PromptsGet, Some((SubjectKind::Prompt, "n"))),
        (Method::ResourcesUpdated, Some((SubjectKind::Resource, "u"))),
        (Method::TasksCancel, Some((SubjectKind::Task, "t"))),
        (Method::CompletionComplete, Some((SubjectKind::Resource, "r"))),
        (Method::ToolsList, None),
    ] {
        let found = method.subject().and_then(|subject| subject.find(&params));
        let found = found.as_ref().map(|(kind, text)| (*kind, &**text));
        assert_eq!(found, expected, "{method}");
    }
}
