use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpListener;

use crate::messages::answer;

/// A body that never yields a frame and never ends.
struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

type Answer = Response<Either<Full<Bytes>, Silence>>;

/// Serves with hyper alone until the process is terminated.
pub(crate) fn serve(address: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let listener = TcpListener::bind(address).await.expect("listens");
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            socket.set_nodelay(true).expect("a socket");
            let connection = hyper::server::conn::http1::Builder::new();
            let served = connection.serve_connection(TokioIo::new(socket), service_fn(respond));
            // A client that disconnects is not an error.
            tokio::spawn(async { drop(served.await) });
        }
    });
}

async fn respond(request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let response = Response::builder();
    if request.method() == Method::GET {
        let response = response.header("content-type", "text/event-stream");
        return Ok(response.body(Either::Right(Silence)).expect("a response"));
    }
    let message = request.into_body().collect().await?.to_bytes();
    let mut body = Vec::new();
    let response = if answer(&message, &mut body) {
        response.header("content-type", "application/json").header("mcp-session-id", "floor")
    } else {
        response.status(StatusCode::ACCEPTED)
    };
    Ok(response.body(Either::Left(Full::new(body.into()))).expect("a response"))
}
