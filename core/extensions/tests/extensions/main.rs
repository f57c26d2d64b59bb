//! The extensions over connections in one process.

mod apps;
mod skills;
