//! Exchanges of HTTP on any runtime.

mod driver;
mod exchanger;
mod exchanges;
mod ready;

pub use driver::HttpDriver;
pub use exchanger::{Exchange, Exchanger};
