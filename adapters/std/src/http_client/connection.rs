use std::fmt;
use std::io;
use std::ops::Deref;
use std::thread::{self, JoinHandle};

use mcp_sansio::http::{ClientOptions, Location};
use mcp_sansio_async::HttpDriver;
use mcp_sansio_handlers::{Client, Host, HttpEndpoint};

use super::exchanger::{ThreadedExchanger, Trouble};
use crate::stop::Stop;
use crate::{Clock, ConnectError, Connector, ConnectorError, Error, Wait, block_on, now, seed};

/// Opens a connection to the server at `url`, driven on a thread of its own: with a [`Connector`] of
/// its own as [`Connector::new`] makes it. Waits until it is open. For more than one connection have
/// a connector for all of them, and [`connect_with`].
///
/// ```no_run
/// use mcp_sansio_std::{self as mcp, Host, Wait};
///
/// # fn run() -> Result<(), mcp::Error> {
/// let client = mcp::connect("https://example.com/mcp", &Host::new("demo", "1.0.0"))?;
/// let report = client.call_tool("forecast", &[("location", "Oslo")]).wait()?;
/// client.close();
/// # let _ = report;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Connect`]: the URL is none, or the connection could not be opened within the limits of
/// the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
pub fn connect(url: &str, host: &Host) -> Result<HttpConnection, Error> {
    let location = Location::parse(url).map_err(|error| Box::new(error.into()))?;
    connect_with(ClientOptions::new(location), &Connector::new(), host)
}

/// Opens a connection by `connector`, driven on a thread of its own. Waits until it is open.
///
#[cfg_attr(
    feature = "auth",
    doc = "A host with an [`Authorization`](crate::Authorization) gets tokens where the server wants \
           one: this waits for a user who has to sign in. What the application does for it, and may \
           block, needs a thread of its own there, as any handler that blocks.\n\n"
)]
/// # Errors
///
/// [`Error::Connect`]: the connection could not be opened within the limits of the connector and
/// [`Timeouts`](mcp_sansio::peer::Timeouts).
pub fn connect_with(
    options: ClientOptions,
    connector: &Connector,
    host: &Host,
) -> Result<HttpConnection, Error> {
    let url = options.url().clone();
    #[cfg(feature = "auth")]
    let host = &crate::equip(host).map_err(|error| Box::new(ConnectError::Entropy(error)))?;
    let (client, endpoint) = host.connect_http(options, seed(), now());
    let exchanger = ThreadedExchanger::new(connector.clone());
    let trouble = exchanger.trouble();
    let driver = HttpThread::spawn(endpoint, exchanger);
    let driver = driver.map_err(|error| Box::new(ConnectError::System(error)))?;
    match client.opened().wait() {
        Ok(_) => Ok(HttpConnection { client, driver, trouble }),
        Err(reason) => Err(Box::new(ConnectError::of_opening(&url, reason, trouble.last())).into()),
    }
}

/// A client of a server over HTTP. It derefs to the [`Client`]; [`Wait`] waits for its calls.
///
/// [`close`](Self::close) ends it in good order. Dropped, it breaks off what is under way. Neither
/// may happen on the connection's own thread, that is in a handler.
pub struct HttpConnection {
    client: Client,
    driver: HttpThread,
    trouble: Trouble,
}

impl HttpConnection {
    /// Why the last exchange that failed did; `None` if none has. Calls say less: that an exchange
    /// was not sent, or broke.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.trouble.last()
    }

    /// Closes the connection and waits for its end. Calls under way end, and the server is told
    /// where it has to know, for which it has as long as
    /// [`ClientLimits::closing_wait`](mcp_sansio::http::ClientLimits::closing_wait).
    pub fn close(self) {
        let Self { client, mut driver, .. } = self;
        client.close();
        driver.join();
    }
}

impl Deref for HttpConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for HttpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConnection").field("client", &self.client).finish_non_exhaustive()
    }
}

/// The thread that drives a connection. Dropped, it ends with it.
struct HttpThread {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl HttpThread {
    fn spawn(
        endpoint: impl HttpEndpoint + Send + 'static,
        exchanger: ThreadedExchanger,
    ) -> io::Result<Self> {
        let stop = Stop::default();
        let stopped = stop.clone();
        let run = move || {
            let driver = HttpDriver::new(endpoint, exchanger, Clock::new());
            // Out of descriptors, the endpoint is dropped, and tells its calls.
            let _ended = block_on(stopped.guard(driver));
        };
        let thread = thread::Builder::new().name("mcp-connection".into()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Waits for the end.
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A driver that panicked has closed the connection, too; the panic hook has reported it.
            let _ended = thread.join();
        }
    }
}

impl Drop for HttpThread {
    fn drop(&mut self) {
        self.stop.stop();
        self.join();
    }
}
