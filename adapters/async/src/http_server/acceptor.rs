use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::HttpService;
use super::connections::{Connections, Permit};
use crate::timer::timeout;
use crate::{Network, StopHandle};

/// Accepts connections, up to a limit, and serves each in its own task.
#[derive(Debug)]
#[non_exhaustive]
pub struct Acceptor<N: Network> {
    /// The runtime of the tasks.
    pub runtime: N,
    /// The listener to accept from.
    pub listener: N::Listener,
    /// Concurrent connections; others wait to be accepted. 512 by default, which suits a thread for
    /// each.
    pub connections_max: usize,
    /// How long connections may last after the shutdown. 10 s by default.
    pub linger: Duration,
    /// Whether the [principal](crate::PeerAddress::principal) of a peer is the caller of its
    /// requests. `false` by default.
    pub peer_principals: bool,
}

impl<N: Network> Acceptor<N> {
    /// Creates an acceptor of the connections to `listener`, with tasks on `runtime`.
    #[must_use]
    pub const fn new(runtime: N, listener: N::Listener) -> Self {
        Self {
            runtime,
            listener,
            connections_max: 512,
            linger: Duration::from_secs(10),
            peer_principals: false,
        }
    }

    /// Serves until `shutdown` completes, and then until the responses in progress are complete or
    /// `linger` has passed. This closes the service for all its clones. Dropping the future aborts
    /// all connections.
    ///
    /// `serve` serves one connection until it ends or, once stopped through the [`StopHandle`], has
    /// no request in progress; it drops the permit then.
    pub async fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        service: &HttpService<N>,
        shutdown: impl Future<Output = ()>,
        serve: impl Fn(N::Socket, HttpService<N>, StopHandle, Permit) -> F,
    ) {
        let Self { runtime, listener, connections_max, linger, peer_principals } = self;
        let connections = Connections::default();
        let accept = async {
            loop {
                poll_fn(|cx| connections.poll_below(connections_max, cx)).await;
                let (socket, peer) = match N::accept(&listener).await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors or similar: the condition passes, but not immediately.
                        if error.kind() != io::ErrorKind::ConnectionAborted {
                            timeout(&runtime, Duration::from_millis(50), pending::<()>()).await;
                        }
                        continue;
                    }
                };
                let (connection, permit) = connections.open();
                let service = service.with_peer(peer, peer_principals);
                let serving = serve(socket, service, connection.stop, permit);
                runtime.spawn(connection.abort.run(serving));
            }
        };
        {
            let (mut shutdown, mut accept) = (pin!(shutdown), pin!(accept));
            poll_fn(|cx| match shutdown.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => accept.as_mut().poll(cx),
            })
            .await;
        }
        drop(listener);
        // Idle connections close now, the others after their response.
        connections.stop();
        let all = async {
            service.close().await;
            poll_fn(|cx| connections.poll_below(1, cx)).await;
        };
        // Connections that take longer are aborted when the set is dropped.
        let _in_time = timeout(&runtime, linger, all).await;
    }
}
