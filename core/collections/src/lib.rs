//! Tables used by the crates of `mcp-sansio`.
//!
//! The caller bounds the size of each table. No order depends on a hash: the same operations give
//! the same results.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

mod deadlines;
mod index;
mod keyed_hash;
mod slab;

pub use deadlines::Deadlines;
pub use index::Index;
pub use keyed_hash::{KeyedHash, KeyedHasher};
pub use slab::{Key, Slab};
