//! The programs behind the code that the guide shows: a block after `<!-- from docs/samples/PAGE.rs -->`
//! has lines of a module here, and `xtask tidy` compares them. One file for each page, one module for
//! each block. A program that needs no network runs.

#![allow(
    dead_code,
    unused_imports,
    unused_variables,
    unreachable_pub,
    clippy::module_inception,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "programs in parts, as a reader writes them"
)]

mod apps;
mod attributes;
mod authorization;
mod clients;
mod cluster;
mod coming_from_rmcp;
mod coming_from_typescript;
mod custom_transport;
mod deployment;
mod devices;
mod extensions;
mod getting_started;
mod http;
mod input_rounds;
mod memory;
mod middleware;
mod recording;
mod resources;
mod servers;
mod several_servers;
mod skills;
mod tasks_and_subscriptions;
mod telemetry;
mod testing;
mod tools;
