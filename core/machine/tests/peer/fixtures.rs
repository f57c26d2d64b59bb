//! Options and messages that many tests use.

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{ClientOptions, ServerOptions, Timeouts};
use mcp_sansio::protocol::{
    CapabilitySettings, ClientCapabilities, ElicitationCapability, Implementation,
    PromptsCapability, ResourcesCapability, RootsCapability, SamplingCapability,
    ServerCapabilities, ToolsCapability,
};
use mcp_sansio::{Era, Revision, Revisions};

use crate::played::Client;
use crate::played::Server;
use crate::wire::{Wire, client, server};

/// Returns options for a client without capabilities.
pub(crate) fn plain_client() -> ClientOptions {
    ClientOptions::new(Implementation::new("c", "1"))
}

/// Returns options for a client that supports every request of a server.
pub(crate) fn host() -> ClientOptions {
    plain_client().capabilities(
        ClientCapabilities::new()
            .roots(RootsCapability::new().list_changed(true))
            .sampling(SamplingCapability::new())
            .elicitation(ElicitationCapability::new()),
    )
}

/// Returns options for a server with tools, resources, prompts and log messages, which notifies
/// changes.
pub(crate) fn full_server() -> ServerOptions {
    ServerOptions::new(Implementation::new("s", "1")).capabilities(
        ServerCapabilities::new()
            .tools(ToolsCapability::new().list_changed(true))
            .resources(ResourcesCapability::new().list_changed(true).subscribe(true))
            .prompts(PromptsCapability::new().list_changed(true))
            .logging(CapabilitySettings::default()),
    )
}

/// Returns options for a server without capabilities.
pub(crate) fn bare_server() -> ServerOptions {
    ServerOptions::new(Implementation::new("s", "1"))
}

pub(crate) fn raw(text: &str) -> RawJson<'_> {
    RawJson::parse(text).expect("valid JSON")
}

/// Returns the parameters of `tools/call` for a tool named `echo`.
pub(crate) fn echo() -> RawJson<'static> {
    raw(r#"{"name":"echo","arguments":{"text":"hi"}}"#)
}

/// Returns the default timeouts with a change.
pub(crate) fn timeouts(change: impl FnOnce(&mut Timeouts)) -> Timeouts {
    let mut timeouts = Timeouts::default();
    change(&mut timeouts);
    timeouts
}

pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// Returns an `initialize` request with id 1.
pub(crate) fn initialize(revision: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Returns a modern request with `members` in its parameters, in addition to the metadata.
pub(crate) fn modern(id: &str, method: &str, members: &str) -> String {
    modern_with(id, method, members, "{}", "")
}

/// Returns a modern request of a client that declares `capabilities` and adds `meta` to its
/// metadata.
pub(crate) fn modern_with(
    id: &str,
    method: &str,
    members: &str,
    capabilities: &str,
    meta: &str,
) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    let meta_comma = if meta.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}{meta_comma}{meta}}}}}}}"#
    )
}

/// Returns a request without modern metadata.
pub(crate) fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(crate) fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub(crate) fn error(id: &str, code: i64, more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"{more}}}}}"#)
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// The capabilities of [`full_server`] as JSON of an `initialize` result.
pub(crate) const OFFERS: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{}}"#;

/// Returns a client that is connected to a scripted server with all capabilities.
pub(crate) fn client_at(revision: Revision, options: ClientOptions) -> Wire<Client> {
    client_offered(revision, options, OFFERS)
}

/// Returns a client that is connected to a scripted server with the capabilities `offers`.
pub(crate) fn client_offered(
    revision: Revision,
    options: ClientOptions,
    offers: &str,
) -> Wire<Client> {
    let mut wire = client(options.revisions(Revisions::only(revision)));
    wire.line();
    if revision.era() == Era::Modern {
        let discovered = format!(
            r#"{{"resultType":"complete","supportedVersions":["{revision}"],"capabilities":{offers},"ttlMs":0,"cacheScope":"private"}}"#
        );
        wire.send(&result("1", &discovered));
    } else {
        let initialized = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{offers},"serverInfo":{{"name":"s","version":"1"}}}}"#
        );
        wire.send(&result("1", &initialized));
        wire.expect(INITIALIZED);
    }
    assert_eq!(wire.told(), format!("opened at {revision}"));
    wire
}

/// Returns a server in a legacy session with a scripted client that declared `capabilities`.
pub(crate) fn server_at(
    revision: Revision,
    capabilities: &str,
    options: ServerOptions,
) -> Wire<Server> {
    let mut wire = server(options);
    wire.send(&initialize(revision.as_str(), capabilities));
    assert_eq!(wire.message()["result"]["protocolVersion"], revision.as_str());
    wire.send(INITIALIZED);
    assert_eq!(wire.told(), format!("opened at {revision}"));
    wire
}
