use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{MessageMiddleware, MethodName, Request, ServerSession};
use mcp_sansio::protocol::{
    CapabilitySettings, ExtensionError, InputRequest, SerializeAt, missing_extension,
};
use mcp_sansio::{Capabilities, Capability, Era, Revision, Side};
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
use crate::threading::{ThreadSafe, Threading};

/// One side of an extension, for [`Server::extension`] or
/// [`Host::extension`](crate::Host::extension). See the [module](crate::extension).
pub struct Extension<K: Threading = ThreadSafe> {
    pub(crate) registration: RegisteredExtension,
    pub(crate) handlers: Vec<(MethodRow, K::Function)>,
    pub(crate) receivers: Receivers,
    layers: Vec<K::Middleware>,
    pub(crate) messages: Vec<Box<dyn MessageMiddleware>>,
    problem: Option<ExtensionError>,
}

impl<K: Threading> Extension<K> {
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

    /// Requires a capability of the side that registers the extension.
    #[must_use]
    pub fn requires(mut self, capability: Capability) -> Self {
        self.registration.require(capability);
        self
    }

    /// Requires another extension of the same side, which may be registered later.
    #[must_use]
    pub fn requires_extension(mut self, id: impl Into<String>) -> Self {
        self.registration.require_extension(id.into());
        self
    }

    /// Sets the handler of a request that the other side sends.
    ///
    /// At a server it takes `Call<P>`, and returns `R` or a `Result` of it. It is called only for
    /// clients that declared the extension, unless the method is
    /// [for any client](ExtensionMethod::from_any_client). Others get `-32021`, which names the
    /// extension; before 2026-07-28 the method does not exist for them.
    ///
    /// At a host it takes `HostRequest<P>`: the method is [sent by](ExtensionMethod::sent_by)
    /// servers, until 2025-11-25. It is called only for servers that declared the extension.
    ///
    /// The compiler accepts either kind. At a host, a handler that takes `Call<P>` answers each request
    /// with an internal error.
    #[must_use]
    pub fn request<P, R, M>(
        mut self,
        method: &ExtensionMethod<P, R>,
        handler: impl Handler<K, ExtensionMethod<P, R>, M>,
    ) -> Self {
        if self.add_method(method.row) {
            self.handlers.push((method.row, handler.into_function()));
        }
        self
    }

    /// Adds middleware around the handlers of all requests to a server, inside of that of earlier
    /// calls: see [`middleware`](crate::middleware). Only servers have it: a host refuses the extension
    /// with [`ExtensionError::HandlerMiddleware`]. The application decides where it runs: inside of the
    /// middleware that the server had when the extension was registered, and outside of that which it
    /// gets later. An extension has no access to the middleware of others.
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034] [EXT-035]
    #[must_use]
    pub fn middleware<M>(mut self, middleware: impl Middleware<K, M>) -> Self {
        self.layers.push(middleware.into_layer());
        self
    }

    /// Adds middleware around all messages of this side's connections, in the order of
    /// [`middleware`](Self::middleware): see
    /// [`Server::message_middleware`](crate::Server::message_middleware) and
    /// [`Host::message_middleware`](crate::Host::message_middleware).
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034] [EXT-035]
    #[must_use]
    pub fn message_middleware(mut self, middleware: impl MessageMiddleware + 'static) -> Self {
        self.messages.push(Box::new(middleware));
        self
    }

    /// Sets the function that receives a notification of the other side; clients send some until
    /// 2025-11-25. It must return quickly. Parameters of another type are dropped.
    ///
    /// A notification does not name its sender: a server receives it from any client, whether that
    /// declared the extension or not, a host only from servers that did.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    #[must_use]
    pub fn notification<P: DeserializeOwned>(
        mut self,
        notification: &ExtensionNotification<P>,
        receive: impl Fn(P) + Send + Sync + 'static,
    ) -> Self {
        if self.add_method(notification.row) {
            self.receivers.push(Receiver::new(notification, receive));
        }
        self
    }

    /// Adds a method that the other side sends. Returns whether its name is free.
    fn add_method(&mut self, row: MethodRow) -> bool {
        match self.registration.add_method(row) {
            Ok(()) => true,
            Err(problem) => {
                self.problem.get_or_insert(problem);
                false
            }
        }
    }

    /// Checks that a side, which handles the methods that `sender` sends, can register this
    /// extension, and declares it.
    pub(crate) fn declare(
        &self,
        sender: Side,
        registered: &[RegisteredExtension],
        is_taken: impl Fn(&str) -> bool,
        declared: &mut Option<CapabilitySettings>,
    ) -> Result<(), ExtensionError> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let id = || self.registration.id().into();
        if let Some(row) = self.registration.methods.iter().find(|row| row.sender() != sender) {
            return Err(ExtensionError::ForeignMethod { id: id(), method: row.name.into() });
        }
        if sender == Side::Server && !self.layers.is_empty() {
            return Err(ExtensionError::HandlerMiddleware { id: id() });
        }
        self.registration.declare(registered, is_taken, declared)
    }
}

mcp_sansio::partial_debug! { impl<K: Threading> Debug for Extension<K> { registration, .. } }

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

/// Returns the settings of an extension in a map of them; `null` and `false` count as absent.
pub(crate) fn declared_in(extensions: &RawJson<'_>, id: &str) -> Option<Json> {
    extensions.get_present(id).filter(|settings| settings.as_str() != "false").map(Json::from)
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
    pub fn extension(mut self, extension: Extension<K>) -> Self {
        let functions = Arc::make_mut(&mut self.handlers);
        let is_taken = |name: &str| functions.method(name).is_some();
        let declared = &mut self.options.capabilities_mut().extensions;
        let fits = extension.declare(Side::Client, functions.extensions(), is_taken, declared);
        if let Err(problem) = fits {
            self.note(CatalogError::Extension(problem));
            return self;
        }
        let Extension { registration, handlers, receivers, layers, messages, .. } = extension;
        for (row, function) in handlers {
            let (method, declare) = (row.name.into(), None);
            functions.set_method(MethodHandler { method, function, declare });
        }
        functions.details.get_or_insert(details);
        let is_notified = !receivers.is_empty();
        let table = Arc::make_mut(functions.extensions.get_or_insert_default());
        table.0.push(registration);
        table.1.extend(receivers);
        if is_notified {
            self.options.policy_mut().deliver_unknown_methods = true;
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
