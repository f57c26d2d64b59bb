use alloc::boxed::Box;
use alloc::string::String;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::LoggingLevel;

use super::catalog_edit::CatalogEdit;
use super::context::{Command, CommandSender, SendError};

/// Reaches into a running connection from outside its handlers, from any thread. That of a server
/// on HTTP reaches all its clients.
#[derive(Clone, Debug)]
pub struct ServerHandle(CommandSender);

impl ServerHandle {
    pub(super) const fn new(commands: CommandSender) -> Self {
        Self(commands)
    }

    /// Tells whoever subscribed to it that a resource changed.
    ///
    /// # Errors
    ///
    /// [`SendError`]: too many commands wait, or the connection is over.
    pub fn resource_updated(&self, uri: impl Into<String>) -> Result<(), SendError> {
        Ok(self.0.send(Command::ResourceUpdated { from: None, uri: uri.into() })?)
    }

    /// Changes what the server offers; clients are told. An edit that panics under an adapter that
    /// [catches](super::PanicGuard) it is given up.
    ///
    /// # Errors
    ///
    /// [`SendError`]: too many commands wait, or the connection is over.
    pub fn edit_catalog(
        &self,
        edit: impl FnOnce(&mut CatalogEdit<'_>) + Send + 'static,
    ) -> Result<(), SendError> {
        Ok(self.0.send(Command::EditCatalog { from: None, edit: Box::new(edit) })?)
    }

    /// Sends a log message that belongs to no request; a legacy client gets it if it wants its
    /// level.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: Json) {
        let logger = logger.map(String::from);
        // Left out where the client, or the driver, is too far behind.
        let _sent = self.0.send(Command::Log { request: None, level, logger, data });
    }

    /// Ends the connection.
    pub fn close(&self) {
        // A connection that is over has nobody to tell.
        let _sent = self.0.send(Command::Close);
    }
}
