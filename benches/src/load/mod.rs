//! One thing done while there is ever more of another: for measuring whether it costs more then.

mod calls;
mod catalog;
mod rings;
mod sessions;
mod subscriptions;

use std::fmt;

/// Something of which there can be more and more, with work that may notice.
pub trait Load {
    /// Sees to it that there are `size` of them. Called with ever larger sizes.
    fn grow(&mut self, size: usize);
    /// Does what is measured, once. There are as many after it as before.
    fn work(&mut self);
}

/// How the cost of something goes with how much there is of another.
pub struct Curve {
    /// What there is more and more of; and, after a colon, what is done.
    pub name: &'static str,
    /// How many there are, from measurement to measurement.
    pub sizes: &'static [usize],
    /// Makes it with none.
    pub make: fn() -> Box<dyn Load>,
}

impl fmt::Debug for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Curve").field("name", &self.name).finish_non_exhaustive()
    }
}

const DECADES: &[usize] = &[1, 10, 100, 1_000, 10_000, 100_000];
/// Where making as many as that takes too long.
const FEWER: &[usize] = &[1, 10, 100, 1_000, 10_000];

/// All of them.
pub const CURVES: &[Curve] = &[
    Curve { name: "calls in flight, 2025-11-25: a call", sizes: DECADES, make: calls::legacy },
    Curve { name: "calls in flight, 2026-07-28: a call", sizes: DECADES, make: calls::modern },
    Curve { name: "sessions: a call", sizes: DECADES, make: sessions::call },
    Curve { name: "sessions: one more, and its end", sizes: DECADES, make: sessions::one_more },
    Curve { name: "tools: a page of one", sizes: DECADES, make: catalog::page },
    Curve { name: "tools: a call with handlers", sizes: DECADES, make: catalog::call },
    Curve {
        name: "subscriptions: one more, and its end",
        sizes: DECADES,
        make: subscriptions::one_more,
    },
    Curve { name: "subscriptions: news of one", sizes: DECADES, make: subscriptions::news },
    Curve { name: "events kept: one more", sizes: DECADES, make: rings::one_more },
    Curve { name: "events kept: a client comes back", sizes: DECADES, make: rings::back },
    Curve { name: "sessions with full logs: one more event", sizes: FEWER, make: rings::many },
    Curve { name: "listen streams: news of one", sizes: DECADES, make: subscriptions::listening },
    Curve { name: "sessions: news for one", sizes: FEWER, make: sessions::news },
    Curve { name: "resource templates: the last one found", sizes: FEWER, make: catalog::template },
];
