//! The HTTP client's machine against the HTTP server's, over a network that breaks.

mod interrupted_streams;
mod network;
#[path = "../recording/played.rs"]
mod played;
