//! The program as an application would have it: a process, with a client of this project.

use std::path::PathBuf;
use std::process::Command;

use mcp_sansio_std::protocol::{
    CompleteParams, CompletionArgument, CompletionReference, ContentBlock, PromptReference,
    ResourceContents, SubscriptionFilter,
};
use mcp_sansio_std::{Client, Host, Wait, spawn};
use serde_json::{Value, json};

fn call(client: &Client, tool: &str, arguments: &Value) -> Result<String, String> {
    let result = client.call_tool(tool, arguments).wait().map_err(|error| error.to_string())?;
    let text = result.first_text().unwrap_or_default().to_owned();
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

fn read(client: &Client, uri: &str) -> String {
    let result = client.read_resource(uri).wait().unwrap();
    let [ResourceContents::Text(contents)] = &result.contents[..] else { panic!("{result:?}") };
    contents.text.clone()
}

/// A database that is removed in the end.
struct Database(PathBuf);

impl Database {
    fn new(name: &str) -> Self {
        let file = format!("mcp-sansio-{name}-{}.db", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn open(&self) -> mcp_sansio_std::ChildConnection {
        let mut server = Command::new(env!("CARGO_BIN_EXE_notes"));
        server.arg(&self.0);
        spawn(server, &Host::new("test", "1.0.0")).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Fails if the server never created it.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn add(client: &Client, title: &str, text: &str) -> Result<String, String> {
    call(client, "add", &json!({ "title": title, "text": text }))
}

/// Returns the titles and the URIs of all notes.
fn notes(client: &Client) -> Vec<(String, String)> {
    let resources = client.all_resources().wait().unwrap();
    resources.iter().map(|it| (it.name.clone(), it.uri.clone())).collect()
}

#[test]
fn notes_outlive_their_server() {
    let database = Database::new("notes-outlive");
    let client = database.open();
    assert_eq!(add(&client, "shopping", "buy milk").as_deref(), Ok("Added shopping."));
    assert_eq!(add(&client, "holidays", "sell the car").as_deref(), Ok("Added holidays."));
    assert_eq!(add(&client, "shopping", "buy oat milk").as_deref(), Ok("Replaced shopping."));
    assert_eq!(notes(&client).len(), 2);
    client.shutdown().wait().unwrap();

    let client = database.open();
    let mut notes = notes(&client);
    notes.sort();
    assert_eq!(notes[1], ("shopping".into(), "note:///1".into()));
    assert_eq!(read(&client, "note:///1"), "buy oat milk");
    assert!(client.read_resource("note:///9").wait().unwrap_err().is_resource_not_found());
    let found = client.call_tool("search", &json!({ "words": "car" })).wait().unwrap();
    let [ContentBlock::ResourceLink(link)] = &found.content[..] else { panic!("{found:?}") };
    assert_eq!((&*link.uri, &*link.name), ("note:///2", "holidays"));
    client.shutdown().wait().unwrap();
}

#[test]
fn changes_of_notes_are_announced() {
    let database = Database::new("notes-changes");
    let client = database.open();
    add(&client, "shopping", "buy milk").unwrap();
    let filter = SubscriptionFilter::new()
        .resources_list_changed(true)
        .resource_subscriptions(["note:///1".to_owned()]);
    let mut subscription = client.subscribe(filter);
    subscription.honoured().wait().unwrap();
    for (change, method) in [
        (add(&client, "shopping", "sell milk"), "notifications/resources/updated"),
        (add(&client, "holidays", "rest"), "notifications/resources/list_changed"),
        (
            call(&client, "delete", &json!({ "title": "shopping" })),
            "notifications/resources/list_changed",
        ),
    ] {
        change.unwrap();
        let notification = subscription.next().wait().unwrap().unwrap();
        assert_eq!(notification.method.as_str(), method);
    }
    let missing = call(&client, "delete", &json!({ "title": "shopping" }));
    assert_eq!(missing, Err("there is no note with this title".into()));
    assert_eq!(notes(&client), [("holidays".into(), "note:///2".into())]);
    drop(subscription);
    client.shutdown().wait().unwrap();
}

#[test]
fn subjects_of_notes_are_completed() {
    let database = Database::new("notes-completion");
    let client = database.open();
    add(&client, "shopping", "buy milk").unwrap();
    add(&client, "sleep", "a lot").unwrap();
    let reference = CompletionReference::Prompt(PromptReference::new("sum_up"));
    let params = CompleteParams::new(reference, CompletionArgument::new("subject", "sh"));
    assert_eq!(client.complete(&params).wait().unwrap().completion.values, ["shopping"]);
    let subject = [("subject".to_owned(), "shopping".to_owned())];
    let prompt = client.get_prompt("sum_up", subject).wait().unwrap();
    let text = prompt.messages[0].content.as_text().unwrap();
    assert!(text.contains("notes for \"shopping\""), "{text}");
    client.shutdown().wait().unwrap();
}
