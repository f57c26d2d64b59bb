//! The vocabulary of the protocol as data: revisions, methods, capabilities, typed messages.
//!
//! A message type is one for all revisions that have it. It reads what any of them writes, and is
//! written at one of them:
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
//! What is written is valid by the schema of its revision. A part that the revision does not have
//! is
//!
//! - left out, where it only adds: titles, icons, metadata, hints, structured content;
//! - converted, where its loss would mislead: audio becomes an embedded resource, a resource link a
//!   text, titled choices a list of values and a list of names;
//! - refused with [`NotExpressible`], where no stand-in means the same: several blocks of content or
//!   tools in a conversation with a model, choices of several in a form, elicitation by an address.
//!
//! What came from a peer and is of no known kind is kept as it came, in variants named `Unknown`,
//! and is written back as it is at every revision: it is not this crate's to judge. Members that are
//! not known are dropped when a message is read into its type; to pass a message on whole, pass on
//! its text.

pub mod annotations;
pub mod binary;
pub mod cache;
pub mod capabilities;
pub mod capability;
pub mod completion;
pub mod content;
mod declared;
pub mod discover;
pub mod elicitation;
pub mod elicitation_schema;
pub mod elicitation_select;
pub mod error_code;
mod error_data;
pub mod implementation;
pub mod initialize;
pub mod input;
pub mod logging;
pub mod map;
mod message;
pub mod meta;
pub mod method;
pub mod page;
pub mod progress;
pub mod prompt;
pub mod resource;
pub mod revision;
pub mod root;
pub mod sampling;
pub mod subscription;
pub mod task;
pub mod tool;
pub mod tool_results;
pub mod wire;

pub use annotations::*;
pub use binary::NotBase64;
pub use cache::{CacheHints, CacheScope, Ttl};
pub use capabilities::*;
pub use capability::{Capabilities, Capability, Side};
pub use completion::*;
pub use content::*;
pub use discover::*;
pub use elicitation::*;
pub use elicitation_schema::*;
pub use elicitation_select::*;
pub use error_data::*;
pub use implementation::*;
pub use initialize::*;
pub use input::*;
pub use logging::*;
pub use map::*;
pub use meta::*;
pub use method::{Allowance, Gate, GateError, Method, MethodKind, Phase, Row, TABLE};
pub use page::*;
pub use progress::*;
pub use prompt::*;
pub use resource::*;
pub use revision::*;
pub use root::*;
pub use sampling::*;
pub use subscription::*;
pub use task::*;
pub use tool::{
    CallToolParams, CallToolResult, InvalidToolName, ListToolsResult, TOOL_NAME_LENGTH_MAX,
    TaskSupport, TextResult, Tool, ToolAnnotations, ToolExecution, check_tool_name,
};
pub use tool_results::ToolResultsError;
pub(crate) use wire::JsonAtRevision;
pub use wire::{
    AtRevision, NotExpressible, OneOrMany, SerializeAt, ToolOutput, Verbatim, WriteJsonAt,
};
