//! Items that are made by attributes behave like those of the builder.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_sansio_handlers::{
    Call, Context, Host, IntoHandlerError, Local, NoArguments, Server, ServerItem, State,
    Structured,
};
use mcp_sansio_macros::{prompt, tool, tools};
use serde_json::{Value, json};

/// Weather at a place
///
/// Up to a week ahead.
#[tool(title = "Forecast", read_only, open_world = false)]
async fn forecast(
    /// City name or postal code
    location: String,
    /// Days ahead
    #[serde(default)]
    #[schemars(range(max = 7))]
    days: u8,
    unit: Option<String>,
) -> String {
    format!("{location} in {days} days, {}", unit.as_deref().unwrap_or("celsius"))
}

fn listed<T>(server: &Server, item: impl FnOnce(&mut Connection) -> T) -> T {
    item(&mut Connection::new(server))
}

/// A connected client.
struct Connection {
    client: mcp_sansio_handlers::Client,
    pair: mcp_sansio_test::StreamPair,
}

impl Connection {
    fn new(server: &Server) -> Self {
        let (client, pair) = mcp_sansio_test::connect(server, &Host::new("test", "1.0.0"));
        Self { client, pair }
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Result<String, String> {
        let result = self.pair.run(self.client.call_tool(name, arguments)).unwrap();
        let text = result.first_text().unwrap_or_default().to_owned();
        if result.is_error == Some(true) { Err(text) } else { Ok(text) }
    }

    fn tool(&mut self, name: &str) -> Value {
        let tools = self.pair.run(self.client.all_tools()).unwrap();
        let tool = tools.iter().find(|it| it.name == name).unwrap();
        json!({
            "description": tool.description,
            "title": tool.title,
            "input": tool.input_schema.decode::<Value>().unwrap(),
            "output": tool.output_schema.as_ref().map(|it| it.decode::<Value>().unwrap()),
            "read_only": tool.annotations.as_ref().and_then(|it| it.read_only_hint),
            "open_world": tool.annotations.as_ref().and_then(|it| it.open_world_hint),
        })
    }
}

#[test]
fn a_tool_has_the_schema_and_the_texts_of_its_function() {
    let server = Server::new("weather", "1.0.0").add_item(forecast_tool());
    listed(&server, |connection| {
        let tool = connection.tool("forecast");
        assert_eq!(tool["description"], "Weather at a place\n\nUp to a week ahead.");
        assert_eq!((&tool["title"], &tool["read_only"]), (&json!("Forecast"), &json!(true)));
        assert_eq!(tool["open_world"], false);
        assert_eq!(tool["input"].get("title"), None);
        assert_eq!(tool["input"]["required"], json!(["location"]));
        let properties = &tool["input"]["properties"];
        assert_eq!(properties["location"]["description"], "City name or postal code");
        assert_eq!(properties["days"]["maximum"], 7);
        let text = connection.call("forecast", &json!({ "location": "Oslo" }));
        assert_eq!(text.as_deref(), Ok("Oslo in 0 days, celsius"));
        let text = connection.call("forecast", &json!({ "days": 1 })).unwrap_err();
        assert_eq!(text, "invalid arguments: missing field `location`");
    });
}

#[test]
fn the_function_stays_as_it_is() {
    fn is_future(_: impl Future<Output = String>) {}
    is_future(forecast("Oslo".into(), 1, None));
}

#[derive(Default)]
struct Counter(AtomicU32);

struct TooMany(u32);

impl IntoHandlerError for TooMany {
    fn into_handler_error(self) -> mcp_sansio_handlers::HandlerError {
        mcp_sansio_handlers::HandlerError::failed(format!("{} are too many", self.0))
    }
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Count {
    count: u32,
}

/// Adds
#[tool(name = "add", idempotent, destructive = false)]
fn add_some(
    context: &Context,
    by: u32,
    counter: State<Counter>,
) -> Result<Structured<Count>, TooMany> {
    assert!(!context.is_cancelled());
    let count = counter.0.0.fetch_add(by, Ordering::Relaxed) + by;
    if count > 9 { Err(TooMany(count)) } else { Ok(Structured(Count { count })) }
}

/// Tells the revision
#[tool]
fn revision(call: Call<NoArguments>) -> String {
    call.revision().to_string()
}

/// Tells it too
#[tool(blocking)]
fn blocking_revision(context: &Context) -> String {
    context.revision().to_string()
}

/// A raw name
#[tool]
fn r#type(mut r#in: String) -> String {
    r#in.push('!');
    r#in
}

#[test]
fn contexts_states_and_errors_are_those_of_handlers() {
    let server = Server::new("counter", "1.0.0")
        .state(Counter::default())
        .add_item(add_some_tool())
        .add_item(revision_tool())
        .add_item(blocking_revision_tool())
        .add_item(type_tool());
    listed(&server, |connection| {
        assert_eq!(connection.tool("add")["output"]["properties"]["count"]["type"], "integer");
        assert_eq!(connection.call("add", &json!({ "by": 4 })).as_deref(), Ok(r#"{"count":4}"#));
        assert_eq!(connection.call("add", &json!({ "by": 6 })), Err("10 are too many".into()));
        for name in ["revision", "blocking_revision"] {
            assert_eq!(connection.call(name, &json!({})).as_deref(), Ok("2026-07-28"));
        }
        assert_eq!(connection.call("type", &json!({ "in": "a" })).as_deref(), Ok("a!"));
    });
}

/// Searches
#[tool]
async fn search(search: String) -> String {
    search
}

/// Calls
#[tool]
fn call(context: &Context, call: u32, context_2: u32, arguments: u32) -> String {
    format!("{} {call} {context_2} {arguments}", context.revision())
}

/// Joins
#[tool]
fn join(
    shared: &Context,
    context: String,
    state_3: String,
    counter: State<Counter>,
    server: String,
    r#type: String,
) -> String {
    assert!(!shared.is_cancelled());
    assert_eq!(counter.0.0.load(Ordering::Relaxed), 0);
    [context, state_3, server, r#type].concat()
}

/// Joins too
#[tool]
fn this(this: String, counter: State<Counter>, state_1: String) -> String {
    assert_eq!(counter.0.0.load(Ordering::Relaxed), 0);
    this + &state_1
}

/// Shows the depth
#[tool]
fn _3d_view(depth: u32) -> String {
    depth.to_string()
}

/// Has a name without letters
#[tool]
fn __(depth: u32) -> String {
    depth.to_string()
}

struct Rooms;

#[tools]
impl Rooms {
    /// Joins
    #[tool]
    fn server(
        &self,
        this: String,
        context: String,
        shared: &Context,
        counter: State<Counter>,
        state_3: String,
        server: String,
    ) -> String {
        assert!(!shared.is_cancelled());
        assert_eq!(counter.0.0.load(Ordering::Relaxed), 0);
        [this, context, state_3, server].concat()
    }

    /// Opens a room
    #[tool]
    fn room_1(&self, door: String) -> String {
        door
    }

    /// Opens another one
    #[tool]
    fn room1(&self, window: String) -> String {
        window
    }
}

#[test]
fn a_function_and_its_parameters_have_any_names() {
    let server = Server::new("names", "1.0.0")
        .add_item(search_tool())
        .add_item(call_tool())
        .add_item(join_tool())
        .add_item(this_tool())
        .add_item(_3d_view_tool())
        .add_item(___tool());
    let server = Rooms::add_tools(server).state(Counter::default()).state(Rooms);
    listed(&server, |connection| {
        let mut call = |name, arguments| connection.call(name, &arguments).unwrap();
        assert_eq!(call("search", json!({ "search": "a" })), "a");
        let arguments = json!({ "call": 1, "context_2": 2, "arguments": 3 });
        assert_eq!(call("call", arguments), "2026-07-28 1 2 3");
        let arguments = json!({ "context": "a", "state_3": "b", "server": "c", "type": "d" });
        assert_eq!(call("join", arguments), "abcd");
        assert_eq!(call("this", json!({ "this": "a", "state_1": "b" })), "ab");
        let arguments = json!({ "this": "a", "context": "b", "state_3": "c", "server": "d" });
        assert_eq!(call("server", arguments), "abcd");
        assert_eq!(call("room_1", json!({ "door": "a" })), "a");
        assert_eq!(call("room1", json!({ "window": "b" })), "b");
        assert_eq!(call("_3d_view", json!({ "depth": 3 })), "3");
        assert_eq!(call("__", json!({ "depth": 4 })), "4");
    });
}

/// Types of the user that have the names of parameters of handlers.
mod own_types {
    use mcp_sansio_macros::tool;

    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    pub(super) enum State {
        Open,
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    pub(super) struct Call {
        number: u32,
    }

    /// Dials
    #[tool]
    pub(super) fn dial(state: State, call: Call) -> String {
        format!("{state:?} {}", call.number)
    }
}

#[test]
fn a_state_and_a_call_have_angle_brackets() {
    let server = Server::new("phones", "1.0.0").add_item(own_types::dial_tool());
    listed(&server, |connection| {
        let arguments = json!({ "state": "Open", "call": { "number": 5 } });
        assert_eq!(connection.call("dial", &arguments).as_deref(), Ok("Open 5"));
    });
}

#[doc = include_str!("attributes.txt")]
#[tool]
fn included() -> &'static str {
    "text"
}

/// Joins
///
#[doc = concat!("several", " ", "texts")]
/// into one.
#[tool]
fn joined() -> &'static str {
    "text"
}

macro_rules! described {
    ($text:expr) => {
        #[doc = $text]
        #[tool]
        fn described(mut text: String) -> String {
            text.push('!');
            text
        }
    };
}

described!("Text of a macro");

/**
 * Finds notes.
 *
 * - `words`: *all* of them
 *   - or some
 */
#[tool]
fn starred() -> &'static str {
    "text"
}

/** Finds notes

    * in the attic
      * in a box
    * in the cellar
*/
#[tool]
fn indented() -> &'static str {
    "text"
}

#[doc = "Finds notes:\n* in the attic\n  * in a box"]
#[tool]
fn listing() -> &'static str {
    "text"
}

#[test]
fn a_description_is_what_rustdoc_shows() {
    let server = Server::new("notes", "1.0.0")
        .add_item(included_tool())
        .add_item(joined_tool())
        .add_item(described_tool())
        .add_item(starred_tool())
        .add_item(indented_tool())
        .add_item(listing_tool());
    listed(&server, |connection| {
        for (name, description) in [
            ("included", "Finds notes\n\n  in a file"),
            ("joined", "Joins\n\nseveral texts\ninto one."),
            ("described", "Text of a macro"),
            ("starred", "Finds notes.\n\n- `words`: *all* of them\n  - or some"),
            ("indented", "Finds notes\n\n   * in the attic\n     * in a box\n   * in the cellar"),
            ("listing", "Finds notes:\n* in the attic\n  * in a box"),
        ] {
            assert_eq!(connection.tool(name)["description"], description);
        }
    });
}

/// Asks for a review
#[prompt(title = "Review")]
fn review(
    /// Programming language
    language: String,
    style: Option<String>,
) -> String {
    format!("A {} review of {language} code", style.as_deref().unwrap_or("short"))
}

#[test]
fn a_prompt_has_the_arguments_of_its_function() {
    let server = Server::new("reviews", "1.0.0").add_item(review_prompt());
    listed(&server, |Connection { client, pair }| {
        let prompts = pair.run(client.all_prompts()).unwrap();
        let arguments = prompts[0].arguments.as_ref().unwrap();
        assert_eq!(arguments[0].description.as_deref(), Some("Programming language"));
        let required: Vec<_> = arguments.iter().map(|it| (&*it.name, it.required)).collect();
        assert_eq!(required, [("language", Some(true)), ("style", None)]);
        let language = [("language".to_owned(), "Rust".to_owned())];
        let prompt = pair.run(client.get_prompt("review", language)).unwrap();
        let text = prompt.messages[0].content.as_text();
        assert_eq!(text, Some("A short review of Rust code"));
    });
}

struct Notes<T>(T);

#[tools]
impl<T: AsRef<str> + Send + Sync + 'static> Notes<T> {
    /// Finds notes
    #[tool(read_only, requires = "notes:read")]
    async fn search(&self, words: String) -> Result<String, String> {
        if words.is_empty() {
            return Err("no words".into());
        }
        Ok(format!("{words} in {}", self.0.as_ref()))
    }

    /// Counts notes
    #[tool]
    fn count(&self, counter: State<Counter>) -> String {
        counter.0.0.load(Ordering::Relaxed).to_string()
    }

    /// Helps
    #[tool]
    fn help() -> &'static str {
        Self::TEXT
    }

    /// Sums up
    #[prompt]
    async fn summary(&self, length: String) -> String {
        format!("Sum up {} in {length} words", self.0.as_ref())
    }

    const TEXT: &'static str = "Search first.";
}

#[test]
fn methods_share_the_value_that_is_a_state() {
    let server = Notes::<String>::add_tools(Server::new("notes", "1.0.0"));
    assert!(server.endpoint(1).is_err(), "the state is missing");
    let server = server.state(Notes("the attic".to_owned())).state(Counter::default());
    listed(&server, |connection| {
        let found = connection.call("search", &json!({ "words": "milk" }));
        assert_eq!(found.as_deref(), Ok("milk in the attic"));
        assert_eq!(connection.call("search", &json!({ "words": "" })), Err("no words".into()));
        assert_eq!(connection.call("count", &json!({})).as_deref(), Ok("0"));
        assert_eq!(connection.call("help", &json!({})).as_deref(), Ok("Search first."));
        let Connection { client, pair } = connection;
        let length = [("length".to_owned(), "five".to_owned())];
        let prompt = pair.run(client.get_prompt("summary", length)).unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("Sum up the attic in five words"));
    });
}

struct Shared(std::rc::Rc<str>);

#[tools(pub, local)]
impl Shared {
    /// Reads
    #[tool]
    async fn read(&self) -> String {
        self.0.to_string()
    }
}

/// Reads too
#[tool(local)]
async fn read_too(shared: State<Shared>) -> String {
    shared.0.0.to_string()
}

#[test]
fn a_local_server_has_local_items() {
    let server = Shared::add_tools(Server::local("local", "1.0.0"));
    let item: ServerItem<mcp_sansio::protocol::Tool, Local> = read_too_tool();
    let server = server.add_item(item).state(Shared("text".into()));
    assert!(server.endpoint(1).is_ok());
}

struct Platform;

#[tools]
impl Platform {
    /// Reads a path
    #[cfg(test)]
    #[tool]
    fn read(&self, path: String) -> String {
        path
    }

    /// Reads a number
    #[tool]
    #[cfg(not(test))]
    fn read(&self, number: u32) -> String {
        number.to_string()
    }

    /// Does not exist
    #[tool]
    #[cfg(not(test))]
    fn write(&self) {}

    /// Closes a file
    #[tool]
    fn close(&self) {}
}

/// Does not exist
#[tool]
#[cfg(not(test))]
fn removed(path: String) {}

#[test]
fn a_condition_of_a_method_is_that_of_its_tool() {
    let server = Platform::add_tools(Server::new("platform", "1.0.0")).state(Platform);
    listed(&server, |connection| {
        assert_eq!(connection.call("read", &json!({ "path": "a" })).as_deref(), Ok("a"));
        let tools = connection.pair.run(connection.client.all_tools()).unwrap();
        assert_eq!(tools.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["read", "close"]);
    });
}
