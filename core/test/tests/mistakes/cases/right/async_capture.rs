use std::sync::Arc;

use mcp_sansio_handlers::{Call, NoArguments, Server};

async fn read(name: &str) -> String {
    name.to_owned()
}

fn main() {
    let name = Arc::new(String::from("Oslo"));
    let _server = Server::new("demo", "1.0.0")
        .tool("name", "Name", async move |_: Call<NoArguments>| read(&name).await);
}
