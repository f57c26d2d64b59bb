//! MCP Apps: pages of a server that a host shows to its user.

/// The identifier of the extension.
// MCP 2026-07-28 apps:apps#extension-identifier [APPS-001]
pub const ID: &str = "io.modelcontextprotocol/ui";
