//! The server's side of a binding that gives each request a way of its own.

use alloc::vec::Vec;

use crate::jsonrpc::{Frame, Message, parse};
use crate::peer::connection::Flow;
use crate::peer::outbox::{Channel, Post};
use crate::peer::requests::ReplyTo;
use crate::shared::Shared;
use crate::{Instant, Revision};

use super::{Blueprint, Server};

/// What came of a frame.
#[derive(Debug)]
pub(crate) struct Posted<'f> {
    pub(crate) kind: PostedKind,
    pub(crate) flow: Flow<'f>,
}

/// What a frame was, for a binding that acknowledges frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostedKind {
    /// At least one request: its channel gets an answer, or the news that none will come.
    Request,
    /// Notifications and responses alone.
    Notification,
    /// No message. There is an answer on the channel that says so.
    Malformed,
}

impl Server {
    /// Takes one frame that came on `channel`.
    pub(crate) fn handle_posted<'f>(
        &mut self,
        frame: &'f [u8],
        channel: Channel,
        now: Instant,
    ) -> Posted<'f> {
        if let Err(closed) = self.connection.check_open() {
            return Posted { kind: PostedKind::Malformed, flow: Err(closed) };
        }
        let (kind, flow) = match parse(frame, self.connection.parse_limits()) {
            Ok(Frame::Single(message)) => {
                let kind = match message {
                    Message::Request(_) => PostedKind::Request,
                    _ => PostedKind::Notification,
                };
                (kind, self.receive(message, ReplyTo::on(channel), now))
            }
            Ok(Frame::Batch(batch)) => {
                let flow = self.receive_batch(batch, channel, now);
                // A batch without requests withdraws its channel, at the latest at its end.
                (PostedKind::Request, flow)
            }
            Err(malformed) => {
                let flow = self.receive_malformed(&malformed, channel, now);
                (PostedKind::Malformed, flow)
            }
        };
        if flow.is_err() {
            self.settle_end();
        }
        Posted { kind, flow }
    }

    /// The client has closed the way of a request, which in the modern era gives it up.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    pub(crate) fn handle_channel_closed(&mut self, channel: Channel, now: Instant) {
        let found = self.connection.requests.find_from(0, |entry| entry.reply.channel == channel);
        if let Some(key) = found {
            let event = self.give_up_request(key, None, now);
            self.connection.events.extend(event);
        }
    }

    /// Takes over what the server offers from now on. Nobody is told.
    pub(crate) fn adopt(&mut self, blueprint: &Blueprint) {
        self.catalog = Shared::clone(&blueprint.catalog);
        self.modern = blueprint.modern;
    }

    /// The next message of this side and its channel, until it is taken.
    pub(crate) fn next_post(&self) -> Option<(Post, &[u8])> {
        self.connection.outbox.next_post()
    }

    pub(crate) fn skip_post(&mut self) {
        self.connection.outbox.skip_post();
    }

    pub(crate) fn take_post(&mut self) -> Vec<u8> {
        self.connection.outbox.take_post()
    }

    /// The revision of the legacy session, once a client opened one.
    pub(crate) fn session_revision(&self) -> Option<Revision> {
        self.session.as_ref().map(super::Session::revision)
    }

    /// Requests of the client that wait for their answer.
    pub(crate) fn requests_in_flight(&self) -> usize {
        self.connection.requests.len()
    }

    /// Whether nothing is under way, so that the machine may serve another modern request.
    pub(crate) fn is_fresh(&self) -> bool {
        self.connection.closed.is_none()
            && self.session.is_none()
            && self.connection.requests.len() == 0
            && self.connection.events.is_empty()
            && self.connection.outbox.next_post().is_none()
    }
}
