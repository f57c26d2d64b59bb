//! Official extensions of the protocol, written with the public
//! [extension point](mcp_sansio_handlers::extension) of `mcp-sansio-handlers`: an extension of your
//! own can do the same.
//!
//! | Extension | Module |
//! | --- | --- |
//! | MCP Apps, `io.modelcontextprotocol/ui` | [`apps`] |
//! | Skills, `io.modelcontextprotocol/skills` | [`skills`] |
//!
//! Tasks, `io.modelcontextprotocol/tasks`, also change the results of the protocol's own methods,
//! so they are part of `mcp-sansio-handlers`.

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod apps;
pub mod skills;
