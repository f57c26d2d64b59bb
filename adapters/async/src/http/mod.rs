//! HTTP exchanges on any runtime.

mod connect_error;
mod driver;
mod era_cache;
mod exchanger;
mod exchanges;
mod ready_queue;

pub use connect_error::ConnectError;
pub use driver::HttpDriver;
pub use era_cache::EraCache;
pub use exchanger::{Exchange, Exchanger};
