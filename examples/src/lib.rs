//! The link layer of `serial-line`. The other examples are one file each.

#![forbid(unsafe_code)]

pub mod serial;
