use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use mcp_sansio::jsonrpc::RequestId;
use mcp_sansio::{ErrorCode, Instant, Revision};

use super::around::{Around, MiddlewareResult, Next};
use crate::reply::{HandlerError, ResultBody};

/// Middleware that reports each request when it ends, without its arguments and its result.
///
/// ```
/// use mcp_sansio_handlers::Server;
/// use mcp_sansio_handlers::middleware::AccessLog;
///
/// let server = Server::new("s", "1.0.0").middleware(AccessLog::new(|record| println!("{record}")));
/// # let _ = server;
/// ```
///
/// Register it first, so that it sees the refusals of limits.
///
/// Around the calls of a client, it reports calls; a record has neither principal nor id.
#[derive(Clone)]
pub struct AccessLog {
    write: Arc<dyn Fn(&AccessRecord<'_>) + Send + Sync>,
}

impl AccessLog {
    /// Creates a log. `write` must return quickly. As text, a record is a line: see
    /// [`AccessRecord`].
    pub fn new(write: impl Fn(&AccessRecord<'_>) + Send + Sync + 'static) -> Self {
        Self { write: Arc::new(write) }
    }

    pub(crate) async fn around<A: Around>(
        &self,
        request: A::Request,
        next: Next<A>,
    ) -> MiddlewareResult<A> {
        let outcome = AccessOutcome::Cancelled;
        let mut pending =
            PendingRecord::<A> { log: self, request: request.clone(), started: None, outcome };
        // The clock of a host stands still while nothing drives its connection.
        A::sleep(&request, Duration::ZERO).await;
        pending.started = Some(A::now(&request));
        let result = next.run(request).await;
        pending.outcome = A::outcome(&result);
        result
    }
}

mcp_sansio::partial_debug! { impl Debug for AccessLog { .. } }

/// Writes the record when it is dropped, so that cancelled requests have one too.
struct PendingRecord<'a, A: Around> {
    log: &'a AccessLog,
    request: A::Request,
    /// `None` until the clock is right: it may move while the request waits for that.
    started: Option<Instant>,
    outcome: AccessOutcome,
}

impl<A: Around> Drop for PendingRecord<'_, A> {
    fn drop(&mut self) {
        A::record(&self.request, |mut record| {
            let started = self.started.unwrap_or(record.started);
            record.duration = record.started.saturating_since(started);
            (record.started, record.outcome) = (started, self.outcome);
            (self.log.write)(&record);
        });
    }
}

/// A request that has ended, for an [`AccessLog`].
///
/// As text it is a line without its end: the time since the origin of the adapter's clock in
/// seconds, the method, the target, the principal, the outcome and the duration. Names are quoted
/// and escaped, so that a client cannot forge a line:
///
/// ```text
/// 12.034 tools/call "forecast" "issuer|ann" ok 35ms
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AccessRecord<'a> {
    /// When the request reached the log.
    pub started: Instant,
    /// The time until the result: see the [time of middleware](super#time).
    pub duration: Duration,
    /// The method.
    pub method: &'a str,
    /// The name of the tool or prompt, or the URI: see
    /// [`ServerRequest::target`](super::ServerRequest::target).
    pub target: Option<&'a str>,
    /// The name of the sender, if it is known.
    pub principal: Option<&'a str>,
    /// The revision that governs the request.
    pub revision: Revision,
    /// The id of the request: see [`ServerRequest::id`](super::ServerRequest::id).
    pub id: Option<&'a RequestId>,
    /// The outcome.
    pub outcome: AccessOutcome,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessOutcome {
    /// A result.
    Ok,
    /// A tool result with `isError`.
    ToolError,
    /// Input requests: the request comes again with their answers.
    InputRequired,
    /// An error with this code.
    Error(ErrorCode),
    /// The handler was dropped: the client cancelled the request, or disconnected, or an outer
    /// middleware gave up.
    Cancelled,
    /// A call of a client has no answer: it was not sent, timed out, or its connection broke.
    Failed,
}

impl AccessOutcome {
    pub(super) fn of_handler(result: &MiddlewareResult) -> Self {
        match result {
            Ok(ResultBody::Tool(result)) if result.is_error == Some(true) => Self::ToolError,
            Ok(_) | Err(HandlerError::Answered(_)) => Self::Ok,
            Err(
                HandlerError::Failed(_) | HandlerError::Internal(_) | HandlerError::Panicked(_),
            ) => Self::Error(ErrorCode::INTERNAL_ERROR),
            Err(HandlerError::Protocol(error)) => Self::Error(error.code),
            Err(HandlerError::InputRequired(_)) => Self::InputRequired,
            Err(HandlerError::Refused(refusal)) => Self::Error(refusal.error.code),
        }
    }
}

impl fmt::Display for AccessOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::ToolError => f.write_str("tool-error"),
            Self::InputRequired => f.write_str("input-required"),
            Self::Error(code) => write!(f, "error:{}", code.0),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed => f.write_str("failed"),
        }
    }
}

impl fmt::Display for AccessRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.started.saturating_since(Instant::ZERO);
        // A method of an extension is one that the server has registered.
        write!(f, "{}.{:03} {}", at.as_secs(), at.subsec_millis(), self.method)?;
        for name in [self.target, self.principal] {
            match name {
                Some(name) => write!(f, " {name:?}")?,
                None => f.write_str(" -")?,
            }
        }
        write!(f, " {} {}ms", self.outcome, self.duration.as_millis())
    }
}
