use mcp_sansio_handlers::Server;

fn main() {
    let _server = Server::new("demo", "1.0.0").tool("add", "Adds", |a: u32, b: u32| format!("{}", a + b));
}
