use std::sync::Arc;

use mcp_sansio_handlers::{Call, NoArguments, Server, State, blocking};

struct Name(String);

async fn read(_: Call<NoArguments>, name: State<Name>) -> String {
    name.0.0.clone()
}

fn main() {
    let suffix = Arc::new(String::from("!"));
    let _server = Server::new("demo", "1.0.0")
        .state(Name("Oslo".into()))
        .tool("function", "Name", read)
        .tool("plain", "Name", |_: Call<NoArguments>, name: State<Name>| name.0.0.clone())
        .tool("capture", "Name", async move |_: Call<NoArguments>, name: State<Name>| {
            Ok(format!("{}{suffix}", name.0.0))
        })
        .tool("block", "Name", blocking(|_: Call<NoArguments>, name: State<Name>| name.0.0.clone()));
}
