//! MCP over MQTT 5, by the published conventions of *MCP over MQTT*: topics, user properties, presence
//! and wills. The broker is any of MQTT 5.
//!
//! | Topic | Carries |
//! | --- | --- |
//! | `$mcp-server/ID/NAME` | the first message of a client: `initialize`, or a request of 2026-07-28 |
//! | `$mcp-rpc/CLIENT/ID/NAME` | all other messages of a client and its server |
//! | `$mcp-server/presence/ID/NAME` | retained: the server is online. Empty, also as its will: it is not |
//! | `$mcp-client/presence/CLIENT` | the client has disconnected, also as its will |
//! | `$mcp-server/capability/ID/NAME`, `$mcp-client/capability/CLIENT` | changed lists; received here, and sent on the RPC topic |
//!
//! All messages have QoS 1, sessions expire at once, and nothing is sent again after the loss of a
//! connection to the broker: each such loss ends the connections of MCP. So messages arrive in order and
//! once.
//!
//! A client names itself in a user property. Let the broker check who publishes to which topic: with
//! access rules for `$mcp-rpc/CLIENT/#` and the wills. A server reads `$mcp-client/presence/+`.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Sink, Stream, sink, stream};
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio_tokio::MessageStream;
use mcp_sansio_tokio::adapter::ByteStream;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Filter, LastWill, Packet, Publish, PublishProperties};
use rumqttc::v5::{AsyncClient, ClientError, Event, EventLoop, MqttOptions};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Messages of a peer that wait to be read. A peer that sends more loses its connection.
const WAITING_MAX: usize = 256;

/// Clients of a server at a time.
const CLIENTS_MAX: usize = 64;

const DISCONNECTED: &str = r#"{"jsonrpc":"2.0","method":"notifications/disconnected"}"#;

/// Where the broker is, and how long a message may be.
#[derive(Clone, Debug)]
pub struct Broker {
    /// Its name or address.
    pub host: String,
    /// Its port for MQTT over TCP.
    pub port: u16,
    /// The longest message in bytes.
    pub message_length_max: usize,
}

/// A side of MCP, as the broker knows it.
#[derive(Clone, Debug)]
struct Component {
    kind: &'static str,
    id: String,
}

impl Component {
    fn properties(&self) -> PublishProperties {
        let kind = ("MCP-COMPONENT-TYPE".to_owned(), self.kind.to_owned());
        let id = ("MCP-MQTT-CLIENT-ID".to_owned(), self.id.clone());
        PublishProperties { user_properties: vec![kind, id], ..PublishProperties::default() }
    }

    fn options(&self, broker: &Broker, will: LastWill) -> MqttOptions {
        let mut options = MqttOptions::new(&self.id, &broker.host, broker.port);
        options.set_clean_start(true);
        // Room for the topic and the properties of a message.
        let length = u32::try_from(broker.message_length_max + 1024).unwrap_or(u32::MAX);
        options.set_max_packet_size(Some(length));
        options.set_session_expiry_interval(Some(0));
        options.set_user_properties(vec![("MCP-COMPONENT-TYPE".into(), self.kind.into())]);
        options.set_last_will(will);
        options
    }

    async fn publish(
        &self,
        mqtt: &AsyncClient,
        topic: &str,
        retain: bool,
        text: String,
    ) -> Result<(), ClientError> {
        let properties = self.properties();
        mqtt.publish_with_properties(topic, QoS::AtLeastOnce, retain, text, properties).await
    }
}

/// An id is a level of a topic.
fn is_id(id: &str) -> bool {
    !id.is_empty() && !id.contains(['/', '+', '#', '\0'])
}

/// Whether a message is the farewell of this transport, and none of MCP.
fn is_disconnected(payload: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(payload) else { return false };
    let Ok(message) = RawJson::parse(text) else { return false };
    message.get("method").is_some_and(|it| it.as_str() == r#""notifications/disconnected""#)
}

fn filter(topic: String) -> Filter {
    let mut filter = Filter::new(topic, QoS::AtLeastOnce);
    // Both sides publish to the topic of their messages, and read those of the other only.
    filter.nolocal = true;
    filter
}

/// A task that ends when its handle is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<Vec<u8>, ClientError>> + Send>>;
type Outgoing = Pin<Box<dyn Sink<String, Error = ClientError> + Send>>;

/// A connection of MCP over a broker: a [`ByteStream`] for `mcp_sansio_tokio::drive`.
pub struct MqttStream {
    messages: MessageStream<Messages, Outgoing>,
    farewell: Pin<Box<dyn Future<Output = ()> + Send>>,
    message_length_max: usize,
}

impl std::fmt::Debug for MqttStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MqttStream").finish_non_exhaustive()
    }
}

impl MqttStream {
    /// `topics` are those of the first message and of all others.
    fn new(
        broker: &Broker,
        component: Component,
        mqtt: AsyncClient,
        inbox: mpsc::Receiver<Vec<u8>>,
        topics: (String, String),
        farewell: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let messages = stream::unfold(inbox, async |mut inbox| {
            inbox.recv().await.map(|message| (Ok(message), inbox))
        });
        let outgoing = sink::unfold((topics.0, topics.1), move |(topic, then), text: String| {
            let (component, mqtt) = (component.clone(), mqtt.clone());
            async move {
                component.publish(&mqtt, &topic, false, text).await?;
                Ok((then.clone(), then))
            }
        });
        Self {
            messages: MessageStream::new(Box::pin(messages), Box::pin(outgoing)),
            farewell: Box::pin(farewell),
            message_length_max: broker.message_length_max,
        }
    }
}

impl ByteStream for MqttStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.messages.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        if end > self.message_length_max {
            return Poll::Ready(Err(io::Error::other("a message is too long for the broker")));
        }
        self.messages.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.messages.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.messages.poll_close(cx))?;
        ready!(self.farewell.as_mut().poll(cx));
        self.farewell = Box::pin(std::future::ready(()));
        Poll::Ready(Ok(()))
    }
}

/// Returns the next message, or `None` at the first fault: nothing is sent again.
async fn next_publish(events: &mut EventLoop) -> Option<Publish> {
    loop {
        if let Event::Incoming(Packet::Publish(publish)) = events.poll().await.ok()? {
            return Some(publish);
        }
    }
}

/// Connects to a server with this name, of those that are online, as the client `id`. An id must be
/// new for each connection.
///
/// # Errors
///
/// The id is no level of a topic, or the broker could not be reached. Waits for a server.
pub async fn connect(broker: &Broker, id: &str, server_name: &str) -> Fallible<MqttStream> {
    if !is_id(id) {
        return Err("the id of a client has no `/`, `+` or `#`".into());
    }
    let component = Component { kind: "mcp-client", id: id.to_owned() };
    let own_presence = format!("$mcp-client/presence/{id}");
    let will = LastWill::new(&own_presence, DISCONNECTED, QoS::AtLeastOnce, false, None);
    let (mqtt, mut events) = AsyncClient::new(component.options(broker, will), 64);
    mqtt.subscribe_many([filter(format!("$mcp-server/presence/+/{server_name}"))]).await?;
    // The retained message of a server that is online.
    let server_id = loop {
        let Some(publish) = next_publish(&mut events).await else {
            return Err("the connection to the broker is lost".into());
        };
        let topic = String::from_utf8_lossy(&publish.topic).into_owned();
        let place = topic.strip_prefix("$mcp-server/presence/").and_then(|it| it.split_once('/'));
        if let (false, Some((id, _))) = (publish.payload.is_empty(), place) {
            break id.to_owned();
        }
    };
    let rpc = format!("$mcp-rpc/{id}/{server_id}/{server_name}");
    let control = format!("$mcp-server/{server_id}/{server_name}");
    let presence = format!("$mcp-server/presence/{server_id}/{server_name}");
    let capability = format!("$mcp-server/capability/{server_id}/{server_name}");
    mqtt.subscribe_many([filter(rpc.clone()), filter(capability)]).await?;

    let (sender, inbox) = mpsc::channel(WAITING_MAX);
    let mut task = Task(tokio::spawn(async move {
        let mut sender = Some(sender);
        while let Some(publish) = next_publish(&mut events).await {
            let is_presence = publish.topic == presence;
            let has_ended = if is_presence {
                publish.payload.is_empty()
            } else if publish.topic.starts_with(b"$mcp-server/presence/") {
                // Another server of this name.
                false
            } else {
                let payload = publish.payload.to_vec();
                is_disconnected(&payload)
                    || sender.as_ref().is_none_or(|sender| sender.try_send(payload).is_err())
            };
            if has_ended {
                // The events continue, for the farewell.
                sender = None;
            }
        }
    }));
    let (own, client) = (component.clone(), mqtt.clone());
    let farewell = async move {
        let said = own.publish(&client, &own_presence, false, DISCONNECTED.to_owned()).await;
        if said.is_ok() && client.disconnect().await.is_ok() {
            let _ended = (&mut task.0).await;
        }
    };
    Ok(MqttStream::new(broker, component, mqtt, inbox, (control, rpc), farewell))
}

/// A server that clients find at a broker.
#[derive(Debug)]
pub struct Listener {
    accepted: mpsc::Receiver<MqttStream>,
    mqtt: AsyncClient,
    component: Component,
    presence: String,
    task: Task,
}

/// What a server knows about its clients: where their messages go.
type Clients = HashMap<String, mpsc::Sender<Vec<u8>>>;

impl Listener {
    /// Registers the server `name`, a path such as `sensors/kitchen`, at a broker, as the instance `id`.
    ///
    /// # Errors
    ///
    /// The id or the name is no part of a topic.
    pub async fn new(broker: Broker, id: &str, name: &str, description: &str) -> Fallible<Self> {
        if !is_id(id) || name.is_empty() || name.contains(['+', '#', '\0']) {
            return Err("an id has no `/`, `+` or `#`, and a name no `+` or `#`".into());
        }
        let component = Component { kind: "mcp-server", id: id.to_owned() };
        let presence = format!("$mcp-server/presence/{id}/{name}");
        let will = LastWill::new(&presence, "", QoS::AtLeastOnce, true, None);
        let (mqtt, events) = AsyncClient::new(component.options(&broker, will), 64);
        let control = format!("$mcp-server/{id}/{name}");
        // The presence of all clients, not of each after its first message: the will of a client that
        // dies right after it would be missed.
        let presences = filter("$mcp-client/presence/+".to_owned());
        mqtt.subscribe_many([filter(control.clone()), presences]).await?;
        let online = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/server/online","params":{{"server_name":{},"description":{}}}}}"#,
            Json::from_serialize(name)?.as_str(),
            Json::from_serialize(description)?.as_str(),
        );
        component.publish(&mqtt, &presence, true, online).await?;
        let (sender, accepted) = mpsc::channel(CLIENTS_MAX);
        let dispatcher = Dispatcher {
            broker,
            component: component.clone(),
            mqtt: mqtt.clone(),
            control,
            suffix: format!("/{id}/{name}"),
            clients: Clients::new(),
            sender,
        };
        let task = Task(tokio::spawn(dispatcher.run(events)));
        Ok(Self { accepted, mqtt, component, presence, task })
    }

    /// Returns the next connection of a client; `None` when that to the broker is lost.
    pub async fn accept(&mut self) -> Option<MqttStream> {
        self.accepted.recv().await
    }

    /// Removes the registration and disconnects, which ends all connections.
    pub async fn close(mut self) {
        let Self { mqtt, component, presence, .. } = &self;
        let said = component.publish(mqtt, presence, true, String::new()).await;
        if said.is_ok() && mqtt.disconnect().await.is_ok() {
            let _ended = (&mut self.task.0).await;
        }
    }
}

struct Dispatcher {
    broker: Broker,
    component: Component,
    mqtt: AsyncClient,
    control: String,
    /// The end of the topic of a client's messages.
    suffix: String,
    clients: Clients,
    sender: mpsc::Sender<MqttStream>,
}

impl Dispatcher {
    async fn run(mut self, mut events: EventLoop) {
        while let Some(publish) = next_publish(&mut events).await {
            let topic = String::from_utf8_lossy(&publish.topic).into_owned();
            if topic == self.control {
                self.open(&publish);
            } else if let Some(id) = topic.strip_prefix("$mcp-client/presence/") {
                if is_disconnected(&publish.payload) {
                    self.forget(id);
                }
            } else if let Some(id) = topic.strip_prefix("$mcp-client/capability/") {
                self.deliver(id, &publish);
            } else if let Some(id) =
                topic.strip_prefix("$mcp-rpc/").and_then(|it| it.strip_suffix(&self.suffix))
            {
                self.deliver(id, &publish);
            }
        }
    }

    fn topics(&self, id: &str) -> [String; 2] {
        [format!("$mcp-rpc/{id}{}", self.suffix), format!("$mcp-client/capability/{id}")]
    }

    fn deliver(&mut self, id: &str, publish: &Publish) {
        let Some(sender) = self.clients.get(id) else { return };
        if sender.try_send(publish.payload.to_vec()).is_err() {
            // Its connection is over, or it sends more than is read.
            self.forget(id);
        }
    }

    fn forget(&mut self, id: &str) {
        if self.clients.remove(id).is_some() {
            for topic in self.topics(id) {
                let _full = self.mqtt.try_unsubscribe(topic);
            }
        }
    }

    /// Opens the connection of a client with its first message.
    fn open(&mut self, publish: &Publish) {
        let properties = publish.properties.iter().flat_map(|it| &it.user_properties);
        let mut ids = properties.filter(|(name, _)| name == "MCP-MQTT-CLIENT-ID");
        let Some((_, id)) = ids.next().filter(|(_, id)| is_id(id)) else { return };
        self.clients.retain(|_, sender| !sender.is_closed());
        if self.clients.len() >= CLIENTS_MAX {
            return;
        }
        // A second first message begins anew.
        self.clients.remove(id);
        let topics = self.topics(id);
        if self.mqtt.try_subscribe_many(topics.clone().map(filter)).is_err() {
            return;
        }
        let (sender, inbox) = mpsc::channel(WAITING_MAX);
        let _ = sender.try_send(publish.payload.to_vec());
        let [rpc, _] = topics;
        let (component, mqtt) = (self.component.clone(), self.mqtt.clone());
        let farewell = {
            let (component, mqtt, rpc) = (component.clone(), mqtt.clone(), rpc.clone());
            async move {
                let _gone = component.publish(&mqtt, &rpc, false, DISCONNECTED.to_owned()).await;
            }
        };
        let topics = (rpc.clone(), rpc);
        let stream = MqttStream::new(&self.broker, component, mqtt, inbox, topics, farewell);
        if self.sender.try_send(stream).is_ok() {
            self.clients.insert(id.clone(), sender);
        }
    }
}
