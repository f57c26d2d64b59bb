//! Streamable HTTP, and the older HTTP+SSE, as machines over HTTP exchanges.

#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod backoff;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod field_value;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod media;

pub use backoff::Backoff;
