use mcp_sansio::protocol::{Resource, TextResourceContents};
use mcp_sansio_handlers::{Call, NoArguments, ReadResource, Server};

/// Returns a server whose tools return its process id, change its resource `note:a`, and end its
/// process, and a tool that prints.
#[must_use]
#[allow(clippy::print_stdout, reason = "what handlers should not do")]
pub fn fragile() -> Server {
    Server::new("fragile", "1")
        .subscriptions()
        .resource(Resource::new("note:a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("note:a", "text")
        })
        .tool("id", "The process id", |_: Call<NoArguments>| std::process::id().to_string())
        .tool("touch", "Changes the note", |call: Call<NoArguments>| {
            call.resource_updated("note:a")?;
            Ok("changed")
        })
        .tool("print", "Prints parts of lines", |_: Call<NoArguments>| {
            print!("par");
            println!("tial");
            print!("rest");
            "printed"
        })
        .tool("crash", "Ends the process", |_: Call<NoArguments>| -> String {
            std::process::exit(3)
        })
}
