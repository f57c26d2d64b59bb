//! Extensions of the protocol, as a package outside of this crate would write them.
//!
//! An extension has an identifier, settings that each side declares with its capabilities, and
//! methods of its own. An [`Extension`] is one of its two sides, registered with
//! [`Server::extension`](crate::Server::extension) or [`Host::extension`](crate::Host::extension).
//! An [`ExtensionMethod`] is a constant that both sides share: the row of a method in the table
//! that sending and receiving check, with the types of its parameters and its result.
//!
//! ```
//! use mcp_sansio_handlers::extension::{Extension, ExtensionMethod};
//! use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
//!
//! const ID: &str = "com.example/greetings";
//! const GREET: ExtensionMethod<Person, Greeting> = ExtensionMethod::new(ID, "greetings/greet");
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! struct Person { name: String }
//!
//! #[derive(serde::Deserialize, serde::Serialize)]
//! struct Greeting { text: String }
//!
//! let greetings = Extension::new(ID)?.request(&GREET, |call: Call<Person>| {
//!     Greeting { text: format!("Hello, {}!", call.arguments.name) }
//! });
//! let server = Server::new("greeter", "1.0.0").extension(greetings);
//! let host = Host::new("demo", "1.0.0").extension(Extension::new(ID)?);
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # let application = async {
//! let greeting = client.call_extension(&GREET, &Person { name: "Ada".into() }).await?;
//! assert_eq!(greeting.text, "Hello, Ada!");
//! # Ok::<(), mcp_sansio_handlers::ClientError>(()) };
//! # pair.run(application)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An [`ExtensionNotification`] is the same for a notification, which either side may send.
//!
//! Nothing is declared unless it is registered. A handler of any method reads what the client
//! declared with [`Context::extension`](crate::Context::extension), an application what the server
//! declared with [`Session::extension`](crate::Session::extension).

pub(super) mod server;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{MethodName, Notification};
use mcp_sansio::protocol::{
    CapabilitySettings, ExtensionError, ExtensionRequirement, check_extension_id,
};
use mcp_sansio::{Capabilities, Capability, Method, Revision, Revisions, Side};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Call, Context, FromRequest, RequestParts};
use crate::mailbox::Command;
use crate::reply::{HandlerError, IntoOutcome, Outcome, ResultBody};
use crate::server_binding::ServerBinding;
use crate::server_endpoint::ServerEndpoint;
use crate::threading::Threading;

pub use server::Extension;
pub(super) use server::{ExtensionTable, details};

// ------------------------------------------------------------------ requests

/// A request of an extension: its row in the table of methods, and the types of its parameters and
/// its result. Clients send it at every revision, unless [`sent_by`](Self::sent_by) and
/// [`revisions`](Self::revisions) say otherwise.
///
/// The parameters of a modern request have a member `_meta`, which their type has to ignore.
pub struct ExtensionMethod<P, R> {
    pub(crate) row: MethodRow,
    types: PhantomData<fn(P) -> R>,
}

/// The rules for sending a method of an extension.
// MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodRow {
    pub(crate) extension: &'static str,
    pub(crate) name: &'static str,
    sender: Side,
    revisions: Revisions,
    /// Whether clients that did not declare the extension may send it.
    undeclared: bool,
}

impl MethodRow {
    pub(crate) const fn new(
        extension: &'static str,
        name: &'static str,
        sender: Side,
        revisions: Revisions,
    ) -> Self {
        Self { extension, name, sender, revisions, undeclared: false }
    }
}

impl<P, R> ExtensionMethod<P, R> {
    /// Creates the method `name` of the extension with this identifier.
    #[must_use]
    pub const fn new(extension: &'static str, name: &'static str) -> Self {
        let (sender, revisions) = (Side::Client, Revisions::since(Revision::V2025_06_18));
        let row = MethodRow::new(extension, name, sender, revisions);
        Self { row, types: PhantomData }
    }

    /// Sets the side that sends the method. Servers send requests until 2025-11-25 only.
    // MCP 2026-07-28 basic/transports/index#messages [LIFE-017]
    #[must_use]
    pub const fn sent_by(mut self, sender: Side) -> Self {
        self.row.sender = sender;
        if let Side::Server = sender {
            self.row.revisions = self.row.revisions.intersection(Revisions::LEGACY);
        }
        self
    }

    /// Sets the revisions at which the method exists; by default those since 2025-06-18, the first
    /// at which clients and servers can declare extensions.
    #[must_use]
    pub const fn revisions(mut self, revisions: Revisions) -> Self {
        self.row.revisions = revisions;
        self
    }

    /// Lets a server accept the method from clients that did not declare the extension. The client
    /// still sends it only to servers that did.
    #[must_use]
    pub const fn from_any_client(mut self) -> Self {
        self.row.undeclared = true;
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

impl<P, R> Clone for ExtensionMethod<P, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, R> Copy for ExtensionMethod<P, R> {}

impl<P, R> fmt::Debug for ExtensionMethod<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionMethod").field("row", &self.row).finish()
    }
}

/// Why a method of an extension must not be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionGateError {
    /// The other side sends the method.
    #[error("a {sender} must not send `{method}`")]
    WrongDirection {
        /// The method.
        method: &'static str,
        /// The side that tried to send it.
        sender: Side,
    },
    /// The method does not exist at the revision.
    #[error("`{method}` does not exist at revision {revision}")]
    NotAtRevision {
        /// The method.
        method: &'static str,
        /// The revision of the connection.
        revision: Revision,
    },
    /// A side did not declare the extension. This side declares it by registering it.
    #[error("`{method}` requires the extension {extension:?}, which the {side} did not declare")]
    NotDeclared {
        /// The method.
        method: &'static str,
        /// The extension.
        extension: &'static str,
        /// The side that would have to declare it.
        side: Side,
    },
}

impl MethodRow {
    const fn sender(&self) -> Side {
        self.sender
    }

    /// Checks whether `sender` may send the method at `revision`, where `client` and `server` say
    /// which sides declared the extension.
    // MCP 2026-07-28 extensions:SEP-2133#negotiation [EXT-006]
    // MCP 2026-07-28 extensions:SEP-2133#graceful-degradation [EXT-013]
    pub(crate) fn check(
        &self,
        sender: Side,
        revision: Revision,
        client: bool,
        server: bool,
    ) -> Result<(), ExtensionGateError> {
        let Self { name: method, extension, .. } = *self;
        if sender != self.sender {
            return Err(ExtensionGateError::WrongDirection { method, sender });
        }
        if !self.revisions.contains(revision) {
            return Err(ExtensionGateError::NotAtRevision { method, revision });
        }
        let not_declared = |side| Err(ExtensionGateError::NotDeclared { method, extension, side });
        if !server {
            return not_declared(Side::Server);
        }
        if !client && !self.undeclared {
            return not_declared(Side::Client);
        }
        Ok(())
    }
}

// ------------------------------------------------------------------ handlers of requests

// MCP 2026-07-28 extensions:SEP-2133#security-implications [EXT-016]: parameters of
// another type are refused.
impl<P: DeserializeOwned, R> FromRequest<ExtensionMethod<P, R>> for Call<P> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        <Self as FromRequest<Json>>::from_request(received)
    }
}

impl<P, R: Serialize> IntoOutcome<ExtensionMethod<P, R>> for R {
    fn into_outcome(self) -> Outcome {
        result(&self)
    }
}

impl<P, R: Serialize> IntoOutcome<ExtensionMethod<P, R>> for Result<R, HandlerError> {
    fn into_outcome(self) -> Outcome {
        self.map_or_else(HandlerError::into_outcome, |reply| result(&reply))
    }
}

fn result<R: Serialize>(reply: &R) -> Outcome {
    match Json::from_serialize(reply) {
        Ok(json) if json.as_str().starts_with('{') => Outcome::Result(ResultBody::Other(json)),
        Ok(_) => Outcome::Error(ErrorObject::internal("the result is not an object")),
        Err(_) => Outcome::Error(ErrorObject::internal("the result cannot be serialized")),
    }
}

// ------------------------------------------------------------------ registration

/// An extension that is registered with a server or a host.
// MCP 2026-07-28 extensions:SEP-3371-summary#general [EXT-018]
#[derive(Clone, Debug)]
pub struct RegisteredExtension {
    id: String,
    settings: Json,
    requirements: Vec<ExtensionRequirement>,
    pub(crate) methods: Vec<MethodRow>,
}

impl RegisteredExtension {
    // MCP 2026-07-28 basic/versioning#extension-negotiation [EXT-001]
    fn new(id: String) -> Result<Self, ExtensionError> {
        if let Err(reason) = check_extension_id(&id) {
            return Err(ExtensionError::InvalidId { id, reason });
        }
        let settings = RawJson::EMPTY_OBJECT.into();
        Ok(Self { id, settings, requirements: Vec::new(), methods: Vec::new() })
    }

    /// Returns the identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the settings that this side declares, an object.
    #[must_use]
    pub const fn settings(&self) -> &Json {
        &self.settings
    }

    /// Returns what the extension requires of this side.
    #[must_use]
    pub fn requirements(&self) -> &[ExtensionRequirement] {
        &self.requirements
    }

    /// Returns the names of the methods that this side handles.
    pub fn methods(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.methods.iter().map(|row| row.name)
    }

    fn set_settings<S: Serialize + ?Sized>(&mut self, settings: &S) -> Result<(), ExtensionError> {
        match Json::from_serialize(settings) {
            Ok(settings) if settings.as_str().starts_with('{') => self.settings = settings,
            _ => return Err(ExtensionError::InvalidSettings { id: self.id.clone() }),
        }
        Ok(())
    }

    fn require(&mut self, capability: Capability) {
        self.requirements.push(ExtensionRequirement::Capability(capability));
    }

    fn require_extension(&mut self, id: String) {
        self.requirements.push(ExtensionRequirement::Extension(id));
    }

    /// Adds a method that this side handles.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-026]
    fn add_method(&mut self, row: MethodRow) -> Result<(), ExtensionError> {
        let (id, method) = (self.id.clone(), row.name.into());
        if row.extension != self.id {
            return Err(ExtensionError::ForeignMethod { id, method });
        }
        let is_taken = self.methods.iter().any(|known| known.name == row.name);
        if is_taken || Method::parse(row.name).is_some() {
            return Err(ExtensionError::MethodTaken { id, method });
        }
        self.methods.push(row);
        Ok(())
    }

    /// Checks that this extension fits to the ones that are registered, and declares it.
    // MCP 2026-07-28 extensions:SEP-3371-summary#1-registration [EXT-020] [EXT-021]
    fn declare(
        &self,
        registered: &[Self],
        is_taken: impl Fn(&str) -> bool,
        declared: &mut Option<CapabilitySettings>,
    ) -> Result<(), ExtensionError> {
        if declared.as_ref().is_some_and(|declared| declared.contains_key(&self.id)) {
            return Err(ExtensionError::Duplicate { id: self.id.clone() });
        }
        let mut others = registered.iter().flat_map(Self::methods);
        let taken = self.methods().find(|name| others.any(|it| it == *name) || is_taken(name));
        if let Some(method) = taken {
            let (id, method) = (self.id.clone(), method.into());
            return Err(ExtensionError::MethodTaken { id, method });
        }
        declared.get_or_insert_default().insert(self.id.as_str(), self.settings.clone());
        Ok(())
    }
}

/// Returns the first unmet requirement of extensions on a side with these capabilities and
/// extensions.
// MCP 2026-07-28 extensions:SEP-3371-summary#1-registration [EXT-022] [EXT-023] [EXT-024]: checked
// when everything is registered, and before a message is handled.
pub(crate) fn unmet(
    registered: &[RegisteredExtension],
    capabilities: Capabilities,
    declared: Option<&CapabilitySettings>,
) -> Option<ExtensionError> {
    let is_met = |requirement: &ExtensionRequirement| match requirement {
        ExtensionRequirement::Capability(capability) => capabilities.contains(*capability),
        ExtensionRequirement::Extension(id) => declared.is_some_and(|all| all.contains_key(id)),
        _ => false,
    };
    registered.iter().find_map(|extension| {
        let requirement = extension.requirements.iter().find(|it| !is_met(it))?.clone();
        Some(ExtensionError::Unmet { id: extension.id.clone(), requirement })
    })
}

// ------------------------------------------------------------------ notifications

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
    fn new<P: DeserializeOwned>(
        notification: &ExtensionNotification<P>,
        receive: impl Fn(P) + Send + Sync + 'static,
    ) -> Self {
        // Parameters of another type are dropped: a notification has no answer.
        let receive = Arc::new(move |params: &RawJson<'_>| {
            if let Ok(params) = params.decode() {
                receive(params);
            }
        });
        Self { row: notification.row, receive }
    }

    /// Calls the receiver of a notification, if there is one.
    pub(crate) fn call(
        all: &[Self],
        sender: Side,
        notification: &Notification<'_>,
        is_declared: impl Fn(&str) -> bool,
        guard: crate::executor::PanicGuard,
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

mcp_sansio::partial_debug! { impl Debug for Receiver { row, .. } }

impl Context {
    /// Sends a notification of an extension to the client, on the stream of this request. It is
    /// dropped if the request has ended, as that of a call that has become a task, and while the
    /// client does not read.
    ///
    /// # Errors
    ///
    /// The client did not declare the extension, or the notification does not exist at its
    /// revision.
    // MCP 2026-07-28 extensions:SEP-3371-summary#2-custom-methods [EXT-025]
    pub fn notify_extension<P: Serialize>(
        &self,
        notification: &ExtensionNotification<P>,
        params: &P,
    ) -> Result<(), ExtensionGateError> {
        let row = &notification.row;
        let client = self.client_extension(row.extension).is_some();
        row.check(Side::Server, self.revision(), client, true)?;
        // Parameters that cannot be serialized are a bug of the server, which the client need not
        // see.
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
