//! The capabilities that a catalog declares.

use super::Catalog;
use crate::protocol::{
    PromptsCapability, ResourcesCapability, Revision, ServerCapabilities, ToolsCapability,
};

impl Catalog {
    /// Sets whether clients are notified when lists change; on by default.
    pub const fn list_changed(&mut self, told: bool) -> &mut Self {
        self.list_changed = told;
        self
    }

    /// Sets whether clients may subscribe to resources; off by default, because the application has
    /// to announce updates.
    pub const fn subscribe(&mut self, may: bool) -> &mut Self {
        self.subscribe = may;
        self
    }

    /// Returns the capabilities to declare at `revision`: `declared`, completed with those of the
    /// catalog. Values that are already in `declared` are kept.
    ///
    /// A kind without items is declared only if `declared` contains it; do so for a list that is
    /// filled later. At 2025-11-25, tools that run as tasks add `tasks.requests.tools.call`.
    // MCP 2026-07-28 server/tools#capabilities [CAP-001]
    // MCP 2026-07-28 server/resources#capabilities [CAP-002]
    // MCP 2026-07-28 server/prompts#capabilities [CAP-003]
    #[must_use]
    pub fn complete(
        &self,
        mut declared: ServerCapabilities,
        revision: Revision,
    ) -> ServerCapabilities {
        if !self.tools.is_empty() {
            declared.tools.get_or_insert_with(ToolsCapability::new);
        }
        if !self.resources.is_empty() || !self.templates.is_empty() {
            declared.resources.get_or_insert_with(ResourcesCapability::new);
        }
        if !self.prompts.is_empty() {
            declared.prompts.get_or_insert_with(PromptsCapability::new);
        }
        let told = self.list_changed.then_some(true);
        let subscribe = self.subscribe.then_some(true);
        if let Some(tools) = &mut declared.tools {
            tools.list_changed = tools.list_changed.or(told);
        }
        if let Some(resources) = &mut declared.resources {
            resources.list_changed = resources.list_changed.or(told);
            resources.subscribe = resources.subscribe.or(subscribe);
        }
        if let Some(prompts) = &mut declared.prompts {
            prompts.list_changed = prompts.list_changed.or(told);
        }
        // MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]
        if revision == Revision::V2025_11_25 && self.legacy_tasks && self.task_tools > 0 {
            let requests = declared.tasks.get_or_insert_default().requests.get_or_insert_default();
            requests.tools.get_or_insert_default().call.get_or_insert_default();
        }
        declared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::RawJson;
    use crate::protocol::{
        Prompt, ResourceTemplate, SerializeAt, TaskSupport, Tool, ToolExecution,
    };

    fn text(
        catalog: &Catalog,
        declared: &ServerCapabilities,
        revision: Revision,
    ) -> alloc::string::String {
        catalog.complete(declared.clone(), revision).to_json_at(revision).unwrap().as_str().into()
    }

    #[test]
    fn catalog_entries_are_declared() {
        // Rule: [CAP-001] [CAP-002] [CAP-003].
        let none = ServerCapabilities::new();
        let mut catalog = Catalog::new();
        let revision = Revision::LATEST;
        assert_eq!(text(&catalog, &none, revision), "{}");
        catalog.add_tool(Tool::new("t", RawJson::parse(r#"{"type":"object"}"#).unwrap())).unwrap();
        assert_eq!(text(&catalog, &none, revision), r#"{"tools":{"listChanged":true}}"#);
        catalog.list_changed(false).subscribe(true);
        catalog.add_resource_template(ResourceTemplate::new("a:{b}", "n")).unwrap();
        catalog.add_prompt(Prompt::new("p")).unwrap();
        let all = r#"{"prompts":{},"resources":{"subscribe":true},"tools":{}}"#;
        assert_eq!(text(&catalog, &none, revision), all);
    }

    #[test]
    fn existing_declarations_are_kept() {
        // Rule: [CAP-001] [CAP-002].
        let declared = ServerCapabilities::new()
            .tools(ToolsCapability::new().list_changed(false))
            .resources(ResourcesCapability::new());
        let expected = r#"{"resources":{"listChanged":true},"tools":{"listChanged":false}}"#;
        assert_eq!(text(&Catalog::new(), &declared, Revision::V2024_11_05), expected);
    }

    #[test]
    fn tools_that_run_as_tasks_declare_the_capability() {
        // Rule: [CAP-016].
        let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        let execution = ToolExecution::new().task_support(TaskSupport::Optional);
        let mut catalog = Catalog::new();
        catalog.add_tool(Tool::new("t", schema).execution(execution)).unwrap();
        for revision in Revision::ALL {
            let text = text(&catalog, &ServerCapabilities::new(), revision);
            let tasks = r#""tasks":{"requests":{"tools":{"call":{}}}}"#;
            assert_eq!(text.contains(tasks), revision == Revision::V2025_11_25, "{revision}");
        }
    }
}
