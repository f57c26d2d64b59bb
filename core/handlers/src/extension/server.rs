use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{MessageMiddleware, MethodName, Request, ServerSession, UnknownMethods};
use mcp_sansio::protocol::{
    Capabilities, Capability, ExtensionError, InputRequest, SerializeAt, Side, missing_extension,
};
use mcp_sansio::{Era, Revision};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    ExtensionGateError, ExtensionMethod, ExtensionNotification, MethodRow, Receiver, Receivers,
    RegisteredExtension, unmet,
};
use crate::context::{Context, RequestDetails};
use crate::function::Handler;
use crate::middleware::Middleware;
use crate::reply::HandlerError;
use crate::server::{Handlers, MethodHandler, Server};
use crate::server_binding::ServerBinding;
use crate::server_endpoint::ServerEndpoint;
use crate::state::StateTypes;
use crate::threading::{ThreadSafe, Threading};

/// The server's side of an extension. See the [module](crate::extension).
pub struct ServerExtension<K: Threading = ThreadSafe> {
    registration: RegisteredExtension,
    handlers: Vec<(&'static str, K::Function)>,
    receivers: Receivers,
    states: Vec<StateTypes>,
    layers: Vec<K::Middleware>,
    messages: Vec<Box<dyn MessageMiddleware>>,
    problem: Option<ExtensionError>,
}

impl<K: Threading> ServerExtension<K> {
    /// Creates an extension without settings, requirements and methods.
    ///
    /// # Errors
    ///
    /// [`ExtensionError::InvalidId`]: the identifier is not `vendor/name`, where `vendor` is a
    /// domain of its author, reversed. `io.modelcontextprotocol` is for official extensions.
    // MCP 2026-07-28 extensions:SEP-2133#definition [EXT-002]
    pub fn new(id: impl Into<String>) -> Result<Self, ExtensionError> {
        let registration = RegisteredExtension::new(id.into())?;
        Ok(Self {
            registration,
            handlers: Vec::new(),
            receivers: Vec::new(),
            states: Vec::new(),
            layers: Vec::new(),
            messages: Vec::new(),
            problem: None,
        })
    }

    /// Sets the settings to declare; `settings` serializes to an object.
    ///
    /// # Errors
    ///
    /// [`ExtensionError::InvalidSettings`].
    pub fn settings<S: Serialize + ?Sized>(mut self, settings: &S) -> Result<Self, ExtensionError> {
        self.registration.set_settings(settings)?;
        Ok(self)
    }

    /// Requires a capability of the server.
    #[must_use]
    pub fn requires(mut self, capability: Capability) -> Self {
        self.registration.require(capability);
        self
    }

    /// Requires another extension of the server, which may be registered later.
    #[must_use]
    pub fn requires_extension(mut self, id: impl Into<String>) -> Self {
        self.registration.require_extension(id.into());
        self
    }

    /// Sets the handler of a request that clients send. It takes `Call<P>`, and returns `R` or a
    /// `Result` of it.
    ///
    /// The handler is called only for clients that declared the extension, unless the method is
    /// [for any client](ExtensionMethod::from_any_client). Others get `-32021`, which names the
    /// extension; before 2026-07-28 the method does not exist for them.
    #[must_use]
    pub fn request<P, R, M>(
        mut self,
        method: &ExtensionMethod<P, R>,
        handler: impl Handler<K, ExtensionMethod<P, R>, M>,
    ) -> Self {
        if let Err(problem) = self.registration.add_method(method.row, Side::Client) {
            self.problem.get_or_insert(problem);
            return self;
        }
        self.states.push(handler.states());
        self.handlers.push((method.name(), handler.into_function()));
        self
    }

    /// Adds middleware around the handlers of all requests to the server, inside of that of earlier
    /// calls: see [`middleware`](crate::middleware). The application decides where it runs: inside
    /// of the middleware that the server had when the extension was registered, and outside of that
    /// which it gets later. An extension has no access to the middleware of others.
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034] [EXT-035]
    #[must_use]
    pub fn middleware<M>(mut self, middleware: impl Middleware<K, M>) -> Self {
        self.layers.push(middleware.into_layer());
        self
    }

    /// Adds middleware around all messages of the server's connections, in the order of
    /// [`middleware`](Self::middleware): see
    /// [`Server::message_middleware`](crate::Server::message_middleware).
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034] [EXT-035]
    #[must_use]
    pub fn message_middleware(mut self, middleware: impl MessageMiddleware + 'static) -> Self {
        self.messages.push(Box::new(middleware));
        self
    }
}

impl<K: Threading> ServerExtension<K> {
    /// Sets the function that receives a notification of clients, until 2025-11-25. It must return
    /// quickly. Parameters of another type are dropped. A notification does not name its sender, so
    /// it is received from any client, whether that declared the extension or not.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    #[must_use]
    pub fn notification<P: DeserializeOwned>(
        mut self,
        notification: &ExtensionNotification<P>,
        receive: impl Fn(P) + Send + Sync + 'static,
    ) -> Self {
        let (all, registration) = (&mut self.receivers, &mut self.registration);
        let sent = (notification, Side::Client);
        if let Err(problem) = Receiver::register(all, registration, sent, receive) {
            self.problem.get_or_insert(problem);
        }
        self
    }
}

impl<K: Threading> fmt::Debug for ServerExtension<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerExtension")
            .field("registration", &self.registration)
            .finish_non_exhaustive()
    }
}

/// The extensions of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtensionTable(Vec<RegisteredExtension>, Receivers);

impl ExtensionTable {
    fn row(&self, method: &str) -> Option<&MethodRow> {
        self.0.iter().flat_map(|it| &it.methods).find(|row| row.name == method)
    }

    /// Refuses a request that its client must not send. `client` are the extensions that the client
    /// declared.
    // MCP 2026-07-28 extensions:SEP-2133#server-side-capability-checking [EXT-012]
    fn check(
        &self,
        request: &Request<'_>,
        client: Option<&Json>,
    ) -> Result<(), ErrorObject<'static>> {
        let MethodName::Other(method) = &request.method else { return Ok(()) };
        let Some(row) = self.row(method) else { return Ok(()) };
        let declared = client.and_then(|it| declared_in(&it.as_raw(), row.extension)).is_some();
        row.check(Side::Client, request.revision, declared, true).map_err(|refusal| match refusal {
            // MCP 2026-07-28 basic/index#_meta [EXT-015]
            // MCP 2026-07-28 extensions:SEP-2133#graceful-degradation [EXT-014]
            ExtensionGateError::NotDeclared { extension, .. }
                if request.revision.era() == Era::Modern =>
            {
                missing_extension(extension)
            }
            _ => ErrorObject::method_not_found(method),
        })
    }
}

/// Reads the extensions that the client declared.
// MCP 2026-07-28 extensions:overview#client-capabilities [EXT-007]
// MCP 2026-07-28 extensions:SEP-2133#negotiation [EXT-011]
pub(crate) fn details(request: &Request<'_>, session: Option<&ServerSession>) -> RequestDetails {
    let client_extensions = match session {
        Some(session) => session.client_extensions().cloned(),
        // At the revisions with sessions, requests declare none.
        None => request
            .client_capabilities()
            .filter(|_| request.revision.era() == Era::Modern)
            .and_then(|capabilities| capabilities.get("extensions").map(Json::from)),
    };
    RequestDetails { client_extensions, ..RequestDetails::default() }
}

/// Returns the settings of an extension in a map of them; `null` counts as absent.
pub(crate) fn declared_in(extensions: &RawJson<'_>, id: &str) -> Option<Json> {
    extensions.get(id).filter(|settings| *settings != RawJson::NULL).map(Json::from)
}

impl Context {
    /// Returns the settings with which the client declared an extension; `None` if it did not
    /// declare it, or if the server has [no extension](Server::extension).
    // MCP 2026-07-28 extensions:SEP-2133#server-side-capability-checking [EXT-012]
    #[must_use]
    pub fn client_extension(&self, id: &str) -> Option<Json> {
        declared_in(&self.details.as_ref()?.client_extensions.as_ref()?.as_raw(), id)
    }

    /// Returns the request of an extension as an input request, for
    /// [`require_input`](Self::require_input): the method is
    /// [sent by](ExtensionMethod::sent_by) servers, until 2025-11-25. The handler is called again
    /// with the [result](Self::extension_result).
    ///
    /// # Errors
    ///
    /// The client did not declare the extension, or the method does not exist at its revision.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    pub fn extension_request<P: Serialize, R>(
        &self,
        method: &ExtensionMethod<P, R>,
        params: &P,
    ) -> Result<InputRequest, ExtensionGateError> {
        #[derive(Serialize)]
        struct Request<'a, P> {
            method: &'static str,
            params: &'a P,
        }

        let client = self.client_extension(method.extension()).is_some();
        method.row.check(Side::Server, self.revision(), client, true)?;
        let request = Json::from_serialize(&Request { method: method.name(), params });
        // Then the machine refuses to ask, and the request fails.
        Ok(InputRequest::Unknown(request.unwrap_or_else(|_| RawJson::NULL.into())))
    }

    /// Returns the host's result for the extension's request `key`; `None` if it was not sent yet.
    ///
    /// # Errors
    ///
    /// The client refused, or its result does not have the type of the method.
    pub fn extension_result<P, R: DeserializeOwned>(
        &self,
        _: &ExtensionMethod<P, R>,
        key: &str,
    ) -> Result<Option<R>, HandlerError> {
        self.input_result(key)
    }
}

impl<K: Threading> Handlers<K> {
    pub(super) fn receivers(&self) -> Option<&[Receiver]> {
        self.extensions.as_deref().map(|table| &*table.1)
    }

    fn extensions(&self) -> &[RegisteredExtension] {
        self.extensions.as_deref().map_or(&[], |table| &table.0)
    }
}

impl<K: Threading> Server<K> {
    /// Registers an extension: declares it to clients, and handles its methods.
    ///
    /// A mistake, such as an identifier or a method that is taken, or a requirement that is still
    /// unmet then, is an error where the server is used: [`endpoint`](Self::endpoint) and others.
    /// The order of registrations does not matter.
    // MCP 2026-07-28 extensions:SEP-2133#sdk-implementation [EXT-004]: only registered extensions.
    #[must_use]
    pub fn extension(mut self, extension: ServerExtension<K>) -> Self {
        let ServerExtension {
            registration,
            handlers,
            receivers,
            states,
            layers,
            messages,
            problem,
        } = extension;
        let functions = Arc::make_mut(&mut self.handlers);
        let is_taken = |name: &str| functions.method(name).is_some();
        let declared = &mut self.options.capabilities_mut().extensions;
        let fits = registration.declare(functions.extensions(), is_taken, declared);
        if let Some(problem) = problem.or_else(|| fits.err()) {
            self.note(CatalogError::Extension(problem));
            return self;
        }
        for (method, function) in handlers {
            let (method, declare) = (method.into(), None);
            functions.set_method(MethodHandler { method, function, declare });
        }
        functions.details.get_or_insert(details);
        let is_notified = !receivers.is_empty();
        let table = Arc::make_mut(functions.extensions.get_or_insert_default());
        table.0.push(registration);
        table.1.extend(receivers);
        if is_notified {
            self.options.policy_mut().unknown_methods = UnknownMethods::Deliver;
        }
        for states in states {
            self.require(states);
        }
        for layer in layers {
            self.add_layer(layer);
        }
        for middleware in messages {
            self.options = self.options.message_middleware(middleware.into());
        }
        self
    }

    /// Returns the registered extensions, in the order of registration.
    #[must_use]
    pub fn extensions(&self) -> &[RegisteredExtension] {
        self.handlers.extensions()
    }

    /// Returns whether a method is one of an extension, which then is a mistake of a registration.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-027]
    pub(crate) fn is_method_of_extension(&mut self, method: &str) -> bool {
        let mut extensions = self.handlers.extensions().iter();
        let owner = extensions.find(|it| it.methods().any(|name| name == method));
        let Some(owner) = owner else { return false };
        let (id, method) = (owner.id().into(), method.into());
        self.note(CatalogError::Extension(ExtensionError::MethodTaken { id, method }));
        true
    }

    /// Returns why the server cannot be used, if it cannot.
    pub(crate) fn problem(&self) -> Option<CatalogError> {
        self.problem.clone().or_else(|| {
            let registered = self.handlers.extensions();
            if registered.is_empty() {
                return None;
            }
            let declared = self.options.declared_capabilities(Revision::LATEST);
            // Settings that are no JSON cannot be declared at all.
            let text = declared.to_json_at(Revision::LATEST).ok()?;
            let capabilities = Capabilities::from_server_json(text.as_str(), Revision::LATEST);
            unmet(registered, capabilities.unwrap_or_default(), declared.extensions.as_ref())
                .map(CatalogError::Extension)
        })
    }
}

#[allow(private_bounds, reason = "implemented only by the machines of this crate")]
impl<K: Threading, M: ServerBinding> ServerEndpoint<K, M> {
    /// Returns the details of a request, if the server keeps any.
    pub(crate) fn details(&self, request: &Request<'_>) -> Option<Arc<RequestDetails>> {
        let read = self.handlers.details?;
        let is_in_session = request.revision.era() == Era::Legacy;
        let session = is_in_session.then(|| self.machine.session_of(request.handle)).flatten();
        Some(Arc::new(read(request, session)))
    }

    /// Refuses a request of an extension that its client must not send.
    pub(crate) fn check_extension(
        &self,
        request: &Request<'_>,
        details: Option<&RequestDetails>,
    ) -> Result<(), ErrorObject<'static>> {
        let client = details.and_then(|details| details.client_extensions.as_ref());
        match &self.handlers.extensions {
            Some(table) => table.check(request, client),
            None => Ok(()),
        }
    }
}
