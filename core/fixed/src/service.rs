//! What a server offers: constants of the program.

use core::fmt;

use mcp_sansio::envelope::{JsonText, Written};
use mcp_sansio::{Revision, Revisions};

use crate::Text;

/// A server's identity, tools and resources, and the state that its handlers change.
///
/// Everything here is constant, so that the linker sees what a program does not use.
pub trait Service: Sized + 'static {
    /// The programmatic name of the server.
    const NAME: &'static str;
    /// Its version, in any scheme.
    const VERSION: &'static str;
    /// Instructions for the model on how to use the server.
    const INSTRUCTIONS: Option<&'static str> = None;
    /// The revisions that the server speaks.
    const REVISIONS: Revisions = Revisions::ALL;
    /// The tools, in the order in which they are listed. Each name occurs once.
    const TOOLS: &'static [Tool<Self>] = &[];
    /// The resources, in the order in which they are listed. Each URI occurs once.
    const RESOURCES: &'static [Resource<Self>] = &[];
    /// Nesting depth of JSON values in received messages, at most 127. Depth costs no memory.
    const DEPTH_MAX: usize = 32;
    /// Length of a string id or progress token, in bytes of its JSON text. 64: a UUID with a
    /// prefix. Each answer repeats the id.
    const ID_LENGTH_MAX: usize = 64;
}

/// The handler of a tool: writes the text of the result.
pub type CallTool<S> = fn(&mut S, &Call<'_>, &mut Text<'_, '_>) -> Result<(), Failure>;

/// The handler of a resource: writes its text.
pub type ReadResource<S> = fn(&mut S, &mut Text<'_, '_>) -> Result<(), Failure>;

/// A tool, with its handler.
#[non_exhaustive]
pub struct Tool<S> {
    /// The name for calling it.
    pub name: &'static str,
    /// The display name; sent since 2025-06-18.
    pub title: Option<&'static str>,
    /// A description for the model.
    pub description: Option<&'static str>,
    /// The JSON Schema of its arguments, whose root `type` is `object`. It is not validated.
    pub input_schema: &'static str,
    /// Hints on its behavior, as a JSON object; sent since 2025-03-26.
    pub annotations: Option<&'static str>,
    /// The handler.
    pub call: CallTool<S>,
}

impl<S> Tool<S> {
    /// Creates a tool.
    #[must_use]
    pub const fn new(name: &'static str, input_schema: &'static str, call: CallTool<S>) -> Self {
        Self { name, title: None, description: None, input_schema, annotations: None, call }
    }

    /// Sets the display name.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets the description for the model.
    #[must_use]
    pub const fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// Sets the hints on its behavior: a JSON object, which is not validated.
    #[must_use]
    pub const fn annotations(mut self, annotations: &'static str) -> Self {
        self.annotations = Some(annotations);
        self
    }
}

/// A resource of text, with its handler.
#[non_exhaustive]
pub struct Resource<S> {
    /// The URI.
    pub uri: &'static str,
    /// The programmatic name.
    pub name: &'static str,
    /// The display name; sent since 2025-06-18.
    pub title: Option<&'static str>,
    /// A description for the model.
    pub description: Option<&'static str>,
    /// The media type.
    pub mime_type: Option<&'static str>,
    /// The handler.
    pub read: ReadResource<S>,
}

impl<S> Resource<S> {
    /// Creates a resource.
    #[must_use]
    pub const fn new(uri: &'static str, name: &'static str, read: ReadResource<S>) -> Self {
        Self { uri, name, title: None, description: None, mime_type: None, read }
    }

    /// Sets the display name.
    #[must_use]
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets the description for the model.
    #[must_use]
    pub const fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// Sets the media type.
    #[must_use]
    pub const fn mime_type(mut self, mime_type: &'static str) -> Self {
        self.mime_type = Some(mime_type);
        self
    }
}

impl<S> fmt::Debug for Tool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<S> fmt::Debug for Resource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.uri)
    }
}

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'f> {
    /// The arguments: an object, which was not validated against the schema.
    pub arguments: JsonText<'f>,
    /// The revision that governs the call.
    pub revision: Revision,
}

impl<'f> Call<'f> {
    pub(crate) const fn new(arguments: Option<JsonText<'f>>, revision: Revision) -> Self {
        let arguments = match arguments {
            Some(arguments) => arguments,
            None => JsonText::EMPTY_OBJECT,
        };
        Self { arguments, revision }
    }

    /// Returns an argument that is an integer.
    ///
    /// # Errors
    ///
    /// [`Failure::Arguments`] with `what`, if the argument is missing or not an integer of 64 bits.
    pub fn integer(&self, name: &str, what: &'static str) -> Result<i64, Failure> {
        let found = self.arguments.get_present(name).and_then(JsonText::to_integer);
        found.ok_or(Failure::Arguments(what))
    }

    /// Returns an argument that is a boolean.
    ///
    /// # Errors
    ///
    /// [`Failure::Arguments`] with `what`, if the argument is missing or not a boolean.
    pub fn boolean(&self, name: &str, what: &'static str) -> Result<bool, Failure> {
        let found = self.arguments.get_present(name).and_then(JsonText::to_bool);
        found.ok_or(Failure::Arguments(what))
    }

    /// Returns an argument that is a string. [`Written::resolve_in`] resolves its escapes.
    ///
    /// # Errors
    ///
    /// [`Failure::Arguments`] with `what`, if the argument is missing or not a string.
    pub fn string(&self, name: &str, what: &'static str) -> Result<Written<'f>, Failure> {
        let found = self.arguments.get_present(name).and_then(JsonText::to_written);
        found.ok_or(Failure::Arguments(what))
    }
}

/// A handler failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The tool failed, and the text that the handler wrote says why. The model sees it. The same
    /// as `Internal` for a resource.
    Tool,
    /// The arguments are invalid for the tool: the text says why, and the model sees it.
    Arguments(&'static str),
    /// The server failed: the message for the client's program.
    Internal(&'static str),
}
