//! The kinds of items in a catalog and their common interface.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::validator::CompiledSchema;
use crate::protocol::{Method, Prompt, Resource, ResourceTemplate, SerializeAt, Tool};
use mcp_sansio_sync::Arc;

/// The kind of an item in a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ItemKind {
    /// A tool, identified by its name.
    Tool,
    /// A resource, identified by its URI.
    Resource,
    /// A resource template, identified by its URI template.
    ResourceTemplate,
    /// A prompt, identified by its name.
    Prompt,
}

impl ItemKind {
    pub(super) const ALL: [Self; 4] =
        [Self::Tool, Self::Resource, Self::ResourceTemplate, Self::Prompt];

    /// Returns the kind that `method` lists.
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

    /// Returns the member of the list result that contains the items.
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

/// Identifies an item of a catalog.
///
/// An item keeps its id until it is removed, even if it is replaced by one with the same key. Ids
/// are never reused. Ids of different catalogs are unrelated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(u64);

impl ItemId {
    /// Creates the id of an item from its kind and number. Numbers never reach the upper bits.
    pub(super) const fn new(kind: ItemKind, number: u64) -> Self {
        Self(number << 2 | kind as u64)
    }

    /// Returns the kind of the item.
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
#[non_exhaustive]
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

/// The item that a request refers to. It is looked up once, for all later checks and for the
/// handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// No item: the method refers to none, or the catalog does not manage its kind.
    #[default]
    None,
    /// The request calls a tool.
    Tool(ItemId),
    /// The request gets a prompt.
    Prompt(ItemId),
    /// The request reads a listed resource.
    Resource(ItemId),
    /// The request reads a resource whose URI matches a template.
    Template(TemplateMatch),
    /// The request completes an argument of a prompt, a resource template or a resource.
    Completion(CompletedArgument),
}

impl Target {
    /// Returns the item, if there is one.
    #[must_use]
    pub fn item(&self) -> Option<ItemId> {
        match self {
            Self::None => None,
            Self::Tool(id) | Self::Prompt(id) | Self::Resource(id) => Some(*id),
            Self::Template(matched) => Some(matched.template()),
            Self::Completion(argument) => Some(argument.item()),
        }
    }

    /// Returns the argument of the item that the request completes, if it completes one.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Completion(argument) => Some(argument.name()),
            _ => None,
        }
    }
}

/// A resource template that matches a URI. Clones share their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateMatch(Arc<(ItemId, Vec<(String, String)>)>);

impl TemplateMatch {
    pub(super) fn new(template: ItemId, variables: Vec<(String, String)>) -> Self {
        Self(Arc::new((template, variables)))
    }

    /// Returns the template.
    #[must_use]
    pub fn template(&self) -> ItemId {
        self.0.0
    }

    /// Returns the variables of the template with their values from the URI, in the template's
    /// order.
    #[must_use]
    pub fn variables(&self) -> &[(String, String)] {
        &self.0.1
    }
}

/// An argument to complete, and its item. Clones share their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedArgument(Arc<(ItemId, String)>);

impl CompletedArgument {
    pub(super) fn new(item: ItemId, name: String) -> Self {
        Self(Arc::new((item, name)))
    }

    /// Returns the prompt, the resource template or the resource. Of a resource whose URI matches a
    /// template, it is the template.
    #[must_use]
    pub fn item(&self) -> ItemId {
        self.0.0
    }

    /// Returns the name of the argument.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.1
    }
}

/// An item of a list: its key, and the message that describes it to clients.
pub(super) trait Listed: Clone {
    type Message: SerializeAt;

    /// Returns whether it is a tool that only runs as a task.
    fn is_always_task(&self) -> bool {
        false
    }

    const KIND: ItemKind;

    fn key(&self) -> &str;

    fn message(&self) -> &Self::Message;
}

/// A tool with its compiled schemas.
#[derive(Clone, Debug)]
pub(super) struct ToolItem {
    pub(super) tool: Tool,
    pub(super) schemas: Schemas,
}

/// The compiled schemas of a tool; empty without a validator.
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

    fn is_always_task(&self) -> bool {
        super::always_runs_as_task(&self.tool)
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
