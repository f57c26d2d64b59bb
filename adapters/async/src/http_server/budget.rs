use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::Response;
use http_body::Body as _;
use mcp_sansio::Principal;
use mcp_sansio::http::{Exhausted, RemoteAddress, SharedLimit, SharedResource};

use super::{HttpService, ServedBody, response};
use crate::Runtime;

/// The longest response that is not charged, in bytes.
const UNCHARGED_BYTES: usize = 64 * 1024;

/// A limit that all clients of a server share, with a share for each caller: on the bytes of
/// responses that clients have not read, for example. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    whole: Counter,
    per_caller: usize,
    /// The callers that use a part of the budget.
    callers: Mutex<HashMap<CallerName, Weak<CallerShare>>>,
}

/// The identity that a request counts against.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CallerName {
    Principal(Principal),
    Address(RemoteAddress),
}

#[derive(Debug)]
struct Counter {
    used: AtomicUsize,
    max: usize,
}

/// The part of a budget that one caller uses. Its entry is removed with the last clone.
#[derive(Debug)]
struct CallerShare {
    counter: Counter,
    name: CallerName,
    shared: Arc<Shared>,
}

/// The part of a [`Budget`] that one connection uses. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ConnectionBudget(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    shared: Arc<Shared>,
    own: Counter,
    /// The share of the client at the other end of the connection, if it is known.
    peer: Option<Arc<CallerShare>>,
    /// The share of the last caller that is not the peer: the principal of a token, or a client
    /// that a proxy names.
    caller: Mutex<Option<Arc<CallerShare>>>,
}

/// An amount that counts against a budget until it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    connection: Arc<Connection>,
    caller: Option<Arc<CallerShare>>,
    amount: usize,
}

impl Budget {
    /// Creates a budget with this limit. The last charge may exceed it, so that a response of any
    /// length can be sent: the effective limit is the total plus the longest response.
    #[must_use]
    pub(super) fn new(limit: SharedLimit) -> Self {
        Self(Arc::new(Shared {
            whole: Counter::new(limit.total),
            per_caller: limit.per_caller,
            callers: Mutex::default(),
        }))
    }

    /// Returns the part of one connection, which counts against the share of the client that
    /// `service` was [given](HttpService::with_remote_address) for it, and of which it can use at
    /// most `max`.
    #[must_use]
    pub(super) fn connection<R: Runtime>(
        &self,
        service: &HttpService<R>,
        max: usize,
    ) -> ConnectionBudget {
        self.connection_of(service.peer_name(), max)
    }

    pub(super) fn connection_of(&self, peer: Option<CallerName>, max: usize) -> ConnectionBudget {
        ConnectionBudget(Arc::new(Connection {
            own: Counter::new(max),
            peer: peer.map(|name| self.0.caller(name)),
            caller: Mutex::default(),
            shared: Arc::clone(&self.0),
        }))
    }
}

impl Shared {
    /// Returns the share of a caller.
    fn caller(self: &Arc<Self>, name: CallerName) -> Arc<CallerShare> {
        let mut callers = lock(&self.callers);
        if let Some(known) = callers.get(&name).and_then(Weak::upgrade) {
            return known;
        }
        let counter = Counter::new(self.per_caller);
        let share = CallerShare { counter, name: name.clone(), shared: Arc::clone(self) };
        let share = Arc::new(share);
        callers.insert(name, Arc::downgrade(&share));
        share
    }
}

impl Drop for CallerShare {
    fn drop(&mut self) {
        let mut callers = lock(&self.shared.callers);
        // Another request of the caller may have created a new one.
        if callers.get(&self.name).is_some_and(|share| share.strong_count() == 0) {
            callers.remove(&self.name);
        }
    }
}

impl ConnectionBudget {
    /// Charges an amount to `caller`, or to the connection's peer if there is no caller. The last
    /// charge may exceed the limits.
    pub(super) fn charge(
        &self,
        amount: usize,
        caller: Option<&CallerName>,
    ) -> Result<Charge, Exhausted> {
        let charge = self.charge_always(amount, caller);
        charge.check(|counter| counter.used().saturating_sub(amount) <= counter.max)?;
        Ok(charge)
    }

    /// Charges an amount, even if a limit is exceeded.
    pub(super) fn charge_always(&self, amount: usize, caller: Option<&CallerName>) -> Charge {
        let caller = caller.map(|caller| self.share_of(caller));
        let mut charge = Charge { connection: Arc::clone(&self.0), caller, amount: 0 };
        charge.add(amount);
        charge
    }

    /// Charges an amount, unless a limit would be exceeded.
    pub(super) fn charge_within(&self, amount: usize) -> Result<Charge, Exhausted> {
        let mut charge = self.charge_always(0, None);
        charge.grow(amount).map(|()| charge)
    }

    /// Charges the response to a request until the returned value is dropped: keep it until
    /// everything is sent. A response that does not fit is replaced by its refusal.
    ///
    /// Responses up to 64 KiB fit in the buffer of a connection, and are not charged. Neither are
    /// event streams, whose unread events the server limits itself.
    #[must_use]
    pub(super) fn charge_response(
        &self,
        response: Response<ServedBody>,
    ) -> (Response<ServedBody>, Option<Charge>) {
        let length = response.body().size_hint().exact().unwrap_or_default();
        match usize::try_from(length).unwrap_or(usize::MAX) {
            0..=UNCHARGED_BYTES => (response, None),
            length => match self.charge(length, response.body().caller()) {
                Ok(charge) => (response, Some(charge)),
                Err(exhausted) => (refusal(exhausted), None),
            },
        }
    }

    /// Returns the share of a caller other than the peer. Most connections have one such caller.
    fn share_of(&self, name: &CallerName) -> Arc<CallerShare> {
        if let Some(peer) = self.0.peer.as_ref().filter(|peer| peer.name == *name) {
            return Arc::clone(peer);
        }
        let mut last = lock(&self.0.caller);
        if let Some(known) = last.as_ref().filter(|known| known.name == *name) {
            return Arc::clone(known);
        }
        let share = self.0.shared.caller(name.clone());
        let before = last.replace(Arc::clone(&share));
        drop(last);
        // Its entry is removed outside of the lock.
        drop(before);
        share
    }
}

impl Charge {
    /// Increases the charge.
    ///
    /// # Errors
    ///
    /// It would exceed a limit. It is increased nevertheless, until it is dropped.
    pub(super) fn grow(&mut self, amount: usize) -> Result<(), Exhausted> {
        self.add(amount);
        self.check(|counter| counter.used() <= counter.max)
    }

    /// Counts the charge also against the share of a caller that has become known.
    ///
    /// # Errors
    ///
    /// As [`grow`](Self::grow).
    pub(super) fn assign(&mut self, caller: &CallerName) -> Result<(), Exhausted> {
        if self.caller.is_none() {
            let share = ConnectionBudget(Arc::clone(&self.connection)).share_of(caller);
            self.count(|counter| counter.subtract(self.amount));
            self.caller = Some(share);
            self.count(|counter| counter.add(self.amount));
        }
        self.check(|counter| counter.used() <= counter.max)
    }

    fn add(&mut self, amount: usize) {
        self.amount += amount;
        self.count(|counter| counter.add(amount));
    }

    fn check(&self, is_within: impl Fn(&Counter) -> bool) -> Result<(), Exhausted> {
        let share = self.share().is_none_or(|share| is_within(&share.counter));
        if !(share && is_within(&self.connection.own)) {
            return Err(Exhausted::Share);
        }
        if is_within(&self.connection.shared.whole) { Ok(()) } else { Err(Exhausted::Total) }
    }

    fn count(&self, change: impl Fn(&Counter)) {
        change(&self.connection.own);
        change(&self.connection.shared.whole);
        if let Some(share) = self.share() {
            change(&share.counter);
        }
    }

    fn share(&self) -> Option<&CallerShare> {
        self.caller.as_deref().or(self.connection.peer.as_deref())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.count(|counter| counter.subtract(self.amount));
    }
}

impl Counter {
    const fn new(max: usize) -> Self {
        Self { used: AtomicUsize::new(0), max }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn add(&self, amount: usize) {
        self.used.fetch_add(amount, Ordering::Relaxed);
    }

    fn subtract(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

/// Returns the response to a request whose own response does not fit.
pub(super) fn refusal(exhausted: Exhausted) -> Response<ServedBody> {
    response::whole(SharedResource::ResponseBytes.refusal(exhausted).to_response(None))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn budget(total: usize, per_caller: usize) -> Budget {
        Budget::new(SharedLimit::new(SharedResource::ResponseBytes, total, per_caller))
    }

    fn address(last: u8) -> CallerName {
        CallerName::Address(IpAddr::from([192, 0, 2, last]).into())
    }

    fn is_unused(budget: &Budget) -> bool {
        budget.0.whole.used() == 0 && lock(&budget.0.callers).is_empty()
    }

    #[test]
    fn a_budget_refuses_charges_above_its_total() {
        let whole = budget(10, 7);
        let connection = whole.connection_of(None, usize::MAX);
        let first = connection.charge(8, None).unwrap();
        let second = connection.charge(100, None).unwrap();
        assert_eq!(connection.charge(1, None).unwrap_err(), Exhausted::Total);
        drop(second);
        assert!(connection.charge(1, None).is_ok());
        drop((first, connection));
        assert!(is_unused(&whole));
    }

    #[test]
    fn connections_have_a_limit_of_their_own() {
        let whole = budget(100, 50);
        let [one, other] = [(), ()].map(|()| whole.connection_of(None, 10));
        let held = one.charge(11, None).unwrap();
        assert_eq!(one.charge(1, None).unwrap_err(), Exhausted::Share);
        assert!(other.charge(10, None).is_ok());
        drop(held);
        assert!(one.charge(1, None).is_ok());
    }

    #[test]
    fn all_connections_of_a_caller_have_one_share() {
        let whole = budget(100, 20);
        let connect = |last| whole.connection_of(Some(address(last)), usize::MAX);
        let greedy: Vec<_> = (0..5).map(|_| connect(1)).collect();
        let held: Vec<_> = greedy.iter().map(|it| it.charge(7, None)).collect();
        assert!(held[..3].iter().all(Result::is_ok));
        assert!(held[3..].iter().all(|it| it.as_ref().is_err_and(|it| *it == Exhausted::Share)));
        assert!(connect(2).charge(20, None).is_ok());
        drop((held, greedy));
        assert!(is_unused(&whole));
    }

    #[test]
    fn a_principal_counts_instead_of_its_address() {
        let whole = budget(100, 20);
        let connection = whole.connection_of(Some(address(1)), usize::MAX);
        let [ann, ben] = ["ann", "ben"].map(|name| CallerName::Principal(Principal::new(name)));
        let held = connection.charge(21, Some(&ann)).unwrap();
        assert_eq!(connection.charge(1, Some(&ann)).unwrap_err(), Exhausted::Share);
        assert!(connection.charge(1, Some(&ben)).is_ok());
        assert!(connection.charge(1, None).is_ok());
        // On other connections as well.
        let other = whole.connection_of(Some(address(2)), usize::MAX);
        assert_eq!(other.charge(1, Some(&ann)).unwrap_err(), Exhausted::Share);
        drop((held, connection, other));
        assert!(is_unused(&whole));
    }

    #[test]
    fn a_charge_grows_and_moves_to_the_share_of_its_caller() {
        let whole = budget(100, 20);
        let connection = whole.connection_of(Some(address(1)), usize::MAX);
        let mut charge = connection.charge(0, None).unwrap();
        assert_eq!(charge.grow(20), Ok(()));
        let ann = CallerName::Principal(Principal::new("ann"));
        assert_eq!(charge.assign(&ann), Ok(()));
        assert_eq!(connection.0.peer.as_ref().unwrap().counter.used(), 0);
        assert_eq!(charge.grow(1), Err(Exhausted::Share));
        drop((charge, connection));
        assert!(is_unused(&whole));
    }
}
