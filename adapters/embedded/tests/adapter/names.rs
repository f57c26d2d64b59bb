//! A program needs this crate only: no other crate of the workspace is imported.

use mcp_sansio_embedded as mcp;

use mcp::jsonrpc::{Json, RawJson};
use mcp::peer::Limits;
use mcp::protocol::Tool;
use mcp::{Call, NoArguments, Server, ServerItem, State, StreamSettings};

#[test]
fn a_program_needs_no_other_crate() {
    let schema: Json = RawJson::parse(r#"{"type":"object"}"#).unwrap().into();
    let read = |_: Call<NoArguments>, value: State<u8>| value.to_string();
    let item = ServerItem::new(Tool::new("read", schema), read);
    let server = Server::local("demo", "1").state(7_u8).limits(Limits::SMALL).add_item(item);
    assert!(server.endpoint(42).is_ok());
    let _settings = StreamSettings::DEVICE;
    let _time = mcp::Instant::ZERO;
}
