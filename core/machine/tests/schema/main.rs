//! Values that are written at a revision are valid against its official schema and have no member
//! that the schema does not list; every listed member can be written; and examples of all
//! definitions are read and written unchanged. What breaks a rule and has only one meaning is read
//! with that meaning.

mod definitions;
mod examples;
mod facts;
mod gate;
mod gate_table;
mod inputs;
mod machines;
mod messages;
mod report;
mod samples;
mod spec;
mod tolerance;
mod validators;
