//! The HTTP client's machine against the HTTP server's, over a network that breaks.

mod cuts;
mod network;
#[path = "../recording/played.rs"]
mod played;
