//! MCP over a serial line that loses, duplicates and damages packets: a link layer below an
//! endpoint, on a simulated clock and a simulated line. `docs/guide/custom-transport.md` explains
//! it.
//!
//! The link carries frames without interpreting them; the protocol is implemented by the machines.
//! The guide describes how a connection opens and ends, how messages are framed, and how requests
//! are cancelled.
// MCP 2025-11-25 basic/transports#custom-transports [LIFE-014]
// MCP 2026-07-28 basic/transports/index#custom-transports [LIFE-015] [LIFE-016]

pub mod line;
pub mod link;
pub mod packet;
pub mod simulation;
pub mod station;
pub mod thermometer;
