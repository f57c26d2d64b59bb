//! MCP over a serial line that loses, doubles and damages what it carries: a link layer of its own
//! under an endpoint, on a clock and a line that are simulated. `docs/guide/custom-transport.md` goes
//! through it.
//!
//! The link moves frames and changes none: what they say, and when, stays the machines'. How a
//! connection opens and ends, how messages are framed and taken back, stands in the guide.
// MCP 2025-11-25 basic/transports#custom-transports [LIFE-014]
// MCP 2026-07-28 basic/transports/index#custom-transports [LIFE-015] [LIFE-016]

pub mod line;
pub mod link;
pub mod packet;
pub mod simulation;
pub mod station;
pub mod thermometer;
