use std::collections::BTreeMap;
use std::future::pending;
use std::ops::Deref;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_sansio::http::{HttpClientOptions, Location};
use mcp_sansio::peer::TransportFailure;
use mcp_sansio::{Instant, Printable, Spawner};
use mcp_sansio_handlers::endpoint::HttpEndpoint;
use mcp_sansio_handlers::{
    Client, ConnectionError, Host, ServerConnection, ServerSpec, Servers, ServersConfig,
    ServersError,
};

use super::{Connect, ConnectError, ConnectorError, ConnectorExchanger, HttpDriver, LastFailure};
use crate::child::any::{AnyConnection, Connection, Shutdown, StderrTail};
use crate::child::{self, ChildConnection, Process};
use crate::error::Error;
use crate::names::SpawnOptions;
use crate::runtime::timeout;
use crate::task::{self, Task};
use crate::{Runtime, seed};

/// Connects to the server at `url` with the connector that `connector` returns. A spawned task
/// drives the connection.
///
/// # Errors
///
/// [`Error::Connect`]: the URL is invalid, or the connection could not be opened within the limits
/// of the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect<C: Connect>(
    url: &str,
    connector: impl FnOnce() -> Result<C, ConnectorError>,
    host: &Host,
) -> Result<HttpConnection, Error> {
    let location = Location::parse(url).map_err(|error| Box::new(error.into()))?;
    let connector = connector().map_err(|error| Box::new(ConnectError::Connector(error)))?;
    connect_with(HttpClientOptions::new(location), &connector, host).await
}

/// Connects with `connector`. A spawned task drives the connection.
///
/// With the feature `auth`, a host with an `Authorization` obtains tokens if the server requires
/// one; this may wait for a user to sign in.
///
/// The connector caches the era of the server, so that later connections to the same origin open
/// faster.
///
/// # Errors
///
/// [`Error::Connect`]: the connection could not be opened within the limits of the connector and
/// [`Timeouts`](mcp_sansio::peer::Timeouts).
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect_with<C: Connect>(
    options: HttpClientOptions,
    connector: &C,
    host: &Host,
) -> Result<HttpConnection, Error> {
    let url = options.url().clone();
    let era_cache = connector.era_cache();
    let remembered = era_cache.get(url.origin()).map(|era| host.clone().known_era(era));
    let host = remembered.as_ref().unwrap_or(host);
    #[cfg(feature = "auth")]
    let host = &mcp_sansio_auth::with_system_support(host)
        .map_err(|error| Box::new(ConnectError::Entropy(error)))?;
    let runtime = C::Runtime::current();
    let (client, mut endpoint) = host.connect_http(options, seed(), runtime.now());
    endpoint.set_spawner(Spawner::new(C::Runtime::spawn_blocking));
    let exchanger = ConnectorExchanger::new(connector.clone());
    let last_failure = exchanger.last_failure_handle();
    let driver = task::spawn(&runtime, HttpDriver::new(endpoint, exchanger, runtime.timer()));
    match client.opened().await {
        Ok(session) => {
            era_cache.insert(url.origin(), session.revision.era());
            Ok(HttpConnection { client, driver, last_failure })
        }
        Err(reason) => {
            // If the server has changed, the next connection probes it again.
            era_cache.remove(url.origin());
            Err(Box::new(ConnectError::from_close_reason(&url, reason, last_failure.get())).into())
        }
    }
}

/// Adds the servers of a configuration to `servers`, and starts them all: programs as child
/// processes, servers on HTTP with the connector that `connector` returns. Spawned tasks open the
/// connections and keep them open, until [`Servers::close`]. A malformed entry, or one with an
/// [ambiguous name](ServersError::AmbiguousName), is a server whose state is
/// [`Ended`](mcp_sansio_handlers::ServerState::Ended). Each server has a clone of the host, which
/// [knows its name](Host::for_server).
///
/// # Errors
///
/// [`ServersError::NameInUse`]: `servers` has a server of this name; nothing is started then.
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub fn connect_servers<P, C, A>(
    servers: &Servers<A>,
    config: ServersConfig,
    host: &Host,
    connector: impl Fn() -> Result<C, ConnectorError>,
) -> Result<(), ServersError>
where
    P: Process<Command: From<Command>>,
    C: Connect<Runtime = P::Runtime> + Sync,
    A: ServerConnection + From<ChildConnection<P>> + From<HttpConnection>,
{
    let (runtime, mut tasks, mut shared) = (P::Runtime::current(), Vec::new(), None);
    let mut refused = Vec::new();
    for (name, spec) in config.servers {
        // The system's certificates are read once, and only if they are needed.
        let connector = match &spec {
            Ok(ServerSpec::Http { .. }) => Some(shared.get_or_insert_with(&connector).clone()),
            _ => None,
        };
        let host = host.clone().for_server(name.as_str());
        let (sleeper, clock) = (runtime.clone(), runtime.clone());
        let attempt = Arc::new(Attempt::new(spec.as_ref().ok(), runtime.now()));
        let (shown, now) = (Arc::clone(&attempt), runtime.clone());
        let connect = async move || {
            attempt.begin(clock.now());
            match (&spec, &connector) {
                (Ok(ServerSpec::Process { command, args, env, cwd }), _) => {
                    let command = child::command(command, args, env, cwd.as_deref());
                    let (options, tail) = (SpawnOptions::new(), &attempt.stderr);
                    Ok(child::connect_showing::<P>(command, &host, options, tail).await?.into())
                }
                (Ok(ServerSpec::Http { url, headers }), Some(connector)) => {
                    Ok(connect_spec(url, headers, connector.as_ref(), &host).await?.into())
                }
                (Ok(spec), _) => Err(AnyError::from(format!("{spec:?} is not supported"))),
                (Err(error), _) => Err(error.clone().into()),
            }
        };
        let sleep = async move |time| {
            timeout(&sleeper, time, pending::<()>()).await;
        };
        match servers.connect(&name, connect, sleep) {
            Ok(task) => tasks.push(task),
            Err(ServersError::AmbiguousName { .. }) => {
                refused.push(name);
                continue;
            }
            Err(error) => {
                refused.iter().for_each(|name| drop(servers.remove(name)));
                return Err(error);
            }
        }
        servers.describe(&name, move || shown.describe(now.now()));
    }
    tasks.into_iter().for_each(|task| runtime.spawn(task));
    Ok(())
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The current attempt to connect a server of a configuration, as users are shown it.
struct Attempt {
    /// The program or the URL.
    server: String,
    since: Mutex<Instant>,
    stderr: StderrTail,
}

/// Lines of a server's standard error in a description: the end of a message.
const SHOWN_LINES_MAX: usize = 4;

impl Attempt {
    fn new(spec: Option<&ServerSpec>, now: Instant) -> Self {
        let server = match spec {
            Some(ServerSpec::Process { command, .. }) => format!("`{}`", Printable::new(command)),
            Some(ServerSpec::Http { url, .. }) => match Location::parse(url) {
                // The query may contain a secret.
                Ok(url) => url.as_str().split('?').next().unwrap_or_default().to_owned(),
                Err(_) => "its URL".to_owned(),
            },
            _ => "it".to_owned(),
        };
        Self { server, since: Mutex::new(now), stderr: StderrTail::default() }
    }

    fn begin(&self, now: Instant) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn describe(&self, now: Instant) -> String {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = now.saturating_since(since);
        let mut text = format!("{} has not answered for {waited:.1?}", self.server);
        let lines = self.stderr.lines();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES_MAX)..];
        let shown: Vec<_> =
            shown.iter().filter_map(|line| TransportFailure::excerpt(line.as_bytes())).collect();
        if !shown.is_empty() {
            text.push_str("; the last lines of its standard error: ");
            text.push_str(&shown.join(" | "));
        }
        text
    }
}

async fn connect_spec<C: Connect>(
    url: &str,
    headers: &BTreeMap<String, String>,
    connector: Result<&C, &ConnectorError>,
    host: &Host,
) -> Result<HttpConnection, AnyError> {
    let connect_error = |error| Error::from(Box::new(error));
    let connector =
        connector.map_err(|error| connect_error(ConnectError::Connector(error.clone())))?;
    let location = Location::parse(url).map_err(|error| connect_error(error.into()))?;
    let mut options = HttpClientOptions::new(location);
    for (name, value) in headers {
        options = options.header(name, value)?;
    }
    Ok(connect_with(options, connector, host).await?)
}

/// Creates a driver of `endpoint` over the exchanges of `connector`, to await or to spawn on the
/// runtime of the connector.
///
/// # Panics
///
/// Where [`Runtime::current`] does.
#[must_use]
pub fn drive_http<E: HttpEndpoint, C: Connect>(
    mut endpoint: E,
    connector: C,
) -> HttpDriver<E, ConnectorExchanger<C>, <C::Runtime as Runtime>::Timer> {
    endpoint.set_spawner(Spawner::new(C::Runtime::spawn_blocking));
    let timer = C::Runtime::current().timer();
    HttpDriver::new(endpoint, ConnectorExchanger::new(connector), timer)
}

/// A client of a server over HTTP. Derefs to the [`Client`].
///
/// [`close`](Self::close) closes it gracefully. If it is dropped, the connection also closes
/// gracefully once the last handle and call are dropped, as long as the runtime keeps running.
#[derive(Debug)]
pub struct HttpConnection {
    client: Client,
    driver: Task<()>,
    last_failure: LastFailure,
}

impl HttpConnection {
    /// Returns the error of the last failed exchange, or `None`. Errors of calls say less: only
    /// that an exchange was not sent, or broke.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.last_failure.get()
    }

    /// Closes the connection. Pending calls end, and the server is notified where the protocol
    /// requires it, for at most
    /// [`ClientLimits::closing_wait`](mcp_sansio::http::ClientLimits::closing_wait).
    pub async fn close(self) {
        let Self { client, driver, .. } = self;
        client.close();
        // A driver that panicked has also closed the connection.
        let _ended = driver.await;
    }

    /// The same as [`close`](Self::close), under the name that every kind of connection has.
    pub async fn shutdown(self) {
        self.close().await;
    }
}

impl Deref for HttpConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl ServerConnection for HttpConnection {
    fn client(&self) -> &Client {
        self
    }

    fn seed() -> u64 {
        seed()
    }

    fn is_permanent(error: &(dyn std::error::Error + 'static)) -> bool {
        Error::is_permanent_in(error)
    }
}

impl From<HttpConnection> for AnyConnection {
    fn from(connection: HttpConnection) -> Self {
        Self::new(connection)
    }
}

impl Connection for HttpConnection {
    fn last_failure(&self) -> Option<ConnectionError> {
        Self::last_failure(self).map(|error| Arc::new(error) as ConnectionError)
    }

    fn shutdown(self: Box<Self>) -> Shutdown {
        Box::pin(async {
            (*self).shutdown().await;
            Ok(None)
        })
    }
}
