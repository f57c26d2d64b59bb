use alloc::boxed::Box;

/// A function of the application that may block, with its inputs: a call of a blocking handler for
/// one request. Running it answers the request; dropping it answers the request with an internal
/// error.
///
/// This crate starts no threads, so an adapter provides a function that runs jobs: see
/// [`stream::Endpoint::set_spawner`](crate::stream::Endpoint::set_spawner).
pub type Job = Box<dyn FnOnce() + Send>;
