//! A server that is running, and talked to over HTTP.

use std::future::pending;
use std::time::Duration;

use mcp_sansio::http::{ClientLimits, ClientOptions, Location};
use mcp_sansio::peer::CloseReason;
use mcp_sansio_examples::canned::Seen;
use mcp_sansio_examples::exchanges::{ExchangeViewer, Watched, in_words};
use mcp_sansio_examples::runtime::Runtime;
use mcp_sansio_examples::together::before;

use super::{converse, host, misdeed, remark, sign_in, silence};
use crate::failure::Failure;
use crate::options::{Command, Options};
use crate::{commands, say};

/// How long the server has to take note of the end of its session. It is as near as the answers
/// before; whoever only looks does not like to wait.
const CLOSING: Duration = Duration::from_secs(1);

/// How long all of the end may take: the above, and a moment.
const FAREWELL: Duration = Duration::from_millis(1200);

/// How long a connection may take to be there, if there is time.
const CONNECTING: Duration = Duration::from_secs(10);

/// Connects, does what is asked for, ends the session.
pub(super) fn inspect(options: &Options, url: &Location) -> Result<(), String> {
    let outcome = match options.runtime {
        Runtime::Tokio => options.runtime.block_on(on_tokio(options, url)),
        Runtime::Std => options.runtime.block_on(on_std(options, url)),
    };
    outcome.map_err(|error| error.to_string())?
}

async fn on_tokio(options: &Options, url: &Location) -> Result<(), String> {
    use mcp_sansio_tokio::{
        ConnectError, Connector, HttpDriver, TokioExchanger, TokioTimer, equip, now, seed,
    };
    let connector = Connector::builder().connect_timeout(connecting(options)).build();
    let exchanger = TokioExchanger::new(connector.map_err(|error| error.to_string())?);
    let (mut host, seen) = host(options);
    if let Some(sign_in) = &options.sign_in {
        let authorization = sign_in::authorization(sign_in).await;
        host = host.authorization(authorization.map_err(|error| error.to_string())?);
    }
    let host = equip(&host).map_err(|error| error.to_string())?;
    let (client, endpoint) = host.connect_http(client_options(url), seed(), now());
    let watched = Watched::new(exchanger.clone(), viewer(options));
    let driver = HttpDriver::new(endpoint, watched, TokioTimer::new());
    let work = async {
        match before(interruption(), commands::run(options, &client, &seen)).await {
            Some(outcome) => outcome,
            // That is how one stops to listen.
            None if matches!(options.command, Command::Listen { .. }) => Ok(()),
            None => Err(Failure::Other("interrupted".into())),
        }
    };
    let outcome = converse(options, driver, &client, work, FAREWELL).await;
    let cause = exchanger.last_failure();
    let words = cause.as_ref().map(ToString::to_string);
    conclude(outcome, &seen, options, url, words, |reason| {
        match ConnectError::of_opening(url, reason, cause) {
            ConnectError::Unauthorized { url, status, challenge } => {
                unauthorized(&url, status, challenge)
            }
            error => error.to_string(),
        }
    })
}

/// The same without a runtime. Whoever interrupts it ends the process.
async fn on_std(options: &Options, url: &Location) -> Result<(), String> {
    use mcp_sansio_std::{
        Clock, ConnectError, Connector, HttpDriver, ThreadedExchanger, now, seed,
    };
    let connector = Connector::builder().connect_timeout(connecting(options)).build();
    let exchanger = ThreadedExchanger::new(connector);
    let (host, seen) = host(options);
    let (client, endpoint) = host.connect_http(client_options(url), seed(), now());
    let watched = Watched::new(exchanger.clone(), viewer(options));
    let driver = HttpDriver::new(endpoint, watched, Clock::new());
    let work = commands::run(options, &client, &seen);
    let outcome = converse(options, driver, &client, work, FAREWELL).await;
    let cause = exchanger.last_failure();
    let words = cause.as_ref().map(ToString::to_string);
    conclude(outcome, &seen, options, url, words, |reason| {
        match ConnectError::of_opening(url, reason, cause) {
            ConnectError::Unauthorized { url, status, challenge } => {
                unauthorized(&url, status, challenge)
            }
            error => error.to_string(),
        }
    })
}

fn connecting(options: &Options) -> Duration {
    options.patience().min(CONNECTING)
}

fn client_options(url: &Location) -> ClientOptions {
    let mut limits = ClientLimits::DEFAULT;
    limits.closing_wait = CLOSING;
    ClientOptions::new(url.clone()).limits(limits)
}

fn viewer(options: &Options) -> Option<ExchangeViewer> {
    options
        .wire
        .then(|| -> ExchangeViewer { Box::new(|number, sight| say(&in_words(number, sight))) })
}

/// What became of it, in words. `unopened` has those for a connection that was never open, `cause`
/// what the network had to say.
fn conclude(
    outcome: Result<(), Failure>,
    seen: &Seen,
    options: &Options,
    url: &Location,
    cause: Option<String>,
    unopened: impl FnOnce(CloseReason) -> String,
) -> Result<(), String> {
    let misdeed = misdeed(seen);
    match outcome {
        Ok(()) => {
            remark(misdeed.as_deref());
            Ok(())
        }
        Err(failure) => {
            let mut message = match failure {
                Failure::Unopened(failure) => unopened(CloseReason::OpeningFailed(failure)),
                failure => explain(failure, url, cause, options),
            };
            if let Some(misdeed) = misdeed {
                message = format!("{message}; {misdeed}");
            }
            Err(message)
        }
    }
}

fn unauthorized(url: &str, status: u16, challenge: Option<String>) -> String {
    let challenge = challenge.map_or_else(String::new, |it| format!(": {it}"));
    let hint = if status == 401 { "; `--sign-in` has you sign in" } else { "" };
    format!("the server at {url} wants an authorization (HTTP status {status}){challenge}{hint}")
}

/// Done when the user has had enough: so that the server is told, too.
async fn interruption() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}

/// One message that says what went wrong, and what the network has to say to it.
fn explain(failure: Failure, url: &Location, cause: Option<String>, options: &Options) -> String {
    let (shown, _query) = url.as_str().split_once('?').unwrap_or((url.as_str(), ""));
    match (failure, cause) {
        (Failure::Silent, None) => format!("the server at {shown} {}", silence(options)),
        (Failure::Silent, Some(cause)) => {
            format!("the server at {shown} {} ({cause})", silence(options))
        }
        (Failure::Lost, None) => format!("the server at {shown} ended the connection"),
        (Failure::Lost, Some(cause)) => format!("the server at {shown} went away: {cause}"),
        (Failure::Transport(failure), Some(cause)) => format!("{failure} ({cause})"),
        (failure, _) => failure.to_string(),
    }
}
