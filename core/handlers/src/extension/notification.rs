use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{MethodName, Notification};
use mcp_sansio::protocol::{ExtensionError, Side};
use mcp_sansio::{Revision, Revisions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::method::{ExtensionGateError, MethodRow};
use super::registration::RegisteredExtension;
use crate::command::Command;
use crate::context::Context;
use crate::server_binding::ServerBinding;
use crate::server_endpoint::ServerEndpoint;
use crate::threading::Threading;

/// A notification of an extension: its row in the table of methods, and the type of its parameters.
///
/// Clients send it until 2025-11-25: later servers ignore notifications over HTTP. Servers send it
/// since 2025-06-18, if [`sent_by`](Self::sent_by) says so.
pub struct ExtensionNotification<P> {
    pub(crate) row: MethodRow,
    types: PhantomData<fn(P)>,
}

impl<P> ExtensionNotification<P> {
    /// Creates the notification `name` of the extension with this identifier, sent by clients.
    #[must_use]
    pub const fn new(extension: &'static str, name: &'static str) -> Self {
        let revisions = Revisions::range(Revision::V2025_06_18, Revision::V2025_11_25);
        Self { row: MethodRow::new(extension, name, Side::Client, revisions), types: PhantomData }
    }

    /// Sets the side that sends the notification.
    #[must_use]
    pub const fn sent_by(mut self, sender: Side) -> Self {
        let last = match sender {
            Side::Client => Revision::V2025_11_25,
            Side::Server => Revision::LATEST,
        };
        let revisions = Revisions::range(Revision::V2025_06_18, last);
        self.row = MethodRow::new(self.row.extension, self.row.name, sender, revisions);
        self
    }

    /// Returns the name of the method.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.row.name
    }

    /// Returns the identifier of the extension.
    #[must_use]
    pub const fn extension(&self) -> &'static str {
        self.row.extension
    }
}

impl<P> Clone for ExtensionNotification<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for ExtensionNotification<P> {}

impl<P> fmt::Debug for ExtensionNotification<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionNotification").field("row", &self.row).finish()
    }
}

/// A function that receives a notification.
#[derive(Clone)]
pub(crate) struct Receiver {
    row: MethodRow,
    receive: Arc<dyn Fn(&RawJson<'_>) + Send + Sync>,
}

impl Receiver {
    /// Adds the receiver of a notification that `sender` sends.
    pub(crate) fn register<P: DeserializeOwned>(
        all: &mut Receivers,
        registration: &mut RegisteredExtension,
        (notification, sender): (&ExtensionNotification<P>, Side),
        receive: impl Fn(P) + Send + Sync + 'static,
    ) -> Result<(), ExtensionError> {
        let row = notification.row;
        registration.add_method(row, sender)?;
        // Parameters of another type are dropped: a notification has no answer.
        let receive = Arc::new(move |params: &RawJson<'_>| {
            if let Ok(params) = params.decode() {
                receive(params);
            }
        });
        all.push(Self { row, receive });
        Ok(())
    }

    /// Calls the receiver of a notification, if there is one.
    pub(crate) fn call(
        all: &[Self],
        sender: Side,
        notification: &Notification<'_>,
        is_declared: impl Fn(&str) -> bool,
        guard: crate::panics::PanicGuard,
    ) {
        let MethodName::Other(name) = &notification.method else { return };
        let Some(receiver) = all.iter().find(|it| it.row.name == *name) else { return };
        let declared = is_declared(receiver.row.extension);
        if receiver.row.check(sender, notification.revision, declared, declared).is_ok() {
            // Like an observer, it cannot affect the connection, not even by a panic.
            let _received = guard.run(|| (receiver.receive)(&notification.params));
        }
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("row", &self.row).finish_non_exhaustive()
    }
}

impl Context {
    /// Sends a notification of an extension to the client, on the stream of this request. It is
    /// dropped if the request has ended, as that of a call that has become a task, and while the
    /// client does not read.
    ///
    /// # Errors
    ///
    /// The client did not declare the extension, or the notification does not exist at its revision.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    pub fn notify_extension<P: Serialize>(
        &self,
        notification: &ExtensionNotification<P>,
        params: &P,
    ) -> Result<(), ExtensionGateError> {
        let row = &notification.row;
        let client = self.extension(row.extension).is_some();
        row.check(Side::Server, self.revision(), client, true)?;
        // Parameters that cannot be serialized are a bug of the server, which the client need not see.
        if let Ok(params) = Json::from_serialize(params) {
            let method = row.name;
            self.report(Command::Notify { request: self.handle, method, params });
        }
        Ok(())
    }
}

#[allow(private_bounds, reason = "implemented only by the machines of this crate")]
impl<K: Threading, M: ServerBinding> ServerEndpoint<K, M> {
    /// Passes a notification of an extension to its receiver.
    // A notification does not name its sender, so any client may send it.
    pub(crate) fn receive_notification(&self, notification: &Notification<'_>) {
        if let Some(receivers) = self.handlers.receivers() {
            Receiver::call(receivers, Side::Client, notification, |_| true, self.guard);
        }
    }
}

/// The receivers of a side.
pub(crate) type Receivers = Vec<Receiver>;
