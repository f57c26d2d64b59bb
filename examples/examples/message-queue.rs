//! MCP over message queues (channels of the standard library). Each message is a frame, so no
//! decoder is needed. `docs/guide/custom-transport.md` explains this program.
#![allow(clippy::print_stdout, reason = "a command line program")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, Host, Server};
use mcp_sansio_std::{Wait, now, seed};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// An entry in the queue of a side.
enum Item {
    /// A message from the peer: JSON text without a line end.
    Message(Vec<u8>),
    /// The peer has closed the connection.
    End,
    /// A handler or the application has pending work.
    Wake,
}

/// Puts an [`Item::Wake`] into the queue of the waiting side.
struct QueueWaker(Sender<Item>);

impl Wake for QueueWaker {
    fn wake(self: Arc<Self>) {
        // A side that has finished needs no wake.
        let _gone = self.0.send(Item::Wake);
    }
}

/// Drives one side until the connection ends. `own` is the sender of `inbox`.
fn drive(
    mut endpoint: impl Endpoint,
    own: Sender<Item>,
    inbox: &Receiver<Item>,
    outbox: &Sender<Item>,
) {
    let waker = Waker::from(Arc::new(QueueWaker(own)));
    let mut cx = Context::from_waker(&waker);
    let mut ended = false;
    loop {
        endpoint.poll_handlers(&mut cx, now());
        endpoint.transmit(&mut |lines| {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                // If the peer has ended, `inbox` reports it.
                let _sent = outbox.send(Item::Message(line.trim_ascii_end().to_vec()));
            }
            lines.len()
        });
        if ended || endpoint.is_drained() {
            break;
        }
        let patience =
            endpoint.poll_timeout().map_or(Duration::MAX, |at| at.saturating_since(now()));
        match inbox.recv_timeout(patience) {
            Ok(Item::Message(message)) => endpoint.handle_frame(Ok(&message), now()),
            Ok(Item::Wake) => {}
            Err(RecvTimeoutError::Timeout) => endpoint.handle_timeout(now()),
            Ok(Item::End) | Err(RecvTimeoutError::Disconnected) => {
                endpoint.handle_eof(now());
                ended = true;
            }
        }
    }
    let _sent = outbox.send(Item::End);
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// The text to reverse
    text: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::new("mirror", "1.0.0").tool("turn", "Turns a text around", |call: Call<Text>| {
            call.progress(1.0, Some(1.0), "turning");
            call.arguments.text.chars().rev().collect::<String>()
        });
    let server = server.endpoint(seed())?;
    let (client, endpoint) = Host::new("demo", "1.0.0").connect(seed(), now());
    let (to_server, of_server) = channel();
    let (to_client, of_client) = channel();
    let (server_queue, client_queue) = (to_server.clone(), to_client.clone());
    let serving = std::thread::spawn(move || drive(server, server_queue, &of_server, &to_client));
    let asking = std::thread::spawn(move || drive(endpoint, client_queue, &of_client, &to_server));

    client.opened().wait()?;
    let turn = client.call_tool("turn", &json!({ "text": "queues" }));
    let result = turn.on_progress(|step| println!("{} of 1", step.progress)).wait()?;
    println!("{}", result.first_text().unwrap_or("no text"));
    drop(client);
    for side in [asking, serving] {
        side.join().map_err(|_| "a side panicked")?;
    }
    Ok(())
}
