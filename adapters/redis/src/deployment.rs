use std::fmt;
use std::time::Duration;

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, RedisResult, Value};

use crate::RedisOptions;

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

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}
