use alloc::collections::BTreeMap;
use core::ops::RangeInclusive;
use core::time::Duration;

use mcp_sansio::Instant;

/// The faults of a connection. All of them are derived from a seed, so a failing run can be
/// repeated. The default is no faults.
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
/// use mcp_sansio_test::{Faults, connect};
///
/// let server = Server::new("clock", "1.0.0").tool("now", "The time", |_: Call<NoArguments>| "noon");
/// for seed in 0..20 {
///     let (client, mut pair) = connect(&server, &Host::new("test", "1.0.0"));
///     let slow = Faults::new(seed).delay(Duration::ZERO..=Duration::from_secs(2)).reorder();
///     pair.set_faults(slow);
///     let (one, two) = (client.call_tool("now", &NoArguments {}), client.list_tools(None));
///     let (one, two) = (pair.start(one), pair.start(two));
///     assert!(pair.run(one).is_ok() && pair.run(two).is_ok(), "seed {seed}: {}", pair.transcript);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    seed: u64,
    /// The shortest and the longest delay.
    delay: (Duration, Duration),
    reorder: bool,
    duplicate: Option<u64>,
    cut_after: Option<u64>,
    pieces: Option<usize>,
}

impl Faults {
    /// Creates a connection without faults. `seed` determines the random numbers of later settings.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Delays each message by a random time in this range.
    #[must_use]
    pub const fn delay(mut self, range: RangeInclusive<Duration>) -> Self {
        self.delay = (*range.start(), *range.end());
        self
    }

    /// Lets messages with a shorter delay overtake others, which pipes and sockets never do.
    /// Requests over HTTP are independent and do so in any case; the parts of one response never
    /// do.
    #[must_use]
    pub const fn reorder(mut self) -> Self {
        self.reorder = true;
        self
    }

    /// Delivers one message in `one_in` twice, at random. On HTTP this applies to requests, as when
    /// a proxy repeats one; the client does not see the second response.
    #[must_use]
    pub const fn duplicate(mut self, one_in: u64) -> Self {
        self.duplicate = Some(one_in);
        self
    }

    /// Cuts the connection once, after this many messages: see [`Pair::cut`](crate::Pair::cut). On
    /// HTTP requests and pieces of responses count.
    #[must_use]
    pub const fn cut_after(mut self, messages: u64) -> Self {
        self.cut_after = Some(messages);
        self
    }

    /// Delivers the bodies of HTTP responses in pieces of this many bytes.
    ///
    /// # Panics
    ///
    /// If `bytes` is 0.
    #[must_use]
    pub const fn pieces(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "a piece has at least one byte");
        self.pieces = Some(bytes);
        self
    }
}

/// Identifies messages that keep their order.
pub(crate) type Lane = (u64, mcp_sansio::Side);

/// The messages that are under way.
#[derive(Debug)]
pub(crate) struct Wire<M> {
    faults: Faults,
    /// The state of the random numbers (SplitMix64).
    random: u64,
    /// By the time of their arrival and their number.
    queue: BTreeMap<(Instant, u64), M>,
    /// The arrival of the last message in each lane.
    latest: BTreeMap<Lane, Instant>,
    sent: u64,
    delivered: u64,
}

impl<M> Wire<M> {
    pub(crate) fn new() -> Self {
        let (queue, latest) = (BTreeMap::new(), BTreeMap::new());
        Self { faults: Faults::default(), random: 0, queue, latest, sent: 0, delivered: 0 }
    }

    /// Sets the faults of the messages sent from now on.
    pub(crate) fn set_faults(&mut self, faults: Faults) {
        self.random = faults.seed;
        self.delivered = 0;
        self.faults = faults;
    }

    pub(crate) const fn reorders(&self) -> bool {
        self.faults.reorder
    }

    pub(crate) fn piece(&self) -> usize {
        self.faults.pieces.unwrap_or(usize::MAX)
    }

    /// Draws whether the next message is delivered twice.
    pub(crate) fn is_duplicate(&mut self) -> bool {
        self.faults.duplicate.is_some_and(|one_in| self.random().is_multiple_of(one_in.max(1)))
    }

    /// Sends a message; in order with the others of its lane, if it has one.
    pub(crate) fn send(&mut self, lane: Option<Lane>, message: M, now: Instant) {
        let (shortest, longest) = self.faults.delay;
        let range = u64::try_from(longest.saturating_sub(shortest).as_nanos()).unwrap_or(u64::MAX);
        let extra = if range == 0 { 0 } else { self.random() % range };
        let mut due = now + shortest + Duration::from_nanos(extra);
        if let Some(lane) = lane {
            let latest = self.latest.entry(lane).or_default();
            due = due.max(*latest);
            *latest = due;
        }
        self.queue.insert((due, self.sent), message);
        self.sent += 1;
    }

    /// Returns the next message that has arrived.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<M> {
        let next = self.queue.first_entry().filter(|next| next.key().0 <= now)?;
        if self.faults.cut_after == Some(self.delivered) {
            return None;
        }
        self.delivered += 1;
        Some(next.remove())
    }

    /// Returns whether the connection is to be cut now. Returns `true` once.
    pub(crate) fn take_cut(&mut self) -> bool {
        self.faults.cut_after.take_if(|after| *after == self.delivered).is_some()
    }

    /// Returns the arrival of the next message.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|((due, _), _)| *due)
    }

    /// Loses all messages.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.latest.clear();
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
