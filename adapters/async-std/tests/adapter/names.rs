//! A program needs this crate only: no other crate of the workspace is imported.

use mcp_sansio_async_std as mcp;

use mcp::handler::IntoOutcome;
use mcp::jsonrpc::{ErrorObject, Json, RawJson};
use mcp::machine::catalog::Audience;
use mcp::peer::Limits;
use mcp::protocol::Tool;
use mcp::{
    Call, Caller, ErrorCode, HandlerError, Host, IntoHandlerError, NoArguments, Principal,
    Revisions, Server, ServerItem, State, fallible,
};

struct Offline;

impl IntoHandlerError for Offline {
    fn into_handler_error(self) -> HandlerError {
        HandlerError::Protocol(ErrorObject::new(ErrorCode(1), "offline"))
    }
}

fn read(call: Call<NoArguments>, value: State<u8>) -> Result<String, Offline> {
    let caller: &Caller = call.caller();
    if caller.principal().is_none() { Err(Offline) } else { Ok(value.to_string()) }
}

#[test]
fn a_program_needs_no_other_crate() {
    fn is_answer<T: IntoOutcome<mcp::protocol::CallToolResult>>() {}
    is_answer::<String>();
    let schema: Json = RawJson::parse(r#"{"type":"object"}"#).unwrap().into();
    let item = ServerItem::new(Tool::new("read", schema), fallible(read));
    let item = item.audience(Audience::new().principal(Principal::new("ann")));
    let server = Server::new("demo", "1").state(7_u8).limits(Limits::SMALL).add_item(item);
    assert!(server.endpoint(mcp::seed()).is_ok());
    let host =
        Host::new("demo", "1").revisions(Revisions::ALL).known_era(mcp::machine::Era::Modern);
    drop(host.connect(mcp::seed(), mcp::now()));
    #[cfg(feature = "jsonschema")]
    let _server = server.catalog(|catalog| {
        catalog.validator(mcp::SchemaValidator::new()).unwrap();
    });
}
