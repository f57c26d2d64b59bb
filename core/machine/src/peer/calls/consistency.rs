use mcp_sansio_collections::Key;

use super::{Call, Calls, Purpose, Timing};

impl Calls {
    /// Checks that the index and the deadlines belong to the calls of the table, and that each call
    /// waits for something.
    pub(in crate::peer) fn assert_consistent(&self) {
        let (mut on_wire, mut timed) = (0, 0);
        for (key, call) in self.entries.iter() {
            let deadline = self.deadlines.get(key.slot).is_some();
            assert!(!(deadline && call.paused.is_some()), "a paused call with a deadline");
            // The application may wait for ever.
            let never = call.timing.hard == Timing::NEVER.hard;
            let untimed = matches!(call.purpose, Purpose::Waiting | Purpose::Task);
            let waits = deadline || call.paused.is_some() || never || untimed;
            assert!(waits, "a call without a deadline: {call:?}");
            on_wire += usize::from(self.is_on_wire(key, call));
            timed += usize::from(deadline);
        }
        assert_eq!(self.ids.len(), on_wire, "ids of calls that are gone");
        assert_eq!(self.deadlines.len(), timed, "deadlines of calls that are gone");
    }

    pub(in crate::peer) fn iter(&self) -> impl Iterator<Item = (Key, &Call)> {
        self.entries.iter()
    }

    /// Returns whether a response to the last request of the call would be accepted.
    pub(in crate::peer) fn is_on_wire(&self, key: Key, call: &Call) -> bool {
        self.by_id(call.id) == Some(key)
    }
}
