use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::HttpService;
use super::connections::{Connections, Permit};
use crate::timer::timeout;
use crate::{Network, StopHandle};

/// Accepts connections, a bounded number at once, and serves each in a task of its own.
#[derive(Debug)]
pub struct Acceptor<N: Network> {
    /// What runs the tasks.
    pub runtime: N,
    /// Where connections come in.
    pub listener: N::Listener,
    /// Connections at once; others wait to be accepted.
    pub connections_max: usize,
    /// How long connections may last after the shutdown.
    pub linger: Duration,
}

impl<N: Network> Acceptor<N> {
    /// Serves until `shutdown` is done, and then until the responses under way are complete or their time
    /// is over. This closes the service, for all its clones. Dropped, it breaks off what is under way.
    ///
    /// `serve` serves one connection, until it ends or, once the [`StopHandle`] tells it to stop, has no request
    /// under way; it drops the permit then.
    pub async fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        service: &HttpService<N>,
        shutdown: impl Future<Output = ()>,
        serve: impl Fn(N::Socket, HttpService<N>, StopHandle, Permit) -> F,
    ) {
        let Self { runtime, listener, connections_max, linger } = self;
        let connections = Connections::default();
        let accept = async {
            loop {
                poll_fn(|cx| connections.poll_below(connections_max, cx)).await;
                let (socket, address) = match N::accept(&listener).await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors or the like: it passes, but not at once.
                        if error.kind() != io::ErrorKind::ConnectionAborted {
                            timeout(&runtime, Duration::from_millis(50), pending::<()>()).await;
                        }
                        continue;
                    }
                };
                let (connection, permit) = connections.open();
                let service = service.with_remote_address(address);
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
        // Connections without a request close now, the others after their response.
        connections.stop();
        let all = async {
            service.close().await;
            poll_fn(|cx| connections.poll_below(1, cx)).await;
        };
        // Those that take longer are broken off when the set of connections is dropped.
        let _in_time = timeout(&runtime, linger, all).await;
    }
}
