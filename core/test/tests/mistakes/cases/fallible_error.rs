use mcp_sansio_handlers::{Call, NoArguments, Server, fallible};

#[derive(Debug)]
struct Unplugged;

fn read(_: Call<NoArguments>) -> Result<String, Unplugged> {
    Err(Unplugged)
}

fn main() {
    let _server = Server::new("demo", "1.0.0").tool("read", "Reads", fallible(read));
}
