use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::jsonrpc::{Json, RawJson};
#[cfg(feature = "extensions")]
use mcp_sansio::peer::Notification;
use mcp_sansio::protocol::{LoggingLevel, Method, Side};
use serde::{Deserialize, Serialize, Serializer};

use crate::command::Command;
use crate::panics::PanicGuard;
use crate::server::Server;
use crate::threading::Threading;

/// A notification that passes [`Server::notification_middleware`](crate::Server::notification_middleware).
#[derive(Debug)]
pub struct ServerNotification<'a> {
    sender: Side,
    method: &'a str,
    params: RawJson<'a>,
}

impl ServerNotification<'_> {
    /// Returns who sends it: a handler of this server, or a client.
    #[must_use]
    pub const fn sender(&self) -> Side {
        self.sender
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &str {
        self.method
    }

    /// Returns the parameters: a JSON object. Those of progress have no token, which the client has
    /// chosen.
    #[must_use]
    pub const fn params(&self) -> &RawJson<'_> {
        &self.params
    }
}

/// The decision of a middleware about a notification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotificationAction {
    /// It is passed on.
    Forward,
    /// It is passed on with these parameters, a JSON object. Progress and log messages keep the
    /// members that the protocol defines, without `_meta`. Parameters that do not fit the method, and
    /// another URI of a resource, drop it.
    Replace(Json),
    /// It is dropped.
    Drop,
}

type Function = Arc<dyn Fn(&ServerNotification<'_>) -> NotificationAction + Send + Sync>;

/// The middleware of a server around notifications.
///
/// A trait, so that the binary of a server without it contains no code for it: only
/// [`Server::notification_middleware`](crate::Server::notification_middleware) refers to the
/// implementation.
pub(crate) trait NotificationLayers: Send + Sync {
    /// Returns a list with one more, the innermost.
    fn with(&self, function: Function) -> Arc<dyn NotificationLayers>;

    /// Passes a notification of a handler through all middleware, the innermost first. Other commands
    /// are returned unchanged.
    fn pass_sent(&self, command: Command, guard: PanicGuard) -> Option<Command>;

    /// Passes a notification of a client through all middleware, the outermost first.
    #[cfg(feature = "extensions")]
    fn pass_received<'f>(
        &self,
        notification: Notification<'f>,
        guard: PanicGuard,
    ) -> Option<Notification<'f>>;
}

struct Functions(Vec<Function>);

#[derive(Serialize, Deserialize)]
struct Progress {
    progress: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Log {
    #[serde(serialize_with = "serialize_level")]
    level: LoggingLevel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logger: Option<String>,
    data: Json,
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
fn serialize_level<S: Serializer>(level: &LoggingLevel, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(level.as_str())
}

#[derive(Serialize, Deserialize)]
struct Updated {
    uri: String,
}

/// Whether a notification is passed on, and with which parameters if they were changed.
enum Passed {
    Unchanged,
    Changed(RawJson<'static>),
    Dropped,
}

impl Passed {
    /// Returns the parameters; `None` if the notification is dropped. `sent` are the unchanged ones.
    fn decode<P: for<'d> Deserialize<'d>>(self, sent: P) -> Option<P> {
        match self {
            Self::Unchanged => Some(sent),
            Self::Changed(params) => params.decode().ok(),
            Self::Dropped => None,
        }
    }
}

impl Functions {
    /// `layers` are in the order in which the notification passes them.
    fn pass<'l>(
        layers: impl Iterator<Item = &'l Function>,
        (sender, method, params): (Side, &str, &RawJson<'_>),
        guard: PanicGuard,
    ) -> Passed {
        let mut changed: Option<RawJson<'static>> = None;
        for layer in layers {
            let params = RawJson::trusted(changed.as_ref().unwrap_or(params).as_str());
            let notification = ServerNotification { sender, method, params };
            // Forwarding it could reveal data that the middleware removes.
            match guard.run(|| layer(&notification)).unwrap_or(NotificationAction::Drop) {
                NotificationAction::Forward => {}
                NotificationAction::Replace(params) if params.as_str().starts_with('{') => {
                    changed = Some(params.into());
                }
                NotificationAction::Replace(_) | NotificationAction::Drop => {
                    return Passed::Dropped;
                }
            }
        }
        changed.map_or(Passed::Unchanged, Passed::Changed)
    }

    /// Passes a notification of this server.
    fn pass_method<P>(&self, method: &str, params: P, guard: PanicGuard) -> Option<P>
    where
        P: Serialize + for<'d> Deserialize<'d>,
    {
        let json = RawJson::from_serialize(&params).ok()?;
        let sent = (Side::Server, method, &json);
        Self::pass(self.0.iter().rev(), sent, guard).decode(params)
    }
}

impl NotificationLayers for Functions {
    fn with(&self, function: Function) -> Arc<dyn NotificationLayers> {
        Arc::new(Self(self.0.iter().cloned().chain([function]).collect()))
    }

    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-031] [EXT-032]: each message is
    // passed on before the next one is looked at, and errors and cancellations do not pass here.
    fn pass_sent(&self, command: Command, guard: PanicGuard) -> Option<Command> {
        Some(match command {
            Command::Progress { request, progress, total, message } => {
                let sent = Progress { progress, total, message };
                let Progress { progress, total, message } =
                    self.pass_method(Method::Progress.as_str(), sent, guard)?;
                Command::Progress { request, progress, total, message }
            }
            Command::Log { request, level, logger, data } => {
                let sent = Log { level, logger, data };
                let Log { level, logger, data } =
                    self.pass_method(Method::Message.as_str(), sent, guard)?;
                Command::Log { request, level, logger, data }
            }
            #[cfg(feature = "extensions")]
            Command::Notify { request, method, params } => {
                let params = self.pass_method(method, params, guard)?;
                Command::Notify { request, method, params }
            }
            Command::ResourceUpdated { from, uri } => {
                let sent = Updated { uri: uri.clone() };
                let passed = self.pass_method(Method::ResourcesUpdated.as_str(), sent, guard)?;
                // Its subscribers are those of the resource.
                (passed.uri == uri).then_some(Command::ResourceUpdated { from, uri })?
            }
            other => other,
        })
    }

    #[cfg(feature = "extensions")]
    fn pass_received<'f>(
        &self,
        mut notification: Notification<'f>,
        guard: PanicGuard,
    ) -> Option<Notification<'f>> {
        let received = (Side::Client, notification.method.as_str(), &notification.params);
        match Self::pass(self.0.iter(), received, guard) {
            Passed::Unchanged => {}
            Passed::Changed(params) => notification.params = params,
            Passed::Dropped => return None,
        }
        Some(notification)
    }
}

impl fmt::Debug for dyn NotificationLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotificationLayers")
    }
}

impl<K: Threading> Server<K> {
    /// Adds middleware around notifications: those that handlers and
    /// [`ServerHandle`](crate::ServerHandle)s send (progress, log messages, updates of resources,
    /// notifications of extensions), and those of clients to
    /// [extensions](crate::extension). It sees each before the next one, in order, and decides
    /// whether it is passed on. It must return quickly; a panic drops the notification.
    ///
    /// The first that is registered is the outermost: it sees received notifications first, and
    /// sent ones last. Announcements of changed lists and the status of tasks, which the protocol layer sends,
    /// do not pass it. A server with shards passes a log message without a request, and an update of a
    /// resource, once for each shard.
    ///
    #[cfg_attr(feature = "schemars", doc = "```")]
    #[cfg_attr(not(feature = "schemars"), doc = "```ignore")]
    /// use mcp_sansio_handlers::middleware::NotificationAction;
    /// use mcp_sansio_handlers::{Call, NoArguments, Server};
    ///
    /// let server = Server::new("weather", "1.0.0")
    ///     .logging()
    ///     .notification_middleware(|notification| {
    ///         if notification.params().as_str().contains("password") {
    ///             return NotificationAction::Drop;
    ///         }
    ///         NotificationAction::Forward
    ///     })
    ///     .tool("forecast", "The weather", |_: Call<NoArguments>| "Sunny");
    /// # assert!(server.endpoint(42).is_ok());
    /// ```
    #[must_use]
    pub fn notification_middleware(
        mut self,
        middleware: impl Fn(&ServerNotification<'_>) -> NotificationAction + Send + Sync + 'static,
    ) -> Self {
        let function: Function = Arc::new(middleware);
        let layers = &mut self.functions().notifications;
        *layers = Some(match layers {
            Some(layers) => layers.with(function),
            None => Arc::new(Functions(Vec::from([function]))),
        });
        self
    }
}
