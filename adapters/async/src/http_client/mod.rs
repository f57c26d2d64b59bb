//! What clients over HTTP by hyper have in common, on any runtime: the exchanges of an
//! [`HttpDriver`](crate::HttpDriver), a pool of connections, proxies, and errors by whose fault they are.
//! A runtime implements [`Dial`].

pub mod cause;
mod connection;
mod connector;
mod connector_error;
mod dialer;
mod exchanger;
mod fetch;
mod proxy;
mod response_body;
mod tls;

pub use connection::{HttpConnection, connect, connect_with};
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
pub use dialer::{Dial, port};
pub use exchanger::{Connect, HyperExchange, HyperExchanger, Trouble};
pub use fetch::{DOCUMENT_BYTES_MAX, FETCH_TIME_MAX, FetchError, fetch};
pub use proxy::Proxy;
pub use response_body::ResponseBody;

use std::error::Error;

use http::{Request, Response};
use http_body::Body;
use hyper_util::client::legacy::{self, connect};

/// One exchange by hyper's pool of connections: resolves when the head of the response is there,
/// whatever its status.
///
/// # Errors
///
/// There is no response; see [`was_sent`](ConnectorError::was_sent).
pub async fn exchange<C, B>(
    client: legacy::Client<C, B>,
    request: Request<B>,
) -> Result<Response<ResponseBody>, ConnectorError>
where
    C: connect::Connect + Clone + Send + Sync + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let response = client.request(request).await;
    let response = response.map_err(|error| ConnectorError::of_exchange(&error))?;
    Ok(response.map(ResponseBody::new))
}
