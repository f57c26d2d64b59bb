//! Typed messages of the protocol. The names that they share with [`gate`](crate::gate), which has
//! the table of methods, are at the root: [`Method`], [`Revision`], [`Capability`] and others.
//!
//! One message type serves all revisions that have the message. It reads the form of any revision,
//! and is written in the form of one:
//!
//! ```
//! use mcp_sansio::Revision;
//! use mcp_sansio::protocol::{Icon, Implementation, SerializeAt};
//!
//! let me = Implementation::new("weather", "1.0.0")
//!     .title("Weather")
//!     .icons([Icon::new("https://example.com/sun.png")]);
//! let text = me.to_json_at(Revision::V2025_06_18).unwrap();
//! assert_eq!(text.as_str(), r#"{"name":"weather","version":"1.0.0","title":"Weather"}"#);
//! ```
//!
//! Written messages are valid according to the schema of their revision. A part that the revision
//! does not support is
//!
//! - omitted, if it only adds information: titles, icons, metadata, hints, structured content;
//! - converted, if its absence would be misleading: audio becomes an embedded resource, a resource
//!   link becomes a text, titled choices become a list of values and a list of names;
//! - refused, if no other form has the same meaning: several blocks of
//!   content or tools in a conversation with a model, multiple choices in a form, URL elicitation.
//!
//! Values of an unknown kind from a peer are kept in variants named `Unknown`, and written back
//! unchanged at every revision. Unknown members are dropped when a message is read into its type.
//! To forward a complete message, forward its text.

mod annotations;
mod binary;
mod cache;
mod capabilities;
mod completion;
mod content;
mod elicitation;
mod elicitation_schema;
mod elicitation_select;
mod error_data;
mod every_revision;
mod extension;
mod implementation;
mod initialize;
mod input;
mod logging;
mod map;
mod message;
mod meta;
mod page;
mod progress;
mod prompt;
mod resource;
mod root;
mod sampling;
mod subscription;
mod task;
mod tool;
pub(crate) mod wire;

pub use crate::gate::capability::TASKS_EXTENSION;
pub(crate) use crate::gate::{Capabilities, Capability, Era, LoggingLevel, Method, Revision, Side};
pub use annotations::*;
pub use cache::{CacheHints, CacheScope, Ttl};
pub use capabilities::*;
pub use completion::*;
pub use content::*;
pub use elicitation::*;
pub use elicitation_schema::*;
pub use elicitation_select::*;
pub use error_data::*;
pub(crate) use every_revision::{WholeInput, whole};
pub use extension::*;
pub use implementation::*;
pub use initialize::*;
pub use input::*;
pub use logging::*;
pub use map::*;
pub use meta::*;
pub use page::*;
pub use progress::*;
pub use prompt::*;
pub use resource::*;
pub use root::*;
pub use sampling::*;
pub use subscription::*;
pub use task::*;
pub use tool::{
    CallToolParams, CallToolResult, ListToolsResult, TOOL_NAME_LENGTH_MAX, TaskSupport, TextResult,
    Tool, ToolAnnotations, ToolExecution, check_tool_name,
};
pub(crate) use wire::JsonAtRevision;
pub use wire::{AtRevision, OneOrMany, SerializeAt, ToolOutput, Verbatim, WriteJsonAt};
