//! What a request may ask: revisions, the table of methods, capabilities, and the members that are
//! read of a request. Needs no allocator.
//!
//! With the feature `alloc`, `protocol` has the typed messages.

pub(crate) mod capability;
mod declaration;
mod handshake;
pub(crate) mod members;
pub(crate) mod metadata;
pub(crate) mod method;
mod refusal;
pub(crate) mod revision;

pub(crate) use capability::{Capabilities, Capability, Side};
pub use declaration::InvalidDeclaration;
pub use handshake::Handshake;
pub use members::check_repeats;
pub(crate) use metadata::LoggingLevel;
pub use metadata::Metadata;
pub(crate) use method::Method;
pub use method::{Allowance, Gate, GateError, MethodKind, Phase, Row, SubjectKind, TABLE};
pub use refusal::{Refusal, write_revisions};
pub(crate) use revision::{Era, Revision, Revisions};
