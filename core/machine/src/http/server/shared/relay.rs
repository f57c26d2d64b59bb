//! Messages between nodes.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;
use serde::{Deserialize, Serialize};

use crate::Instant;
use crate::catalog::Changes;
use crate::http::SessionId;
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::peer::outbox::Channel;
use crate::peer::{Event, InputResponseParams, ServerCommand, Violation};

use super::super::body::ParsedBody;
use super::super::session::STANDALONE;
use super::super::store::StoreAction;
use super::super::{Connection, Server, stamped};
use super::waits::{Held, Purpose};
use super::{FOLLOWED_MAX, NodeId, TaskKey, TaskMessage};

/// A message from one node to others. Nodes ignore messages of newer versions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeMessage<'a> {
    /// A message of a client for a request on another node.
    Deliver {
        #[serde(borrow)]
        session: Cow<'a, str>,
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    /// A session has ended.
    Ended {
        #[serde(borrow)]
        session: Cow<'a, str>,
    },
    /// A field of a session has changed.
    Set {
        #[serde(borrow)]
        session: Cow<'a, str>,
        #[serde(borrow)]
        field: Cow<'a, str>,
        #[serde(borrow)]
        value: Option<Cow<'a, str>>,
    },
    /// The stream of a session for messages without a request is read at another node.
    Listening {
        #[serde(borrow)]
        session: Cow<'a, str>,
    },
    /// A node reads a stream that another node produces, and asks how far it has come.
    Follow {
        #[serde(borrow)]
        session: Cow<'a, str>,
        stream: u32,
        node: String,
    },
    /// The answer to `Follow`, and a new event of a stream with a reader on another node.
    Grown {
        #[serde(borrow)]
        session: Cow<'a, str>,
        stream: u32,
        /// The number of the next event, `u64::MAX` if the stream has ended. Older nodes do not tell it.
        #[serde(default)]
        next: Option<u64>,
    },
    /// A resource has changed.
    Updated {
        #[serde(borrow)]
        uri: Cow<'a, str>,
    },
    /// A task has changed in the store.
    TaskChanged {
        #[serde(borrow)]
        requestor: Cow<'a, str>,
        #[serde(borrow)]
        task: Cow<'a, str>,
    },
    /// A client cancels a task.
    CancelTask {
        #[serde(borrow)]
        requestor: Cow<'a, str>,
        #[serde(borrow)]
        task: Cow<'a, str>,
    },
    /// A client answers input requests of a task.
    UpdateTask {
        #[serde(borrow)]
        requestor: Cow<'a, str>,
        #[serde(borrow)]
        task: Cow<'a, str>,
        round: u32,
        #[serde(borrow)]
        responses: Option<Cow<'a, str>>,
        #[serde(borrow)]
        refused: Vec<(String, ErrorObject<'a>)>,
    },
    /// Lists have changed.
    Lists { tools: bool, prompts: bool, resources: bool },
}

impl Server {
    /// Sends a message to all other nodes. It may be lost with the store.
    pub(super) fn broadcast(&mut self, message: &NodeMessage<'_>) {
        let Some(shared) = &self.shared else { return };
        let from = shared.node;
        if let Ok(message) = serde_json::to_vec(message) {
            self.store.push(StoreAction::Send { action: None, from, to: None, message });
        }
    }

    /// Sends a message to a node, or to all others, and a response when the store has taken it.
    pub(super) fn send(
        &mut self,
        to: Option<NodeId>,
        message: &NodeMessage<'_>,
        held: Option<Option<Held>>,
        now: Instant,
    ) {
        let Some(shared) = &self.shared else { return };
        let from = shared.node;
        let Ok(message) = serde_json::to_vec(message) else { return };
        match held {
            Some(held) => self.ask_store(Purpose::Relay(held), now, |action| StoreAction::Send {
                action: Some(action),
                from,
                to,
                message,
            }),
            None => {
                self.store.push(StoreAction::Send { action: None, from, to, message });
            }
        }
    }

    /// Tells other nodes a command of the application that concerns their clients.
    pub(in super::super) fn share_command(&mut self, command: &ServerCommand<'_>) {
        match command {
            ServerCommand::ResourceUpdated { uri } => {
                self.broadcast(&NodeMessage::Updated { uri: (*uri).into() });
            }
            ServerCommand::Announce(changes) if *changes != Changes::default() => {
                let Changes { tools, prompts, resources, .. } = *changes;
                self.broadcast(&NodeMessage::Lists { tools, prompts, resources });
            }
            _ => {}
        }
    }

    /// Handles a message that another node has [sent](StoreAction::Send). It may arrive twice or not
    /// at all.
    pub fn handle_node_message(&mut self, message: &[u8], now: Instant) {
        if self.shared.is_none() {
            return;
        }
        let Ok(message) = serde_json::from_slice::<NodeMessage<'_>>(message) else { return };
        let key_of = |server: &Self, session: &str| {
            server.key_of_session(&SessionId::parse(session.as_bytes())?)
        };
        match message {
            NodeMessage::Deliver { session, text } => {
                if let Some(key) = key_of(self, &session) {
                    self.deliver_relayed(key, text.as_bytes(), now);
                }
            }
            NodeMessage::Ended { session } => {
                if let Some(key) = key_of(self, &session) {
                    self.end_removed(key, now);
                }
            }
            NodeMessage::Set { session, field, value } => {
                if let Some(key) = key_of(self, &session) {
                    self.adopt_change(key, &field, value.as_deref());
                }
            }
            NodeMessage::Listening { session } => {
                if let Some(key) = key_of(self, &session) {
                    self.stop_listening(key, now);
                }
            }
            NodeMessage::Follow { session, stream, node } => {
                let Some(node) = NodeId::parse(&node) else { return };
                let key = key_of(self, &session);
                if let Some(key) = key {
                    self.add_follower(key, stream, node);
                }
                self.tell_growth(key, &session, stream, [node].into());
            }
            NodeMessage::Grown { session, stream, next } => {
                if let Some(key) = key_of(self, &session) {
                    self.handle_growth(key, stream, next, now);
                }
            }
            NodeMessage::TaskChanged { requestor, task } => {
                self.handle_task_change(TaskKey::new(requestor.into(), task.into()), now);
            }
            NodeMessage::CancelTask { requestor, task } => {
                let key = TaskKey::new(requestor.into(), task.into());
                self.handle_task_message(key, TaskMessage::Cancel);
            }
            NodeMessage::UpdateTask { requestor, task, round, responses, refused } => {
                let key = TaskKey::new(requestor.into(), task.into());
                let responses = responses.as_deref().map(RawJson::parse).transpose();
                let Ok(responses) = responses else { return };
                let mut inputs = InputResponseParams::new(responses, None).into_owned();
                let owned = refused.into_iter().map(|(name, error)| (name, error.into_owned()));
                let refused: Vec<_> = owned.collect();
                inputs.refused = (!refused.is_empty()).then(|| refused.into());
                self.handle_task_message(key, TaskMessage::Update { round, inputs });
            }
            NodeMessage::Updated { uri } => {
                let _done = self.apply_here(ServerCommand::ResourceUpdated { uri: &uri }, now);
            }
            NodeMessage::Lists { tools, prompts, resources } => {
                let changes = Changes::new().tools(tools).prompts(prompts).resources(resources);
                let _done = self.apply_here(ServerCommand::Announce(changes), now);
            }
        }
    }

    /// Handles a message of a client for a request of this node.
    fn deliver_relayed(&mut self, key: Key, text: &[u8], now: Instant) {
        let limits = self.server_config.parse_limits();
        let Ok(ParsedBody { frame, mut read }) = ParsedBody::parse(text, limits) else { return };
        let Some(Connection { machine, .. }) = self.connections.get_mut(key) else { return };
        let channel = Channel(STANDALONE);
        let event = machine.handle_on_channel(Ok(frame), read.as_mut(), channel, now);
        match event.ok().flatten() {
            // The request has ended, or another node has it.
            None | Some(Event::Violation(Violation::UnknownResponse(_))) => {}
            Some(event) => self.events.push_back(stamped(event.into_owned(), key)),
        }
        self.pump(key, now);
    }

    // ------------------------------------------------------------------ listeners

    /// Tells other nodes that this one has the reader of messages without a request.
    pub(super) fn announce_listener(&mut self, key: Key) {
        if let Some(session) = self.connections.get(key).and_then(Connection::session_id) {
            self.broadcast(&NodeMessage::Listening { session: session.as_str().into() });
        }
    }

    /// Ends the stream of messages without a request, which is read at another node now.
    // MCP 2025-11-25 basic/transports#multiple-connections [HSRV-017]
    fn stop_listening(&mut self, key: Key, now: Instant) {
        let Some(stream) = self.stream(key, STANDALONE).filter(|stream| stream.opened) else {
            return;
        };
        let number = stream.number;
        let reader = self.detach(key, number);
        if let Some(stream) = self.stream_mut(key, number) {
            stream.opened = false;
            let before = stream.log.len();
            stream.withdraw_unread();
            let gone = before - stream.log.len();
            self.logged_bytes -= gone;
        }
        if let Some(reader) = reader {
            self.end_exchange(reader, None, now);
        }
    }

    /// Returns whether a stream is for messages without a request and has never had a reader here.
    pub(in super::super) fn is_unheard(&self, key: Key, number: u32) -> bool {
        let shared = self.shared.as_ref();
        number == STANDALONE
            && shared.is_some_and(|shared| shared.replicas.contains_key(&key.to_number()))
            && self.stream(key, number).is_some_and(|stream| !stream.opened)
    }

    // ------------------------------------------------------------------ followers

    fn add_follower(&mut self, key: Key, number: u32, node: NodeId) {
        let own = self.stream(key, number).is_some_and(|stream| !stream.is_foreign());
        let Some(shared) = self.shared_mut() else { return };
        let place = (key.to_number(), number);
        let fits = shared.followers.len() < FOLLOWED_MAX || shared.followers.contains_key(&place);
        if own && fits {
            shared.followers.entry(place).or_default().insert(node);
        }
    }

    /// Tells the nodes with a reader of a stream that it has a new event.
    pub(in super::super) fn notify_followers(&mut self, key: Key, number: u32) {
        let number = self.stream(key, number).map_or(number, |stream| stream.number);
        let nodes =
            self.shared.as_ref().and_then(|it| it.followers.get(&(key.to_number(), number)));
        let session = self.connections.get(key).and_then(Connection::session_id);
        if let (Some(nodes), Some(session)) = (nodes, session) {
            self.tell_growth(Some(key), session.as_str(), number, nodes.clone());
        }
    }

    /// Tells nodes how far a stream has come, if this node has its session and produces it.
    fn tell_growth(
        &mut self,
        key: Option<Key>,
        session: &str,
        number: u32,
        nodes: BTreeSet<NodeId>,
    ) {
        let stream = key.and_then(|key| self.stream(key, number));
        let grows = stream.filter(|stream| !stream.is_foreign() && !stream.done);
        let next = Some(grows.map_or(u64::MAX, |stream| stream.log.next_sequence()));
        let message = NodeMessage::Grown { session: session.into(), stream: number, next };
        let (Some(shared), Ok(message)) = (&self.shared, serde_json::to_vec(&message)) else {
            return;
        };
        for to in nodes {
            self.store.push(StoreAction::Send {
                action: None,
                from: shared.node,
                to: Some(to),
                message: message.clone(),
            });
        }
    }
}
