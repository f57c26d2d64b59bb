use alloc::collections::VecDeque;

use super::message::{Message, What};

/// Messages that wait for their exchange, in two lines: what calls may wait for overtakes calls.
#[derive(Debug, Default)]
pub(super) struct Queue {
    control: VecDeque<Message>,
    requests: VecDeque<Message>,
    /// The length of the bodies in the line of control.
    control_bytes: usize,
    /// The time of the requests in it stands still.
    pub(super) stands_still: bool,
    /// A request has come since it was last looked whether its time stands still.
    pub(super) grown: bool,
}

impl Queue {
    pub(super) fn push_back(&mut self, message: Message) {
        if message.is_control() {
            self.control_bytes += message.body.len();
            self.control.push_back(message);
        } else if message.opens() {
            self.push_first(message);
        } else {
            self.requests.push_back(message);
            self.grown = true;
        }
    }

    /// Puts a request before all others.
    pub(super) fn push_first(&mut self, message: Message) {
        self.requests.push_front(message);
        self.grown = true;
    }

    /// The first message of control that satisfies `wanted`.
    pub(super) fn take_control(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let at = self.control.iter().position(wanted)?;
        let message = self.control.remove(at)?;
        self.control_bytes -= message.body.len();
        Some(message)
    }

    /// The next request, if it satisfies `wanted`.
    pub(super) fn take_request(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        wanted(self.requests.front()?).then(|| self.requests.pop_front())?
    }

    /// The ids of the requests that wait.
    pub(super) fn request_ids(&self) -> impl Iterator<Item = i64> {
        self.requests.iter().filter_map(Message::request).map(|(id, _)| id)
    }

    /// Takes the request with this id away; whether it was there.
    pub(super) fn withdraw(&mut self, id: i64) -> bool {
        let of = |message: &Message| message.request().is_some_and(|(other, _)| other == id);
        let Some(at) = self.requests.iter().position(of) else { return false };
        self.requests.remove(at);
        true
    }

    /// Drops what only a session that is gone could make sense of.
    pub(super) fn drop_answers(&mut self) {
        self.control.retain(|message| {
            !matches!(message.what, What::Answer | What::Cancellation(_) | What::Initialized)
        });
        self.control_bytes = self.control.iter().map(|message| message.body.len()).sum();
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) const fn control_bytes(&self) -> usize {
        self.control_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"id":7,"method":"tools/list"}"#;
    const PING_ANSWER: &str = r#"{"id":"a","result":{}}"#;
    const CHANGED: &str = r#"{"method":"notifications/roots/list_changed"}"#;
    const HANDSHAKE: &str = r#"{"id":8,"method":"initialize","params":{}}"#;

    fn queue(bodies: &[&str]) -> Queue {
        let mut queue = Queue::default();
        for body in bodies {
            queue.push_back(Message::read(body.as_bytes().to_vec()));
        }
        queue
    }

    #[test]
    fn the_handshake_is_before_the_calls_that_wait_for_it() {
        let mut queue = queue(&[CALL, HANDSHAKE]);
        assert_eq!(queue.take_request(|_| true).unwrap().request().unwrap().0, 8);
        assert!(queue.take_request(|_| false).is_none());
        assert!(queue.withdraw(7) && !queue.withdraw(7));
        assert!(queue.take_request(|_| true).is_none());
    }

    #[test]
    fn control_is_weighed_and_answers_go_with_their_session() {
        let mut queue = queue(&[CALL, PING_ANSWER, CHANGED]);
        assert_eq!(queue.control_bytes(), PING_ANSWER.len() + CHANGED.len());
        queue.drop_answers();
        assert_eq!(queue.control_bytes(), CHANGED.len());
        let taken = queue.take_control(|_| true).unwrap();
        assert_eq!(taken.what, What::Notification("notifications/roots/list_changed".into()));
        assert_eq!(queue.control_bytes(), 0);
    }
}
