use mcp_sansio::http::{EventPosition, NodeId, SessionId, TaskKey};
use sha2::{Digest as _, Sha256};

/// The names of keys. The part in braces decides about the place of a key in a cluster: all keys of
/// a session are in one place, and so are those of the nodes.
#[derive(Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// The leases: a sorted set of nodes by their ends.
    pub(crate) fn leases(&self) -> String {
        self.of_nodes("leases")
    }

    /// The number of the contents.
    pub(crate) fn contents(&self) -> String {
        self.of_nodes("contents")
    }

    /// The version of the schema.
    pub(crate) fn schema(&self) -> String {
        self.of_nodes("schema")
    }

    /// The messages for a node: a stream.
    pub(crate) fn mailbox(&self, node: NodeId) -> String {
        format!("{}{node}", self.mailboxes())
    }

    /// The bytes of these messages, in total and of each caller: a hash.
    pub(crate) fn mailbox_bytes(&self, node: NodeId) -> String {
        self.mailbox(node) + ":bytes"
    }

    /// The prefix of the mailboxes' keys.
    pub(crate) fn mailboxes(&self) -> String {
        self.of_nodes("mailbox:")
    }

    /// A session: a hash.
    pub(crate) fn session(&self, session: &SessionId) -> String {
        format!("{}:{{{}}}:session", self.prefix, digest(session.as_str()))
    }

    /// The streams of a session: a set of their key suffixes.
    pub(crate) fn streams(&self, session: &SessionId) -> String {
        format!("{}:{{{}}}:streams", self.prefix, digest(session.as_str()))
    }

    /// Marks a session that has ended.
    pub(crate) fn ended(&self, session: &SessionId) -> String {
        self.ended_of(&digest(session.as_str()))
    }

    /// Marks the end of a session, or of the requestor whose tasks have ended with it.
    pub(crate) fn ended_of(&self, owner: &str) -> String {
        format!("{}:{{{owner}}}:ended", self.prefix)
    }

    /// The prefix of the keys for a session's events.
    pub(crate) fn events_prefix(&self, session: &SessionId) -> String {
        format!("{}:{{{}}}:events:", self.prefix, digest(session.as_str()))
    }

    /// The end of the key for the events of a stream.
    pub(crate) fn stream_name(stream: u32, principal: Option<&mcp_sansio::Principal>) -> String {
        let principal = principal.map(|it| digest(it.as_str())).unwrap_or_default();
        format!("{stream}:{principal}")
    }

    /// The events of a stream: a stream.
    pub(crate) fn events(&self, position: &EventPosition) -> String {
        self.events_of(&position.session, position.stream, position.principal.as_ref())
    }

    pub(crate) fn events_of(
        &self,
        session: &SessionId,
        stream: u32,
        principal: Option<&mcp_sansio::Principal>,
    ) -> String {
        self.events_prefix(session) + &Self::stream_name(stream, principal)
    }

    /// A task: a hash.
    pub(crate) fn task(&self, key: &TaskKey) -> String {
        let task = digest(&key.task);
        let owner = if key.requestor.is_empty() { &task } else { &key.requestor };
        format!("{}{task}", self.tasks_of(owner))
    }

    /// Marks that all tasks of this task's owner have ended with its session.
    pub(crate) fn ended_with(&self, key: &TaskKey) -> String {
        if key.requestor.is_empty() {
            return self.ended_of(&digest(&key.task));
        }
        self.ended_of(&key.requestor)
    }

    /// The prefix of the keys for a requestor's tasks.
    pub(crate) fn tasks_of(&self, requestor: &str) -> String {
        format!("{}:{{{requestor}}}:task:", self.prefix)
    }

    /// The list with a task, in the same place: a sorted set.
    pub(crate) fn list_with(&self, key: &TaskKey) -> String {
        if key.requestor.is_empty() {
            return self.tasks(&digest(&key.task));
        }
        self.tasks(&key.requestor)
    }

    /// The list of a requestor's tasks.
    pub(crate) fn tasks(&self, requestor: &str) -> String {
        format!("{}:{{{requestor}}}:tasks", self.prefix)
    }

    /// A proof that was used.
    pub(crate) fn proof(&self, proof: &str) -> String {
        format!("{}:{{{}}}:proof", self.prefix, digest(proof))
    }

    fn of_nodes(&self, name: &str) -> String {
        format!("{}:{{nodes}}:{name}", self.prefix)
    }
}

/// Returns half of a SHA-256 hash: ids of sessions are secrets, and names of principals personal.
pub(crate) fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
