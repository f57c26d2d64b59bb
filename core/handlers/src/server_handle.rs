use alloc::boxed::Box;
use alloc::string::String;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::LoggingLevel;

use super::catalog_edit::CatalogEdit;
use super::command::Command;
use super::context::CommandSender;
use super::send_error::SendError;

/// A handle to a running connection for use outside of handlers, from any thread. On HTTP it
/// reaches all clients of the server.
///
/// ```
/// use mcp_sansio::protocol::{Resource, TextResourceContents};
/// use mcp_sansio_handlers::{Call, ReadResource, Server};
///
/// let server = Server::new("sensor", "1.0.0").subscriptions().resource(
///     Resource::new("sensor://reading", "reading"),
///     |call: Call<ReadResource>| TextResourceContents::new(&call.arguments.uri, "21.5"),
/// );
/// let endpoint = server.endpoint(42)?;
/// // Another thread notifies the client when the reading changes.
/// let handle = endpoint.handle();
/// handle.resource_updated("sensor://reading")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerHandle(CommandSender);

impl ServerHandle {
    pub(super) const fn new(commands: CommandSender) -> Self {
        Self(commands)
    }

    /// Notifies the subscribers of a resource that it changed.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn resource_updated(&self, uri: impl Into<String>) -> Result<(), SendError> {
        Ok(self.0.send(Command::ResourceUpdated { from: None, uri: uri.into() })?)
    }

    /// Changes the catalog of the connection, over HTTP that of the server; clients are notified. To
    /// change all connections, use [`Connections`](super::Connections). Under an adapter that
    /// [catches](super::endpoint::PanicGuard) panics, an edit that panics is abandoned.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn edit_catalog(
        &self,
        edit: impl FnOnce(&mut CatalogEdit<'_>) + Send + 'static,
    ) -> Result<(), SendError> {
        Ok(self.0.send(Command::EditCatalog { from: None, edit: Box::new(edit) })?)
    }

    /// Sends a log message that belongs to no request. A legacy client receives it if it wants
    /// messages of this level.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: Json) {
        let logger = logger.map(String::from);
        // Dropped if the client, or the driver, is too far behind.
        let _sent = self.0.send(Command::Log { request: None, level, logger, data });
    }

    /// Closes the connection.
    pub fn close(&self) {
        // Fails only if the connection is already closed.
        let _sent = self.0.send(Command::Close);
    }
}
