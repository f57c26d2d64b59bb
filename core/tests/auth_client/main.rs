//! The client's side of authorization against scripted servers, on a virtual clock.
#![cfg(feature = "auth")]

mod world;

mod code;
