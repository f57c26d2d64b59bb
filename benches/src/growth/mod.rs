//! Input of a hostile peer in any size, to measure how the work grows with it.

mod events;
mod lines;
mod network;
mod requests;
mod text;

use std::fmt;

/// An input with a function that feeds it.
pub struct Input {
    /// Its length, in bytes.
    pub length: usize,
    /// Feeds the input. Its prerequisites already exist.
    pub feed: Box<dyn FnMut()>,
}

impl Input {
    fn new(length: usize, feed: impl FnMut() + 'static) -> Self {
        Self { length, feed: Box::new(feed) }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("length", &self.length).finish_non_exhaustive()
    }
}

/// Creates an input whose size is a multiple of the smallest one.
pub type Make = fn(usize) -> Input;

/// All inputs by name.
pub const INPUTS: &[(&str, Make)] = &[
    ("a line without end", lines::endless),
    ("a line byte by byte", lines::dripping),
    ("lines of nothing", lines::blank),
    ("text that is no JSON", lines::garbage),
    ("arrays within arrays", text::deep_arrays),
    ("objects within objects, not too deep", text::deep_objects),
    ("a huge number", text::huge_number),
    ("a name of escapes", text::escaped_method),
    ("keys of escapes", text::escaped_keys),
    ("many members", text::many_members),
    ("metadata again and again", text::repeated_metadata),
    ("many input responses", text::many_responses),
    ("a version of escapes", text::escaped_version),
    ("many capabilities", text::many_capabilities),
    ("requests under ever new ids", requests::new_ids),
    ("requests under one id", requests::one_id),
    ("requests beyond the limit", requests::beyond_limit),
    ("a batch", requests::batch),
    ("a batch of no messages", requests::batch_of_nothing),
    ("cancellations of nothing", requests::idle_cancellations),
    ("cancellations of requests", requests::cancellations),
    ("cancellations of answers that wait", requests::withdrawals),
    ("cancellations of half a queue", requests::half_withdrawn),
    ("answers to nothing", requests::idle_answers),
    ("subscriptions", requests::subscriptions),
    ("listen streams, among many requests", requests::listening),
    ("a long listen stream", requests::long_filter),
    ("the end with requests in flight", requests::end_with_requests),
    ("the end with listen streams", requests::end_with_streams),
    ("the end with calls in flight", requests::end_with_calls),
    ("progress", requests::progress),
    ("pages without end", requests::pages),
    ("input rounds without end", requests::rounds),
    ("an event without end", events::endless),
    ("events byte by byte", events::dripping),
    ("comments without end", events::comments),
    ("many short fields", events::fields),
    ("ids and retries", events::ids),
    ("sessions", network::sessions),
    ("requests in a session over HTTP", network::session_requests),
    ("the end of a busy session", network::session_end),
    ("comings and goings of a stream", network::reconnects),
    ("modern requests over HTTP", network::modern_requests),
    ("questions on a stream, unanswered", network::questions),
];
