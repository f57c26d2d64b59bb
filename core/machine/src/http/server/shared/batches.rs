//! Batches of messages (2025-03-26) for sessions that several nodes share.
//!
//! A batch is handled here as a whole. The messages in it that belong to another node are passed on
//! as well, each as it would be alone; here they have no effect.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;
use serde_json::value::RawValue;

use crate::Instant;
use crate::http::{RequestHead, Response, SessionId};
use crate::jsonrpc::{Frame, Message, RequestId};

use super::super::Server;
use super::super::callers::Sender;
use super::super::posts::Handled;
use super::super::reader::{ParsedBody, Post};
use super::relay::{NodeMessage, RawText, brief};
use super::requests::Effect;
use super::waits::{Held, Purpose};
use super::{NodeId, StoreError, StoreReply};

/// The batches with effects that the store has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Batches {
    last: u64,
    pending: BTreeMap<u64, Pending>,
}

#[derive(Debug)]
struct Pending {
    /// The number of effects.
    left: usize,
    /// Whether the store has not taken one of them.
    failed: bool,
    held: Held,
}

/// The messages of a batch that concern other nodes.
#[derive(Debug, Default)]
struct Effects {
    /// Whether it has a request.
    asks: bool,
    /// Changes of the session.
    changes: Vec<Effect>,
    /// Answers, by the replica with their request.
    answers: Vec<(u32, RawText)>,
    /// Reports of progress.
    reports: Vec<(u32, RawText)>,
    cancellations: Vec<(RequestId, RawText)>,
}

impl Server {
    /// Handles a batch of messages to a session, and its effects on other nodes.
    // MCP 2025-03-26 schema.json#JSONRPCBatchResponse [BATCH-007]
    pub(super) fn post_batch<'f>(
        &mut self,
        head: &RequestHead<'_>,
        text: &[u8],
        post: Post<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let effects = self.effects_of(head, text);
        let session = head.session_id.and_then(SessionId::parse);
        self.check_replica(session.as_ref(), effects.asks)?;
        let principal = sender.identity.principal();
        // A replica that this node does not know is looked up before the batch has any effect.
        for (replica, _) in effects.answers.iter().chain(&effects.reports) {
            self.find_owner(head, *replica, principal, now)?;
        }
        let known = session.as_ref().and_then(|session| self.key_of_session(session));
        let mut elsewhere = Vec::new();
        for (id, message) in effects.cancellations {
            if !self.runs(known, &id) {
                elsewhere.push(message);
            }
        }
        let handled = self.post(head, post, sender, now)?;
        let Some(key) = session.and_then(|session| self.key_of_session(&session)) else {
            return Ok(handled);
        };
        for message in elsewhere {
            self.relay_to_owners(key, message, now);
        }
        let own = self.shared.as_ref().map(|shared| shared.node);
        let owned = |messages: Vec<(u32, RawText)>| -> Vec<(NodeId, RawText)> {
            let owner = |(replica, message)| Some((self.owner_of(key, replica)?, message));
            messages.into_iter().filter_map(owner).filter(|(it, _)| Some(*it) != own).collect()
        };
        let (answers, reports) = (owned(effects.answers), owned(effects.reports));
        for (owner, message) in reports {
            self.relay(key, owner, Some(message), None, now);
        }
        let changes: Vec<_> =
            effects.changes.iter().filter_map(|effect| self.change_of(key, effect)).collect();
        let count = answers.len() + usize::from(!changes.is_empty());
        if count == 0 {
            self.touch_shared(key, now);
            return Ok(handled);
        }
        // A batch with requests is answered by them.
        let batch = self.hold(handled.0.0).map(|held| self.begin_batch(held, count));
        for (owner, message) in answers {
            self.relay_part(key, owner, &message, batch, now);
        }
        if !changes.is_empty() {
            let purpose = match batch {
                Some(batch) => Purpose::Part { batch, session: key, is_change: true },
                None => Purpose::Change { session: key, held: None },
            };
            self.change_session(key, changes, purpose, now);
        }
        Ok(handled)
    }

    /// Returns the effects of the messages in a batch.
    fn effects_of(&self, head: &RequestHead<'_>, text: &[u8]) -> Effects {
        let mut effects = Effects::default();
        let Ok(texts) = serde_json::from_slice::<Vec<&RawValue>>(text) else { return effects };
        let limits = self.reader.limits();
        for text in texts {
            let text = text.get().as_bytes();
            let Ok(ParsedBody { frame: Frame::Single(message), read }) =
                ParsedBody::parse(text, limits)
            else {
                continue;
            };
            let effect = self.effect_of(head, &message, read.as_ref());
            effects.asks |= matches!(message, Message::Request(_));
            match (effect, &message) {
                (Effect::Answers(replica), _) => {
                    effects.answers.extend(RawText::of(text).map(|text| (replica, text)));
                }
                (Effect::Reports(replica), Message::Notification(it)) => {
                    effects.reports.extend(brief(it).map(|text| (replica, text)));
                }
                (Effect::Cancels(id), Message::Notification(it)) => {
                    effects.cancellations.extend(brief(it).map(|text| (id, text)));
                }
                (effect @ (Effect::Confirms | Effect::Level | Effect::Subscription(_)), _) => {
                    effects.changes.push(effect);
                }
                _ => {}
            }
        }
        effects
    }

    fn begin_batch(&mut self, held: Held, count: usize) -> u64 {
        let Some(shared) = self.shared_mut() else { return 0 };
        let batches = &mut shared.batches;
        batches.last += 1;
        batches.pending.insert(batches.last, Pending { left: count, failed: false, held });
        batches.last
    }

    /// Passes an answer on to the node of its request.
    fn relay_part(
        &mut self,
        key: Key,
        to: NodeId,
        message: &RawText,
        batch: Option<u64>,
        now: Instant,
    ) {
        let origin = self.origin_of(key);
        let session = self.name_of(key).unwrap_or_default().into();
        let message = NodeMessage::Relay { session, message: &message.0 };
        let purpose = match batch {
            Some(batch) => Purpose::Part { batch, session: key, is_change: false },
            None => Purpose::Relay(None),
        };
        self.send_confirmed(&origin, to, &message, purpose, now);
    }

    /// Handles the outcome of one effect of a batch.
    pub(super) fn settle_part(
        &mut self,
        batch: u64,
        key: Key,
        (is_change, result): (bool, Result<StoreReply, StoreError>),
        now: Instant,
    ) {
        if is_change {
            self.settle_change(key, &result, now);
        }
        // A change is stored later; the receiver of an answer that has gone has no request for it.
        let failed = !is_change && result == Err(StoreError::Unavailable);
        let Some(shared) = self.shared_mut() else { return };
        let pending = &mut shared.batches.pending;
        let Some(part) = pending.get_mut(&batch) else { return };
        part.left -= 1;
        part.failed |= failed;
        if part.left == 0
            && let Some(Pending { failed, held, .. }) = pending.remove(&batch)
        {
            self.release_all(Some(if failed { held.refused() } else { held }));
        }
    }
}
