use mcp_sansio_handlers::{Call, NoArguments, Server};

struct Report;

fn main() {
    let _server = Server::new("demo", "1.0.0").tool("report", "Report", |_: Call<NoArguments>| Report);
}
