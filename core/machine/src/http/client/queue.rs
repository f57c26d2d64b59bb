use alloc::collections::VecDeque;

use super::message::{Message, MessageKind};

/// Messages that wait for an exchange, in two queues: control messages, on which calls may depend,
/// overtake calls.
#[derive(Debug, Default)]
pub(super) struct Queue {
    control: VecDeque<Message>,
    requests: VecDeque<Message>,
    /// The total length of the bodies in the control queue.
    control_bytes: usize,
    /// The timeouts of the requests in the queue are stopped.
    pub(super) paused: bool,
    /// A request was queued since the last update of `paused`.
    pub(super) grown: bool,
}

impl Queue {
    pub(super) fn push_back(&mut self, message: Message) {
        if message.is_control() {
            self.control_bytes += message.text.len();
            self.control.push_back(message);
        } else if message.opens() {
            self.push_first(message);
        } else {
            self.requests.push_back(message);
            self.grown = true;
        }
    }

    /// Queues a control message that was sent before. Calls may depend on all except notifications,
    /// so these are sent before the messages that were queued since.
    pub(super) fn push_control_again(&mut self, message: Message) {
        self.control_bytes += message.text.len();
        if matches!(message.kind, MessageKind::Notification(_)) {
            self.control.push_back(message);
        } else {
            self.control.push_front(message);
        }
    }

    /// Queues a request before all others.
    pub(super) fn push_first(&mut self, message: Message) {
        self.requests.push_front(message);
        self.grown = true;
    }

    /// Removes the first control message that satisfies `wanted`.
    pub(super) fn take_control(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let at = self.control.iter().position(wanted)?;
        let message = self.control.remove(at)?;
        self.control_bytes -= message.text.len();
        Some(message)
    }

    /// Removes the next request, if it satisfies `wanted`.
    pub(super) fn take_request(&mut self, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        wanted(self.requests.front()?).then(|| self.requests.pop_front())?
    }

    /// Returns the ids of the queued requests.
    pub(super) fn request_ids(&self) -> impl Iterator<Item = i64> {
        self.requests.iter().filter_map(Message::request).map(|(id, _)| id)
    }

    /// Removes the request with this id. Returns whether it was queued.
    pub(super) fn withdraw(&mut self, id: i64) -> bool {
        let of = |message: &Message| message.request().is_some_and(|(other, _)| other == id);
        let Some(at) = self.requests.iter().position(of) else { return false };
        self.requests.remove(at);
        true
    }

    /// Drops the messages that have a meaning only in a session that has ended.
    pub(super) fn drop_answers(&mut self) {
        self.control.retain(|message| !message.is_of_session());
        self.control_bytes = self.control.iter().map(|message| message.text.len()).sum();
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
    use crate::peer::outbox::Part;
    use crate::protocol::Method;

    fn queue<const N: usize>(messages: [Message; N]) -> Queue {
        let mut queue = Queue::default();
        for message in messages {
            queue.push_back(message);
        }
        queue
    }

    fn call() -> Message {
        Message::new_request(7, Method::ToolsList)
    }

    #[test]
    fn the_handshake_is_queued_before_waiting_calls() {
        let mut queue = queue([call(), Message::new_request(8, Method::Initialize)]);
        assert_eq!(queue.take_request(|_| true).unwrap().request().unwrap().0, 8);
        assert!(queue.take_request(|_| false).is_none());
        assert!(queue.withdraw(7) && !queue.withdraw(7));
        assert!(queue.take_request(|_| true).is_none());
    }

    #[test]
    fn control_bytes_are_counted_and_responses_are_dropped_with_their_session() {
        let answer = Message::new(Part::Answers, "12345".into());
        let changed = Message::new(Method::RootsListChanged.into(), "123".into());
        let mut queue = queue([call(), answer, changed]);
        assert_eq!(queue.control_bytes(), 8);
        queue.drop_answers();
        assert_eq!(queue.control_bytes(), 3);
        let taken = queue.take_control(|_| true).unwrap();
        assert_eq!(taken.kind, MessageKind::Notification(Some(Method::RootsListChanged)));
        assert_eq!(queue.control_bytes(), 0);
    }
}
