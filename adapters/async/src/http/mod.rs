//! Exchanges of HTTP on any runtime.

mod driver;
mod eras;
mod exchanger;
mod exchanges;
mod ready;

pub use driver::HttpDriver;
pub use eras::Eras;
pub use exchanger::{Exchange, Exchanger};
