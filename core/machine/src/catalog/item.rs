//! What the kinds of things in a catalog have in common.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::validator::CompiledSchema;
use crate::protocol::{Method, Prompt, Resource, ResourceTemplate, SerializeAt, TaskSupport, Tool};
use mcp_sansio_sync::Arc;

/// A kind of thing that a catalog holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A tool, known by its name.
    Tool,
    /// A resource, known by its URI.
    Resource,
    /// A resource template, known by its URI template.
    ResourceTemplate,
    /// A prompt, known by its name.
    Prompt,
}

impl ItemKind {
    /// The kind that `method` lists.
    #[must_use]
    pub const fn listed_by(method: Method) -> Option<Self> {
        match method {
            Method::ToolsList => Some(Self::Tool),
            Method::ResourcesList => Some(Self::Resource),
            Method::ResourcesTemplatesList => Some(Self::ResourceTemplate),
            Method::PromptsList => Some(Self::Prompt),
            _ => None,
        }
    }

    /// The member of the list result that holds the items.
    pub(super) const fn member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::ResourceTemplate => "resourceTemplates",
            Self::Prompt => "prompts",
        }
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
            Self::Prompt => "prompt",
        })
    }
}

/// Names an item of a catalog.
///
/// An item keeps its id until it is removed, also where it is replaced by one of the same key; no
/// other item ever has it. Ids of different catalogs have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(u64);

impl ItemId {
    /// The item of a kind with this number, which no list reaches the upper bits of.
    pub(super) const fn new(kind: ItemKind, number: u64) -> Self {
        Self(number << 2 | kind as u64)
    }

    /// The kind of the item.
    #[must_use]
    pub const fn kind(self) -> ItemKind {
        match self.0 & 3 {
            0 => ItemKind::Tool,
            1 => ItemKind::Resource,
            2 => ItemKind::ResourceTemplate,
            _ => ItemKind::Prompt,
        }
    }

    pub(super) const fn number(self) -> u64 {
        self.0 >> 2
    }
}

/// An item of a catalog.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'c> {
    /// A tool.
    Tool(&'c Tool),
    /// A resource.
    Resource(&'c Resource),
    /// A resource template.
    ResourceTemplate(&'c ResourceTemplate),
    /// A prompt.
    Prompt(&'c Prompt),
}

/// What a request is about, found once: every later check and the handler go by this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// No single item: the method is about none, or its kind is not the catalog's affair.
    #[default]
    None,
    /// A tool is called.
    Tool(ItemId),
    /// A prompt is wanted.
    Prompt(ItemId),
    /// A resource that is listed is read.
    Resource(ItemId),
    /// A resource is read whose URI matches a template.
    Template(TemplateMatch),
}

impl Target {
    /// The item, if there is one.
    #[must_use]
    pub fn item(&self) -> Option<ItemId> {
        match self {
            Self::None => None,
            Self::Tool(id) | Self::Prompt(id) | Self::Resource(id) => Some(*id),
            Self::Template(matched) => Some(matched.template()),
        }
    }
}

/// A resource template that a URI matches. Clones share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateMatch(Arc<(ItemId, Vec<(String, String)>)>);

impl TemplateMatch {
    pub(super) fn new(template: ItemId, variables: Vec<(String, String)>) -> Self {
        Self(Arc::new((template, variables)))
    }

    /// The template.
    #[must_use]
    pub fn template(&self) -> ItemId {
        self.0.0
    }

    /// The variables of the template with the values that the URI has for them, in the template's
    /// order.
    #[must_use]
    pub fn variables(&self) -> &[(String, String)] {
        &self.0.1
    }
}

/// One thing in a list: what it is known by, and what clients are told of it.
pub(super) trait Listed: Clone {
    type Message: SerializeAt;

    /// Whether it is a tool that only runs as a task.
    fn is_always_task(&self) -> bool {
        false
    }

    const KIND: ItemKind;

    fn key(&self) -> &str;

    fn message(&self) -> &Self::Message;
}

/// A tool with its schemas as the validator left them.
#[derive(Clone, Debug)]
pub(super) struct ToolItem {
    pub(super) tool: Tool,
    pub(super) schemas: Schemas,
}

/// The compiled schemas of a tool; none without a validator.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    pub(super) input: Option<Box<dyn CompiledSchema>>,
    pub(super) output: Option<Box<dyn CompiledSchema>>,
}

impl Clone for Schemas {
    fn clone(&self) -> Self {
        let copy = |schema: &Option<Box<dyn CompiledSchema>>| {
            schema.as_ref().map(|schema| schema.clone_boxed())
        };
        Self { input: copy(&self.input), output: copy(&self.output) }
    }
}

impl Listed for ToolItem {
    type Message = Tool;

    const KIND: ItemKind = ItemKind::Tool;

    // MCP 2025-11-25 server/tools#tool [TOOL-025]
    fn is_always_task(&self) -> bool {
        let support = self.tool.execution.as_ref().and_then(|it| it.task_support.as_ref());
        support == Some(&TaskSupport::Required)
    }

    fn key(&self) -> &str {
        &self.tool.name
    }

    fn message(&self) -> &Tool {
        &self.tool
    }
}

macro_rules! item {
    ($name:ident by $key:ident) => {
        impl Listed for $name {
            type Message = Self;

            const KIND: ItemKind = ItemKind::$name;

            fn key(&self) -> &str {
                &self.$key
            }

            fn message(&self) -> &Self {
                self
            }
        }
    };
}
item!(Resource by uri);
item!(ResourceTemplate by uri_template);
item!(Prompt by name);
