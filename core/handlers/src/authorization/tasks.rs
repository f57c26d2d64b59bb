//! The running functions of the application and operations of its store.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::future::ready;
use core::task::Context;

use mcp_sansio::Instant;
use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_oauth::client::{
    ActionFailure, ActionId, AuthorizationAction, AuthorizationClient, AuthorizationRequest,
    Credential, CredentialKey,
};

use crate::executor::Executor;
use crate::executor::{PanicGuard, Panicked};
use crate::mailbox::Mailbox;
use crate::mailbox::{Cost, MailboxLimits, Metered};
use crate::threading::{Step, Threading};

use super::CredentialLock;
use super::action::ActionOutput;
use super::{Functions, store};

/// How often a function is called for one action while its redirects answer other requests. The
/// bound protects against a page that forges redirects and against a function that always returns
/// the same one.
const CALLS_MAX: u32 = 8;

/// Pending answers of the application and its store.
pub(super) struct Tasks<K: Threading> {
    functions: Functions<K>,
    store: Arc<dyn store::DynStore>,
    running: Executor<K::Future<ActionOutput>, NoCommand, Key>,
    mailbox: Arc<Mailbox<NoCommand>>,
    pending: Slab<PendingAction>,
    /// Queued operations of the store. They run one at a time: a removal that overtakes an earlier
    /// save would leave a credential behind.
    store_queue: VecDeque<StoreOperation>,
    /// Whether an operation of the store is running.
    storing: bool,
    /// The lock that the client holds.
    lock: Option<(ActionId, CredentialLock)>,
}

/// A command type without values: the mailbox of the driver is used for wake-ups only.
#[derive(Debug)]
enum NoCommand {}

impl Metered for NoCommand {
    fn cost(&self) -> Cost {
        match *self {}
    }
}

/// The action that an answer belongs to.
enum PendingAction {
    Redirect {
        request: AuthorizationRequest,
        calls: u32,
    },
    Signature(ActionId),
    Assertion(ActionId),
    Credential(ActionId),
    Lock(ActionId),
    /// A save or removal, whose result is not needed.
    Write,
}

enum StoreOperation {
    Load(ActionId, CredentialKey),
    Lock(ActionId, CredentialKey),
    Unlock(ActionId),
    Save(CredentialKey, Credential),
    Remove(CredentialKey),
}

impl StoreOperation {
    /// The key that the operation saves or removes.
    const fn written(&self) -> Option<&CredentialKey> {
        match self {
            Self::Load(..) | Self::Lock(..) | Self::Unlock(_) => None,
            Self::Save(key, _) | Self::Remove(key) => Some(key),
        }
    }
}

impl<K: Threading> Tasks<K> {
    pub(super) fn new(functions: Functions<K>, store: Arc<dyn store::DynStore>) -> Self {
        let mailbox = Arc::new(Mailbox::new(MailboxLimits::NONE));
        Self {
            functions,
            store,
            running: Executor::new(Arc::clone(&mailbox)),
            mailbox,
            pending: Slab::new(),
            store_queue: VecDeque::new(),
            storing: false,
            lock: None,
        }
    }

    /// Starts an action of the client.
    pub(super) fn act(
        &mut self,
        action: AuthorizationAction,
        client: &mut AuthorizationClient,
        now: Instant,
    ) {
        match action {
            AuthorizationAction::Authorize(request) => self.authorize(request, 1, client, now),
            AuthorizationAction::Sign(request) => match &self.functions.sign {
                Some(function) => {
                    let id = request.id;
                    let task = self.run(|| function(request), ActionOutput::Signature);
                    self.start(PendingAction::Signature(id), task, client, now);
                }
                None => {
                    let failure = missing("a signature is needed", "on_sign");
                    client.handle_signature(request.id, Err(failure), now);
                }
            },
            AuthorizationAction::Assert(request) => match &self.functions.assert {
                Some(function) => {
                    let id = request.id;
                    let task = self.run(|| function(request), ActionOutput::Assertion);
                    self.start(PendingAction::Assertion(id), task, client, now);
                }
                None => {
                    let failure = missing("an assertion is needed", "on_assertion");
                    client.handle_assertion(request.id, Err(failure), now);
                }
            },
            AuthorizationAction::Load(id, key) => {
                self.enqueue(StoreOperation::Load(id, key), client, now)
            }
            AuthorizationAction::Lock(id, key) => {
                self.enqueue(StoreOperation::Lock(id, key), client, now)
            }
            AuthorizationAction::Unlock(id) => {
                self.enqueue(StoreOperation::Unlock(id), client, now);
            }
            AuthorizationAction::Save(key, credential) => {
                self.enqueue(StoreOperation::Save(key, credential), client, now);
            }
            AuthorizationAction::Remove(key) => {
                self.enqueue(StoreOperation::Remove(key), client, now)
            }
            AuthorizationAction::Withdraw(id) => self.withdraw(id, client, now),
        }
    }

    fn authorize(
        &mut self,
        request: AuthorizationRequest,
        calls: u32,
        client: &mut AuthorizationClient,
        now: Instant,
    ) {
        match &self.functions.authorize {
            Some(function) => {
                let task = self.run(|| function(request.clone()), ActionOutput::Redirect);
                self.start(PendingAction::Redirect { request, calls }, task, client, now);
            }
            None => {
                let failure = missing("the user has to sign in", "on_authorize");
                client.handle_redirect(request.id, Err(failure), now);
            }
        }
    }

    pub(super) const fn guard(&self) -> PanicGuard {
        self.running.guard
    }

    pub(super) const fn set_guard(&mut self, guard: PanicGuard) {
        self.running.guard = guard;
    }

    /// Calls a function of the application, whose answer becomes an output.
    fn run<T: 'static>(
        &self,
        function: impl FnOnce() -> Step<K, T>,
        output: fn(T) -> ActionOutput,
    ) -> Result<K::Future<ActionOutput>, Panicked> {
        Ok(match self.guard().run(function)? {
            Step::Ready(answer) => K::from_send_future(Box::pin(ready(output(answer)))),
            Step::Pending(task) => K::map(task, output),
        })
    }

    fn start(
        &mut self,
        asked: PendingAction,
        task: Result<K::Future<ActionOutput>, Panicked>,
        client: &mut AuthorizationClient,
        now: Instant,
    ) {
        let task = match task {
            Ok(task) => task,
            Err(_) => return self.fail(asked, client, now),
        };
        let place = self.pending.insert(asked);
        if let Some((place, answered)) = self.running.start(place.slot, task, place) {
            self.take(place, answered, client, now);
        }
    }

    /// Reports a panicked function to the client.
    fn fail(&mut self, asked: PendingAction, client: &mut AuthorizationClient, now: Instant) {
        let failure = || ActionFailure::Failed("a function of the application panicked".into());
        match asked {
            PendingAction::Redirect { request, .. } => {
                client.handle_redirect(request.id, Err(failure()), now);
            }
            PendingAction::Signature(id) => client.handle_signature(id, Err(failure()), now),
            PendingAction::Assertion(id) => client.handle_assertion(id, Err(failure()), now),
            PendingAction::Credential(id) | PendingAction::Lock(id) => {
                client.handle_loaded(id, Err(failure()), now);
                self.store_next(client, now);
            }
            PendingAction::Write => self.store_next(client, now),
        }
    }

    /// Polls the functions that are ready, and passes their answers to the client.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut AuthorizationClient,
        now: Instant,
    ) {
        for _ in 0..self.running.ready() {
            if let Some((place, answered)) = self.running.poll_next() {
                self.take(place, answered, client, now);
            }
        }
        self.mailbox.register(cx.waker());
    }

    fn take(
        &mut self,
        place: Key,
        answered: Result<ActionOutput, Panicked>,
        client: &mut AuthorizationClient,
        now: Instant,
    ) {
        let Some(asked) = self.pending.remove(place) else { return };
        let answered = match answered {
            Ok(answered) => answered,
            Err(_) => return self.fail(asked, client, now),
        };
        match (asked, answered) {
            (PendingAction::Redirect { request, calls }, ActionOutput::Redirect(redirect)) => {
                self.take_redirect(request, calls, redirect, client, now);
            }
            (PendingAction::Signature(id), ActionOutput::Signature(signature)) => {
                client.handle_signature(id, as_slice(&signature), now);
            }
            (PendingAction::Assertion(id), ActionOutput::Assertion(assertion)) => {
                client.handle_assertion(id, as_text(&assertion), now);
            }
            (PendingAction::Credential(id), ActionOutput::Loaded(credential)) => {
                client.handle_loaded(id, credential, now);
                self.store_next(client, now);
            }
            (PendingAction::Lock(id), ActionOutput::Locked(lock, credential)) => {
                self.lock = credential.is_ok().then_some((id, lock));
                client.handle_loaded(id, credential, now);
                self.store_next(client, now);
            }
            (PendingAction::Write, _) => self.store_next(client, now),
            _ => debug_assert!(false, "an answer matches its action"),
        }
    }

    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]: a
    // redirect that answers another request is ignored, and the pending request stays valid.
    fn take_redirect(
        &mut self,
        request: AuthorizationRequest,
        calls: u32,
        redirect: Result<String, ActionFailure>,
        client: &mut AuthorizationClient,
        now: Instant,
    ) {
        let foreign = redirect.as_ref().is_ok_and(|redirect| !request.is_answered_by(redirect));
        if !foreign {
            client.handle_redirect(request.id, as_text(&redirect), now);
        } else if calls < CALLS_MAX {
            self.authorize(request, calls + 1, client, now);
        } else {
            let failure =
                "no redirect matched the request; check that the redirect keeps its `state`"
                    .to_string();
            client.handle_redirect(request.id, Err(ActionFailure::Failed(failure)), now);
        }
    }

    /// Cancels an action whose answer is no longer needed.
    fn withdraw(&mut self, id: ActionId, client: &mut AuthorizationClient, now: Instant) {
        self.store_queue.retain(|next| match next {
            StoreOperation::Load(other, _) | StoreOperation::Lock(other, _) => *other != id,
            _ => true,
        });
        self.lock.take_if(|(held, _)| *held == id);
        let is = |asked: &PendingAction| match asked {
            PendingAction::Redirect { request, .. } => request.id == id,
            PendingAction::Signature(other)
            | PendingAction::Assertion(other)
            | PendingAction::Credential(other)
            | PendingAction::Lock(other) => *other == id,
            PendingAction::Write => false,
        };
        let Some(place) = self.pending.find_from(0, is) else { return };
        self.running.cancel(place.slot);
        if let Some(PendingAction::Credential(_) | PendingAction::Lock(_)) =
            self.pending.remove(place)
        {
            self.store_next(client, now);
        }
    }

    // ------------------------------------------------------------------ the store

    fn enqueue(&mut self, next: StoreOperation, client: &mut AuthorizationClient, now: Instant) {
        // This write replaces the queued writes under the same key, unless one of them is read
        // first, or another client may read it after an unlock. So the queue of a store that does
        // not answer is bounded by the number of keys: a load is withdrawn in time, and only one
        // lock is held.
        if let Some(key) = next.written() {
            let last = self.store_queue.iter().rposition(|other| other.written().is_none());
            let mut at = 0;
            self.store_queue.retain(|other| {
                at += 1;
                last.is_some_and(|last| at <= last + 1) || other.written() != Some(key)
            });
        }
        self.store_queue.push_back(next);
        if !self.storing {
            self.store_next(client, now);
        }
    }

    fn store_next(&mut self, client: &mut AuthorizationClient, now: Instant) {
        self.storing = false;
        let next = loop {
            match self.store_queue.pop_front() {
                Some(StoreOperation::Unlock(id)) => {
                    self.lock.take_if(|(held, _)| *held == id);
                }
                Some(next) => break next,
                None => return,
            }
        };
        self.storing = true;
        // The store starts to work when its future is polled.
        let (asked, task) = match next {
            StoreOperation::Load(id, key) => (PendingAction::Credential(id), self.store.load(key)),
            StoreOperation::Lock(id, key) => (PendingAction::Lock(id), self.store.lock(key)),
            StoreOperation::Unlock(_) => return,
            StoreOperation::Save(key, credential) => {
                (PendingAction::Write, self.store.save(key, credential))
            }
            StoreOperation::Remove(key) => (PendingAction::Write, self.store.remove(key)),
        };
        self.start(asked, Ok(K::from_send_future(task)), client, now);
    }

    /// Whether a save or removal is outstanding.
    pub(super) fn is_keeping(&self) -> bool {
        let waits = self.store_queue.iter().any(|next| next.written().is_some());
        waits || self.pending.find_from(0, |asked| matches!(asked, PendingAction::Write)).is_some()
    }

    /// Drops all functions and operations, as their results are no longer needed.
    pub(super) fn cancel_all(&mut self) {
        self.running.cancel_all();
        self.pending = Slab::new();
        self.store_queue.clear();
        self.storing = false;
        self.lock = None;
    }
}

fn missing(what: &str, method: &str) -> ActionFailure {
    ActionFailure::Failed(alloc::format!(
        "{what}, and this application has no `Authorization::{method}`"
    ))
}

fn as_text(answer: &Result<String, ActionFailure>) -> Result<&str, ActionFailure> {
    answer.as_ref().map(String::as_str).map_err(Clone::clone)
}

fn as_slice(answer: &Result<alloc::vec::Vec<u8>, ActionFailure>) -> Result<&[u8], ActionFailure> {
    answer.as_ref().map(alloc::vec::Vec::as_slice).map_err(Clone::clone)
}
