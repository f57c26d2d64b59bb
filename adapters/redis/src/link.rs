use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, RedisError, RedisResult, ServerErrorKind, Value};

use crate::RedisOptions;
use crate::scripts::{Scripts, Step};

/// The least and the longest pause between two attempts to connect.
const PAUSE_LEAST: Duration = Duration::from_millis(50);
const PAUSE_LONGEST: Duration = Duration::from_secs(2);

/// A connection that is replaced when it fails.
///
/// While it is disconnected, commands fail at once: queueing them would keep a server waiting and
/// could reorder them.
#[derive(Debug)]
pub(crate) struct Link {
    deployment: Arc<Deployment>,
    options: Arc<RedisOptions>,
    /// How long its commands block at most.
    blocking: Duration,
    scripts: Scripts,
    state: Mutex<State>,
    pub(crate) connections: AtomicU64,
}

#[derive(Debug)]
struct State {
    connected: Option<Connected>,
    /// Whether a command is connecting.
    connecting: bool,
    /// The id of the last connection at the server.
    previous: Option<ClientName>,
    pause: Duration,
    not_before: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Connected {
    connection: Connection,
    number: u64,
    /// The scripts that the server knows.
    known: Arc<[AtomicBool; Step::COUNT]>,
}

/// Why a command has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no connection, and it is too early to try again.
    Disconnected,
    Redis(RedisError),
}

impl Link {
    pub(crate) fn new(
        deployment: Arc<Deployment>,
        options: Arc<RedisOptions>,
        blocking: Duration,
    ) -> Self {
        let state = State {
            connected: None,
            connecting: false,
            previous: None,
            pause: PAUSE_LEAST,
            not_before: None,
        };
        Self {
            deployment,
            options,
            blocking,
            scripts: Scripts::new(),
            state: Mutex::new(state),
            connections: AtomicU64::new(0),
        }
    }

    /// Runs a script, whose keys and arguments `complete` adds, beginning with the number of keys.
    pub(crate) async fn run(
        &self,
        step: Step,
        complete: impl FnOnce(&mut Cmd),
    ) -> Result<Value, Failure> {
        let connected = self.connected().await?;
        let known = &connected.known[step as usize];
        let mut command = if self.deployment.is_single() && known.swap(true, Ordering::Relaxed) {
            let mut command = redis::cmd("EVALSHA");
            command.arg(self.scripts.hash(step));
            command
        } else {
            // The server knows it from then on. A server of a cluster may not, so it always gets
            // it.
            let mut command = redis::cmd("EVAL");
            command.arg(self.scripts.code(step));
            command
        };
        complete(&mut command);
        let result = self.query_on(&connected, &command).await;
        if let Err(Failure::Redis(error)) = &result
            && error.kind() == redis::ErrorKind::Server(ServerErrorKind::NoScript)
        {
            // Repeating the command could reorder it, so it has failed.
            known.store(false, Ordering::Relaxed);
        }
        result
    }

    pub(crate) async fn query(&self, command: &Cmd) -> Result<Value, Failure> {
        let connected = self.connected().await?;
        self.query_on(&connected, command).await
    }

    async fn query_on(&self, connected: &Connected, command: &Cmd) -> Result<Value, Failure> {
        let result = connected.connection.clone().query(command).await;
        result.map_err(|error| {
            if is_fatal(&error) {
                self.drop_connection(connected.number);
            }
            Failure::Redis(error)
        })
    }

    /// Returns the connection. Ready at once if there is one.
    async fn connected(&self) -> Result<Connected, Failure> {
        let previous = {
            let mut state = self.lock();
            if let Some(connected) = &state.connected {
                return Ok(connected.clone());
            }
            if state.connecting || state.not_before.is_some_and(|time| now() < time) {
                return Err(Failure::Disconnected);
            }
            state.connecting = true;
            state.previous.clone()
        };
        let attempt = Attempt { link: self };
        let connected = self.connect(previous).await;
        let mut state = self.lock();
        let result = match connected {
            Ok((connection, own)) => {
                let number = self.connections.fetch_add(1, Ordering::Relaxed);
                let connected = Connected { connection, number, known: Arc::default() };
                state.connected = Some(connected.clone());
                (state.previous, state.pause, state.not_before) = (own, PAUSE_LEAST, None);
                Ok(connected)
            }
            Err(error) => {
                state.not_before = Some(now() + state.pause);
                state.pause = (state.pause * 2).min(PAUSE_LONGEST);
                Err(Failure::Redis(error))
            }
        };
        drop(state);
        drop(attempt);
        result
    }

    /// Connects, and ends the previous connection: commands that it still carries must not take
    /// effect after those of the new one.
    async fn connect(
        &self,
        previous: Option<ClientName>,
    ) -> Result<(Connection, Option<ClientName>), RedisError> {
        let mut connection = self.deployment.connect(&self.options, self.blocking).await?;
        if !self.deployment.is_single() {
            return Ok((connection, None));
        }
        // A user without permission for these commands is served as well.
        if let Some(ClientName { id, address }) = previous {
            let mut kill = redis::cmd("CLIENT");
            // Ids begin anew when Redis restarts: the id alone may be that of a stranger.
            kill.arg("KILL").arg("ID").arg(id).arg("ADDR").arg(address);
            let _killed = connection.query(&kill).await;
        }
        if let Some(name) = &self.options.node {
            let _named = connection.query(redis::cmd("CLIENT").arg("SETNAME").arg(name)).await;
        }
        let own = match connection.query(redis::cmd("CLIENT").arg("INFO")).await {
            Ok(info) => ClientName::from_info(info),
            Err(error) if is_fatal(&error) => return Err(error),
            Err(_) => None,
        };
        Ok((connection, own))
    }

    fn drop_connection(&self, number: u64) {
        let mut state = self.lock();
        if state.connected.as_ref().is_some_and(|connected| connected.number == number) {
            state.connected = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What Redis calls a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientName {
    id: String,
    address: String,
}

impl ClientName {
    /// Reads the reply to `CLIENT INFO`: fields of the form `name=value`, separated by spaces.
    fn from_info(info: Value) -> Option<Self> {
        let text: String = redis::from_redis_value(info).ok()?;
        let field = |name| {
            let mut fields = text.split_whitespace().filter_map(|field| field.split_once('='));
            fields.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        Some(Self { id: field("id")?, address: field("addr")? })
    }
}

/// An attempt to connect, which may be dropped.
struct Attempt<'l> {
    link: &'l Link,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.link.lock().connecting = false;
    }
}

/// Whether a connection has to be replaced: it is broken, does not answer, or the server is no
/// longer the master.
fn is_fatal(error: &RedisError) -> bool {
    use redis::ErrorKind::Server;
    error.is_unrecoverable_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || matches!(error.kind(), Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown))
}

#[allow(clippy::disallowed_methods, reason = "adapters may read the clock")]
fn now() -> Instant {
    Instant::now()
}

// ------------------------------------------------------------------ deployment

/// Where to connect.
pub(crate) enum Deployment {
    Single(redis::Client),
    /// Locked while it looks for the master.
    Sentinel(async_lock::Mutex<redis::sentinel::SentinelClient>),
    Cluster(redis::cluster::ClusterClient),
}

impl Deployment {
    /// Connects, for commands that block for `blocking` at most.
    pub(crate) async fn connect(
        &self,
        options: &RedisOptions,
        blocking: Duration,
    ) -> RedisResult<Connection> {
        let response_timeout = options.response_timeout + blocking;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.connect_timeout))
            .set_response_timeout(Some(response_timeout))
            // Sending never waits, so that commands are sent in the order of their futures.
            .set_pipeline_buffer_size(QUEUED_MAX);
        match self {
            Self::Single(client) => client
                .get_multiplexed_async_connection_with_config(&config)
                .await
                .map(Connection::One),
            Self::Sentinel(client) => {
                let mut client = client.lock().await;
                client.get_async_connection_with_config(&config).await.map(Connection::One)
            }
            Self::Cluster(client) => {
                let config = redis::cluster::ClusterConfig::new()
                    .set_connection_timeout(options.connect_timeout)
                    .set_response_timeout(response_timeout);
                client.get_async_connection_with_config(config).await.map(Connection::Cluster)
            }
        }
    }

    /// Whether the scripts of a connection are all on one server.
    pub(crate) const fn is_single(&self) -> bool {
        match self {
            Self::Single(_) | Self::Sentinel(_) => true,
            Self::Cluster(_) => false,
        }
    }
}

impl fmt::Debug for Deployment {
    /// Omits addresses and passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single(_) => "Single",
            Self::Sentinel(_) => "Sentinel",
            Self::Cluster(_) => "Cluster",
        })
    }
}

/// Commands that are queued for a connection: all that a driver has pending, and a few others.
const QUEUED_MAX: usize = 2048;

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    One(MultiplexedConnection),
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Connection {
    pub(crate) async fn query(&mut self, command: &Cmd) -> RedisResult<Value> {
        let reply = match self {
            Self::One(connection) => connection.req_packed_command(command),
            Self::Cluster(connection) => connection.req_packed_command(command),
        };
        // A task of tokio that has used up its budget cannot send, and is woken in another order.
        #[cfg(feature = "tokio")]
        let reply = tokio::task::unconstrained(reply);
        reply.await.and_then(Value::extract_error)
    }
}

mcp_sansio::partial_debug! { impl Debug for Connection }

// ------------------------------------------------------------------ sleep

/// Waits on the runtime that the connection uses.
///
/// # Panics
///
/// Outside of a runtime, with the feature `tokio` alone.
pub(crate) async fn sleep(time: Duration) {
    let pause = PAUSES.iter().find_map(|begin| begin(time));
    pause.expect("a connection runs on one of these runtimes").await;
}

type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begin a pause, each on its runtime if that is the current one. The first that does is used.
const PAUSES: &[fn(Duration) -> Option<Pause>] = &[
    #[cfg(feature = "tokio")]
    on_tokio::pause,
    #[cfg(feature = "smol")]
    on_smol::pause,
];

#[cfg(feature = "tokio")]
mod on_tokio {
    pub(super) fn pause(time: std::time::Duration) -> Option<super::Pause> {
        tokio::runtime::Handle::try_current().ok()?;
        Some(Box::pin(tokio::time::sleep(time)))
    }
}

#[cfg(feature = "smol")]
mod on_smol {
    pub(super) fn pause(time: std::time::Duration) -> Option<super::Pause> {
        let timer = async_io::Timer::after(time);
        Some(Box::pin(async {
            timer.await;
        }))
    }
}
