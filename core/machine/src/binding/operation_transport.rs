use alloc::string::String;

/// The connection of an operation, for its observer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationTransport {
    /// The protocol that carries the messages, in lower case: `http`, or `None` for a byte stream.
    pub protocol_name: Option<&'static str>,
    /// The version of that protocol, such as `1.1` or `2`, if the adapter knows it.
    pub protocol_version: Option<&'static str>,
    /// The id of the session, for messages that belong to one. It is a secret unless the server
    /// authenticates its clients.
    pub session_id: Option<String>,
    /// The address of the other side: the host of the server's URL, or the address of the client.
    pub peer_address: Option<String>,
    /// The port of the other side.
    pub peer_port: Option<u16>,
    /// The header field `traceparent` of the request that carried a received message.
    pub traceparent: Option<String>,
    /// The header field `tracestate` of that request.
    pub tracestate: Option<String>,
}

impl super::Binding {
    /// Returns the name of the protocol that carries the messages.
    pub(crate) const fn protocol_name(self) -> Option<&'static str> {
        if self.has_channels() { Some("http") } else { None }
    }
}
