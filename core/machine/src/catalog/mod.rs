//! The items that a server offers: tools, resources, resource templates and prompts.
//!
//! A [`Catalog`] answers the list methods, and refuses requests for items that it does not contain,
//! so that handlers only get requests for existing items.
//!
//! ```
//! use mcp_sansio::catalog::{Catalog, Item};
//! use mcp_sansio::jsonrpc::RawJson;
//! use mcp_sansio::protocol::{ResourceTemplate, Tool};
//!
//! let mut catalog = Catalog::new();
//! let schema = RawJson::parse(r#"{"type":"object"}"#)?;
//! catalog.add_tool(Tool::new("forecast", schema))?;
//! let log = ResourceTemplate::new("station://{id}/log{?day}", "log");
//! catalog.add_resource_template(log.clone())?;
//!
//! let found = catalog.find_template("station://oslo/log").unwrap();
//! assert_eq!(catalog.item(found.template()), Some(Item::ResourceTemplate(&log)));
//! assert_eq!(found.variables(), [("id".into(), "oslo".into())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attachments;
mod audience;
mod condition;
mod cursor;
mod declaration;
mod error;
mod item;
mod list;
mod page;
#[cfg(feature = "recording")]
pub(crate) mod snapshot;
pub(crate) mod subject;
mod template;
mod uri;
mod validator;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

pub use attachments::Attachments;
pub(crate) use audience::Announcement;
pub use audience::Audience;
use audience::Restrictions;
pub use error::CatalogError;
use item::ToolItem;
pub use item::{CompletedArgument, Item, ItemId, ItemKind, Target, TemplateMatch};
use list::List;
pub use page::{Lists, PAGE_SIZE_DEFAULT, Page};
pub use template::{TEMPLATE_URI_LENGTH_MAX, check_template, has_variable, match_template};
pub use uri::{InvalidUri, check_uri};
pub(crate) use validator::DescribedTool;
pub use validator::{ArgumentCheck, CompiledSchema, Invalid, Validator};

use crate::gate::SubjectKind;
use crate::protocol::wire::{is_object, is_object_schema};
use crate::protocol::{Method, Prompt, Resource, ResourceTemplate, Tool, check_tool_name};

/// The items that a server offers. See the [module](self) for how they are used.
///
/// Each kind is listed in insertion order. Adding and finding by key do not slow down in a long
/// list; removing moves one pointer for each later entry. The number of items is unlimited: the
/// application controls it. The description of an item that was listed is also kept as text, once
/// for each form that it has at the revisions of the clients, except on processors with 32 bits.
#[derive(Debug)]
pub struct Catalog {
    tools: List<ToolItem>,
    resources: List<Resource>,
    templates: List<ResourceTemplate>,
    /// The matching function. Set when a template is added, so that its code is not linked into
    /// programs without templates.
    match_template: Option<MatchTemplate>,
    prompts: List<Prompt>,
    /// The number of tools that can or must run as tasks.
    task_tools: usize,
    /// The number of tools that must run as tasks.
    always_tasks: usize,
    /// Whether the server supports the tasks of 2025-11-25.
    legacy_tasks: bool,
    /// The unannounced changes except additions, as far as all callers can see them.
    changes: Changes,
    /// The number of unannounced additions of each kind.
    added: [u32; 4],
    /// Created with the first restricted item.
    restrictions: Option<Box<Restrictions>>,
    /// The kinds that the catalog manages.
    managed: Changes,
    page_size: Option<NonZeroUsize>,
    list_changed: bool,
    subscribe: bool,
    validator: Option<Box<dyn Validator>>,
}

/// Has the signature of [`match_template`].
type MatchTemplate = fn(&str, &str) -> Option<Vec<(String, String)>>;

/// The kinds of lists that were edited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Changes {
    /// The tools.
    pub tools: bool,
    /// The prompts.
    pub prompts: bool,
    /// The resources or the resource templates.
    pub resources: bool,
}

impl Changes {
    /// Creates a value without changes.
    #[must_use]
    pub const fn new() -> Self {
        Self { tools: false, prompts: false, resources: false }
    }

    /// Sets [`Changes::tools`].
    #[must_use]
    pub const fn tools(mut self, tools: bool) -> Self {
        self.tools = tools;
        self
    }

    /// Sets [`Changes::prompts`].
    #[must_use]
    pub const fn prompts(mut self, prompts: bool) -> Self {
        self.prompts = prompts;
        self
    }

    /// Sets [`Changes::resources`].
    #[must_use]
    pub const fn resources(mut self, resources: bool) -> Self {
        self.resources = resources;
        self
    }

    /// Returns whether nothing was edited.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        !(self.tools || self.prompts || self.resources)
    }

    /// Adds the list of a kind.
    pub(crate) const fn with(mut self, kind: ItemKind) -> Self {
        match kind {
            ItemKind::Tool => self.tools = true,
            ItemKind::Prompt => self.prompts = true,
            ItemKind::Resource | ItemKind::ResourceTemplate => self.resources = true,
        }
        self
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self {
            tools: List::default(),
            resources: List::default(),
            templates: List::default(),
            match_template: None,
            prompts: List::default(),
            task_tools: 0,
            always_tasks: 0,
            legacy_tasks: true,
            changes: Changes::default(),
            added: [0; 4],
            restrictions: None,
            managed: Changes::default(),
            page_size: Some(PAGE_SIZE_DEFAULT),
            list_changed: true,
            subscribe: false,
            validator: None,
        }
    }
}

impl Clone for Catalog {
    /// A deep copy, because processors without compare-and-swap cannot share ownership between
    /// threads.
    fn clone(&self) -> Self {
        Self {
            tools: self.tools.clone(),
            resources: self.resources.clone(),
            templates: self.templates.clone(),
            prompts: self.prompts.clone(),
            restrictions: self.restrictions.clone(),
            validator: self.validator.as_ref().map(|validator| validator.clone_boxed()),
            ..*self
        }
    }
}

impl Catalog {
    /// Creates an empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Manages all kinds, including those without entries.
    ///
    /// Otherwise the application manages a kind that never had an entry: its list methods and
    /// requests are passed on, for servers that determine their items on demand.
    pub const fn manage_all(&mut self) -> &mut Self {
        self.managed = Changes { tools: true, prompts: true, resources: true };
        self
    }

    /// Sets whether calls can be tasks at 2025-11-25, if a tool declares it in its `execution`; on
    /// by default. It does not affect the extension of 2026-07-28.
    // MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]
    pub const fn legacy_tasks(&mut self, served: bool) -> &mut Self {
        self.legacy_tasks = served;
        self
    }

    fn managed(&self) -> Changes {
        self.managed.and(self.pending_changes())
    }

    /// Returns whether the catalog manages requests of `method`.
    #[must_use]
    pub fn manages(&self, method: Method) -> bool {
        let is_managed = |managed: Changes| match (ItemKind::listed_by(method), method.subject()) {
            (Some(ItemKind::Tool), _) | (_, Some(SubjectKind::Tool)) => managed.tools,
            (Some(ItemKind::Prompt), _) | (_, Some(SubjectKind::Prompt)) => managed.prompts,
            (Some(_), _) | (_, Some(SubjectKind::Resource)) => managed.resources,
            (_, Some(SubjectKind::Reference)) => managed.prompts && managed.resources,
            (_, Some(SubjectKind::Task) | None) => false,
        };
        is_managed(self.managed) || is_managed(self.managed())
    }

    /// Appends a tool to the list.
    ///
    /// # Errors
    ///
    /// Its name is taken or invalid, its `inputSchema` is not a JSON object whose `type` is
    /// `object`, its `outputSchema` is not a JSON object, or the validator refuses one of the
    /// schemas.
    pub fn add_tool(&mut self, tool: Tool) -> Result<ItemId, CatalogError> {
        let item = self.tool_item(tool)?;
        let (task, always) = (runs_as_task(&item.tool), always_runs_as_task(&item.tool));
        let id = self.tools.add(item)?;
        self.task_tools += usize::from(task);
        self.always_tasks += usize::from(always);
        self.note_added(ItemKind::Tool);
        Ok(id)
    }

    /// Replaces the tool with the same name and returns the old one, or appends the tool. Replacing
    /// a tool with an equal one is not a change.
    ///
    /// # Errors
    ///
    /// Those of [`add_tool`](Self::add_tool), except that the name may be taken.
    pub fn replace_tool(&mut self, tool: Tool) -> Result<Option<Tool>, CatalogError> {
        let item = self.tool_item(tool)?;
        let same = self.tool(&item.tool.name) == Some(&item.tool);
        self.task_tools += usize::from(runs_as_task(&item.tool));
        self.always_tasks += usize::from(always_runs_as_task(&item.tool));
        let (old, audience) = self.tools.replace(item);
        let old = old.map(|item| item.tool);
        self.task_tools -= usize::from(old.as_ref().is_some_and(runs_as_task));
        self.always_tasks -= usize::from(old.as_ref().is_some_and(always_runs_as_task));
        if !same {
            self.note_change(ItemKind::Tool, audience.as_ref());
        }
        Ok(old)
    }

    /// Removes the tool called `name`, and returns it.
    pub fn remove_tool(&mut self, name: &str) -> Option<Tool> {
        let (ToolItem { tool, .. }, audience) = self.tools.remove(name)?;
        self.task_tools -= usize::from(runs_as_task(&tool));
        self.always_tasks -= usize::from(always_runs_as_task(&tool));
        self.note_removed(ItemKind::Tool, audience.as_ref());
        Some(tool)
    }

    /// Returns the tool called `name`.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name).map(|item| &item.tool)
    }

    /// Returns the tools in order.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.tools.iter().map(|item| &item.tool)
    }

    fn tool_item(&self, tool: Tool) -> Result<ToolItem, CatalogError> {
        // MCP 2026-07-28 server/tools#tool-names [TOOL-023]
        if let Err(reason) = check_tool_name(&tool.name) {
            return Err(CatalogError::InvalidToolName { name: tool.name, reason });
        }
        // MCP 2026-07-28 schema.json#Tool [TOOL-001]
        // MCP 2026-07-28 server/tools#tool [TOOL-021]
        if !(is_object(&tool.input_schema) && is_object_schema(&tool.input_schema)) {
            let reason = "must be a JSON object with \"type\": \"object\", as derived for a struct, \
                          or for an enum with a tag and named fields; a tool without arguments has \
                          {\"type\": \"object\"}";
            return Err(invalid_schema(tool, "inputSchema", reason));
        }
        // MCP 2026-07-28 server/tools#structured-content [TOOL-017]: of any type.
        if !tool.output_schema.as_ref().is_none_or(is_object) {
            return Err(invalid_schema(tool, "outputSchema", "must be a JSON object"));
        }
        let schemas = self.compile(&tool)?;
        Ok(ToolItem { tool, schemas })
    }

    /// Appends a resource to the list.
    ///
    /// # Errors
    ///
    /// Its URI is taken, not absolute or not well-formed.
    pub fn add_resource(&mut self, resource: Resource) -> Result<ItemId, CatalogError> {
        check_resource(&resource)?;
        let id = self.resources.add(resource)?;
        self.note_added(ItemKind::Resource);
        Ok(id)
    }

    /// Replaces the resource with the same URI and returns the old one, or appends the resource.
    /// Replacing a resource with an equal one is not a change.
    ///
    /// # Errors
    ///
    /// Those of [`add_resource`](Self::add_resource), except that the URI may be taken.
    pub fn replace_resource(
        &mut self,
        resource: Resource,
    ) -> Result<Option<Resource>, CatalogError> {
        check_resource(&resource)?;
        let same = self.resource(&resource.uri) == Some(&resource);
        let (old, audience) = self.resources.replace(resource);
        if !same {
            self.note_change(ItemKind::Resource, audience.as_ref());
        }
        Ok(old)
    }

    /// Removes the resource at `uri`, and returns it.
    pub fn remove_resource(&mut self, uri: &str) -> Option<Resource> {
        let (resource, audience) = self.resources.remove(uri)?;
        self.note_removed(ItemKind::Resource, audience.as_ref());
        Some(resource)
    }

    /// Returns the resource at `uri`.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Resource> {
        self.resources.get(uri)
    }

    /// Returns the resources in order.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &Resource> {
        self.resources.iter()
    }

    /// Appends a resource template to the list.
    ///
    /// # Errors
    ///
    /// Its URI template is taken or not well-formed.
    pub fn add_resource_template(
        &mut self,
        template: ResourceTemplate,
    ) -> Result<ItemId, CatalogError> {
        check_resource_template(&template)?;
        let id = self.templates.add(template)?;
        self.match_template = Some(match_template);
        self.note_added(ItemKind::ResourceTemplate);
        Ok(id)
    }

    /// Replaces the resource template with the same URI template and returns the old one, or
    /// appends the template. Replacing a template with an equal one is not a change.
    ///
    /// # Errors
    ///
    /// Those of [`add_resource_template`](Self::add_resource_template), except that the URI
    /// template may be taken.
    pub fn replace_resource_template(
        &mut self,
        template: ResourceTemplate,
    ) -> Result<Option<ResourceTemplate>, CatalogError> {
        check_resource_template(&template)?;
        let same = self.resource_template(&template.uri_template) == Some(&template);
        self.match_template = Some(match_template);
        let (old, audience) = self.templates.replace(template);
        if !same {
            self.note_change(ItemKind::ResourceTemplate, audience.as_ref());
        }
        Ok(old)
    }

    /// Removes the resource template with this URI template, and returns it.
    pub fn remove_resource_template(&mut self, uri_template: &str) -> Option<ResourceTemplate> {
        let (template, audience) = self.templates.remove(uri_template)?;
        self.note_removed(ItemKind::ResourceTemplate, audience.as_ref());
        Some(template)
    }

    /// Returns the resource template with this URI template.
    #[must_use]
    pub fn resource_template(&self, uri_template: &str) -> Option<&ResourceTemplate> {
        self.templates.get(uri_template)
    }

    /// Returns the resource templates in order.
    pub fn resource_templates(&self) -> impl ExactSizeIterator<Item = &ResourceTemplate> {
        self.templates.iter()
    }

    /// Returns the first resource template that matches `uri`, with the values of its variables;
    /// see [`match_template`] for their form. It takes one match for each template with the same
    /// prefix as the URI; other templates are skipped cheaply.
    #[must_use]
    pub fn find_template(&self, uri: &str) -> Option<TemplateMatch> {
        let match_template = self.match_template?;
        // MCP 2026-07-28 server/resources#security-considerations [RSRC-014]
        if check_uri(uri).is_err() {
            return None;
        }
        let found = self.templates.find_map(|known| match_template(&known.uri_template, uri));
        found.map(|(id, variables)| TemplateMatch::new(id, variables))
    }

    /// Appends a prompt to the list.
    ///
    /// # Errors
    ///
    /// Its name is taken, or it names an argument twice.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Result<ItemId, CatalogError> {
        check_prompt(&prompt)?;
        let id = self.prompts.add(prompt)?;
        self.note_added(ItemKind::Prompt);
        Ok(id)
    }

    /// Replaces the prompt with the same name and returns the old one, or appends the prompt.
    /// Replacing a prompt with an equal one is not a change.
    ///
    /// # Errors
    ///
    /// Those of [`add_prompt`](Self::add_prompt), except that the name may be taken.
    pub fn replace_prompt(&mut self, prompt: Prompt) -> Result<Option<Prompt>, CatalogError> {
        check_prompt(&prompt)?;
        let same = self.prompt(&prompt.name) == Some(&prompt);
        let (old, audience) = self.prompts.replace(prompt);
        if !same {
            self.note_change(ItemKind::Prompt, audience.as_ref());
        }
        Ok(old)
    }

    /// Removes the prompt called `name`, and returns it.
    pub fn remove_prompt(&mut self, name: &str) -> Option<Prompt> {
        let (prompt, audience) = self.prompts.remove(name)?;
        self.note_removed(ItemKind::Prompt, audience.as_ref());
        Some(prompt)
    }

    /// Returns the prompt called `name`.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts.get(name)
    }

    /// Returns the item with this id, unless it was removed.
    #[must_use]
    pub fn item(&self, id: ItemId) -> Option<Item<'_>> {
        match id.kind() {
            ItemKind::Tool => self.tools.by_id(id).map(|item| Item::Tool(&item.tool)),
            ItemKind::Resource => self.resources.by_id(id).map(|item| Item::Resource(item)),
            ItemKind::ResourceTemplate => {
                self.templates.by_id(id).map(|item| Item::ResourceTemplate(item))
            }
            ItemKind::Prompt => self.prompts.by_id(id).map(|item| Item::Prompt(item)),
        }
    }

    /// Returns the prompts in order.
    pub fn prompts(&self) -> impl ExactSizeIterator<Item = &Prompt> {
        self.prompts.iter()
    }
}

// MCP 2025-11-25 server/tools#tool [TOOL-025]
fn always_runs_as_task(tool: &Tool) -> bool {
    let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
    support == Some(&crate::protocol::TaskSupport::Required)
}

fn runs_as_task(tool: &Tool) -> bool {
    use crate::protocol::TaskSupport::{Optional, Required};
    let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
    matches!(support, Some(Optional | Required))
}

fn invalid_schema(tool: Tool, member: &'static str, reason: &str) -> CatalogError {
    CatalogError::InvalidSchema { tool: tool.name, member, reason: reason.into() }
}

// MCP 2026-07-28 server/resources#security-considerations [RSRC-014]
// MCP 2026-07-28 server/resources#custom-uri-schemes [RSRC-018]
fn check_resource(resource: &Resource) -> Result<(), CatalogError> {
    check_uri(&resource.uri)
        .map_err(|reason| CatalogError::InvalidUri { uri: resource.uri.clone(), reason })
}

// MCP 2026-07-28 server/resources#resource-templates [RSRC-002]
fn check_resource_template(template: &ResourceTemplate) -> Result<(), CatalogError> {
    check_template(&template.uri_template).map_err(|reason| CatalogError::InvalidTemplate {
        template: template.uri_template.clone(),
        reason,
    })
}

fn check_prompt(prompt: &Prompt) -> Result<(), CatalogError> {
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let mut repeated = arguments.iter().enumerate().filter(|(place, argument)| {
        arguments[..*place].iter().any(|earlier| earlier.name == argument.name)
    });
    match repeated.next() {
        Some((_, argument)) => Err(CatalogError::DuplicateArgument {
            prompt: prompt.name.clone(),
            argument: argument.name.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
