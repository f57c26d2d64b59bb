use alloc::collections::VecDeque;

use super::{ActionId, AuthorizationAction};

/// The queue of actions for the application.
#[derive(Debug, Default)]
pub(super) struct ActionQueue {
    queue: VecDeque<AuthorizationAction>,
    last: u64,
}

impl ActionQueue {
    /// Returns the id for the next action.
    pub(super) const fn next_id(&mut self) -> ActionId {
        self.last += 1;
        ActionId(self.last)
    }

    pub(super) fn push(&mut self, action: AuthorizationAction) {
        self.queue.push_back(action);
    }

    pub(super) fn pop(&mut self) -> Option<AuthorizationAction> {
        self.queue.pop_front()
    }

    /// Withdraws an action whose answer is no longer needed.
    pub(super) fn withdraw(&mut self, id: ActionId) {
        match self.queue.iter().position(|it| it.id() == Some(id)) {
            Some(at) => drop(self.queue.remove(at)),
            None => self.queue.push_back(AuthorizationAction::Withdraw(id)),
        }
    }
}

impl AuthorizationAction {
    /// Returns the id for the answer.
    const fn id(&self) -> Option<ActionId> {
        match self {
            Self::Authorize(request) => Some(request.id),
            Self::Sign(request) => Some(request.id),
            Self::Assert(request) => Some(request.id),
            Self::Load(id, _) | Self::Lock(id, _) => Some(*id),
            Self::Save(..) | Self::Remove(_) | Self::Unlock(_) | Self::Withdraw(_) => None,
        }
    }
}
