//! Requests for sessions that several nodes share.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::gate::metadata::Read;
use crate::http::{
    ExchangeId, HttpRejection, RemoteAddress, RequestHead, Response, SessionId, Status,
};
use crate::jsonrpc::{Frame, Message, RequestId, resolved};
use crate::peer::OperationTransport;
use crate::protocol::Method;
use crate::{Caller, Instant, Principal};

use super::super::callers::Sender;
use super::super::exchange::{Exchange, State};
use super::super::log::EventId;
use super::super::posts::{Handled, ONLY, accepted};
use super::super::reader::{
    ParsedBody, Post, Posted, ReadRequest, Route, busy, names_revision, too_many,
};
use super::super::replay::gone;
use super::super::sessions::no_session;
use super::super::store::StoreAction;
use super::super::store_queue::Account;
use super::super::{Connection, Server};
use super::relay::{RawText, brief};
use super::sessions::{
    INITIALIZED, LEVEL, digest_of, is_used_up, replica_of, replica_of_call, subscription,
};
use super::waits::{Purpose, unavailable};
use super::{NodeId, Waiting};

/// A request that waits for its session.
#[derive(Debug)]
pub(super) struct Parked {
    exchange: Key,
    route: Route,
    protocol_version: Option<Vec<u8>>,
    last_event_id: Option<Vec<u8>>,
    remote: Option<RemoteAddress>,
    identity: Caller,
    /// Its description, for the observer.
    transport: OperationTransport,
    /// The share of the requests that wait, and of the store's queue.
    account: Account,
    body: Vec<u8>,
}

impl Waiting {
    /// Returns the sum with another request.
    fn and(self, parked: &Parked) -> Self {
        Self { count: self.count + 1, bytes: self.bytes.saturating_add(parked.len()) }
    }
}

impl Parked {
    /// Returns the number of bytes of the body and of the header fields that a client chooses.
    pub(super) fn len(&self) -> usize {
        let OperationTransport { traceparent, tracestate, .. } = &self.transport;
        let fields = [traceparent, tracestate].map(|field| field.as_deref().map_or(0, str::len));
        let ids = [&self.protocol_version, &self.last_event_id];
        let ids = ids.map(|field| field.as_ref().map_or(0, Vec::len));
        self.body.len() + fields.iter().chain(&ids).sum::<usize>()
    }
}

/// The effect of a posted message on other nodes.
#[derive(Debug)]
pub(super) enum Effect {
    /// It opens a session.
    Opens,
    /// It confirms the session.
    Confirms,
    /// It sets the log level.
    Level,
    /// It changes a subscription.
    Subscription(String),
    /// It answers a request of this replica to the client.
    Answers(u32),
    /// It reports the progress of such a request.
    Reports(u32),
    /// It cancels a request of the client that any node may run.
    Cancels(RequestId),
    /// It is a request without a lasting effect.
    Asks,
    /// Nothing.
    None,
}

impl Server {
    /// Handles a request of a client, which may have to wait for its session.
    pub(in super::super) fn handle_shared<'f>(
        &mut self,
        head: &RequestHead<'_>,
        request: &mut ReadRequest<'f>,
        caller: &Caller,
        permit: &dyn Fn(Option<&ParsedBody<'_>>) -> Result<(), HttpRejection>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let (text, route) = (request.text, request.route.as_ref().ok().copied());
        let handled = self.handle_routed(head, request, caller, permit, now);
        let missing = self.shared_mut().and_then(|shared| {
            shared.opened = None;
            shared.missing.take()
        });
        match (handled, missing, route) {
            (Err(_), Some(session), Some(route)) => {
                let account = self.callers.account_of(caller.principal(), head.remote);
                let parked = Parked {
                    exchange: self.exchanges.insert(Exchange::new(None, ONLY, State::Waiting)),
                    route,
                    protocol_version: head.protocol_version.map(ToOwned::to_owned),
                    last_event_id: head.last_event_id.map(ToOwned::to_owned),
                    remote: head.remote,
                    identity: caller.clone(),
                    transport: core::mem::take(&mut self.arriving),
                    account,
                    body: text.to_vec(),
                };
                self.reader.set_exchanges(self.pending_exchanges());
                Ok((self.park(session, parked, now), None))
            }
            (handled, ..) => handled,
        }
    }

    /// Notes a session that the current request names, if this node does not have it.
    pub(in super::super) fn note_missing(&mut self, session: &SessionId) {
        let known = self.key_of_session(session).is_some();
        if let Some(shared) = self.shared_mut()
            && !known
            && !shared.has_waited
        {
            shared.missing = Some(*session);
        }
    }

    fn park(&mut self, session: SessionId, parked: Parked, now: Instant) -> ExchangeId {
        let exchange = parked.exchange;
        let Some(shared) = self.shared_mut() else { return ExchangeId(exchange) };
        let options = &shared.options;
        let of_caller = shared.parked_by.get(&parked.account).copied().unwrap_or_default();
        let (all, own) = (shared.parked.and(&parked), of_caller.and(&parked));
        if !shared.available {
            self.refuse_waiting(parked, unavailable());
        } else if all.count > options.waiting_max || all.bytes > options.waiting_bytes_max {
            self.refuse_waiting(parked, busy(None, "too many requests wait for the store"));
        } else if own.count > options.waiting_per_caller_max
            || own.bytes > options.waiting_bytes_per_caller_max
        {
            let message = "too many requests of this client wait for the store";
            self.refuse_waiting(parked, too_many(None, message));
        } else {
            shared.parked = all;
            shared.parked_by.insert(parked.account, own);
            let waiting = shared.openings.entry(session.as_str().into()).or_default();
            waiting.push(parked);
            if waiting.len() == 1 {
                self.read_session(session, now);
            }
        }
        ExchangeId(exchange)
    }

    /// Reads a session for the requests that wait for it.
    fn read_session(&mut self, session: SessionId, now: Instant) {
        let account = self.parked_account(&session);
        self.ask_store(account, Purpose::Read(session), now, |action| StoreAction::ReadSession {
            action,
            session,
        });
    }

    /// Asks the store for the number of a replica. A number is used once, so only a request that
    /// can be served takes one.
    pub(super) fn request_session(&mut self, session: SessionId, now: Instant) {
        let idle = self.stored_idle();
        let Some(node) = self.shared.as_ref().map(|shared| shared.node) else { return };
        let account = self.parked_account(&session);
        self.ask_store(account, Purpose::Open(session), now, |action| StoreAction::OpenSession {
            action,
            session,
            node,
            idle,
        });
    }

    fn take_parked(&mut self, session: &str) -> Vec<Parked> {
        let Some(shared) = self.shared_mut() else { return Vec::new() };
        let parked = shared.openings.remove(session).unwrap_or_default();
        for it in &parked {
            shared.parked.count -= 1;
            shared.parked.bytes -= it.len();
            if let Some(own) = shared.parked_by.get_mut(&it.account) {
                own.count -= 1;
                own.bytes -= it.len();
                if own.count == 0 {
                    shared.parked_by.remove(&it.account);
                }
            }
        }
        parked
    }

    /// Returns the account of the first request that waits for a session.
    fn parked_account(&self, session: &SessionId) -> Account {
        let parked = self.shared.as_ref().and_then(|it| it.openings.get(session.as_str()));
        parked.and_then(|it| it.first()).map_or(Account::Unknown, |it| it.account)
    }

    /// Returns the sender of a waiting request whose principal has this digest.
    pub(super) fn parked_sender(
        &self,
        session: &SessionId,
        digest: &str,
    ) -> Option<(Caller, Option<RemoteAddress>)> {
        let parked = self.shared.as_ref()?.openings.get(session.as_str())?;
        let own = |it: &&Parked| digest_of(it.identity.principal()) == digest;
        parked.iter().find(own).map(|it| (it.identity.clone(), it.remote))
    }

    /// Handles the requests that have waited for a session.
    pub(super) fn resume_parked(&mut self, session: &SessionId, now: Instant) {
        for parked in self.take_parked(session.as_str()) {
            // The client may have left.
            let Some(entry) = self.exchanges.get(parked.exchange) else { continue };
            let expires = entry.expires;
            let mut head = RequestHead::new("", "");
            head.session_id = Some(session.as_str().as_bytes());
            head.protocol_version = parked.protocol_version.as_deref();
            head.last_event_id = parked.last_event_id.as_deref();
            head.remote = parked.remote;
            if let Some(shared) = self.shared_mut() {
                (shared.exchange, shared.has_waited) = (Some(parked.exchange), true);
            }
            let Parked { route, identity, body, exchange, transport, .. } = &parked;
            self.arriving.clone_from(transport);
            let mut request = self.reader.read_routed(Ok(*route), &head, body, identity);
            let handled = self.handle_routed(&head, &mut request, identity, &|_| Ok(()), now);
            let event = match handled {
                Ok((_, event)) => event.map(crate::peer::Event::into_owned),
                Err(response) => {
                    self.observe_refusal(body, identity, &response);
                    self.respond_whole(response);
                    None
                }
            };
            self.events.extend(event);
            if let Some(shared) = self.shared_mut() {
                (shared.exchange, shared.has_waited, shared.opened) = (None, false, None);
                shared.missing = None;
            }
            if let Some(deadline) = expires {
                self.set_expiry(ExchangeId(*exchange), deadline);
            }
        }
    }

    /// Answers the requests that wait for a session the store cannot tell about.
    pub(super) fn refuse_parked(&mut self, session: &SessionId) {
        self.answer_parked(session.as_str(), unavailable);
    }

    /// Answers the requests that wait for a session with a refusal.
    pub(super) fn answer_parked(&mut self, session: &str, response: impl Fn() -> Response) {
        for parked in self.take_parked(session) {
            self.refuse_waiting(parked, response());
        }
    }

    fn refuse_waiting(&mut self, parked: Parked, response: Response) {
        self.arriving = parked.transport;
        self.observe_refusal(&parked.body, &parked.identity, &response);
        if let Some(entry) = self.exchanges.get_mut(parked.exchange) {
            entry.state = State::Whole(response);
            self.make_ready(parked.exchange);
        }
    }

    /// Continues an exchange that has waited with the state of a new one.
    pub(in super::super) fn replace_exchange(&mut self, key: Key, exchange: Exchange) -> Key {
        if let Some(entry) = self.exchanges.get_mut(key) {
            let queued = entry.queued;
            *entry = Exchange { queued, ..exchange };
        }
        key
    }

    /// Notes the expiry of a request that waits for its session.
    pub(in super::super) fn note_expiry(&mut self, key: Key, deadline: Instant) {
        if let Some(entry) = self.exchanges.get_mut(key)
            && entry.connection.is_none()
            && matches!(entry.state, State::Waiting)
        {
            entry.expires = Some(deadline);
        }
    }

    // ------------------------------------------------------------------ messages

    /// Handles a message to the endpoint, and its effect on other nodes.
    pub(in super::super) fn post_shared<'f>(
        &mut self,
        head: &RequestHead<'_>,
        text: &[u8],
        post: Post<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let body = &post.body;
        if matches!(post.posted, Posted::Refused(_)) {
            return self.post(head, post, sender, now);
        }
        if matches!(body.frame, Ok(Frame::Batch(_))) && !self.reader.is_modern(head, false) {
            return self.post_batch(head, text, post, sender, now);
        }
        let effect = match &body.frame {
            Ok(Frame::Single(message)) => self.effect_of(head, message, body.read.as_deref()),
            _ => Effect::None,
        };
        let session = head.session_id.and_then(SessionId::parse);
        match &effect {
            Effect::Opens if self.refuses_sessions() => return Err(unavailable()),
            Effect::Answers(replica) | Effect::Reports(replica) => {
                let principal = sender.identity.principal();
                if let Some((key, owner)) = self.find_owner(head, *replica, principal, now)? {
                    let exchange = self.respond_whole(accepted());
                    let message = match &body.frame {
                        Ok(Frame::Single(Message::Notification(it))) => brief(it),
                        _ => RawText::of(text),
                    };
                    let held = matches!(effect, Effect::Answers(_)).then(|| self.hold(exchange.0));
                    self.relay(key, owner, message, held.flatten(), now);
                    self.touch_shared(key, now);
                    return Ok((exchange, None));
                }
            }
            // Even a malformed message may get a stream.
            effect if matches!(post.posted, Posted::InSession) => {
                self.check_replica(session.as_ref(), matches!(effect, Effect::Asks))?;
            }
            _ => {}
        }
        let cancelled = match (&effect, &body.frame) {
            (Effect::Cancels(id), Ok(Frame::Single(Message::Notification(it)))) => {
                let key = session.as_ref().and_then(|session| self.key_of_session(session));
                if self.runs(key, id) { None } else { brief(it) }
            }
            _ => None,
        };
        let handled = self.post(head, post, sender, now)?;
        let exchange = handled.0.0;
        let opened = self.shared_mut().and_then(|shared| shared.opened.take());
        let key = match &session {
            Some(session) if !matches!(effect, Effect::Opens) => self.key_of_session(session),
            _ => opened.filter(|key| self.connections.get(*key).is_some()),
        };
        let Some(key) = key else { return Ok(handled) };
        let change = match effect {
            Effect::Opens if opened.is_some() => {
                let held = self.hold(exchange);
                self.put_session(key, held, now);
                return Ok(handled);
            }
            effect => self.change_of(key, &effect),
        };
        if let Some(message) = cancelled.filter(|_| handled.1.is_none()) {
            self.relay_to_owners(key, message, now);
        }
        match change {
            Some(change) => {
                let held = self.hold(exchange);
                let purpose = Purpose::Change { session: key, held };
                self.change_session(key, alloc::vec![change], purpose, now);
            }
            None => self.touch_shared(key, now),
        }
        Ok(handled)
    }

    /// Returns the change of a session's fields that a handled message has made.
    pub(super) fn change_of(&self, key: Key, effect: &Effect) -> Option<(String, Option<String>)> {
        let state = || self.connections.get(key)?.machine.session_state();
        match effect {
            Effect::Confirms => {
                let confirmed = state().is_some_and(|state| state.initialized);
                confirmed.then(|| (INITIALIZED.to_owned(), Some("1".to_owned())))
            }
            Effect::Level => {
                state().map(|state| (LEVEL.to_owned(), Some(state.log_level.as_str().to_owned())))
            }
            Effect::Subscription(uri) => state().map(|state| {
                let subscribed = state.subscribed.contains(uri);
                (subscription(uri), subscribed.then(|| "1".to_owned()))
            }),
            _ => None,
        }
    }

    /// Returns the effect of a message on other nodes.
    pub(super) fn effect_of(
        &self,
        head: &RequestHead<'_>,
        message: &Message<'_>,
        read: Option<&Read<'_>>,
    ) -> Effect {
        let named = read.is_some_and(names_revision);
        let is_modern = match message {
            Message::Request(request) => {
                self.reader.is_modern_request(head, &request.method, named)
            }
            _ => self.reader.is_modern(head, named),
        };
        if is_modern {
            return Effect::None;
        }
        let of_replica = |id: Option<RequestId>| replica_of_call(id?.own_number()?);
        match message {
            Message::Request(request) => match Method::parse(&request.method) {
                Some(Method::Initialize) => Effect::Opens,
                Some(Method::LoggingSetLevel) => Effect::Level,
                Some(Method::ResourcesSubscribe | Method::ResourcesUnsubscribe) => {
                    let uri = read.and_then(|read| read.as_ref().ok()?.uri).map(resolved);
                    uri.map_or(Effect::None, |uri| Effect::Subscription((*uri).into()))
                }
                _ => Effect::Asks,
            },
            Message::Notification(notification) => {
                let id = |name| notification.params.as_ref()?.get(name)?.to_id();
                match Method::parse(&notification.method) {
                    Some(Method::Initialized) => Effect::Confirms,
                    Some(Method::Cancelled) => {
                        id("requestId").map_or(Effect::None, Effect::Cancels)
                    }
                    Some(Method::Progress) => {
                        of_replica(id("progressToken")).map_or(Effect::None, Effect::Reports)
                    }
                    _ => Effect::None,
                }
            }
            Message::Response(response) => {
                of_replica(response.id.clone()).map_or(Effect::None, Effect::Answers)
            }
        }
    }

    /// Returns whether this node runs a request of a session.
    pub(super) fn runs(&self, key: Option<Key>, id: &RequestId) -> bool {
        let connection = key.and_then(|key| self.connections.get(key));
        connection.is_some_and(|connection| connection.machine.is_in_flight(id))
    }

    fn refuses_sessions(&self) -> bool {
        self.shared.as_ref().is_some_and(|it| !it.available && !it.options.keep_locally)
    }

    /// Reads a session again if the numbers of its replica are used up, or if its client may have
    /// confirmed it at another node.
    pub(super) fn check_replica(
        &mut self,
        session: Option<&SessionId>,
        asks: bool,
    ) -> Result<(), Response> {
        let Some(id) = session else { return Ok(()) };
        let Some(key) = self.key_of_session(id) else { return Ok(()) };
        let Some(Connection { machine, session: Some(session), .. }) =
            self.connections.get_mut(key)
        else {
            return Ok(());
        };
        let unconfirmed = asks && !machine.is_initialized();
        if !unconfirmed && !is_used_up(session.next_stream) {
            return Ok(());
        }
        match &mut self.shared {
            Some(shared) if !shared.has_waited => {
                shared.missing = Some(*id);
                Err(no_session(None))
            }
            // The client knows the result of `initialize`, because it names the session. The store
            // may have lost its confirmation.
            _ if unconfirmed => {
                machine.set_initialized();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the session of a message and the node of its replica, unless it is this one or there
    /// is no such replica. If it is newer than this node's record, the message waits for that.
    pub(super) fn find_owner(
        &mut self,
        head: &RequestHead<'_>,
        replica: u32,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<(Key, NodeId)>, Response> {
        self.check_legacy_version(head)?;
        let key = self.find_session(head, principal, None)?;
        let own = self.shared.as_ref().map(|shared| shared.node);
        match self.owner_of(key, replica) {
            Some(owner) => Ok((Some(owner) != own).then_some((key, owner))),
            // No request of a server has such an id.
            None if replica == 0 => Ok(None),
            None => self.await_record(key, now).map(|()| None),
        }
    }

    /// Lets a request wait for the record of its session, which it names a part of that this node
    /// does not know. If it has waited, it fails only if the store has lost its contents.
    fn await_record(&mut self, key: Key, now: Instant) -> Result<(), Response> {
        let session = self.connections.get(key).and_then(Connection::session_id);
        match self.shared_mut() {
            Some(shared) if !shared.has_waited => {
                shared.missing = session;
                Err(no_session(None))
            }
            // The node of the replica may not have stored it again yet.
            Some(shared) if shared.is_recovering(now) => Err(unavailable()),
            _ => Ok(()),
        }
    }

    // ------------------------------------------------------------------ streams

    /// Opens or resumes a stream, which may belong to another node.
    pub(in super::super) fn get_shared(
        &mut self,
        head: &RequestHead<'_>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        self.check_legacy_version(head)?;
        let key = self.find_session(head, sender.identity.principal(), None)?;
        let Some(id) = head.last_event_id.and_then(EventId::parse) else {
            let exchange = self.get(head, sender, now)?;
            if head.last_event_id.is_none() {
                self.announce_listener(key);
            }
            return Ok(exchange);
        };
        let own = self.shared.as_ref().map(|shared| shared.node);
        match self.owner_of(key, replica_of(id.stream)) {
            Some(owner) if Some(owner) != own => self.follow(key, id, owner, sender, now),
            // The replica may be newer than this node's record, or gone with the contents of the
            // store.
            None => Err(self.await_record(key, now).err().unwrap_or_else(gone)),
            Some(_) => {
                // The id may be that of a replica with the same number, before the store lost it.
                self.get(head, sender, now).map_err(|refused| {
                    let unknown = refused.head.status == Status::BAD_REQUEST;
                    if unknown { gone() } else { refused }
                })
            }
        }
    }

    /// Ends a session on request of its client, on all nodes.
    pub(in super::super) fn delete_shared(
        &mut self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        let session = head.session_id.and_then(SessionId::parse);
        let key = session.and_then(|session| self.key_of_session(&session));
        let account = key.map_or(Account::Unknown, |key| self.account_of(key));
        let exchange = self.delete(head, principal, now)?;
        if let Some(session) = session {
            let held = self.hold(exchange.0);
            self.remove_session((session, account), principal, held, now);
        }
        Ok(exchange)
    }
}
