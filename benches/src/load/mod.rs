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

/// How the cost of a piece of work goes with how much there is of something else.
pub struct Curve {
    /// What there is ever more of.
    pub around: &'static str,
    /// What is done.
    pub work: &'static str,
    /// How its cost goes.
    pub expected: Expected,
    /// How many there are, from measurement to measurement.
    pub sizes: &'static [usize],
    /// Makes it with none.
    pub make: fn() -> Box<dyn Load>,
}

/// How a cost goes with the size of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It does not depend on it, or as its logarithm does.
    Flat,
    /// It is proportional to it: everyone is asked whether they are meant.
    Linear,
}

impl fmt::Debug for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Curve")
            .field("around", &self.around)
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}

const DECADES: &[usize] = &[1, 10, 100, 1_000, 10_000, 100_000];
/// Where the first is another case: of a single tool there is no page but the first.
const MORE: &[usize] = &[10, 100, 1_000, 10_000, 100_000];
/// Where making as many as that takes too long.
const FEWER: &[usize] = &[1, 10, 100, 1_000, 10_000];

const fn flat(
    around: &'static str,
    work: &'static str,
    sizes: &'static [usize],
    make: fn() -> Box<dyn Load>,
) -> Curve {
    Curve { around, work, expected: Expected::Flat, sizes, make }
}

const fn linear(
    around: &'static str,
    work: &'static str,
    sizes: &'static [usize],
    make: fn() -> Box<dyn Load>,
) -> Curve {
    Curve { around, work, expected: Expected::Linear, sizes, make }
}

/// All of them.
pub const CURVES: &[Curve] = &[
    flat("calls in flight", "a call at 2025-11-25", DECADES, calls::legacy),
    flat("calls in flight", "a call at 2026-07-28", DECADES, calls::modern),
    flat("sessions", "a call in one", DECADES, sessions::call),
    flat("sessions", "one more, and its end", DECADES, sessions::one_more),
    flat("tools", "a page of one", MORE, catalog::page),
    flat("tools", "a call with handlers", DECADES, catalog::call),
    flat("subscriptions", "one more, and its end", DECADES, subscriptions::one_more),
    flat("subscriptions", "news of one", DECADES, subscriptions::news),
    flat("events kept", "one more", DECADES, rings::one_more),
    flat("events kept", "a client comes back", DECADES, rings::back),
    flat("logs that are full", "one more event", FEWER, rings::many),
    linear("listen streams", "news of one", DECADES, subscriptions::listening),
    linear("sessions", "news for one", FEWER, sessions::news),
    linear("resource templates", "the last one found", FEWER, catalog::template),
];
