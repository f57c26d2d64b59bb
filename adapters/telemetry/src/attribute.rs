//! The names of the attributes and metrics.

pub(crate) const CLIENT_ADDRESS: &str = "client.address";
pub(crate) const CLIENT_PORT: &str = "client.port";
/// The conventions have no attribute for a request whose response is not wanted any more: it is not
/// a failure of the receiver.
pub(crate) const CANCELLED: &str = "mcp_sansio.cancelled";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(crate) const PROMPT_NAME: &str = "gen_ai.prompt.name";
pub(crate) const PROMPT_VARIABLE: &str = "gen_ai.prompt.variable.";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const REQUEST_ID: &str = "jsonrpc.request.id";
pub(crate) const METHOD_NAME: &str = "mcp.method.name";
pub(crate) const PROTOCOL_VERSION: &str = "mcp.protocol.version";
pub(crate) const RESOURCE_URI: &str = "mcp.resource.uri";
pub(crate) const SESSION_ID: &str = "mcp.session.id";
pub(crate) const NETWORK_PROTOCOL_NAME: &str = "network.protocol.name";
pub(crate) const NETWORK_PROTOCOL_VERSION: &str = "network.protocol.version";
pub(crate) const NETWORK_TRANSPORT: &str = "network.transport";
pub(crate) const STATUS_CODE: &str = "rpc.response.status_code";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";

/// The operation of a tool call.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

/// Stands for names that only a peer has chosen, and for failures without a class.
pub(crate) const OTHER: &str = "_OTHER";
