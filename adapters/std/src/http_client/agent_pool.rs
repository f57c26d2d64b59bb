use std::fmt;
#[cfg(unix)]
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ClientConfig;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    ConnectProxyConnector, ConnectionDetails, Connector, TcpConnector, Transport,
};

use super::tls::TlsConnector;
#[cfg(unix)]
use super::unix_transport::{NoResolver, UnixConnector};

/// A client cannot use more idle agents than that; the others are closed.
const IDLE_MAX: usize = 32;

/// The agents of a connector. Each serves one exchange at a time, so that an exchange can be
/// aborted without affecting another: only the agent as a whole can be aborted.
#[derive(Debug)]
pub(super) struct AgentPool {
    pub(super) config: Config,
    pub(super) tls: Arc<ClientConfig>,
    /// The socket of the server at the host `localhost`.
    #[cfg(unix)]
    pub(super) unix_socket: Option<Arc<Path>>,
    /// Idle agents, with the server that they were last connected to; most recently used last.
    pub(super) idle: Mutex<Vec<(String, Agent)>>,
}

/// Performs one exchange after another, and keeps the connection between them.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) agent: ureq::Agent,
    pub(super) dialing: Arc<AtomicBool>,
}

impl AgentPool {
    /// Takes an idle agent that was connected to `server`, or creates one.
    pub(super) fn take(&self, server: &str) -> Agent {
        let known = {
            let mut idle = self.lock();
            let place = idle.iter().rposition(|(other, _)| other == server);
            place.map(|place| idle.remove(place).1)
        };
        let agent = known.unwrap_or_else(|| self.connect(server));
        agent.dialing.store(false, Ordering::Release);
        agent
    }

    fn connect(&self, server: &str) -> Agent {
        #[cfg(unix)]
        if let Some(path) = &self.unix_socket
            && server.split(':').next().is_some_and(|host| host.eq_ignore_ascii_case("localhost"))
        {
            return Agent::on_unix_socket(self, Arc::clone(path));
        }
        #[cfg(not(unix))]
        let _ = server;
        Agent::new(self)
    }

    /// Returns an agent whose exchange is complete.
    pub(super) fn put_back(&self, server: String, agent: Agent) {
        let mut idle = self.lock();
        let oldest = (idle.len() >= IDLE_MAX).then(|| idle.remove(0));
        idle.push((server, agent));
        drop(idle);
        // Closes the connection, outside of the lock.
        drop(oldest);
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Agent)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    fn new(pool: &AgentPool) -> Self {
        let dialing = Arc::<AtomicBool>::default();
        let connector = MarkDialing(Arc::clone(&dialing))
            .chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(TlsConnector(Arc::clone(&pool.tls)))
            .chain(MarkConnected(Arc::clone(&dialing)));
        let resolver = DefaultResolver::default();
        let agent = ureq::Agent::with_parts(pool.config.clone(), connector, resolver);
        Self { agent, dialing }
    }

    #[cfg(unix)]
    fn on_unix_socket(pool: &AgentPool, path: Arc<Path>) -> Self {
        let dialing = Arc::<AtomicBool>::default();
        let connector = MarkDialing(Arc::clone(&dialing))
            .chain(UnixConnector(path))
            .chain(TlsConnector(Arc::clone(&pool.tls)))
            .chain(MarkConnected(Arc::clone(&dialing)));
        let agent = ureq::Agent::with_parts(pool.config.clone(), connector, NoResolver);
        Self { agent, dialing }
    }

    /// Returns whether the connection of the exchange is not established yet, so that nothing has
    /// been sent.
    pub(super) fn is_dialing(&self) -> bool {
        self.dialing.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").finish_non_exhaustive()
    }
}

/// Records that a connection is being established.
#[derive(Debug)]
struct MarkDialing(Arc<AtomicBool>);

impl Connector for MarkDialing {
    type Out = ();

    fn connect(&self, _: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<()>, ureq::Error> {
        self.0.store(true, Ordering::Release);
        Ok(None)
    }
}

/// Records that the connection is established, including TLS and proxies.
#[derive(Debug)]
struct MarkConnected(Arc<AtomicBool>);

impl<T: Transport> Connector<T> for MarkConnected {
    type Out = T;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        transport: Option<T>,
    ) -> Result<Option<T>, ureq::Error> {
        self.0.store(false, Ordering::Release);
        Ok(transport)
    }
}
