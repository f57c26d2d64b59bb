use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use http::StatusCode;
use http_body::Body;
use mcp_sansio_async::http_server::{ConnectionBudget, HttpService, ServedBody};
use mcp_sansio_async::{Runtime as _, StopHandle, timeout};

use super::Timeouts;
use super::body::{RequestBody, SharedSocket};
use super::request::{self, BadHead, Framing, Request};
use super::response::{self, Ending};
use super::socket::Socket;
use crate::runtime::ThreadRuntime;

/// How to proceed with a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disposition {
    /// Serve the next request.
    Keep,
    /// Close it gracefully.
    Close,
    /// Drop it: the client has disconnected.
    Drop,
}

impl Disposition {
    const fn keep_if(keep_alive: bool) -> Self {
        if keep_alive { Self::Keep } else { Self::Close }
    }
}

/// Serves one connection, request after request, until its client disconnects, or until it is told
/// to `stop` and no request is pending.
pub(super) async fn serve(
    mut socket: Socket,
    service: HttpService<ThreadRuntime>,
    stop: StopHandle,
    timeouts: Timeouts,
    budget: &ConnectionBudget,
) {
    let runtime = ThreadRuntime::current();
    loop {
        let head = timeout(&runtime, timeouts.head, request::read_head(&mut socket));
        let head = match stop.until_stopped(head).await {
            Some(Some(Ok(head))) => head,
            Some(Some(Err(BadHead::Gone))) => return,
            Some(Some(Err(bad))) => return reject(socket, bad).await,
            Some(None) if socket.input().is_empty() => return socket.linger().await,
            Some(None) => return send_status(socket, StatusCode::REQUEST_TIMEOUT).await,
            None => return socket.linger().await,
        };
        let then = match request::parse(&head) {
            Ok(request) => serve_request(&mut socket, &service, request, &stop, budget).await,
            Err(bad) => return reject(socket, bad).await,
        };
        match then {
            Ok(Disposition::Keep) => {}
            Ok(Disposition::Close) => return socket.linger().await,
            // The client has disconnected, or does not read.
            Ok(Disposition::Drop) | Err(_) => return,
        }
    }
}

async fn reject(socket: Socket, bad: BadHead) {
    let status = match bad {
        BadHead::Malformed => StatusCode::BAD_REQUEST,
        BadHead::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        BadHead::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
        BadHead::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        BadHead::Gone => return,
    };
    send_status(socket, status).await;
}

/// Sends an error status and closes the connection, since the start of the next request is unknown.
async fn send_status(mut socket: Socket, status: StatusCode) {
    if socket.write(&response::bare(status)).await.is_ok() {
        socket.linger().await;
    }
}

async fn serve_request(
    socket: &mut Socket,
    service: &HttpService<ThreadRuntime>,
    request: Request,
    stop: &StopHandle,
    budget: &ConnectionBudget,
) -> io::Result<Disposition> {
    let Request { head, framing, keep_alive, awaits_continue, bodiless, takes_chunks } = request;
    let shared = SharedSocket(Mutex::new(&mut *socket));
    let is_read = AtomicBool::new(framing == Framing::Length(0));
    let response = {
        let body = RequestBody::new(&shared, framing, awaits_continue, &is_read);
        let mut served = pin!(service.serve(head.map(|()| body)));
        poll_fn(|cx| match served.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            // While the body is being read, its reader detects a disconnect.
            Poll::Pending if !is_read.load(Ordering::Relaxed) => Poll::Pending,
            Poll::Pending => shared.lock().poll_disconnect(cx).map(|()| None),
        })
        .await
    };
    let Some(response) = response else { return Ok(Disposition::Drop) };
    let (response, _charge) = budget.charge_response(response);
    // The start of the next request is unknown until this one is completely read.
    let then =
        Disposition::keep_if(keep_alive && is_read.load(Ordering::Relaxed) && !stop.is_stopped());
    let (head, body) = response.into_parts();
    let mut body = pin!(body);
    let ending = match body.size_hint().exact() {
        Some(length) => Ending::Length(length),
        None if takes_chunks => Ending::Chunks,
        None => Ending::Close,
    };
    let mut bytes = response::head_bytes(&head, ending, then == Disposition::Keep);
    if let Ending::Length(_) = ending {
        let whole = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        if let Some(Ok(frame)) = whole
            && !bodiless
        {
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        }
        socket.write(&bytes).await?;
        return Ok(then);
    }
    socket.write(&bytes).await?;
    stream(socket, body, ending == Ending::Chunks, then).await
}

/// Streams the body of a response.
async fn stream(
    socket: &mut Socket,
    mut body: Pin<&mut ServedBody>,
    chunks: bool,
    then: Disposition,
) -> io::Result<Disposition> {
    let mut frame = Vec::new();
    loop {
        let next = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(next) => Poll::Ready(Some(next)),
            Poll::Pending => socket.poll_disconnect(cx).map(|()| None),
        });
        let bytes = match next.await {
            Some(Some(Ok(next))) => next.into_data().unwrap_or_default(),
            Some(None) => break,
            // The server aborts the response, or the client has disconnected.
            Some(Some(Err(_))) | None => return Ok(Disposition::Drop),
        };
        if bytes.is_empty() {
            continue;
        }
        if chunks {
            frame.clear();
            write!(frame, "{:x}\r\n", bytes.len())?;
            frame.extend_from_slice(&bytes);
            frame.extend_from_slice(b"\r\n");
            socket.write(&frame).await?;
        } else {
            socket.write(&bytes).await?;
        }
    }
    if chunks {
        socket.write(b"0\r\n\r\n").await?;
    }
    Ok(then)
}
