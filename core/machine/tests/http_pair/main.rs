//! The HTTP client machine and the HTTP server machine, over a network that breaks.

mod cuts;
mod interrupted_streams;
mod network;
#[path = "../recording/played.rs"]
mod played;
