use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::auth::Grant;
use mcp_sansio::http::server::Transmit;
use mcp_sansio::http::{ExchangeId, RequestHead, Response, ResponseHead};
use mcp_sansio_handlers::Work;

use super::site::Site;
use super::socket::Socket;
use crate::now;

/// The place of one exchange: to drop it before its response is complete is to have gone.
#[derive(Debug)]
pub(super) struct Place {
    site: Arc<Site>,
    exchange: ExchangeId,
    complete: bool,
}

/// What comes next in an exchange.
#[derive(Debug)]
pub(super) enum Next {
    Whole(Response),
    Open(ResponseHead),
    Chunk(Vec<u8>),
    Finish,
    /// The connection is to be broken off.
    Abort,
    /// The client has gone.
    Gone,
}

impl Place {
    /// Hands a request in. Where there is work, it is to be begun at once.
    pub(super) fn take<'f>(
        site: &Arc<Site>,
        head: &RequestHead<'_>,
        body: &'f [u8],
        grant: Option<&Grant>,
    ) -> (Self, Option<Work<'f>>) {
        let (exchange, work) = site.change(|locked| match grant {
            Some(grant) => locked.server.handle_granted(head, body, grant, now()),
            None => locked.server.handle_request(head, body, None, now()),
        });
        (Self { site: Arc::clone(site), exchange, complete: false }, work)
    }

    /// Waits for what comes next, or for the client to go.
    pub(super) async fn next(&mut self, socket: &mut Socket) -> Next {
        poll_fn(|cx| match self.poll(cx) {
            Poll::Ready(next) => Poll::Ready(next),
            Poll::Pending => socket.poll_gone(cx).map(|()| Next::Gone),
        })
        .await
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Next> {
        let Self { site, exchange, complete } = self;
        site.change(|locked| {
            let Some(transmit) = locked.server.poll_transmit(*exchange, now()) else {
                // Under the same lock: nothing can come in between that wakes nobody.
                locked.wait(*exchange, cx);
                return Poll::Pending;
            };
            *complete =
                matches!(transmit, Transmit::Respond(_) | Transmit::Finish | Transmit::Abort);
            let next = match transmit {
                Transmit::Respond(response) => Next::Whole(response),
                Transmit::Open(head) => Next::Open(head),
                Transmit::Chunk(bytes) => Next::Chunk(bytes.to_vec()),
                Transmit::Finish => Next::Finish,
                Transmit::Abort => Next::Abort,
            };
            if *complete {
                locked.leave(*exchange);
            }
            Poll::Ready(next)
        })
    }

    /// Whether it is to be broken off; whoever asks is woken when it may be.
    pub(super) fn is_cut(&self, cx: &Context<'_>) -> bool {
        if self.complete {
            return false;
        }
        self.site.change(|locked| {
            locked.wait(self.exchange, cx);
            locked.server.is_aborted(self.exchange)
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.complete {
            // The slot may be another exchange's by now.
            return;
        }
        self.site.change(|locked| {
            locked.leave(self.exchange);
            locked.server.handle_disconnect(self.exchange, now());
        });
    }
}
