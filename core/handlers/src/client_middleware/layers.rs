use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::Instant;
use mcp_sansio::peer::{ClientMachine, Event};
use mcp_sansio_sync::Mutex;

use crate::client_endpoint::ClientEndpoint;
use crate::host::Host;
use crate::middleware::{
    AccessLog, ConcurrencyLimit, FunctionMarker, LayerMarker, RateLimit, ResultCache, Timeout,
};
use crate::threading::Threading;

use super::next_call::{CallResult, NextCall};
use super::request::ClientRequest;

/// A function or a type that can be registered with
/// [`Host::call_middleware`](crate::Host::call_middleware): an `async` function or closure that takes a
/// [`ClientRequest`] and a [`NextCall`] and returns a [`CallResult`], or an [`AccessLog`], a
/// [`ConcurrencyLimit`], a [`RateLimit`], a [`ResultCache`] or a [`Timeout`].
///
/// `M` tells them apart; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "this cannot be registered as middleware of calls",
    label = "not middleware: wrong parameters or wrong result",
    note = "middleware is an `async fn(ClientRequest, NextCall) -> CallResult`",
    note = "values that it captures are `Send`, `Sync` and `Clone`, because clients are used from any thread"
)]
pub trait ClientMiddleware<M> {
    /// Converts it into the stored form.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn into_layer(self) -> CallLayer;

    /// Returns a function to call with each event of the connections.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn event_observer(&self) -> Option<EventObserver> {
        None
    }
}

/// A function that is told the number of a connection and an event of it.
pub(crate) type EventObserver = Arc<dyn Fn(usize, &Event<'_>) + Send + Sync>;

/// A stored middleware.
pub(crate) type CallLayer = Arc<dyn Fn(ClientRequest, NextCall) -> LayerFuture + Send + Sync>;

type LayerFuture = Pin<Box<dyn Future<Output = CallResult> + Send>>;

// Cloned for each call, so that an `async move` closure may capture values.
impl<F, R> ClientMiddleware<FunctionMarker> for F
where
    F: FnOnce(ClientRequest, NextCall) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = CallResult> + Send + 'static,
{
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn into_layer(self) -> CallLayer {
        Arc::new(move |request, next| Box::pin(self.clone()(request, next)))
    }
}

/// Implements [`ClientMiddleware`] for a type with an asynchronous method `around_call(&self,
/// ClientRequest, NextCall) -> CallResult`. A second argument names the method that returns its
/// [`EventObserver`].
macro_rules! call_layer {
    ($($layer:ty $(, $observer:ident)?;)+) => { $(
        impl ClientMiddleware<LayerMarker> for $layer {
            #[allow(private_interfaces, reason = "only this crate uses it")]
            fn into_layer(self) -> CallLayer {
                Arc::new(move |request, next| {
                    let layer = self.clone();
                    Box::pin(async move { layer.around_call(request, next).await })
                })
            }

            $(
                #[allow(private_interfaces, reason = "only this crate uses it")]
                fn event_observer(&self) -> Option<EventObserver> {
                    Some(self.$observer())
                }
            )?
        }
    )+ };
}

call_layer! {
    AccessLog;
    ConcurrencyLimit;
    RateLimit;
    ResultCache, event_observer;
    Timeout;
}

/// The middleware of a host, the outermost first.
#[derive(Clone, Default)]
pub(crate) struct CallLayers {
    list: Vec<CallLayer>,
    observers: Vec<EventObserver>,
    /// Counts the connections of the host.
    connections: Arc<AtomicUsize>,
}

/// The middleware of a connection.
pub(crate) struct ConnectionLayers {
    list: Vec<CallLayer>,
    observers: Vec<EventObserver>,
    /// The number of the connection among those of its host.
    number: usize,
    /// The time, and the number of the current token; zero without one.
    state: Mutex<(Instant, u64)>,
}

impl CallLayers {
    pub(crate) fn connect(&self) -> Box<ConnectionLayers> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let (list, observers) = (self.list.clone(), self.observers.clone());
        Box::new(ConnectionLayers { list, observers, number, state: Mutex::default() })
    }
}

impl ConnectionLayers {
    pub(super) fn get(&self, index: usize) -> Option<&CallLayer> {
        self.list.get(index)
    }

    pub(super) const fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn now(&self) -> Instant {
        self.state.lock(|(now, _)| *now)
    }

    pub(crate) fn token(&self) -> u64 {
        self.state.lock(|(_, token)| *token)
    }

    /// Moves to the time of an input, with the number of the current token.
    pub(crate) fn advance(&self, time: Instant, token: u64) {
        self.state.lock(|state| *state = (time, token));
    }

    /// Shows an event of the connection to the middleware.
    pub(crate) fn show(&self, event: &Event<'_>) {
        for observer in &self.observers {
            observer(self.number, event);
        }
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Tells the middleware the time and the current token.
    pub(crate) fn advance_layers(&self, now: Instant) {
        if let Some(layers) = &self.shared.layers {
            #[cfg(feature = "http")]
            let token = self.authorization.token_number();
            #[cfg(not(feature = "http"))]
            let token = 0;
            layers.advance(now, token);
        }
    }
}

impl fmt::Debug for CallLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallLayers").field("length", &self.list.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ConnectionLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLayers").field("length", &self.list.len()).finish_non_exhaustive()
    }
}

impl<K: Threading> Host<K> {
    /// Adds middleware around all calls of the host's clients, inside of that of earlier calls: see
    /// [`client_middleware`](crate::client_middleware).
    ///
    /// All connections of the host share its state, such as the places of a
    /// [`ConcurrencyLimit`].
    #[must_use]
    pub fn call_middleware<M>(mut self, middleware: impl ClientMiddleware<M>) -> Self {
        let layers = self.layers.get_or_insert_default();
        layers.observers.extend(middleware.event_observer());
        layers.list.push(middleware.into_layer());
        self
    }
}
