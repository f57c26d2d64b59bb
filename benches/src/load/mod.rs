//! Operations repeated while the number of other objects grows, to measure whether their cost
//! depends on it.

mod calls;
mod catalog;
mod rings;
mod sessions;
mod subscriptions;

use std::fmt;

/// A growing number of objects, and an operation whose cost may depend on it.
pub trait Load {
    /// Grows the number of objects to `size`. Called with increasing sizes.
    fn grow(&mut self, size: usize);
    /// Performs the measured operation once. The number of objects is the same before and after.
    fn work(&mut self);
}

/// The expected cost of an operation, depending on the number of other objects.
pub struct Curve {
    /// The objects that grow in number.
    pub around: &'static str,
    /// The operation.
    pub work: &'static str,
    /// The expected growth of its cost.
    pub expected: Expected,
    /// The numbers of objects to measure at.
    pub sizes: &'static [usize],
    /// Creates the load without objects.
    pub make: fn() -> Box<dyn Load>,
}

/// How a cost grows with a number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Constant or logarithmic.
    Flat,
    /// Proportional: every object is checked.
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
/// For loads where size one is a special case: a single tool has only the first page.
const MORE: &[usize] = &[10, 100, 1_000, 10_000, 100_000];
/// For loads that take too long to create at the largest size.
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

/// All curves.
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
