//! What the kinds of things in a catalog have in common.

use alloc::boxed::Box;
use core::fmt;

use super::validator::CompiledSchema;
use crate::protocol::{Method, Prompt, Resource, ResourceTemplate, TaskSupport, Tool, Wire};

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

/// One thing in a list: what it is known by, and what clients are told of it.
pub(super) trait Item: Clone {
    type Message: Wire;

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

impl Item for ToolItem {
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
        impl Item for $name {
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
