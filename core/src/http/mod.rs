//! Streamable HTTP, and the older HTTP+SSE, as machines over HTTP exchanges.

mod authority;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod backoff;
mod field_value;
mod location;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod media;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod mirrors;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod origin;

pub use authority::{Origin, Scheme};
pub use backoff::Backoff;
pub use location::{InvalidUrl, LOCATION_LENGTH_MAX, Location};
pub use origin::{AllowedHosts, InvalidAllowedHost};
