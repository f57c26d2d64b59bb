use crate::peer::calls::Purpose;

use super::Connection;

impl Connection {
    /// Checks the tables that both roles share. `is_open` says whether the session is established.
    pub(in crate::peer) fn assert_consistent(&self, is_open: bool) {
        self.calls.assert_consistent();
        self.requests.assert_consistent();
        self.observed.assert_consistent(&self.calls, &self.requests);
        if self.closed.is_some() {
            assert_eq!(self.calls.len(), 0, "calls of a closed connection");
            assert_eq!(self.keep_alive_due, None, "a ping of a closed connection is due");
        }
        let is_ping = |purpose| purpose == Purpose::KeepAlive;
        let pings = self.calls.iter().filter(|(_, call)| is_ping(call.purpose)).count();
        let pings = pings + usize::from(self.keep_alive_due.is_some());
        let wanted = is_open && self.closed.is_none() && self.config.timeouts.keep_alive.is_some();
        assert!(pings <= 1, "{pings} pings at a time");
        assert!(pings == 1 || !wanted, "the pings of an open connection have stopped");
    }
}
