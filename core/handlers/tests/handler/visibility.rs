//! Items that require scopes, or that only some callers see.

use mcp_sansio::catalog::Audience;
use mcp_sansio::protocol::{Resource, ResourceTemplate, TextResourceContents};
use mcp_sansio::{Principal, Revision, Revisions};
use mcp_sansio_handlers::{Call, Client, Host, NoArguments, ReadResource, Server, ServerItem};
use mcp_sansio_test::{Identity, Pair, Transport};

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

fn is_staff(caller: &mcp_sansio::Caller) -> bool {
    caller.principal().is_some_and(|who| who.as_str().ends_with("@staff"))
}

/// A server with an item of each kind for all callers, and one for the staff.
fn with_conditions() -> Server {
    let note = |_: Call<ReadResource>| TextResourceContents::new("note:x", "text");
    let fill = |_: Call<NoArguments>| "text".to_owned();
    let prompt = |name| mcp_sansio::protocol::Prompt::new(name);
    Server::new("s", "1")
        .tool("open", "", |_: Call<NoArguments>| "you")
        .add_item(
            ServerItem::tool("audit", "", |_: Call<NoArguments>| "audited")
                .visible_if("staff", is_staff),
        )
        .add_item(ServerItem::new(Resource::new("note:open", "n"), note))
        .add_item(
            ServerItem::new(Resource::new("note:staff", "n"), note).visible_if("staff", is_staff),
        )
        .add_item(
            ServerItem::new(ResourceTemplate::new("file:{name}", "f"), note)
                .visible_if("staff", is_staff),
        )
        .add_item(ServerItem::new(prompt("open"), fill))
        .add_item(ServerItem::new(prompt("staff"), fill).visible_if("staff", is_staff))
}

/// Returns the names of all items that a client sees, and checks that it can use just these.
fn visible<T: Transport>(client: &Client, pair: &mut Pair<T>) -> Vec<String> {
    let mut names = Vec::new();
    names.extend(pair.run(client.all_tools()).unwrap().into_iter().map(|it| it.name));
    names.extend(pair.run(client.all_resources()).unwrap().into_iter().map(|it| it.uri));
    let templates = pair.run(client.all_resource_templates()).unwrap();
    names.extend(templates.into_iter().map(|it| it.uri_template));
    names.extend(pair.run(client.all_prompts()).unwrap().into_iter().map(|it| it.name));
    let can_call = pair.run(client.call_tool("audit", &NoArguments {})).is_ok();
    let can_read = pair.run(client.read_resource("note:staff")).is_ok();
    let can_match = pair.run(client.read_resource("file:a")).is_ok();
    let can_fill = pair.run(client.get_prompt("staff", [])).is_ok();
    let sees = |name: &str| names.iter().any(|it| it == name);
    assert_eq!(
        [can_call, can_read, can_match, can_fill],
        [sees("audit"), sees("note:staff"), sees("file:{name}"), sees("staff")]
    );
    names
}

#[test]
fn a_condition_decides_who_sees_and_uses_an_item() {
    // Rule: [TOOL-028].
    let all = ["open", "audit", "note:open", "note:staff", "file:{name}", "open", "staff"];
    let public = ["open", "note:open", "open"];
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        for (who, expected) in [("ann@staff", &all[..]), ("bob", &public[..])] {
            let identity = Identity::new(who);
            let (client, mut pair) =
                mcp_sansio_test::connect_http(&with_conditions(), &host, Some(identity));
            assert_eq!(visible(&client, &mut pair), expected, "{who} at {revision}");
        }
        // On a byte stream the caller is the owner, who has all scopes, but is no principal.
        let (client, mut pair) = mcp_sansio_test::connect(&with_conditions(), &host);
        assert_eq!(visible(&client, &mut pair), public, "{revision}");
    }
}

#[test]
fn only_the_first_template_that_matches_answers() {
    let text = |_: Call<ReadResource>| TextResourceContents::new("file:///x", "text");
    let drafts = ResourceTemplate::new("file:///drafts/{name}", "drafts");
    let server = Server::new("s", "1")
        .add_item(ServerItem::new(drafts, text).visible_if("staff", is_staff))
        .add_item(ServerItem::new(ResourceTemplate::new("file:///{+path}", "all"), text));
    for (who, sees_drafts) in [("ann@staff", true), ("bob", false)] {
        let identity = Some(Identity::new(who));
        let (client, mut pair) =
            mcp_sansio_test::connect_http(&server, &Host::new("h", "1"), identity);
        // The scopes that a token needs are those of the first as well.
        let draft = pair.run(client.read_resource("file:///drafts/a"));
        assert_eq!(draft.is_ok(), sees_drafts, "{who}");
        pair.run(client.read_resource("file:///b")).unwrap();
    }
}

#[test]
fn no_scope_is_named_for_an_item_that_a_condition_hides() {
    let audit = ServerItem::tool("audit", "", |_: Call<NoArguments>| "audited")
        .requires("write")
        .visible_if("ann", |caller| caller.principal().is_some_and(|it| it.as_str() == "ann"));
    let mut fixture = ProtectedServer::new(Server::new("s", "1").add_item(audit));
    assert_eq!(fixture.call("ann/use", "audit").status, 403);
    assert!(fixture.call("ann/use+write", "audit").text.contains("audited"));
    assert!(fixture.call("bob/use", "audit").text.contains("unknown tool"));
    assert!(fixture.call("bob/use+write", "audit").text.contains("unknown tool"));
}
