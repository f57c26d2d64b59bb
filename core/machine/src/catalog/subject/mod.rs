//! Finds and checks the item that a request refers to, before a handler sees it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::item::{CompletedArgument, Item, ItemId, ItemKind, Target};
use super::runs_as_task;
use super::{Catalog, has_variable};
use crate::Caller;
use crate::envelope::Written;
use crate::gate::{Refusal, SubjectKind};
use crate::jsonrpc::{ErrorCode, ErrorObject, RawJson};
use crate::protocol::{Method, Prompt, Revision, TaskSupport, Tool};

type Checked = Result<(), ErrorObject<'static>>;
type Resolved = Result<Target, ErrorObject<'static>>;

/// The other parts of a request, apart from the item that it refers to.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(crate) params: &'a RawJson<'a>,
    /// The member `arguments` of `params`.
    pub(crate) arguments: Option<&'a RawJson<'a>>,
    /// Whether tasks were declared to the client, at 2025-11-25.
    pub(crate) tasks: bool,
    /// Whether the request asks for a task.
    pub(crate) asks_for_task: bool,
    /// The sender. Items that it cannot see do not exist.
    pub(crate) caller: &'a Caller,
}

impl Catalog {
    /// Finds the item that a request refers to, and checks the request's parameters for it.
    /// `subject` is the member `name` or `uri` of `params`, if that is a string. No member of
    /// `params` may be repeated; the machines never pass on such a request.
    ///
    /// Linear in the length of `params`, and in the number of resource templates if a URI is not
    /// listed. Succeeds for methods that refer to no item.
    ///
    /// # Errors
    ///
    /// The request is invalid. Send the error to the client. `-32602`: a member is missing or of
    /// the wrong type, or the tool, prompt, completion target or (2026-07-28) resource does not
    /// exist; `-32002`: the resource does not exist (up to 2025-11-25); `-32601`: a tool runs only,
    /// or never, as a task (2025-11-25).
    pub fn resolve(
        &self,
        method: Method,
        subject: Option<&str>,
        params: &RawJson<'_>,
        revision: Revision,
        caller: &Caller,
    ) -> Resolved {
        let arguments = params.get_present("arguments");
        let given = Given {
            params,
            arguments: arguments.as_ref(),
            tasks: self.task_tools > 0,
            asks_for_task: params.get_present("task").is_some(),
            caller,
        };
        self.resolve_given(method, subject, &given, revision)
    }

    /// Resolves a request whose members were already found.
    pub(crate) fn resolve_given(
        &self,
        method: Method,
        subject: Option<&str>,
        given: &Given<'_>,
        revision: Revision,
    ) -> Resolved {
        match method {
            Method::ToolsCall => self.resolve_tool(required(subject, "name")?, given, revision),
            Method::PromptsGet => self.resolve_prompt(required(subject, "name")?, given),
            Method::ResourcesRead | Method::ResourcesSubscribe => {
                self.resolve_resource(required(subject, "uri")?, given.caller, revision)
            }
            Method::ResourcesUnsubscribe => required(subject, "uri").map(|_| Target::None),
            Method::CompletionComplete => {
                self.resolve_completion(given, revision).map(Target::Completion)
            }
            _ => Ok(Target::None),
        }
    }

    // MCP 2026-07-28 server/tools#calling-tools [TOOL-004]
    fn resolve_tool(&self, name: &str, given: &Given<'_>, revision: Revision) -> Resolved {
        // MCP 2026-07-28 server/tools#error-handling [TOOL-007]
        let found = self.tools.resolve(name).filter(|(id, _)| self.is_visible(*id, given.caller));
        let (id, item) = found.ok_or_else(|| Refusal::UnknownTool(Written::plain(name)))?;
        check_arguments(given.arguments)?;
        // MCP 2025-11-25 basic/utilities/tasks#task-support-and-handling [TASK-006]: a server
        // without task support ignores the request for a task.
        if given.tasks && revision == Revision::V2025_11_25 && self.legacy_tasks {
            check_task(&item.tool, given.asks_for_task)?;
        }
        Ok(Target::Tool(id))
    }

    // MCP 2026-07-28 server/prompts#error-handling [PRMT-006]
    fn resolve_prompt(&self, name: &str, given: &Given<'_>) -> Resolved {
        let found = self.prompts.resolve(name).filter(|(id, _)| self.is_visible(*id, given.caller));
        let (id, prompt) = found.ok_or_else(|| unknown(ItemKind::Prompt, name))?;
        check_prompt_arguments(prompt, check_arguments(given.arguments)?)?;
        Ok(Target::Prompt(id))
    }

    fn resolve_resource(&self, uri: &str, caller: &Caller, revision: Revision) -> Resolved {
        if let Some(target) = self.find_resource(uri, caller) {
            return Ok(target);
        }
        Err(Refusal::UnknownResource { uri: Written::plain(uri), revision }.into())
    }

    /// Finds the resource or template that answers a read of `uri`, among the items that a caller
    /// can see.
    fn find_resource(&self, uri: &str, caller: &Caller) -> Option<Target> {
        match self.resources.resolve(uri) {
            Some((id, _)) if self.is_visible(id, caller) => Some(Target::Resource(id)),
            // A template does not disclose hidden resources.
            Some(_) => None,
            // The first that matches, visible or not: the scopes of a request are those of that one.
            None => {
                let found = self.find_template(uri)?;
                self.is_visible(found.template(), caller).then_some(Target::Template(found))
            }
        }
    }

    /// Returns whether a caller may learn of updates of a resource. The URI may be of a resource
    /// that the catalog does not contain.
    pub(crate) fn allows_updates(&self, uri: &str, caller: &Caller) -> bool {
        let is_restricted =
            self.restricts(ItemKind::Resource) || self.restricts(ItemKind::ResourceTemplate);
        !is_restricted
            || self.find_resource(uri, caller).is_some()
            || (self.resources.get(uri).is_none() && self.find_template(uri).is_none())
    }

    /// Returns whether a prompt that lists its arguments, or a template, has none of this name.
    fn lacks_argument(&self, item: ItemId, name: &str) -> bool {
        match self.item(item) {
            Some(Item::Prompt(Prompt { arguments: Some(arguments), .. })) => {
                !arguments.is_empty() && arguments.iter().all(|argument| argument.name != name)
            }
            Some(Item::ResourceTemplate(template)) => !has_variable(&template.uri_template, name),
            _ => false,
        }
    }

    // MCP 2026-07-28 server/utilities/completion#requesting-completions [COMP-001]
    // MCP 2026-07-28 server/utilities/completion#error-handling [COMP-004]
    fn resolve_completion(
        &self,
        given: &Given<'_>,
        revision: Revision,
    ) -> Result<CompletedArgument, ErrorObject<'static>> {
        let Given { params, caller, .. } = *given;
        let reference = params.get_present("ref").filter(RawJson::is_object);
        let reference = reference.ok_or_else(|| wrong("`ref` must be an object"))?;
        let item = match text(&reference, "type").as_deref() {
            Some("ref/prompt") => {
                let name = text(&reference, "name");
                let name = name.ok_or_else(|| wrong("`ref.name` must be a string"))?;
                let found = self.prompts.resolve(&name).map(|(id, _)| id);
                let found = found.filter(|id| self.is_visible(*id, caller));
                found.ok_or_else(|| unknown(ItemKind::Prompt, &name))?
            }
            Some("ref/resource") => {
                let uri = text(&reference, "uri");
                let uri = uri.ok_or_else(|| wrong("`ref.uri` must be a string"))?;
                let template = self.templates.resolve(&uri).map(|(id, _)| id);
                let template = template.filter(|id| self.is_visible(*id, caller));
                let resource = || self.find_resource(&uri, caller)?.item();
                let found = template.or_else(resource);
                found.ok_or_else(|| unknown(ItemKind::ResourceTemplate, &uri))?
            }
            _ => return Err(wrong("`ref.type` must be `ref/prompt` or `ref/resource`")),
        };
        let argument = params.get_present("argument");
        let named = argument.and_then(|it| text(&it, "value").and_then(|_| text(&it, "name")));
        let name =
            named.ok_or_else(|| wrong("`argument` must have the strings `name` and `value`"))?;
        if self.lacks_argument(item, &name) {
            return Err(wrong("there is no argument of this name"));
        }
        // MCP 2025-06-18 server/utilities/completion#requesting-completions [COMP-002]
        if revision >= Revision::V2025_06_18
            && let Some(context) = params.get_present("context")
            && let Some(known) = check_arguments(context.get_present("arguments").as_ref())?
            && known.members().any(|member| !is_string(&member.value))
        {
            return Err(wrong("the values of `context.arguments` must be strings"));
        }
        Ok(CompletedArgument::new(item, name))
    }
}

impl SubjectKind {
    /// Returns the name, the URI or the task id in parameters, unchecked, if there is one. Of a
    /// reference, the kind is that of its target.
    #[must_use]
    pub fn find<'p>(self, params: &'p RawJson<'_>) -> Option<(Self, Cow<'p, str>)> {
        let text = |member: &str| params.get(member)?.to_text();
        let found = match self {
            Self::Tool | Self::Prompt => text("name"),
            Self::Resource => text("uri"),
            Self::Task => text("taskId"),
            Self::Reference => {
                let reference = params.get("ref")?;
                let target = |kind: Self| {
                    let (kind, text) = kind.find(&reference)?;
                    Some((kind, Cow::Owned(text.into_owned())))
                };
                return target(Self::Prompt).or_else(|| target(Self::Resource));
            }
        };
        Some((self, found?))
    }
}

fn check_prompt_arguments(prompt: &Prompt, filled: Option<&RawJson<'_>>) -> Checked {
    let known = prompt.arguments.iter().flatten();
    let mut missing: Vec<&str> = known
        .filter(|argument| argument.required == Some(true))
        .map(|argument| argument.name.as_str())
        .collect();
    for member in filled.into_iter().flat_map(RawJson::members) {
        let name = member.name();
        if member.value == RawJson::NULL {
            continue;
        }
        // MCP 2026-07-28 schema.json#GetPromptRequest [PRMT-002]: string values only.
        if !is_string(&member.value) {
            return Err(wrong(format!("the argument `{}` must be a string", shown(&name))));
        }
        missing.retain(|required| *required != name);
    }
    match missing.first() {
        Some(name) => Err(wrong(format!("missing required argument: {}", shown(name)))),
        None => Ok(()),
    }
}

fn check_task(tool: &Tool, asked: bool) -> Checked {
    let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
    let name = &tool.name;
    if asked && !runs_as_task(tool) {
        // MCP 2025-11-25 basic/utilities/tasks#tool-level-negotiation [TASK-004]
        let message = format!("the tool {name} never runs as a task: call it without `task`");
        Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message))
    } else if !asked && support == Some(&TaskSupport::Required) {
        // MCP 2025-11-25 basic/utilities/tasks#tool-level-negotiation [TASK-005]
        let message = format!("the tool {name} only runs as a task: call it with `task`");
        Err(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message))
    } else {
        Ok(())
    }
}

/// Checks that the member `arguments` is an object, if it is present. `null` counts as missing.
fn check_arguments<'r, 'a>(
    arguments: Option<&'r RawJson<'a>>,
) -> Result<Option<&'r RawJson<'a>>, ErrorObject<'static>> {
    match arguments {
        Some(arguments) if !arguments.is_object() => Err(wrong("`arguments` must be an object")),
        arguments => Ok(arguments),
    }
}

fn text(object: &RawJson<'_>, name: &str) -> Option<String> {
    object.get(name)?.decode().ok()
}

fn is_string(value: &RawJson<'_>) -> bool {
    value.as_str().starts_with('"')
}

fn required<'s>(subject: Option<&'s str>, member: &str) -> Result<&'s str, ErrorObject<'static>> {
    subject.ok_or_else(|| wrong(format!("`{member}` must be a string")))
}

fn unknown(kind: ItemKind, key: &str) -> ErrorObject<'static> {
    wrong(format!("unknown {kind}: {}", shown(key)))
}

fn wrong(message: impl Into<Cow<'static, str>>) -> ErrorObject<'static> {
    ErrorObject::invalid_params(message)
}

/// Shortens a peer's text for an error message.
fn shown(text: &str) -> &str {
    const SHOWN_MAX: usize = 64;
    text.char_indices().nth(SHOWN_MAX).map_or(text, |(end, _)| text.split_at(end).0)
}

#[cfg(test)]
mod tests;
