//! The state of a legacy session, for a layer above that keeps it outside of the machine.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Revision;
use crate::jsonrpc::{Json, write_id};
use crate::peer::outbox::Channel;
use crate::protocol::{Capabilities, LoggingLevel, SerializeAt};

use super::subscriptions::SubscribedUris;
use super::{Server, ServerSession};

/// The result of the negotiation, and the choices of the client since then.
#[derive(Clone, Debug)]
pub(crate) struct SessionState {
    pub(crate) revision: Revision,
    pub(crate) client: Capabilities,
    pub(crate) client_info: Json,
    pub(crate) client_extensions: Option<Json>,
    pub(crate) initialized: bool,
    pub(crate) log_level: LoggingLevel,
    /// In no particular order when it is restored; sorted when it is read.
    pub(crate) subscribed: Vec<String>,
}

impl Server {
    /// Returns the state of the session, if there is one.
    pub(crate) fn session_state(&self) -> Option<SessionState> {
        let session = self.session.as_ref()?;
        let mut subscribed = session.subscribed.uris.clone();
        subscribed.sort_unstable();
        Some(SessionState {
            revision: session.revision,
            client: session.client,
            client_info: session.client_info.clone(),
            client_extensions: session.client_extensions.clone(),
            initialized: session.initialized,
            log_level: session.log_level,
            subscribed,
        })
    }

    /// Continues a session that another machine has opened. The client is not notified.
    pub(crate) fn restore_session(&mut self, state: SessionState) {
        let declared = self.declared(state.revision);
        let server = declared
            .to_json_at(state.revision)
            .and_then(|text| Capabilities::from_server_json(text.as_str(), state.revision))
            .unwrap_or_default();
        let mut subscribed = SubscribedUris::with_hasher(self.connection.requests.hasher());
        for uri in state.subscribed {
            subscribed.insert(uri);
        }
        self.session = Some(ServerSession {
            revision: state.revision,
            initialized: state.initialized,
            client: state.client,
            server,
            client_info: state.client_info,
            client_extensions: state.client_extensions,
            log_level: state.log_level,
            subscribed,
        });
    }

    /// Sets the id of the next request to the client.
    pub(crate) const fn start_call_ids(&mut self, first: i64) {
        self.connection.calls.start_ids(first);
    }

    /// Confirms the session, as its client did at another machine.
    pub(crate) fn set_initialized(&mut self) {
        if let Some(session) = &mut self.session {
            session.initialized = true;
        }
    }

    /// Sets the log level of the session, as its client did at another machine.
    pub(crate) fn set_log_level_of_session(&mut self, level: LoggingLevel) {
        if let Some(session) = &mut self.session {
            session.log_level = level;
        }
    }

    /// Changes a subscription of the session, as its client did at another machine.
    pub(crate) fn set_subscribed(&mut self, uri: &str, subscribed: bool) {
        let limit = self.connection.config.limits.subscribed_resources_max;
        let Some(session) = &mut self.session else { return };
        if !subscribed {
            session.subscribed.remove(uri);
        } else if session.subscribed.len() < limit {
            session.subscribed.insert(uri.into());
        }
    }

    /// Returns the ids of the pending requests on a channel: a single id, an array, or an empty
    /// text.
    pub(crate) fn write_ids_on(&self, channel: Channel) -> String {
        let ids = self.connection.requests.iter().filter(|(_, it)| it.reply.channel == channel);
        let mut text = String::new();
        let mut count = 0;
        for (_, request) in ids {
            if count > 0 {
                text.push(',');
            }
            write_id(&mut text, &request.id);
            count += 1;
        }
        if count > 1 { alloc::format!("[{text}]") } else { text }
    }
}
