use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use mcp_sansio::http::{Exhausted, SharedLimit, SharedResource};

use super::connections::{Connections, Permit};
use super::{Budget, HttpService, StallGuard, response};
use crate::network::Network;
use crate::timer::timeout;
use crate::{ByteStream as _, StopHandle};

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
    /// Concurrent connections of one client: an address, or a user on this computer. Others are
    /// refused with 429. `None`, the default: a quarter of `connections_max`.
    pub connections_per_caller_max: Option<usize>,
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
            connections_per_caller_max: None,
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
        let budget = Budget::new(self.connection_limit());
        let Self { runtime, listener, connections_max, linger, peer_principals, .. } = self;
        let connections = Connections::default();
        let refusing = Arc::new(());
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
                let service = service.with_peer(peer, peer_principals);
                // All together were awaited above.
                let counted = budget.connection(&service, usize::MAX).charge_within(1);
                let Ok(counted) = counted else {
                    if Arc::strong_count(&refusing) <= REFUSALS_MAX {
                        let refused = refuse(socket, runtime.clone());
                        let held = Arc::clone(&refusing);
                        runtime.spawn(async move {
                            refused.await;
                            drop(held);
                        });
                    }
                    // A client that never stops connecting leaves time for other tasks.
                    yield_now().await;
                    continue;
                };
                let (connection, permit) = connections.open(counted);
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

    /// Returns the limit on connections.
    #[must_use]
    pub fn connection_limit(&self) -> SharedLimit {
        connection_limit(self.connections_max, self.connections_per_caller_max)
    }
}

/// Returns the limit on connections, where the share of a client is a quarter by default.
pub(super) fn connection_limit(total: usize, per_caller: Option<usize>) -> SharedLimit {
    SharedLimit::new(SharedResource::Connections, total, quarter_unless(per_caller, total))
}

/// Returns a share, which is a quarter of the total by default.
pub(super) fn quarter_unless(per_caller: Option<usize>, total: usize) -> usize {
    per_caller.unwrap_or_else(|| (total / 4).max(1))
}

/// Refuses a connection beyond its client's limit, for any request, and closes it.
async fn refuse<N: Network>(mut stream: N::Socket, runtime: N) {
    let response = SharedResource::Connections.refusal(Exhausted::Share).to_response(None);
    let bytes = response::http1_bytes(&response);
    let send = async {
        let mut rest = &bytes[..];
        poll_fn(|cx| {
            while !rest.is_empty() {
                match ready!(stream.poll_write(cx, rest)) {
                    Ok(count) if count > 0 => rest = &rest[count..],
                    _ => return Poll::Ready(()),
                }
            }
            stream.poll_close(cx).map(drop)
        })
        .await;
    };
    let _in_time = timeout(&runtime, REFUSAL_TIME, send).await;
    // Its request may still arrive.
    let mut lingering = StallGuard::new(runtime, REFUSAL_TIME).linger(1);
    poll_fn(|cx| lingering.poll(cx, |cx, space| stream.poll_read(cx, space))).await;
}

/// Lets other tasks run.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Refused connections that are told so at the same time; beyond it, they are closed. 16: a client
/// that stops connecting learns why.
const REFUSALS_MAX: usize = 16;

/// The time for a client to take its refusal: more than a round trip.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
