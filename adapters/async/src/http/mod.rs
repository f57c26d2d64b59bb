//! Exchanges of HTTP on any runtime.

mod connect_error;
mod driver;
mod eras;
mod exchanger;
mod exchanges;
mod ready;

pub use connect_error::ConnectError;
pub use driver::HttpDriver;
pub use eras::Eras;
pub use exchanger::{Exchange, Exchanger};
