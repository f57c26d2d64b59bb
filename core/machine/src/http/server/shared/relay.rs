//! Messages between nodes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Instant;
use crate::catalog::Changes;
use crate::jsonrpc::{ErrorObject, NotificationMessage, RawJson, write_string};
use crate::peer::outbox::Channel;
use crate::peer::{Event, InputResponseParams, ServerCommand, Violation};

use super::super::callers::label_of;
use super::super::reader::ParsedBody;
use super::super::sessions::STANDALONE;
use super::super::store::StoreAction;
use super::super::store_queue::Account;
use super::super::{Connection, Server, stamp};
use super::waits::{Held, Purpose};
use super::{FOLLOWED_MAX, NodeId, TaskKey, TaskMessage};

/// A message from one node to others. Nodes ignore messages of newer versions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeMessage<'a> {
    /// A message of a client for a request on another node.
    Relay {
        #[serde(borrow)]
        session: Cow<'a, str>,
        #[serde(borrow)]
        message: &'a RawValue,
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
        /// The number of the next event, `u64::MAX` if the stream has ended. Older nodes do not
        /// tell it.
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
    /// Returns whose message it is that a request of a session causes.
    pub(super) fn origin_of(&self, key: Key) -> Origin {
        let replica = self.shared.as_ref().and_then(|it| it.replicas.get(&key.to_number()));
        let caller = replica.map_or_else(|| label_of(""), |replica| replica.caller.clone());
        Origin { account: self.account_of(key), caller }
    }

    /// Returns whose message it is that concerns the tasks of a requestor.
    pub(super) fn origin_of_requestor(&self, requestor: &str) -> Origin {
        Origin { account: self.callers.account_of_name(requestor), caller: label_of(requestor) }
    }

    /// Returns the name of a session in messages.
    pub(super) fn name_of(&self, key: Key) -> Option<String> {
        Some(self.shared.as_ref()?.replicas.get(&key.to_number())?.name.clone())
    }

    /// Sends a message to all other nodes. It may be lost with the store.
    pub(super) fn broadcast(&mut self, origin: &Origin, message: &NodeMessage<'_>) {
        self.send(origin, None, message);
    }

    /// Sends a message to a node, or to all others. It may be lost.
    pub(super) fn send(&mut self, origin: &Origin, to: Option<NodeId>, message: &NodeMessage<'_>) {
        if let Ok(message) = serde_json::to_vec(message) {
            self.send_written(origin, to, message);
        }
    }

    fn send_written(&mut self, origin: &Origin, to: Option<NodeId>, message: Vec<u8>) {
        let Some(shared) = &self.shared else { return };
        let (from, share) = (shared.node, shared.options.mailbox_share(origin.caller.clone()));
        let action = StoreAction::Send { action: None, from, to, message, share };
        self.store.push(origin.account, action);
    }

    /// Sends a message to a node, and completes `purpose` when the store has taken it.
    pub(super) fn send_confirmed(
        &mut self,
        origin: &Origin,
        to: NodeId,
        message: &NodeMessage<'_>,
        purpose: Purpose,
        now: Instant,
    ) {
        let Some(shared) = &self.shared else { return };
        let (from, share) = (shared.node, shared.options.mailbox_share(origin.caller.clone()));
        let Ok(message) = serde_json::to_vec(message) else { return };
        self.ask_store(origin.account, purpose, now, |action| StoreAction::Send {
            action: Some(action),
            from,
            to: Some(to),
            message,
            share,
        });
    }

    /// Passes a client's message on to the node of its request, and sends the response that
    /// confirms it when the store has taken the message.
    pub(super) fn relay(
        &mut self,
        key: Key,
        to: NodeId,
        message: Option<RawText>,
        held: Option<Held>,
        now: Instant,
    ) {
        let (Some(session), Some(message)) = (self.name_of(key), message) else {
            return self.release_all(held);
        };
        let origin = self.origin_of(key);
        let message = NodeMessage::Relay { session: session.into(), message: &message.0 };
        match held {
            Some(held) => {
                let purpose = Purpose::Relay(Some(held));
                self.send_confirmed(&origin, to, &message, purpose, now);
            }
            None => self.send(&origin, Some(to), &message),
        }
    }

    /// Passes a client's message on to all nodes that may run its request, when the store has told
    /// which nodes have the session.
    pub(super) fn relay_to_owners(&mut self, key: Key, message: RawText, now: Instant) {
        let session = self.connections.get(key).and_then(Connection::session_id);
        let (Some(session), Some(name)) = (session, self.name_of(key)) else { return };
        let message = NodeMessage::Relay { session: name.into(), message: &message.0 };
        let Ok(message) = serde_json::to_vec(&message) else { return };
        let purpose = Purpose::Owners { session: key, message };
        self.ask_store(self.account_of(key), purpose, now, |action| StoreAction::ReadSession {
            action,
            session,
        });
    }

    /// Sends a message to the other nodes that have a session.
    pub(super) fn send_to_owners(&mut self, key: Key, message: &[u8]) {
        let Some(shared) = &self.shared else { return };
        let Some(replica) = shared.replicas.get(&key.to_number()) else { return };
        let nodes: BTreeSet<NodeId> = replica.owners.iter().map(|(_, node)| *node).collect();
        let own = shared.node;
        let origin = self.origin_of(key);
        // The store drops those for nodes that have ended.
        for node in nodes.into_iter().filter(|node| *node != own) {
            self.send_written(&origin, Some(node), message.to_vec());
        }
    }

    /// Tells other nodes a command of the application that concerns their clients.
    pub(in super::super) fn share_command(&mut self, command: &ServerCommand<'_>) {
        match command {
            ServerCommand::ResourceUpdated { uri } => {
                self.broadcast(&Origin::node(), &NodeMessage::Updated { uri: (&**uri).into() });
            }
            ServerCommand::Announce(changes) if *changes != Changes::default() => {
                let Changes { tools, prompts, resources, .. } = *changes;
                self.broadcast(&Origin::node(), &NodeMessage::Lists { tools, prompts, resources });
            }
            _ => {}
        }
    }

    /// Handles a message that another node has [sent](StoreAction::Send). It may arrive twice or
    /// not at all. The clients of this node get its changes of lists and resources.
    pub fn handle_node_message(&mut self, message: &[u8], now: Instant) {
        if self.shared.is_some()
            && let Ok(message) = serde_json::from_slice(message)
        {
            self.handle_parsed_message(message, now);
        }
    }

    fn handle_parsed_message(&mut self, message: NodeMessage<'_>, now: Instant) {
        let key_of = |server: &Self, session: &str| {
            let number = server.shared.as_ref()?.names.get(session)?;
            Some(Key::from_number(*number))
        };
        match message {
            NodeMessage::Relay { session, message } => {
                if let Some(key) = key_of(self, &session) {
                    self.deliver_relayed(key, message.get().as_bytes(), now);
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
                let _done = self.apply_here(ServerCommand::ResourceUpdated { uri }, now);
            }
            NodeMessage::Lists { tools, prompts, resources } => {
                let changes = Changes::new().tools(tools).prompts(prompts).resources(resources);
                let _done = self.apply_here(ServerCommand::Announce(changes), now);
            }
        }
    }

    /// Handles a message of a client for a request of this node.
    fn deliver_relayed(&mut self, key: Key, text: &[u8], now: Instant) {
        let limits = self.reader.limits();
        let Ok(ParsedBody { frame, mut read }) = ParsedBody::parse(text, limits) else { return };
        let Some(Connection { machine, .. }) = self.connections.get_mut(key) else { return };
        let channel = Channel(STANDALONE);
        let event = machine.handle_on_channel(Ok(frame), read.as_mut(), None, channel, now);
        match event.ok().flatten() {
            // The request has ended, or another node has it.
            None | Some(Event::Violation(Violation::UnknownResponse(_))) => {}
            Some(event) => {
                let mut event = event.into_owned();
                stamp(&mut event, key);
                self.events.push_back(event);
            }
        }
        self.pump(key, now);
    }

    // ------------------------------------------------------------------ listeners

    /// Tells other nodes that this one has the reader of messages without a request.
    pub(super) fn announce_listener(&mut self, key: Key) {
        if let Some(session) = self.name_of(key) {
            let origin = self.origin_of(key);
            self.broadcast(&origin, &NodeMessage::Listening { session: session.into() });
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
            let after = stream.log.len();
            self.log_changed(key, before, after);
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
        if let (Some(nodes), Some(session)) = (nodes, self.name_of(key)) {
            let nodes = nodes.clone();
            self.tell_growth(Some(key), &session, number, nodes);
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
        let Ok(message) = serde_json::to_vec(&message) else { return };
        let origin = key.map_or_else(Origin::node, |key| self.origin_of(key));
        for to in nodes {
            self.send_written(&origin, Some(to), message.clone());
        }
    }
}

/// The origin of a message, for the shares of the store's queue and of mailboxes.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) account: Account,
    /// Empty for a message of the node itself.
    pub(super) caller: String,
}

impl Origin {
    /// A message that no request of a client causes.
    pub(super) const fn node() -> Self {
        Self { account: Account::Node, caller: String::new() }
    }
}

/// A message as JSON.
#[derive(Debug)]
pub(super) struct RawText(pub(super) Box<RawValue>);

impl RawText {
    /// Copies a message that was parsed before.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok().map(Self)
    }
}

/// The longest value that a notification keeps when it is passed on: a reason, a text for people.
const BRIEF_LENGTH_MAX: usize = 2048;

/// Returns a notification without the members that no node needs, and without long ones.
pub(super) fn brief(notification: &NotificationMessage<'_>) -> Option<RawText> {
    let mut text = String::from(r#"{"jsonrpc":"2.0","method":"#);
    write_string(&mut text, &notification.method);
    text.push_str(r#","params":{"#);
    let mut comma = "";
    for name in ["requestId", "reason", "progressToken", "progress", "total", "message", "_meta"] {
        let value = notification.params.as_ref().and_then(|params| params.get(name));
        let Some(value) = value.filter(|value| value.as_str().len() <= BRIEF_LENGTH_MAX) else {
            continue;
        };
        text.push_str(comma);
        write_string(&mut text, name);
        text.push(':');
        text.push_str(value.as_str());
        comma = ",";
    }
    text.push_str("}}");
    RawText::of(text.as_bytes())
}
