use std::rc::Rc;

use mcp_sansio_handlers::{Call, NoArguments, Server};

fn main() {
    let name = Rc::new(String::from("Oslo"));
    let _server = Server::new("demo", "1.0.0")
        .tool("name", "Name", move |_: Call<NoArguments>| name.to_string());
}
