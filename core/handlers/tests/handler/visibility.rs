//! Items that require scopes.

use mcp_sansio::Principal;
use mcp_sansio::catalog::Audience;
use mcp_sansio_handlers::{Call, Host, NoArguments, Server, ServerItem};

use crate::protected_server::ProtectedServer;

/// Tools: `who` for everyone, `purge` for callers with the scope `write`, `diary` for ann.
fn server() -> Server {
    let purge = |call: Call<NoArguments>| call.caller().has_scope("write").to_string();
    let diary = |_: Call<NoArguments>| "dear";
    let for_ann = Audience::new().principal(Principal::new("ann"));
    Server::new("s", "1")
        .tool("who", "", |_: Call<NoArguments>| "you")
        .add_item(ServerItem::tool("purge", "", purge).requires("write"))
        .add_item(ServerItem::tool("diary", "", diary).audience(for_ann).requires("write"))
}

#[test]
fn a_tool_is_listed_for_tokens_with_its_scope() {
    // Rule: [TOOL-027] [TOOL-028] [AUTHS-019].
    let mut fixture = ProtectedServer::new(server());
    for (token, purge, diary) in
        [("ann/use", false, false), ("bob/use+write", true, false), ("ann/use+all", true, true)]
    {
        let list = fixture.list_tools(token).text;
        assert!(list.contains(r#""who""#), "{list}");
        assert_eq!(list.contains(r#""purge""#), purge, "{list}");
        assert_eq!(list.contains(r#""diary""#), diary, "{list}");
    }
}

#[test]
fn a_call_without_the_scope_is_challenged_and_other_principals_learn_nothing() {
    // Rule: [AUTHS-015] [AUTHS-018] [TOOL-028].
    let mut fixture = ProtectedServer::new(server());
    let refused = fixture.call("ann/use", "purge");
    assert_eq!(
        refused.refusal(),
        (403, Some("insufficient_scope".into()), Some("use write".into()))
    );
    assert!(fixture.call("ann/use+write", "purge").text.contains("true"));
    let refused = fixture.call("ann/use", "diary");
    assert_eq!(refused.status, 403);
    assert!(fixture.call("ann/use+write", "diary").text.contains("dear"));
    for token in ["bob/use", "bob/use+write"] {
        let unknown = fixture.call(token, "diary");
        assert!(unknown.text.contains("unknown tool"), "{unknown:?}");
    }
}

#[test]
fn the_owner_of_a_process_has_all_scopes() {
    // Rule: [AUTHC-003].
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &Host::new("h", "1"));
    let tools = pair.run(client.list_tools(None)).unwrap().tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["who", "purge"]);
    let result = pair.run(client.call_tool("purge", &NoArguments {})).unwrap();
    assert_eq!(result.content[0].as_text(), Some("true"));
    pair.run(client.call_tool("diary", &NoArguments {})).unwrap_err();
}
