//! Skills over connections of both eras: a server that serves a set, a client that verifies it, and
//! servers that break the rules.

mod fixtures;
mod forged;
mod loading;
mod serving;
mod transcript;
mod verification;
