//! The HTTP server, with all clients played by the test.

#[path = "../http_pair/cuts.rs"]
mod cuts;
#[path = "../schema/facts.rs"]
mod facts;
mod fixtures;
#[path = "../recording/played.rs"]
mod played;
mod reply;
#[path = "../peer/schema_checker.rs"]
mod schema_checker;
mod test_server;
mod test_store;
#[path = "../schema/validators.rs"]
mod validators;

mod admission;
mod answers;
mod batches;
mod callers;
mod cancellation;
mod closing;
mod disconnects;
mod eras;
mod event_stream;
mod headers;
mod interrupted_streams;
mod limits;
mod listening;
mod polling;
mod random;
mod refusals;
mod resumption;
mod sessions;
mod shared_limits;
mod statuses;
mod store;
mod store_faults;
mod store_schedules;
mod streams;
mod timing;
mod visibility;
