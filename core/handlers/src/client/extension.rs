use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::{AsJson, ErrorObject, Json, to_shared_json};
use mcp_sansio::peer::{
    ClientMachine, CommandError, MethodName, Notification, Request, RequestHandle,
};
use mcp_sansio::protocol::{AtRevision, ExtensionError, SerializeAt};
use mcp_sansio::{Capabilities, Instant, Revision, Side, Spawner};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::endpoint::ClientEndpoint;
use super::host::{Asked, Host, HostRequest, send_result};
use super::pending::ClientCall;
use super::{Client, ClientError, Command, Session};
use crate::context::{FromRequest, RequestParts};
use crate::executor::PanicGuard;
use crate::extension::server::declared_in;
use crate::extension::{
    Extension, ExtensionGateError, ExtensionMethod, ExtensionNotification, MethodRow, Receiver,
    Receivers, RegisteredExtension, unmet,
};
use crate::reply::{HandlerError, Outcome};
use crate::threading::Threading;

/// The extensions of a host.
pub(crate) struct HostExtensions<K: Threading> {
    registered: Arc<Vec<RegisteredExtension>>,
    handlers: Vec<(MethodRow, K::Function)>,
    pub(crate) receivers: Receivers,
    problem: Option<ExtensionError>,
}

impl<K: Threading> Clone for HostExtensions<K> {
    fn clone(&self) -> Self {
        Self {
            registered: Arc::clone(&self.registered),
            handlers: self.handlers.clone(),
            receivers: self.receivers.clone(),
            problem: self.problem.clone(),
        }
    }
}

impl<K: Threading> HostExtensions<K> {
    pub(crate) fn registered(&self) -> Arc<Vec<RegisteredExtension>> {
        Arc::clone(&self.registered)
    }
}

impl<K: Threading> Host<K> {
    /// Registers an extension: declares it to servers, and handles its methods.
    ///
    /// A mistake, such as an identifier or a method that is taken, or a requirement that is still
    /// unmet when a connection opens, closes the connection before a message is sent: see
    /// [`OpeningFailure::Extension`](mcp_sansio::peer::OpeningFailure::Extension). The order of
    /// registrations does not matter.
    // MCP 2026-07-28 extensions:SEP-2133#sdk-implementation [EXT-004]: only registered extensions.
    #[must_use]
    pub fn extension(mut self, extension: Extension<K>) -> Self {
        let all = self.handlers.extensions.get_or_insert_with(|| {
            let registered = Arc::default();
            let (handlers, receivers) = (Vec::new(), Vec::new());
            Arc::new(HostExtensions { registered, handlers, receivers, problem: None })
        });
        let all = Arc::make_mut(all);
        let declared = &mut self.options.capabilities_mut().extensions;
        let fits = extension.declare(Side::Server, &all.registered, |_| false, declared);
        if let Err(problem) = fits {
            all.problem.get_or_insert(problem);
            return self;
        }
        let Extension { registration, handlers, receivers, messages, .. } = extension;
        Arc::make_mut(&mut all.registered).push(registration);
        if !handlers.is_empty() || !receivers.is_empty() {
            all.handlers.extend(handlers);
            all.receivers.extend(receivers);
            self.options.policy_mut().deliver_unknown_methods = true;
        }
        for middleware in messages {
            self.options = self.options.message_middleware(middleware.into());
        }
        self
    }

    /// Returns the registered extensions, in the order of registration.
    #[must_use]
    pub fn extensions(&self) -> &[RegisteredExtension] {
        self.handlers.extensions.as_ref().map_or(&[], |all| &all.registered)
    }

    /// Returns why connections cannot be opened, if they cannot.
    pub(crate) fn problem(&self) -> Option<ExtensionError> {
        let all = self.handlers.extensions.as_ref()?;
        all.problem.clone().or_else(|| {
            let declared = self.options.declared_capabilities();
            // Settings that are no JSON cannot be declared at all.
            let text = declared.to_json_at(Revision::LATEST).ok()?;
            let capabilities = Capabilities::from_client_json(text.as_str(), Revision::LATEST);
            unmet(&all.registered, capabilities.unwrap_or_default(), declared.extensions.as_ref())
        })
    }
}

impl Session {
    /// Returns the settings with which the server declared an extension; `None` if it did not
    /// declare it.
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<Json> {
        declared_in(&self.capabilities_json.as_raw().get("extensions")?, id)
    }
}

impl Client {
    /// Calls a method of an extension; `params` must serialize to an object.
    ///
    /// # Errors
    ///
    /// [`ClientError::Extension`]: the server did not declare the extension, or this client did not
    /// register it; nothing is sent.
    // MCP 2026-07-28 extensions:SEP-2133#graceful-degradation [EXT-013]
    #[must_use = "await it"]
    pub fn call_extension<P: Serialize, R>(
        &self,
        method: &ExtensionMethod<P, R>,
        params: &P,
    ) -> ClientCall<R> {
        let name = MethodName::Other(Cow::Borrowed(method.name()));
        match self.check_extension(&method.row) {
            Ok(()) => ClientCall::new(self.clone(), name, &AsJson(params)),
            Err(why) => ClientCall::not_sent(self.clone(), name, why),
        }
    }

    /// Returns the extensions that are registered with the host.
    #[must_use]
    pub fn extensions(&self) -> &[RegisteredExtension] {
        self.shared().extensions.as_ref().map_or(&[], |registered| registered)
    }

    pub(crate) fn check_extension(&self, row: &MethodRow) -> Result<(), ClientError> {
        let Some(session) = self.session() else {
            return Err(ClientError::NotSent(Box::new(CommandError::NotOpen)));
        };
        let client = self.extensions().iter().any(|it| it.id() == row.extension);
        if !client {
            // Also where servers accept the method from any client: the application has not opted
            // in.
            let (method, extension) = (row.name, row.extension);
            let side = Side::Client;
            return Err(ExtensionGateError::NotDeclared { method, extension, side }.into());
        }
        let server = session.extension(row.extension).is_some();
        Ok(row.check(Side::Client, session.revision, client, server)?)
    }
}

impl<'r, 'f> RequestParts<'r, 'f> {
    /// The parts of an extension's request to a host.
    const fn from_extension_request(
        request: &'r Request<'f>,
        spawner: Option<&'r Spawner>,
    ) -> Self {
        Self {
            params: &request.params,
            revision: request.revision,
            call: None,
            states: None,
            spawner,
            guard: PanicGuard::NONE,
            cancelled: None,
            observation: None,
            server: None,
        }
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Answers a request of an extension.
    pub(crate) fn serve_extension(&mut self, request: &Request<'_>, now: Instant) {
        match self.extension_handler(request) {
            Ok(function) => {
                let spawner = self.spawner.clone();
                let parts = RequestParts::from_extension_request(request, spawner.as_ref());
                let method = String::from(request.method.as_str()).into();
                self.run(Asked::Request(request.handle), method, &function, parts, now);
            }
            Err(error) => {
                let request = request.handle;
                let _answered = self.machine.reject(request, error, now);
            }
        }
    }

    fn extension_handler(
        &self,
        request: &Request<'_>,
    ) -> Result<K::Function, ErrorObject<'static>> {
        let method = request.method.as_str();
        let all = self.handlers.extensions.as_ref();
        let found = all.and_then(|all| all.handlers.iter().find(|(row, _)| row.name == method));
        let checked = found.filter(|(row, _)| {
            let session = self.shared.opening.session();
            let server = session.is_some_and(|it| it.extension(row.extension).is_some());
            row.check(Side::Server, request.revision, true, server).is_ok()
        });
        let (_, function) = checked.ok_or_else(|| ErrorObject::method_not_found(method))?;
        Ok(function.clone())
    }

    /// Answers a request of an extension with the outcome of its handler.
    pub(crate) fn answer_extension(
        &mut self,
        request: RequestHandle,
        outcome: Outcome,
        now: Instant,
    ) {
        let revision = self.machine.session().map_or(Revision::LATEST, |it| it.revision());
        let refused = send_result(outcome, |body| {
            let result = &AsJson(&AtRevision(body, revision));
            self.machine.respond_with(request, result, now)
        });
        if let Some(error) = refused {
            let _answered = self.machine.reject(request, error, now);
        }
    }
}

impl<P: DeserializeOwned, R> FromRequest<ExtensionMethod<P, R>> for HostRequest<P> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        Self::decode(&received)
    }
}

impl Client {
    /// Sends a notification of an extension to the server; `params` must serialize to an object.
    ///
    /// # Errors
    ///
    /// [`ClientError::Extension`]: the server did not declare the extension, this client did not
    /// register it, or the notification does not exist at the revision of the connection.
    /// [`ClientError::NotSent`]: the parameters cannot be serialized. [`ClientError::TooManyCommands`]
    /// and [`ClientError::Closed`].
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    pub fn notify_extension<P: Serialize>(
        &self,
        notification: &ExtensionNotification<P>,
        params: &P,
    ) -> Result<(), ClientError> {
        self.check_extension(&notification.row)?;
        let params = to_shared_json(&AsJson(params))?;
        let method = MethodName::Other(notification.row.name.into());
        let sent = self.command(Command::Notify { method, params });
        sent.map_err(|error| match (error, self.close_reason()) {
            (crate::SendError::Closed, Some(reason)) => ClientError::Closed(reason),
            _ => ClientError::TooManyCommands,
        })
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Passes a notification of an extension to its receiver, if the server declared the extension.
    pub(crate) fn receive_notification(&self, notification: &Notification<'_>) {
        let Some(all) = &self.handlers.extensions else { return };
        let session = self.shared.opening.session();
        let is_declared = |id: &str| session.as_ref().is_some_and(|it| it.extension(id).is_some());
        Receiver::call(&all.receivers, Side::Server, notification, is_declared, self.tasks.guard);
    }
}
