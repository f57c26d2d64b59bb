//! HTTP on tokio: what moves the bytes of exchanges, and knows no rule of what they carry.

mod connector;
mod connector_error;
mod dialer;
mod proxy;
mod response_body;
mod tls;

pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
pub use proxy::Proxy;
pub use response_body::ResponseBody;
