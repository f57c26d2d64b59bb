use std::io::{self, Write};
use std::net::SocketAddr;

use mcp_sansio::auth::Grant;

use super::body::{self, HeldBody, Unusable};
use super::exchange::{Next, Place};
use super::request::{self, BadHead, Framing, Request};
use super::response::{self, Ending};
use super::socket::Socket;
use super::{HttpService, Times, caller, running};
use crate::deadline::before;
use crate::now;
use crate::stop::Stop;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The next request.
    Keep,
    /// The client is to see its end.
    Part,
    /// There is nobody to part from.
    Drop,
}

impl Then {
    const fn keep_if(keeps: bool) -> Self {
        if keeps { Self::Keep } else { Self::Part }
    }
}

/// Serves one connection, request after request, until its client goes, or there is no request under
/// way and it is told to `leave`.
pub(super) async fn serve(
    mut socket: Socket,
    address: SocketAddr,
    service: &HttpService,
    leave: &Stop,
    times: Times,
) {
    loop {
        let head = before(now() + times.head, request::read_head(&mut socket));
        let head = match leave.guard(head).await {
            Some(Some(Ok(head))) => head,
            Some(Some(Err(BadHead::Gone))) => return,
            Some(Some(Err(bad))) => return refuse(socket, bad).await,
            Some(None) if socket.input().is_empty() => return socket.part().await,
            Some(None) => return say(socket, 408).await,
            None => return socket.part().await,
        };
        let then = match request::parse(&head) {
            Ok(mut request) => {
                request.head.remote_address(address);
                serve_request(&mut socket, service, &request, leave).await
            }
            Err(bad) => return refuse(socket, bad).await,
        };
        match then {
            Ok(Then::Keep) => {}
            Ok(Then::Part) => return socket.part().await,
            // The client has gone, or takes nothing.
            Ok(Then::Drop) | Err(_) => return,
        }
    }
}

async fn refuse(socket: Socket, bad: BadHead) {
    let status = match bad {
        BadHead::Malformed => 400,
        BadHead::TooLarge => 431,
        BadHead::UnknownCoding => 501,
        BadHead::Version => 505,
        BadHead::Gone => return,
    };
    say(socket, status).await;
}

/// Says what is wrong, and ends the connection: where its next request begins is not known.
async fn say(mut socket: Socket, status: u16) {
    if socket.write(&response::bare(status), |_| false).await.is_ok() {
        socket.part().await;
    }
}

async fn serve_request(
    socket: &mut Socket,
    service: &HttpService,
    request: &Request<'_>,
    leave: &Stop,
) -> io::Result<Then> {
    let site = &service.site;
    let has_body = request.framing != Framing::Length(0);
    let unread = |then: Then| if has_body { Then::Part } else { then };
    let then = unread(Then::keep_if(request.keeps));
    let grant = match caller::grant_of(site, &request.head).await {
        Ok(grant) => grant,
        Err(refused) => return whole(socket, request, &refused, then).await,
    };
    let admission = site.lock().server.admit(&request.head);
    let admission = match admission {
        Ok(admission) => admission,
        Err(refused) => return whole(socket, request, &refused, then).await,
    };
    let too_long =
        matches!(request.framing, Framing::Length(it) if it > admission.body_bytes_max as u64);
    if request.awaits_continue && has_body && !too_long {
        socket.write(b"HTTP/1.1 100 Continue\r\n\r\n", |_| false).await?;
    }
    let read = body::read(socket, request.framing, admission, &site.held);
    let refused = match before(now() + admission.body_time, read).await {
        Some(Ok(body)) => {
            return answer(socket, service, request, body, grant.as_ref(), leave).await;
        }
        Some(Err(Unusable::TooMany)) => site.lock().server.bodies_too_many(),
        Some(Err(Unusable::TooLong)) => site.lock().server.body_too_long(),
        Some(Err(Unusable::Broken)) => {
            socket.write(&response::bare(400), |_| false).await?;
            return Ok(Then::Part);
        }
        None => site.lock().server.body_too_slow(),
    };
    whole(socket, request, &refused, Then::Part).await
}

/// Sends a response that is there as a whole.
async fn whole(
    socket: &mut Socket,
    request: &Request<'_>,
    response: &mcp_sansio::http::Response,
    then: Then,
) -> io::Result<Then> {
    let ending = Ending::Length(response.body.len());
    let mut bytes = response::head_bytes(&response.head, ending, then == Then::Keep);
    if !request.bodiless {
        bytes.extend_from_slice(&response.body);
    }
    socket.write(&bytes, |_| false).await?;
    Ok(then)
}

async fn answer(
    socket: &mut Socket,
    service: &HttpService,
    request: &Request<'_>,
    body: HeldBody<'_>,
    grant: Option<&Grant>,
    leave: &Stop,
) -> io::Result<Then> {
    let site = &service.site;
    let mut place = {
        let (place, work) = Place::take(site, &request.head, &body.bytes, grant);
        if let Some(ended) = work.and_then(|work| running::begin(site, work)) {
            site.change(|locked| locked.end(ended));
        }
        place
    };
    // A handler that goes on has what it needs of it.
    drop(body);
    let next = place.next(socket).await;
    let then = Then::keep_if(request.keeps && !leave.is_stopped());
    match next {
        Next::Whole(response) => whole(socket, request, &response, then).await,
        Next::Open(head) => {
            let chunks = request.takes_chunks;
            let ending = if chunks { Ending::Chunks } else { Ending::Close };
            let bytes = response::head_bytes(&head, ending, then == Then::Keep);
            socket.write(&bytes, |cx| place.is_cut(cx)).await?;
            stream(socket, &mut place, chunks, then).await
        }
        Next::Gone => Ok(Then::Drop),
        // A head comes first; anything else ends a response that never had one.
        Next::Chunk(_) | Next::Finish | Next::Abort => {
            socket.write(&response::bare(503), |_| false).await?;
            Ok(Then::Part)
        }
    }
}

/// Sends the body of a response as it comes.
async fn stream(
    socket: &mut Socket,
    place: &mut Place,
    chunks: bool,
    then: Then,
) -> io::Result<Then> {
    let mut frame = Vec::new();
    loop {
        match place.next(socket).await {
            Next::Chunk(bytes) if bytes.is_empty() => {}
            Next::Chunk(bytes) if chunks => {
                frame.clear();
                write!(frame, "{:x}\r\n", bytes.len())?;
                frame.extend_from_slice(&bytes);
                frame.extend_from_slice(b"\r\n");
                socket.write(&frame, |cx| place.is_cut(cx)).await?;
            }
            Next::Chunk(bytes) => socket.write(&bytes, |cx| place.is_cut(cx)).await?,
            Next::Finish => {
                if chunks {
                    socket.write(b"0\r\n\r\n", |_| false).await?;
                }
                return Ok(then);
            }
            Next::Whole(_) | Next::Open(_) | Next::Abort | Next::Gone => return Ok(Then::Drop),
        }
    }
}
