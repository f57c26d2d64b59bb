//! What is written at a revision is valid against the official schema of that revision and has no
//! member that the schema does not list; what the schema lists can be written; and the official
//! examples survive reading and writing.

mod definitions;
mod examples;
mod gate;
mod inputs;
mod messages;
mod report;
mod samples;
mod spec;
