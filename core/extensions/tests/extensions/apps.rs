//! MCP Apps: a server with pages, and hosts with and without the extension.

use mcp_sansio::protocol::{
    BlobResourceContents, CallToolResult, Meta, Resource, SerializeAt, TextResourceContents, Tool,
};
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_extensions::apps::{
    self, App, ContentDomains, InvalidApp, PageError, PageUi, Permissions, ServeApps, ToolUi,
    Visibility, WithUi,
};
use mcp_sansio_handlers::{Call, Client, Host, NoArguments, ReadResource, Server, ServerItem};
use mcp_sansio_test::StreamPair;
use serde_json::{Value, json};

const URI: &str = "ui://weather/dashboard";
const PAGE: &str = "<!DOCTYPE html><title>Weather</title>";

/// The revisions at which tools and resources have metadata.
const REVISIONS: [Revision; 3] =
    [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

fn page() -> App {
    let domains = ContentDomains::new()
        .connect_domains(["https://api.example.com"])
        .resource_domains(["https://*.example.net"]);
    let mut permissions = Permissions::default();
    permissions.geolocation = true;
    let ui = PageUi::new().csp(domains).permissions(permissions).prefers_border(true);
    App::new(URI, "dashboard", PAGE).unwrap().ui(ui.domain("weather.example.com"))
}

fn server() -> Server {
    let forecast = ServerItem::tool("forecast", "The weather", |call: Call<NoArguments>| {
        // Clients that show pages get the data of the page as well.
        let result = CallToolResult::text("Sunny");
        if !apps::is_supported(&call) {
            return result;
        }
        result.structured_content(
            mcp_sansio::jsonrpc::Json::from_serialize(&json!({ "sun": 1 })).unwrap(),
        )
    });
    let refresh = ServerItem::tool("refresh", "", |_: Call<NoArguments>| "Refreshed");
    let refresh = refresh.ui(&ToolUi::new().page(URI).visibility([Visibility::App]));
    let plan = ServerItem::tool("plan", "", |_: Call<NoArguments>| "Planned");
    let plan = plan.ui(&ToolUi::new().visibility([Visibility::Model]));
    Server::new("weather", "1.0.0")
        .app_tool(forecast, page())
        .add_item(refresh)
        .add_item(plan)
        .tool("plain", "", |_: Call<NoArguments>| "Plain")
}

fn connect(server: &Server, host: Host, revision: Revision) -> (Client, StreamPair) {
    mcp_sansio_test::connect(server, &host.revisions(Revisions::only(revision)))
}

fn app_host() -> Host {
    Host::new("host", "1").extension(apps::host_extension())
}

#[test]
fn both_sides_declare_the_extension_where_the_revision_has_its_place() {
    // Rule: [APPS-001] [APPS-002] [APPS-003] [APPS-004] [APPS-005].
    for revision in REVISIONS {
        let (client, mut pair) = connect(&server(), app_host(), revision);
        let settings = client.session().unwrap().extension(apps::ID).unwrap();
        assert_eq!(settings.as_str(), "{}", "{revision}");
        pair.run(client.list_tools(None)).unwrap();
        let declared = r#""extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;
        let sent: Vec<_> =
            pair.transcript.lines().iter().filter(|line| line.contains(declared)).collect();
        let (expected, method) =
            if revision < Revision::V2026_07_28 { (1, "initialize") } else { (2, "tools/list") };
        assert_eq!(sent.len(), expected, "{}", pair.transcript);
        assert!(sent.iter().any(|line| line.contains(method)), "{}", pair.transcript);
    }
}

#[test]
fn a_handler_knows_whether_the_client_shows_pages_and_answers_with_text_in_any_case() {
    // Rule: [APPS-006] [APPS-007] [APPS-008] [APPS-022].
    let other = json!({ "mimeTypes": ["text/html"] });
    let other = mcp_sansio_handlers::extension::Extension::new(apps::ID).unwrap().settings(&other);
    let other = Host::new("host", "1").extension(other.unwrap());
    for revision in REVISIONS {
        for (host, is_shown) in
            [(app_host(), true), (Host::new("host", "1"), false), (other.clone(), false)]
        {
            let (client, mut pair) = connect(&server(), host, revision);
            let result = pair.run(client.call_tool("forecast", &NoArguments {})).unwrap();
            assert_eq!(result.first_text(), Some("Sunny"));
            assert_eq!(result.structured_content.is_some(), is_shown, "{revision}");
        }
    }
}

#[test]
fn a_page_is_read_with_its_needs() {
    // Rule: [APPS-012] [APPS-013] [APPS-014] [APPS-018] [APPS-019] [APPS-026].
    for revision in REVISIONS {
        let (client, mut pair) = connect(&server(), app_host(), revision);
        let listed = pair.run(client.list_resources(None)).unwrap().resources;
        assert_eq!(listed[0].mime_type.as_deref(), Some("text/html;profile=mcp-app"));
        let tools = pair.run(client.all_tools()).unwrap();
        let ui = apps::tool_ui(&tools[0]).unwrap();
        let read = pair.run(apps::read_page(&client, &ui.resource_uri.unwrap())).unwrap();
        assert_eq!((read.uri.as_str(), read.html.as_str()), (URI, PAGE));
        assert_eq!(read.ui.prefers_border, Some(true));
        assert_eq!(read.ui.domain.as_deref(), Some("weather.example.com"));
        assert_eq!(read.ui.permissions.unwrap().allow_attribute(), "geolocation");
        assert_eq!(read.ui.csp.unwrap().connect_domains, ["https://api.example.com"]);
    }
    let text = json!({ "camera": {}, "clipboardWrite": {} });
    let permissions: Permissions = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(permissions.allow_attribute(), "camera; clipboard-write");
    assert_eq!(serde_json::to_value(permissions).unwrap(), text);
}

#[test]
fn contents_of_another_kind_are_not_a_page() {
    // Rule: [APPS-012] [APPS-014].
    let html = "PCFET0NUWVBFIGh0bWw+";
    let server = Server::new("s", "1")
        .resource(Resource::new("ui://s/blob", "a"), move |_: Call<ReadResource>| {
            BlobResourceContents::new("ui://s/blob", html).mime_type(apps::MIME_TYPE)
        })
        .resource(Resource::new("ui://s/html", "b"), |_: Call<ReadResource>| {
            TextResourceContents::new("ui://s/html", PAGE).mime_type("text/html")
        })
        .resource(Resource::new("ui://s/other", "c"), |_: Call<ReadResource>| {
            TextResourceContents::new("ui://s/else", PAGE).mime_type(apps::MIME_TYPE)
        });
    let (client, mut pair) = connect(&server, app_host(), Revision::LATEST);
    let blob = pair.run(apps::read_page(&client, "ui://s/blob")).unwrap();
    assert_eq!(blob.html, "<!DOCTYPE html>");
    for uri in ["ui://s/html", "ui://s/other"] {
        let error = pair.run(apps::read_page(&client, uri)).unwrap_err();
        assert!(matches!(error, PageError::InvalidContents { .. }), "{error}");
    }
    let error = pair.run(apps::read_page(&client, "ui://s/none")).unwrap_err();
    assert!(matches!(error, PageError::Client(_)), "{error}");
}

#[test]
fn the_media_type_of_a_page_has_many_spellings() {
    // Rule: [APPS-012] [APPS-006].
    for (written, is_page) in [
        ("text/html; profile=mcp-app", true),
        ("text/html;profile=\"mcp-app\"", true),
        ("Text/HTML;charset=utf-8; Profile=mcp-app", true),
        ("text/html;profile=mcp", false),
        ("text/html;profile=MCP-APP", false),
        ("text/html+mcp", false),
        ("application/xhtml+xml;profile=mcp-app", false),
        ("text/html; profile", false),
    ] {
        let odd = Server::new("s", "1")
            .resource(Resource::new(URI, "a"), move |_: Call<ReadResource>| {
                TextResourceContents::new(URI, PAGE).mime_type(written)
            });
        let (client, mut pair) = connect(&odd, app_host(), Revision::LATEST);
        let read = pair.run(apps::read_page(&client, URI));
        assert_eq!(read.is_ok(), is_page, "{written}");
        let settings = json!({ "mimeTypes": [written] });
        let extension = mcp_sansio_handlers::extension::Extension::new(apps::ID).unwrap();
        let host = Host::new("host", "1").extension(extension.settings(&settings).unwrap());
        let (client, mut pair) = connect(&server(), host, Revision::LATEST);
        let result = pair.run(client.call_tool("forecast", &NoArguments {})).unwrap();
        assert_eq!(result.structured_content.is_some(), is_page, "{written}");
    }
}

#[test]
fn only_the_scheme_ui_names_pages() {
    // Rule: [APPS-011] [APPS-038].
    let error = App::new("https://weather/dashboard", "dashboard", PAGE).unwrap_err();
    assert!(matches!(error, InvalidApp::Uri { .. }), "{error}");
    let (client, mut pair) = connect(&server(), app_host(), Revision::LATEST);
    pair.transcript.clear();
    let error = pair.run(apps::read_page(&client, "https://weather/dashboard")).unwrap_err();
    assert!(matches!(error, PageError::NotAPage { .. }), "{error}");
    assert!(pair.transcript.lines().is_empty());
    let elsewhere = tool("t", json!({ "ui": { "resourceUri": "https://weather/dashboard" } }));
    assert_eq!(apps::tool_ui(&elsewhere).unwrap().resource_uri, None);
}

#[test]
fn a_page_is_an_html5_document() {
    // Rule: [APPS-015].
    assert!(App::new(URI, "d", "\n<!doctype HTML>").is_ok());
    for text in ["", "<html>", "<!DOCTYPE svg>", "{}"] {
        let error = App::new(URI, "d", text).unwrap_err();
        assert!(matches!(error, InvalidApp::Document { .. }), "{text}");
    }
}

fn value(meta: Option<&Meta>) -> Value {
    meta.unwrap().to_json_at(Revision::LATEST).unwrap().decode().unwrap()
}

fn tool(name: &str, meta: Value) -> Tool {
    let tool = json!({ "name": name, "inputSchema": { "type": "object" }, "_meta": meta });
    serde_json::from_value(tool).unwrap()
}

#[test]
fn the_visibility_of_a_tool_is_that_of_its_metadata_or_everyone() {
    // Rule: [APPS-016] [APPS-017].
    let tool = tool("t", json!({})).ui(&ToolUi::new().page(URI).visibility([Visibility::App]));
    let meta = value(tool.meta.as_ref());
    assert_eq!(meta, json!({ "ui": { "resourceUri": URI, "visibility": ["app"] } }));
    let all = self::tool("t", json!({ "ui": {} }));
    let ui = apps::tool_ui(&all).unwrap();
    assert!(ui.is_visible_to(&Visibility::Model) && ui.is_visible_to(&Visibility::App));
    // Servers with an early version of the extension.
    let flat = self::tool("t", json!({ "ui/resourceUri": URI }));
    assert_eq!(apps::tool_ui(&flat).unwrap().resource_uri.as_deref(), Some(URI));
    assert_eq!(apps::tool_ui(&self::tool("t", json!({ "other": 1 }))), None);
}

#[test]
fn the_model_sees_its_tools_and_a_page_calls_those_of_its_server() {
    // Rule: [APPS-023] [APPS-024] [APPS-025].
    let (client, mut pair) = connect(&server(), app_host(), Revision::LATEST);
    let tools = pair.run(client.all_tools()).unwrap();
    let model: Vec<_> = apps::model_tools(&tools).map(|tool| tool.name.as_str()).collect();
    assert_eq!(model, ["forecast", "plan", "plain"]);
    for name in ["forecast", "refresh", "plain"] {
        assert!(apps::check_app_call(&tools, name).is_ok(), "{name}");
    }
    let refused = apps::check_app_call(&tools, "plan");
    assert!(matches!(refused, Err(PageError::NotForApps { name }) if name == "plan"));
    let foreign = apps::check_app_call(&tools, "tool-of-another-server");
    assert!(matches!(foreign, Err(PageError::UnknownTool { .. })));
}

#[test]
fn a_visibility_that_cannot_be_read_hides_its_tool() {
    // Rule: [APPS-023].
    for ui in [json!({ "visibility": "app" }), json!({ "visibility": ["app", 1] })] {
        assert_eq!(apps::model_tools(&[tool("t", json!({ "ui": ui }))]).count(), 0, "{ui}");
    }
    // Another member that cannot be read does not matter.
    let odd = json!({ "ui": { "resourceUri": 5, "visibility": ["app"] } });
    let tools = [tool("t", odd), tool("u", json!({ "ui": { "visibility": null } }))];
    let model: Vec<_> = apps::model_tools(&tools).map(|tool| tool.name.as_str()).collect();
    assert_eq!(model, ["u"]);
    assert!(apps::check_app_call(&tools, "t").is_ok());
}

fn policy(ui: Value) -> String {
    let contents =
        json!({ "uri": URI, "mimeType": apps::MIME_TYPE, "text": PAGE, "_meta": { "ui": ui } });
    let server =
        Server::new("s", "1").resource(Resource::new(URI, "a"), move |_: Call<ReadResource>| {
            serde_json::from_value::<TextResourceContents>(contents.clone()).unwrap()
        });
    let (client, mut pair) = connect(&server, app_host(), Revision::LATEST);
    pair.run(apps::read_page(&client, URI)).unwrap().content_security_policy()
}

#[test]
fn a_page_without_domains_gets_the_restrictive_policy() {
    // Rule: [APPS-028] [APPS-031].
    assert_eq!(
        policy(json!({})),
        "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'none'; \
         object-src 'none'; base-uri 'self'"
    );
}

#[test]
fn the_policy_has_the_declared_domains_and_no_others() {
    // Rule: [APPS-027] [APPS-029] [APPS-031].
    let csp = json!({ "connectDomains": ["https://api.example.com", "wss://live.example.com:8443"],
        "resourceDomains": ["https://*.example.net"], "frameDomains": ["https://frames.example"],
        "baseUriDomains": ["https://base.example"] });
    assert_eq!(
        policy(json!({ "csp": csp })),
        "default-src 'none'; script-src 'self' 'unsafe-inline' https://*.example.net; \
         style-src 'self' 'unsafe-inline' https://*.example.net; \
         img-src 'self' data: https://*.example.net; media-src 'self' data: https://*.example.net; \
         font-src 'self' https://*.example.net; \
         connect-src https://api.example.com wss://live.example.com:8443; \
         frame-src https://frames.example; object-src 'none'; base-uri https://base.example"
    );
}

#[test]
fn domains_that_are_null_are_none() {
    // Rule: [APPS-027] [APPS-031].
    let nulls = json!({ "csp": { "connectDomains": ["https://a.example"], "resourceDomains": null,
        "frameDomains": null, "baseUriDomains": null }, "permissions": null, "domain": null });
    let without = json!({ "csp": { "connectDomains": ["https://a.example"] } });
    assert_eq!(policy(nulls), policy(without));
}

#[test]
fn an_entry_that_is_not_one_origin_does_not_reach_the_policy() {
    // Rule: [APPS-033].
    for entry in [
        "https://a.example; script-src *",
        "https://a.example https://b.example",
        "*",
        "https://*",
        "'unsafe-eval'",
        "data:",
        "https://a.example/path",
        "https://a.example:port",
        "javascript://a",
        "https://",
        "",
    ] {
        let domains = ContentDomains::new().connect_domains([entry]);
        assert_eq!(domains.invalid().collect::<Vec<_>>(), [entry]);
        let policy = policy(json!({ "csp": { "connectDomains": [entry] } }));
        assert!(policy.contains("; connect-src 'none';"), "{entry}: {policy}");
    }
}

#[test]
fn the_page_wins_over_its_entry_in_the_list() {
    // Rule: [APPS-039].
    let (client, mut pair) = connect(&server(), app_host(), Revision::LATEST);
    let page = pair.run(apps::read_page(&client, URI)).unwrap();
    let listed = PageUi::new().prefers_border(false).domain("listed.example");
    let entry = Resource::new(URI, "dashboard").ui(&listed);
    let both = page.clone().listed_as(&entry);
    assert_eq!(both.ui, page.ui);
    let mut plain = page;
    plain.ui = PageUi::new();
    assert_eq!(plain.listed_as(&entry).ui, listed);
}

#[test]
fn unknown_metadata_reaches_the_application() {
    // Rule: [APPS-037].
    let meta =
        json!({ "ui": { "resourceUri": URI, "later": [null] }, "com.example/x": { "y": 1 } });
    let described: Meta = serde_json::from_value(meta.clone()).unwrap();
    let contents = TextResourceContents::new(URI, PAGE).meta(described.clone());
    let item = ServerItem::tool("t", "", |_: Call<NoArguments>| "text");
    let server = Server::new("s", "1")
        .add_item(item.define(|tool| tool.meta(described.clone())))
        .resource(Resource::new(URI, "a").meta(described.clone()), move |_: Call<ReadResource>| {
            contents.clone()
        });
    for revision in REVISIONS {
        let (client, mut pair) = connect(&server, app_host(), revision);
        assert_eq!(value(pair.run(client.all_tools()).unwrap()[0].meta.as_ref()), meta);
        let listed = pair.run(client.list_resources(None)).unwrap();
        assert_eq!(value(listed.resources[0].meta.as_ref()), meta);
        let read = pair.run(client.read_resource(URI)).unwrap();
        let mcp_sansio::protocol::ResourceContents::Text(read) = &read.contents[0] else {
            panic!("{read:?}")
        };
        assert_eq!(value(read.meta.as_ref()), meta);
    }
}
