use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::marker::PhantomData;

use crate::threading::{Local, ThreadSafe, Threading};

use super::layers::{Middleware, ResourceObserver};
use super::next::into_outcome;
use super::server_request::ServerRequest;

/// Middleware for some requests only: returned by [`when`].
#[derive(Clone, Copy, Debug)]
pub struct When<F, L>(F, L);

/// Applies `middleware` only to requests for which `condition` returns `true`. The others skip it.
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio_handlers::Server;
/// use mcp_sansio_handlers::middleware::{ServerRequest, Timeout, when};
///
/// let is_report = |request: &ServerRequest| request.target().as_deref() == Some("report");
/// let server = Server::new("s", "1.0.0")
///     .middleware(when(is_report, Timeout::new(Duration::from_secs(5))));
/// # let _ = server;
/// ```
pub const fn when<F: Fn(&ServerRequest) -> bool, L>(condition: F, middleware: L) -> When<F, L> {
    When(condition, middleware)
}

/// Marks conditional middleware that is marked with `M`.
#[derive(Debug)]
pub struct WhenMarker<M>(PhantomData<M>);

impl<F, L, M> Middleware<ThreadSafe, WhenMarker<M>> for When<F, L>
where
    F: Fn(&ServerRequest) -> bool + Send + Sync + 'static,
    L: Middleware<ThreadSafe, M>,
{
    fn into_middleware(self) -> <ThreadSafe as Threading>::Middleware {
        let (condition, inner) = (self.0, self.1.into_middleware());
        Arc::new(move |request, next| {
            if condition(&request) {
                return inner(request, next);
            }
            Box::pin(async move { into_outcome(next.run().await, &request) })
        })
    }

    fn resource_observer(&self) -> Option<ResourceObserver> {
        self.1.resource_observer()
    }
}

impl<F, L, M> Middleware<Local, WhenMarker<M>> for When<F, L>
where
    F: Fn(&ServerRequest) -> bool + 'static,
    L: Middleware<Local, M>,
{
    fn into_middleware(self) -> <Local as Threading>::Middleware {
        let (condition, inner) = (self.0, self.1.into_middleware());
        Rc::new(move |request, next| {
            if condition(&request) {
                return inner(request, next);
            }
            Box::pin(async move { into_outcome(next.run().await, &request) })
        })
    }

    fn resource_observer(&self) -> Option<ResourceObserver> {
        self.1.resource_observer()
    }
}
