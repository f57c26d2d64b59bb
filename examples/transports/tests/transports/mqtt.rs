//! Over mosquitto, on a port of the loopback interface.

use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_sansio_test::transport::{Promises, check};
use mcp_sansio_tokio::adapter::ByteStream;
use mcp_sansio_tokio::jsonrpc::RawJson;
use mcp_sansio_tokio::protocol::Tool;
use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server};
use transports::mqtt::{Broker, Listener, MqttStream, connect};

use tokio::sync::oneshot;

use crate::tokio_ends::TokioEnds;

const LENGTH_MAX: usize = 128 * 1024;

/// A broker that ends with the test.
struct Mosquitto {
    process: Child,
    broker: Broker,
}

impl Mosquitto {
    fn start() -> Option<Self> {
        let program = test_programs::find(&["mosquitto"])?;
        let port = test_programs::free_port();
        // With a port and no configuration, it listens on loopback only.
        let process = Command::new(program)
            .args(["-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let host = "127.0.0.1".to_owned();
        let broker = Broker { host, port, message_length_max: LENGTH_MAX };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "mosquitto does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Self { process, broker })
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The side of a server: the connection of the first client, once it is there.
struct Accepting {
    stream: Option<MqttStream>,
    accept: Pin<Box<dyn Future<Output = (Listener, Option<MqttStream>)> + Send>>,
    listener: Option<Listener>,
}

impl Accepting {
    /// A client that is gone before its first message is not known to the server: then there is no
    /// connection to wait for.
    fn new(mut listener: Listener, gone: oneshot::Receiver<()>) -> Self {
        let accept = Box::pin(async move {
            let stream = tokio::select! {
                stream = listener.accept() => stream,
                _ = gone => {
                    let accept = listener.accept();
                    tokio::time::timeout(Duration::from_millis(200), accept).await.ok().flatten()
                }
            };
            (listener, stream)
        });
        Self { stream: None, accept, listener: None }
    }
}

/// The side of a client, which tells when it is dropped.
struct Connecting(MqttStream, #[expect(dead_code, reason = "it is dropped")] oneshot::Sender<()>);

impl ByteStream for Connecting {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_close(cx)
    }
}

impl ByteStream for Accepting {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if self.listener.is_none() {
            let (listener, stream) = ready!(self.accept.as_mut().poll(cx));
            (self.listener, self.stream) = (Some(listener), stream);
        }
        match &mut self.stream {
            Some(stream) => stream.poll_read(cx, buffer),
            None => Poll::Ready(Ok(0)),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.as_mut().expect("the client begins").poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().map_or(Poll::Ready(Ok(())), |stream| stream.poll_flush(cx))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().map_or(Poll::Ready(Ok(())), |stream| stream.poll_close(cx))
    }
}

#[test]
fn mqtt_conforms() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let broker = mosquitto.broker.clone();
    let mut number = 0;
    let report = check(&mut TokioEnds::new(Promises::messages(LENGTH_MAX), async move || {
        number += 1;
        let (id, name) = (format!("server-{number}"), format!("checks/{number}"));
        let listener = Listener::new(broker.clone(), &id, &name, "A check").await.unwrap();
        let client = connect(&broker, &format!("client-{number}"), &name).await.unwrap();
        let (alive, gone) = oneshot::channel();
        (Connecting(client, alive), Accepting::new(listener, gone))
    }));
    println!("MQTT over mosquitto: {report}");
}

#[tokio::test]
async fn clients_find_a_server_share_it_and_see_it_go() {
    let Some(mosquitto) = Mosquitto::start() else { return };
    let broker = mosquitto.broker.clone();
    let mut listener =
        Listener::new(broker.clone(), "one", "sensors/kitchen", "Temperature").await.unwrap();
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let server = Server::new("kitchen", "1.0.0")
        .tool_with(Tool::new("read", schema), |_: Call<NoArguments>| "21.5 °C");
    let mut clients = Vec::new();
    for id in ["ann", "bob"] {
        let stream = connect(&broker, id, "sensors/kitchen").await.unwrap();
        let (client, endpoint) = Host::new("panel", "1.0.0").connect(mcp::seed(), mcp::now());
        tokio::spawn(mcp::drive(endpoint, stream));
        let accepted = listener.accept().await.unwrap();
        tokio::spawn(mcp::drive(server.endpoint(mcp::seed()).unwrap(), accepted));
        client.opened().await.unwrap();
        clients.push(client);
    }
    for client in &clients {
        let result = client.call_tool("read", &NoArguments {}).await.unwrap();
        assert_eq!(result.first_text(), Some("21.5 °C"));
    }
    listener.close().await;
    for client in clients {
        client.closed().await;
    }
    // The server is no longer registered, so discovery finds none.
    let search = connect(&broker, "eve", "sensors/kitchen");
    assert!(tokio::time::timeout(Duration::from_millis(200), search).await.is_err());
}

#[tokio::test]
async fn names_that_are_not_part_of_a_topic_are_refused() {
    let host = "127.0.0.1".to_owned();
    let broker = Broker { host, port: 1, message_length_max: 1000 };
    for id in ["", "a/b", "+", "#"] {
        assert!(connect(&broker, id, "name").await.is_err());
        assert!(Listener::new(broker.clone(), id, "name", "").await.is_err());
    }
    assert!(Listener::new(broker.clone(), "id", "sensors/+", "").await.is_err());
}
