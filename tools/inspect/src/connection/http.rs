//! A running server that is used over HTTP.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::http::{ClientLimits, HttpClientOptions, Location};
use mcp_sansio::peer::{CloseReason, TransportFailure};
use mcp_sansio_cli::canned::Seen;
use mcp_sansio_cli::exchanges::{ExchangeViewer, Watched, in_words};
use mcp_sansio_handlers::Host;
use mcp_sansio_tokio::adapter::http_client::HttpDriver;
use mcp_sansio_tokio::auth::with_system_support;
use mcp_sansio_tokio::runtime::{TokioExchanger, TokioTimer};
use mcp_sansio_tokio::{ConnectError, Connector, ConnectorError, now, seed};

use super::{converse, host, remark, sign_in, silence, violation};
use crate::commands;
use crate::failure::{Failure, opening_details};
use crate::options::Options;
use crate::terminal::say;

/// How long the server may take to answer the deletion of its session. Short, because an
/// interactive user is waiting.
const CLOSING: Duration = Duration::from_secs(1);

/// The time limit of the whole shutdown, slightly longer than `CLOSING`.
const FAREWELL: Duration = Duration::from_millis(1200);

/// The time limit for establishing a connection, if the command allows that long.
const CONNECTING: Duration = Duration::from_secs(10);

/// Connects, runs the command, and ends the session.
pub(super) async fn inspect(
    options: &Options,
    server: &HttpClientOptions,
) -> Result<ExitCode, String> {
    let connector = Connector::builder().connect_timeout(options.patience().min(CONNECTING));
    #[cfg(unix)]
    let connector = match &options.unix {
        Some(path) => connector.unix_socket(path),
        None => connector,
    };
    let exchanger = TokioExchanger::new(connector.build().map_err(|error| error.to_string())?);
    let visited = visit(options, server, equipped(options).await?, exchanger.clone()).await;
    match visited {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(VisitError { failure: Failure::Interrupted(status), .. }) => Ok(status.into()),
        Err(trouble) => Err(explain(trouble, server.url(), exchanger.last_failure(), options)),
    }
}

/// Returns a host that lets the user sign in if the server requires it.
async fn equipped(options: &Options) -> Result<(Host, Arc<Seen>), String> {
    let (mut host, seen) = host(options);
    if let Some(sign_in) = &options.sign_in {
        let authorization = sign_in::authorization(sign_in).await;
        host = host.authorization(authorization.map_err(|error| error.to_string())?);
    }
    Ok((with_system_support(&host).map_err(|error| error.to_string())?, seen))
}

/// A failure, and a description of the server's first violation.
struct VisitError {
    failure: Failure,
    violation: Option<String>,
}

async fn visit(
    options: &Options,
    server: &HttpClientOptions,
    (host, seen): (Host, Arc<Seen>),
    exchanger: TokioExchanger,
) -> Result<(), VisitError> {
    let viewer = options
        .wire
        .then(|| -> ExchangeViewer { Box::new(|number, event| say(&in_words(number, event))) });
    let mut limits = ClientLimits::DEFAULT;
    limits.closing_wait = CLOSING;
    let client_options = server.clone().limits(limits);
    let (client, endpoint) = host.connect_http(client_options, seed(), now());
    let driver = HttpDriver::new(endpoint, Watched::new(exchanger, viewer), TokioTimer::new());
    let work = commands::run(options, &client, &seen);
    let outcome = converse(options, driver, (&client, &seen), work, FAREWELL).await;
    let violation = violation(&seen);
    match outcome {
        Ok(()) => {
            remark(violation.as_deref());
            Ok(())
        }
        Err(failure) => Err(VisitError { failure, violation }),
    }
}

/// Describes why the connection could not be opened.
fn unopened(url: &Location, reason: CloseReason, cause: Option<ConnectorError>) -> String {
    match ConnectError::from_close_reason(url, reason, cause) {
        ConnectError::Unauthorized { url, status, challenge, body } => {
            let body = body.map_or_else(String::new, |it| format!(": {it}"));
            let challenge = challenge.and_then(|it| TransportFailure::excerpt(it.as_bytes()));
            let challenge = challenge.map_or_else(String::new, |it| format!(": {it}"));
            let (refuses, hint) = match (status, challenge.is_empty()) {
                (401, false) => ("requires authorization", "use `--sign-in` to sign in"),
                // As servers do that want an API key.
                (401, true) => (
                    "requires authorization",
                    "send its token or key with `--header`, or use `--sign-in` to sign in",
                ),
                // Some servers mean 401.
                (_, false) => (
                    "denies access",
                    "sign in, or ask its operator for the permission or the scope",
                ),
                _ => ("denies access", "ask its operator for the permission or the scope"),
            };
            format!("the server at {url} {refuses} (HTTP status {status}){challenge}{body}; {hint}")
        }
        error => error.to_string(),
    }
}

/// Combines a failure with the network error behind it into one message.
fn explain(
    VisitError { failure, violation }: VisitError,
    url: &Location,
    cause: Option<ConnectorError>,
    options: &Options,
) -> String {
    let (shown, _query) = url.as_str().split_once('?').unwrap_or((url.as_str(), ""));
    let message = match (failure, cause) {
        (Failure::Unopened(failure), cause) => {
            let details = opening_details(&failure);
            unopened(url, CloseReason::OpeningFailed(failure), cause) + &details
        }
        (Failure::Silent, None) => format!("the server at {shown} {}", silence(options)),
        (Failure::Silent, Some(cause)) => {
            format!("the server at {shown} {} ({cause})", silence(options))
        }
        (Failure::Lost, None) => format!("the server at {shown} closed the connection"),
        (Failure::Lost, Some(cause)) => {
            format!("the server at {shown} closed the connection: {cause}")
        }
        (Failure::Transport(failure), Some(cause)) => format!("{failure} ({cause})"),
        (failure, _) => failure.to_string(),
    };
    match violation {
        Some(violation) => format!("{message}; {violation}"),
        None => message,
    }
}
