use alloc::boxed::Box;
use alloc::string::String;

use crate::catalog::Catalog;
use crate::jsonrpc::Json;
use crate::protocol::LoggingLevel;

use super::context::{Command, Outlet, remind_of_update};

/// Reaches into a running connection from outside its handlers, from any thread. That of a server
/// on HTTP reaches all its clients.
#[derive(Clone, Debug)]
pub struct Remote(Outlet);

impl Remote {
    pub(super) const fn new(outlet: Outlet) -> Self {
        Self(outlet)
    }

    /// Tells whoever subscribed to it that a resource changed.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        remind_of_update(&self.0, uri.into());
    }

    /// Changes what the server offers ; clients are told.
    pub fn edit_catalog(&self, edit: impl FnOnce(&mut Catalog) + Send + 'static) {
        self.send(Command::EditCatalog(Box::new(edit)));
    }

    /// Sends a log message that belongs to no request; a legacy client gets it if it wants its
    /// level.
    pub fn log(&self, level: LoggingLevel, logger: Option<&str>, data: Json) {
        let logger = logger.map(String::from);
        // Left out where the client, or the driver, is too far behind.
        let _sent = self.0.report(Command::Log { request: None, level, logger, data });
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.send(Command::Close);
    }

    fn send(&self, command: Command) {
        // A connection that is over has nobody to tell.
        let _sent = self.0.send(command);
    }
}
