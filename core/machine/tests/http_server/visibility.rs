//! Items that only some callers see.

use mcp_sansio::catalog::{Audience, Catalog, ItemId};
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::protocol::{CacheHints, Implementation, Prompt, Resource, ResourceTemplate, Tool};
use mcp_sansio::{Principal, Revision, peer};
use std::time::Duration;

use crate::fixtures::{Session, modern, raw, request};
use crate::test_server::{TestServer, Ticket};

fn ann() -> Principal {
    Principal::new("ann")
}

fn for_ann() -> Audience {
    Audience::new().principal(ann())
}

fn tool(name: &str) -> Tool {
    Tool::new(name, raw(r#"{"type":"object"}"#))
}

/// A server with a public item of each kind, and one that only ann sees.
fn server() -> TestServer {
    let mut catalog = Catalog::new();
    catalog.subscribe(true);
    catalog.add_tool(tool("public")).unwrap();
    catalog.add_prompt(Prompt::new("public")).unwrap();
    catalog.add_resource(Resource::new("note:public", "n")).unwrap();
    let hidden: [ItemId; 4] = [
        catalog.add_tool(tool("secret")).unwrap(),
        catalog.add_prompt(Prompt::new("secret")).unwrap(),
        catalog.add_resource(Resource::new("note:secret", "n")).unwrap(),
        catalog.add_resource_template(ResourceTemplate::new("diary:{day}", "d")).unwrap(),
    ];
    for id in hidden {
        assert!(catalog.restrict(id, for_ann()));
    }
    catalog.add_tool(tool("last")).unwrap();
    let capabilities = mcp_sansio::protocol::ServerCapabilities::new()
        .completions(mcp_sansio::protocol::CapabilitySettings::default());
    let options = peer::ServerOptions::new(Implementation::new("s", "1"))
        .capabilities(capabilities)
        .cache(CacheHints::public(Duration::from_secs(60)))
        .catalog(catalog);
    TestServer::new(options, HttpServerOptions::new())
}

impl TestServer {
    /// Sends a modern request as `who`, and returns the text of the response.
    fn ask(&mut self, who: Option<Principal>, method: &str, members: &str) -> String {
        self.principal = who;
        let ticket = self.modern(&modern(1, method, members));
        self.text(ticket)
    }

    fn text(&self, ticket: Ticket) -> String {
        self.reply(ticket).text().to_owned()
    }
}

#[test]
fn a_hidden_item_is_not_listed_and_its_list_is_private() {
    // Rule: [TOOL-027] [TOOL-028] [CACHE-012].
    let mut server = server();
    for (method, hidden) in [
        ("tools/list", "secret"),
        ("prompts/list", "secret"),
        ("resources/list", "note:secret"),
        ("resources/templates/list", "diary:"),
    ] {
        for (who, sees) in
            [(Some(ann()), true), (Some(Principal::new("bob")), false), (None, false)]
        {
            let list = server.ask(who, method, "");
            assert_eq!(list.contains(hidden), sees, "{method}: {list}");
            assert!(list.contains(r#""cacheScope":"private""#), "{list}");
        }
    }
}

#[test]
fn a_hidden_item_does_not_exist() {
    // Rule: [TOOL-028] [TOOL-007] [PRMT-006] [RSRC-010] [COMP-004].
    let mut server = server();
    let argument = r#""argument":{"name":"a","value":""}"#;
    let completion = format!(r#""ref":{{"type":"ref/prompt","name":"NAME"}},{argument}"#);
    for (method, members, hidden, unknown) in [
        ("tools/call", r#""name":"NAME""#, "secret", "secrets"),
        ("prompts/get", r#""name":"NAME""#, "secret", "secrets"),
        ("resources/read", r#""uri":"NAME""#, "note:secret", "note:secrets"),
        ("resources/read", r#""uri":"NAME""#, "diary:today", "diaries:today"),
        ("completion/complete", &*completion, "secret", "secrets"),
    ] {
        let hidden_members = members.replace("NAME", hidden);
        let refused = server.ask(None, method, &hidden_members);
        let missing = server.ask(None, method, &members.replace("NAME", unknown));
        assert_eq!(refused, missing.replace(unknown, hidden), "{method}");
        server.expect_no_event();
        server.principal = Some(ann());
        server.modern(&modern(1, method, &hidden_members));
        let asked = server.asked();
        assert_eq!(asked.caller.principal(), Some(&ann()));
        server.answer_to(asked.handle);
    }
}

#[test]
fn a_cursor_of_one_caller_is_valid_for_another() {
    // Rule: [PAGE-007].
    let mut server = server();
    let edit = |catalog: &mut Catalog| {
        catalog.page_size(std::num::NonZeroUsize::new(1));
    };
    server.server.edit_catalog(edit, server.now);
    let cursor = |page: &str| {
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        page["result"]["nextCursor"].as_str().map(|it| format!(r#""cursor":"{it}""#))
    };
    let first = server.ask(Some(ann()), "tools/list", "");
    assert!(first.contains("public"), "{first}");
    let second = server.ask(Some(ann()), "tools/list", &cursor(&first).unwrap());
    assert!(second.contains("secret"), "{second}");
    let others = server.ask(None, "tools/list", &cursor(&first).unwrap());
    assert!(others.contains("last") && cursor(&others).is_none(), "{others}");
    let third = server.ask(None, "tools/list", &cursor(&second).unwrap());
    assert!(third.contains("last"), "{third}");
}

#[test]
fn only_those_who_see_an_item_are_notified_of_it() {
    // Rule: [TOOL-005] [TOOL-028].
    let mut server = server();
    let who = [Some(ann()), Some(Principal::new("bob"))];
    let streams: Vec<(Session, Ticket, Ticket)> = who.map(|who| {
        server.principal = who;
        let session = server.open(Revision::V2025_11_25, "{}");
        let subscribe = |uri: &str| request(2, "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#));
        server.post(&session, &subscribe("note:secret"));
        server.post(&session, &subscribe("note:public"));
        let legacy = server.get(&session);
        let filter = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["note:secret"]}"#;
        (session, legacy, server.modern(&modern(9, "subscriptions/listen", filter)))
    })
    .into();
    let add = |catalog: &mut Catalog| {
        let id = catalog.add_tool(tool("new")).unwrap();
        catalog.restrict(id, for_ann());
    };
    server.server.edit_catalog(add, server.now);
    server.resource_updated("note:secret");
    server.pump();
    for ((_, legacy, modern), is_told) in streams.iter().zip([true, false]) {
        for text in [server.text(*legacy), server.text(*modern)] {
            assert_eq!(text.contains("notifications/tools/list_changed"), is_told, "{text}");
            assert_eq!(text.contains("notifications/resources/updated"), is_told, "{text}");
        }
    }
    let remove = |catalog: &mut Catalog| _ = catalog.remove_tool("new");
    server.server.edit_catalog(remove, server.now);
    server.pump();
    for ((_, legacy, modern), count) in streams.iter().zip([2, 0]) {
        for text in [server.text(*legacy), server.text(*modern)] {
            assert_eq!(text.matches("notifications/tools/list_changed").count(), count, "{text}");
        }
    }
}

#[test]
fn an_item_for_a_session_is_announced_to_it_alone_and_a_replay_decides_alike() {
    // Rule: [TOOL-028] [SESS-016]. The recording of the fixture is replayed when it is dropped.
    for who in [None, Some(ann())] {
        let mut server = server();
        server.principal = who;
        let sessions = [1, 2].map(|_| server.open(Revision::V2025_11_25, "{}"));
        let streams = sessions.each_ref().map(|session| server.get(session));
        let call = request(2, "tools/call", r#"{"name":"public","arguments":{}}"#);
        server.post(&sessions[0], &call);
        let asked = server.asked();
        let own = asked.caller.session().unwrap();
        server.answer_to(asked.handle);
        let add = |catalog: &mut Catalog| {
            let id = catalog.add_tool(tool("own")).unwrap();
            catalog.restrict(id, Audience::new().session(own));
        };
        server.server.edit_catalog(add, server.now);
        server.pump();
        for (at, session) in sessions.iter().enumerate() {
            let told = server.text(streams[at]).contains("notifications/tools/list_changed");
            assert_eq!(told, at == 0);
            let ticket = server.post(session, &request(3, "tools/list", "{}"));
            assert_eq!(server.text(ticket).contains(r#""own""#), at == 0);
        }
        let listed = server.ask(server.principal.clone(), "tools/list", "");
        assert!(!listed.contains(r#""own""#), "{listed}");

        assert_eq!(server.server.poll_ended_session(), None);
        server.delete(&sessions[1]);
        assert_eq!(server.server.poll_ended_session(), None, "it has no item");
        server.delete(&sessions[0]);
        assert_eq!(server.server.poll_ended_session(), Some(own));
        assert_eq!(server.server.poll_ended_session(), None);
        assert!(server.server.edit_catalog(|catalog| catalog.remove_session(own), server.now));
        assert!(server.server.catalog().tool("own").is_none());
        // One that comes late is reported at once.
        server.server.edit_catalog(add, server.now);
        assert_eq!(server.server.poll_ended_session(), Some(own));
    }
}

#[test]
fn the_removal_of_the_last_restricted_item_is_announced_to_those_who_saw_it() {
    // Rule: [TOOL-005] [TOOL-028]. A replay has the same audience.
    let mut catalog = Catalog::new();
    catalog.add_tool(tool("public")).unwrap();
    let id = catalog.add_tool(tool("secret")).unwrap();
    assert!(catalog.restrict(id, for_ann()));
    let options = peer::ServerOptions::new(Implementation::new("s", "1")).catalog(catalog);
    let mut server = TestServer::new(options, HttpServerOptions::new());
    let streams = [Some(ann()), Some(Principal::new("bob"))].map(|who| {
        server.principal = who;
        server.modern(&modern(
            9,
            "subscriptions/listen",
            r#""notifications":{"toolsListChanged":true}"#,
        ))
    });
    server.server.edit_catalog(|catalog| _ = catalog.remove_tool("secret"), server.now);
    server.pump();
    for (stream, is_told) in streams.into_iter().zip([true, false]) {
        let text = server.text(stream);
        assert_eq!(text.contains("notifications/tools/list_changed"), is_told, "{text}");
    }
}

#[test]
fn a_condition_hides_an_item_and_a_replay_decides_alike() {
    // Rule: [TOOL-028].
    let mut catalog = Catalog::new();
    catalog.add_tool(tool("public")).unwrap();
    let id = catalog.add_tool(tool("secret")).unwrap();
    let is_short =
        |caller: &mcp_sansio::Caller| caller.principal().is_some_and(|who| who.as_str().len() == 3);
    let is_not_bob =
        |caller: &mcp_sansio::Caller| caller.principal() != Some(&Principal::new("bob"));
    let audience = Audience::new().condition("short", is_short).condition("not bob", is_not_bob);
    assert_eq!(audience, audience.clone());
    assert_ne!(audience, Audience::new().condition("short", is_short));
    let shown = format!("{audience:?}");
    assert!(shown.contains("short") && shown.contains("not bob"), "{shown}");
    assert!(catalog.restrict(id, audience));
    let options = peer::ServerOptions::new(Implementation::new("s", "1"))
        .cache(CacheHints::public(Duration::from_secs(60)))
        .catalog(catalog);
    let mut server = TestServer::new(options, HttpServerOptions::new());
    let principals = ["ann", "bob", "anna"].map(|name| Some(Principal::new(name)));
    for (who, sees) in principals.into_iter().chain([None]).zip([true, false, false, false]) {
        let text = server.ask(who.clone(), "tools/list", "");
        assert_eq!(text.contains("secret"), sees, "{who:?}: {text}");
        assert!(text.contains("public") && text.contains(r#""cacheScope":"private""#), "{text}");
    }
}
