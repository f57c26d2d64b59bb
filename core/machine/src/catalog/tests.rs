use alloc::string::{String, ToString};

use super::*;
use crate::Caller;
use crate::jsonrpc::{Json, RawJson};
use crate::protocol::{PromptArgument, TaskSupport, ToolExecution};

fn json(text: &str) -> Json {
    RawJson::parse(text).unwrap().into()
}

fn tool(name: &str) -> Tool {
    Tool::new(name, json(r#"{"type":"object"}"#))
}

#[test]
fn tool_names_are_plain_and_unique() {
    // Rule: [TOOL-023].
    let mut catalog = Catalog::new();
    catalog.add_tool(tool("a")).unwrap();
    catalog.add_tool(tool("A")).unwrap();
    let taken = catalog.add_tool(tool("a")).unwrap_err();
    let text = "there is a tool \"a\" already; replace it, or choose another key";
    assert_eq!(taken.to_string(), text);
    let reason = check_tool_name("a b").unwrap_err();
    let refused = CatalogError::InvalidToolName { name: "a b".into(), reason };
    assert_eq!(catalog.add_tool(tool("a b")), Err(refused.clone()));
    assert_eq!(catalog.replace_tool(tool("a b")), Err(refused));
    assert_eq!(catalog.tools().len(), 2);
}

#[test]
fn an_input_schema_is_an_object_whose_type_is_object() {
    // Rule: [TOOL-001] [TOOL-021].
    let mut catalog = Catalog::new();
    for schema in ["null", "true", "{}", "[]", r#"["object"]"#, r#"{"type":"array"}"#] {
        let refused = catalog.add_tool(Tool::new("t", json(schema))).unwrap_err();
        let invalid = matches!(refused, CatalogError::InvalidSchema { member: "inputSchema", .. });
        assert!(invalid, "{schema}");
    }
    let closed = json(r#" {"x-unknown":1,"type":"object","additionalProperties":false}"#);
    catalog.add_tool(Tool::new("t", closed)).unwrap();
}

#[test]
fn an_output_schema_is_an_object_of_any_type() {
    // Rule: [TOOL-017].
    let mut catalog = Catalog::new();
    catalog.add_tool(tool("a").output_schema(json(r#"{"type":"array"}"#))).unwrap();
    let refused = catalog.add_tool(tool("b").output_schema(json("true"))).unwrap_err();
    assert!(matches!(refused, CatalogError::InvalidSchema { member: "outputSchema", .. }));
}

#[test]
fn resources_have_absolute_uris() {
    // Rule: [RSRC-014] [RSRC-018].
    let mut catalog = Catalog::new();
    catalog.add_resource(Resource::new("file:///a", "a")).unwrap();
    let refused = catalog.add_resource(Resource::new("a.txt", "a")).unwrap_err();
    let text = "resource \"a.txt\": it does not start with a scheme, such as `file:` or `https:`";
    assert_eq!(refused.to_string(), text);
    let template = ResourceTemplate::new("file:///{", "t");
    let refused = catalog.add_resource_template(template).unwrap_err();
    let text = "resource template \"file:///{\": `{` and `}` are not balanced";
    assert_eq!(refused.to_string(), text);
}

#[test]
fn prompts_do_not_name_an_argument_twice() {
    let twice = Prompt::new("p").arguments(["a", "b", "a"].map(PromptArgument::new));
    let refused = Catalog::new().add_prompt(twice).unwrap_err();
    assert!(matches!(refused, CatalogError::DuplicateArgument { argument, .. } if argument == "a"));
}

#[test]
fn the_first_matching_template_wins() {
    // Rule: [RSRC-002] [RSRC-014].
    let mut catalog = Catalog::new();
    for (template, name) in [("db://users/{id}", "user"), ("db://{table}/{id}", "row")] {
        catalog.add_resource_template(ResourceTemplate::new(template, name)).unwrap();
    }
    let name = |uri| match catalog.item(catalog.find_template(uri)?.template())? {
        Item::ResourceTemplate(template) => Some(template.name.as_str()),
        other => panic!("{other:?}"),
    };
    assert_eq!(name("db://users/1"), Some("user"));
    assert_eq!(name("db://rooms/1"), Some("row"));
    assert_eq!(name("db://rooms/1/2"), None);
    assert_eq!(name("db://rooms/a b"), None);
    let found = catalog.find_template("db://rooms/%31").unwrap();
    let pair = |name: &str, value: &str| (String::from(name), String::from(value));
    assert_eq!(found.variables(), [pair("table", "rooms"), pair("id", "1")]);
}

#[test]
fn edits_are_remembered_until_they_are_taken() {
    let mut catalog = Catalog::new();
    assert!(catalog.take_changes().is_empty());
    catalog.add_tool(tool("t")).unwrap();
    catalog.add_resource_template(ResourceTemplate::new("a:{b}", "t")).unwrap();
    let changes = Changes { tools: true, prompts: false, resources: true };
    assert_eq!(catalog.take_changes(), changes);
    // A call that changes nothing is not recorded as a change.
    assert!(catalog.replace_tool(tool("t")).unwrap().is_some());
    assert!(catalog.add_tool(tool("t")).is_err());
    assert_eq!(catalog.remove_prompt("p"), None);
    assert!(catalog.take_changes().is_empty());
    assert!(catalog.replace_tool(tool("t").title("T")).unwrap().is_some());
    assert!(catalog.replace_prompt(Prompt::new("p")).unwrap().is_none());
    let changes = Changes { tools: true, prompts: true, resources: false };
    assert_eq!(catalog.take_changes(), changes);
    assert_eq!(catalog.remove_resource_template("a:{b}").unwrap().name, "t");
    assert!(catalog.take_changes().resources);
}

#[test]
fn tools_that_run_as_tasks_are_counted_through_every_edit() {
    // Rule: [TOOL-025].
    let task = |name, support| tool(name).execution(ToolExecution::new().task_support(support));
    let mut catalog = Catalog::new();
    catalog.add_tool(task("a", TaskSupport::Required)).unwrap();
    catalog.add_tool(task("b", TaskSupport::Forbidden)).unwrap();
    assert!(catalog.add_tool(task("a", TaskSupport::Optional)).is_err());
    assert_eq!(catalog.task_tools, 1);
    catalog.replace_tool(task("b", TaskSupport::Optional)).unwrap();
    assert_eq!(catalog.task_tools, 2);
    catalog.replace_tool(tool("a")).unwrap();
    catalog.remove_tool("b").unwrap();
    assert_eq!(catalog.task_tools, 0);
}

#[test]
fn an_item_stays_until_the_last_of_its_sessions_ends() {
    let [one, other, third] = [1, 2, 3].map(|it| crate::SessionKey::from_number(it).unwrap());
    let mut catalog = Catalog::new();
    let both = catalog.add_tool(tool("both")).unwrap();
    let single = catalog.add_prompt(Prompt::new("single")).unwrap();
    catalog.add_tool(tool("public")).unwrap();
    assert!(catalog.restrict(both, Audience::new().session(one).session(other)));
    assert!(catalog.restrict(single, Audience::new().session(one)));
    let in_session = |it| Caller::OWNER.with_session(Some(it));
    assert!(catalog.is_visible(both, &in_session(other)));
    assert!(!catalog.is_visible(both, &in_session(third)));
    assert!(!catalog.is_visible(both, &Caller::OWNER));
    assert!(!catalog.remove_session(third));
    let _taken = catalog.take_changes();

    assert!(catalog.remove_session(one), "the prompt");
    assert!(catalog.prompt("single").is_none() && catalog.tool("both").is_some());
    assert_eq!(catalog.sessions().collect::<Vec<_>>(), [other]);
    assert!(!catalog.is_visible(both, &in_session(one)));
    // Only callers who saw the items are concerned, and the session has ended.
    let announcement = catalog.take_announcement();
    assert_eq!(announcement.to_everyone, Changes::default());
    assert_eq!(announcement.seen_by(&Caller::OWNER), Changes::default());

    assert!(catalog.remove_session(other));
    assert!(catalog.tool("both").is_none() && catalog.tool("public").is_some());
    assert_eq!(catalog.sessions().count(), 0);
}

#[test]
fn a_kind_without_entries_is_managed_by_the_application() {
    let mut catalog = Catalog::new();
    assert!(!catalog.manages(Method::ToolsList) && !catalog.manages(Method::ToolsCall));
    catalog.add_tool(tool("a")).unwrap();
    assert!(catalog.manages(Method::ToolsList) && !catalog.manages(Method::PromptsGet));
    let _changes = catalog.take_changes();
    catalog.remove_tool("a");
    assert!(catalog.manages(Method::ToolsCall), "an emptied list is still managed");
    assert!(!catalog.manages(Method::CompletionComplete));
    catalog.manage_all();
    assert!(catalog.manages(Method::CompletionComplete));
    assert!(!catalog.manages(Method::Ping));
}
