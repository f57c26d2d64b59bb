//! What a request may ask: revisions, the table of methods, capabilities, and the members that are
//! read of a request. Needs no allocator.
//!
//! With the feature `alloc`, `protocol` has the typed messages.

mod capability;
mod declaration;
mod handshake;
pub(crate) mod members;
pub(crate) mod metadata;
mod method;
mod refusal;
pub(crate) mod revision;

pub use capability::{Capabilities, Capability, Side, TASKS_EXTENSION};
pub use declaration::InvalidDeclaration;
pub use handshake::Handshake;
pub use members::check_repeats;
pub use metadata::{LoggingLevel, Metadata, UnknownLoggingLevel};
pub use method::{Allowance, Gate, GateError, Method, MethodKind, Phase, Row, SubjectKind, TABLE};
pub use refusal::{Refusal, write_revisions};
pub(crate) use revision::{Era, Revision, Revisions};
