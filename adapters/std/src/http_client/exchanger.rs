use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use mcp_sansio::http::{ExchangeFailure, OutgoingRequest};
use mcp_sansio_async::Exchanger;
use ureq::Body;

use super::agents::{Agent, Agents};
use super::connector_error::ConnectorError;
use super::exchange::{Handover, News, ThreadedExchange};
use crate::Connector;

/// How much of a body is handed over at once, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// Performs the exchanges of a client with a [`Connector`], each on a thread of its own.
#[derive(Clone, Debug)]
pub struct ThreadedExchanger {
    connector: Connector,
    trouble: Trouble,
}

/// What last went wrong, for whoever wants to know more than the protocol does.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<ConnectorError>>>);

impl Trouble {
    pub(super) fn last(&self) -> Option<ConnectorError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note(&self, error: ConnectorError) -> ExchangeFailure {
        let failure =
            if error.was_sent() { ExchangeFailure::Broken } else { ExchangeFailure::NotSent };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        failure
    }
}

impl ThreadedExchanger {
    /// One that sends by `connector`.
    #[must_use]
    pub fn new(connector: Connector) -> Self {
        Self { connector, trouble: Trouble::default() }
    }

    /// Why the last exchange that failed did; `None` if none has.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.trouble.last()
    }

    pub(super) fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }
}

impl Exchanger for ThreadedExchanger {
    type Exchange = ThreadedExchange;

    fn send(&mut self, request: &OutgoingRequest) -> ThreadedExchange {
        let handover = Arc::<Handover>::default();
        let refused = match to_request(request) {
            Ok(prepared) => {
                let (agents, theirs) = (Arc::clone(&self.connector.agents), Arc::clone(&handover));
                let server = request.url().authority().to_owned();
                let job = move || perform(&agents, prepared, server, &theirs);
                self.connector.threads.run(job).err().map(|e| ConnectorError::Thread(Arc::new(e)))
            }
            Err(error) => Some(ConnectorError::Request { reason: error.to_string() }),
        };
        if let Some(error) = refused {
            handover.push(News::Failed(error));
        }
        ThreadedExchange::new(handover, self.trouble.clone())
    }
}

fn to_request(request: &OutgoingRequest) -> Result<Request<Bytes>, http::Error> {
    let start = Request::builder().method(request.method).uri(request.url().as_str());
    let builder =
        request.fields().fold(start, |builder, (name, value)| builder.header(name, value));
    builder.body(request.body.clone())
}

/// Performs one exchange, in the thread that this is.
fn perform(agents: &Agents, request: Request<Bytes>, server: String, handover: &Handover) {
    let panics = Panics(handover);
    let agent = agents.take(&server);
    if handover.begin(&agent) {
        match exchange(&agent, request, &server, handover) {
            Ok(true) => {
                // Before the end is told: whoever aborts from here on aborts nothing of another's.
                if handover.end() {
                    agents.put_back(server, agent);
                }
                handover.push(News::End);
            }
            Ok(false) => {}
            Err(error) => {
                handover.push(News::Failed(error));
            }
        }
    }
    std::mem::forget(panics);
}

/// Whether it came to its end.
fn exchange(
    agent: &Agent,
    request: Request<Bytes>,
    server: &str,
    handover: &Handover,
) -> Result<bool, ConnectorError> {
    let response = send(&agent.agent, request);
    let response =
        response.map_err(|error| ConnectorError::of(&error, server, agent.is_dialing()))?;
    let (head, body) = response.into_parts();
    if !handover.push(News::Head(Box::new(head))) {
        return Ok(false);
    }
    let mut body = body.into_reader();
    let mut space = vec![0; PIECE_BYTES];
    loop {
        match body.read(&mut space) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                if !handover.push(News::Piece(space[..count].to_vec())) {
                    return Ok(false);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ConnectorError::of_body(&error)),
        }
    }
}

fn send(agent: &ureq::Agent, request: Request<Bytes>) -> Result<Response<Body>, ureq::Error> {
    let (head, body) = request.into_parts();
    if body.is_empty() && head.method != http::Method::POST {
        agent.run(Request::from_parts(head, ()))
    } else {
        agent.run(Request::from_parts(head, &body[..]))
    }
}

/// Tells whoever waits when the library panics.
struct Panics<'h>(&'h Handover);

impl Drop for Panics<'_> {
    fn drop(&mut self) {
        self.0.push(News::Failed(ConnectorError::Lost { reason: "an internal error".into() }));
    }
}
