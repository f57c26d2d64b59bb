use mcp_sansio_handlers::{Call, NoArguments, Server, State};

fn main() {
    let _server = Server::new("demo", "1.0.0")
        .state(String::new())
        .tool("name", "Name", |name: State<String>, _: Call<NoArguments>| name.clone());
}
