use std::sync::Mutex;

use mcp_sansio_handlers::{Call, NoArguments, Server, State};

async fn pause() {}

async fn next(_: Call<NoArguments>, counter: State<Mutex<u32>>) -> String {
    let mut counter = counter.lock().unwrap();
    *counter += 1;
    pause().await;
    counter.to_string()
}

fn main() {
    let _server =
        Server::new("demo", "1.0.0").state(Mutex::new(0_u32)).tool("next", "Counts", next);
}
