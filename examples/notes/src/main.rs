//! Notes in a SQLite database, over standard streams: tools, a resource for each note, and a prompt
//! with completion. The argument is the path of the database.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_sansio_tokio::protocol::{
    CompleteParams, ContentBlock, Resource, ResourceTemplate, TextResourceContents,
};
use mcp_sansio_tokio::{
    self as mcp, Call, Context, HandlerError, ReadResource, Server, ServerItem, State, blocking,
    prompt, tool,
};
use rusqlite::{Connection, OptionalExtension};

type Result<T, E = HandlerError> = std::result::Result<T, E>;

/// The database, whose functions block.
struct Notes(Mutex<Connection>);

impl Notes {
    fn open(path: &str) -> rusqlite::Result<Self> {
        let database = Connection::open(path)?;
        database.execute_batch(
            "CREATE TABLE IF NOT EXISTS notes
             (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, text TEXT NOT NULL)",
        )?;
        Ok(Self(Mutex::new(database)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the URIs and titles of the notes that contain `words`.
    fn find(&self, words: &str) -> rusqlite::Result<Vec<(String, String)>> {
        let database = self.lock();
        let mut query = database.prepare(
            "SELECT id, title FROM notes WHERE instr(title || ' ' || text, ?1) ORDER BY title",
        )?;
        let found = query.query_map([words], |row| Ok((uri(row.get(0)?), row.get(1)?)))?;
        found.collect()
    }
}

fn uri(id: i64) -> String {
    format!("note:///{id}")
}

/// Returns the resource of a note.
fn resource(uri: String, title: String) -> ServerItem<Resource> {
    ServerItem::new(Resource::new(uri, title).mime_type("text/plain"), blocking(read))
}

fn read(call: Call<ReadResource>, notes: State<Notes>) -> Result<TextResourceContents> {
    let uri = call.arguments.uri.as_str();
    let select = "SELECT text FROM notes WHERE 'note:///' || id = ?1";
    let text = notes.lock().query_row(select, [uri], |row| row.get::<_, String>(0)).optional()?;
    let text = text.ok_or_else(|| HandlerError::resource_not_found(uri))?;
    Ok(TextResourceContents::new(uri, text))
}

/// Adds a note, or replaces the text of the note with this title
#[tool(blocking, idempotent)]
fn add(title: String, text: String, context: &Context, notes: State<Notes>) -> Result<String> {
    let database = notes.lock();
    let update = "UPDATE notes SET text = ?2 WHERE title = ?1 RETURNING id";
    let id = database.query_row(update, [&title, &text], |row| row.get(0)).optional()?;
    if let Some(id) = id {
        context.resource_updated(uri(id))?;
        return Ok(format!("Replaced {title}."));
    }
    database.execute("INSERT INTO notes (title, text) VALUES (?1, ?2)", [&title, &text])?;
    let (uri, added) = (uri(database.last_insert_rowid()), format!("Added {title}."));
    context.edit_catalog(|catalog| drop(catalog.add_item(resource(uri, title))))?;
    Ok(added)
}

/// Finds the notes that contain these words
#[tool(blocking, read_only)]
fn search(words: String, notes: State<Notes>) -> Result<Vec<ContentBlock>> {
    let found = notes.find(&words)?.into_iter();
    Ok(found.map(|(uri, title)| Resource::new(uri, title).into()).collect())
}

/// Deletes a note
#[tool(blocking)]
fn delete(title: String, context: &Context, notes: State<Notes>) -> Result<&'static str> {
    let delete = "DELETE FROM notes WHERE title = ?1 RETURNING id";
    let id = notes.lock().query_row(delete, [&title], |row| row.get(0)).optional()?;
    let uri = uri(id.ok_or_else(|| HandlerError::failed("there is no note with this title"))?);
    context.edit_catalog(move |catalog| drop(catalog.remove_resource(&uri)))?;
    Ok("Deleted.")
}

/// Asks to sum up the notes about a subject
#[prompt]
fn sum_up(subject: String) -> String {
    format!("Search my notes for {subject:?}, read them, and sum them up.")
}

fn titles(call: Call<CompleteParams>, notes: State<Notes>) -> Result<Vec<String>> {
    let notes = notes.find(&call.arguments.argument.value)?;
    Ok(notes.into_iter().map(|(_, title)| title).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let notes = Notes::open(&std::env::args().nth(1).unwrap_or_else(|| "notes.db".into()))?;
    let mut server = Server::new("notes", "1.0.0").subscriptions();
    server = server.add_item(add_tool()).add_item(search_tool()).add_item(delete_tool());
    server = server.add_item(sum_up_prompt().complete("subject", blocking(titles)));
    server =
        server.resource_template(ResourceTemplate::new("note:///{id}", "Note"), blocking(read));
    for (uri, title) in notes.find("")? {
        server = server.add_item(resource(uri, title));
    }
    Ok(mcp::serve_stdio(server.state(notes)).await?)
}
