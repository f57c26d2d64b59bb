//! The HTTP client with a scripted server, on a virtual clock.
#![cfg(feature = "http")]

mod net;
#[path = "../recording/played.rs"]
mod played;

mod closing;
mod delivering;
mod headers;
mod interrupted_streams;
mod listening;
mod modern;
mod old_transport;
mod opening;
mod own_headers;
mod pausing;
mod posting;
mod random;
mod resuming;
mod robustness;
mod sessions;
