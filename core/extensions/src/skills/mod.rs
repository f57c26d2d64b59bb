//! Skills: instructions and files of a server for the model.

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/skills";
