//! The bodies of the fuzz targets. Each takes arbitrary bytes and panics when a property is
//! violated.

#![forbid(unsafe_code)]

mod auth_flow;
mod auth_texts;
mod chunk_lengths;
mod commands;
mod conformance;
mod envelope;
mod http;
mod inputs;
mod lines;
mod messages;
mod operation;
mod peer;
mod spellings;
mod split;
mod sse;
mod values;

pub use auth_texts::auth_texts;
pub use envelope::envelope;
pub use http::{http_client, http_heads, http_server};
pub use lines::lines;
pub use messages::messages;
pub use peer::{pair, peer_client, peer_server};
pub use split::split;
pub use sse::sse;
pub use values::values;
