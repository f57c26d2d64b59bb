//! One exchange with `ureq`, in its own thread, and its errors.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use mcp_sansio_async::http_client::ConnectorError;

use super::agent_pool::{Agent, AgentPool};
use super::body::{BodyEvent, ResponseSender};

/// Bytes of a body per event.
const PIECE_BYTES: usize = 16 * 1024;

/// Performs one exchange.
pub(super) fn perform(agents: &AgentPool, request: Request<Bytes>, sender: &ResponseSender) {
    let server = request.uri().authority().map_or("", |it| it.as_str()).to_owned();
    let agent = agents.take(&server);
    if !sender.begin(&agent) {
        return;
    }
    match exchange(&agent, request, &server, sender) {
        Ok(true) => {
            // Unregister before reporting the end: a later abort must not reach the next exchange
            // of the agent.
            if sender.end() {
                agents.put_back(server, agent);
            }
            sender.push(BodyEvent::End);
        }
        Ok(false) => {}
        Err(error) => {
            sender.push(BodyEvent::Failed(error));
        }
    }
}

/// Performs the exchange. Returns whether it completed.
fn exchange(
    agent: &Agent,
    request: Request<Bytes>,
    server: &str,
    sender: &ResponseSender,
) -> Result<bool, ConnectorError> {
    let response =
        send(&agent.agent, request).map_err(|error| from_exchange(error, agent, server))?;
    let (head, body) = response.into_parts();
    if !sender.push(BodyEvent::Head(Box::new(head))) {
        return Ok(false);
    }
    let mut body = body.into_reader();
    let mut space = vec![0; PIECE_BYTES];
    loop {
        match body.read(&mut space) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                if !sender.push(BodyEvent::Piece(Bytes::copy_from_slice(&space[..count]))) {
                    return Ok(false);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(from_connection(error.into())),
        }
    }
}

fn send(agent: &ureq::Agent, request: Request<Bytes>) -> Result<Response<ureq::Body>, ureq::Error> {
    let (head, body) = request.into_parts();
    if body.is_empty() && head.method != Method::POST {
        agent.run(Request::from_parts(head, ()))
    } else {
        agent.run(Request::from_parts(head, &body[..]))
    }
}

/// Converts the error of an exchange with `host` that has no response.
fn from_exchange(error: ureq::Error, agent: &Agent, host: &str) -> ConnectorError {
    use ureq::Error::{BadUri, HostNotFound, Http, InvalidProxyUrl, Rustls, Timeout};

    let request = |reason: &str| ConnectorError::Request { reason: reason.to_owned() };
    let connect = |cause| ConnectorError::Connect { host: host.to_owned(), cause: Arc::new(cause) };
    match error {
        // Omits the error's own message, which contains the URL.
        BadUri(_) => request("its URL is invalid"),
        Http(error) => request(&error.to_string()),
        InvalidProxyUrl => request("the URL of the proxy is invalid"),
        HostNotFound => connect(io::Error::new(io::ErrorKind::NotFound, "there is no such host")),
        Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            let after = agent.agent.config().timeouts().connect.unwrap_or_default();
            ConnectorError::Timeout { host: host.to_owned(), after }
        }
        Rustls(error) if agent.is_dialing() => {
            let cause = Arc::new(io::Error::other(error));
            ConnectorError::Tls { host: host.to_owned(), cause }
        }
        error if agent.is_dialing() => connect(error.into_io()),
        error => from_connection(error),
    }
}

/// Converts the error of an exchange on an established connection.
fn from_connection(error: ureq::Error) -> ConnectorError {
    use ureq::Error::{LargeResponseHeader, Protocol, Rustls};

    match error {
        Protocol(error) => ConnectorError::Protocol { reason: error.to_string() },
        error @ LargeResponseHeader(..) => ConnectorError::Protocol { reason: error.to_string() },
        Rustls(error) => ConnectorError::Lost { reason: error.to_string(), sent: true },
        error => ConnectorError::Lost { reason: error.into_io().to_string(), sent: true },
    }
}
