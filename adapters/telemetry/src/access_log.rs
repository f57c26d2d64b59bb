//! A line for each operation.

use std::time::Duration;

use mcp_sansio::peer::{Direction, OperationEnd};
use opentelemetry::trace::TraceContextExt as _;

use crate::outcome::Verdict;
use crate::span::OperationSpan;
use crate::subject::Subject;

pub(crate) fn write(
    span: &OperationSpan,
    end: &OperationEnd<'_>,
    verdict: &Verdict,
    time: Duration,
) {
    let description = span.description();
    let context = span.context().span().span_context().clone();
    let subject = match &description.subject {
        Subject::Tool(name) | Subject::Prompt(name) | Subject::Resource(name) => Some(&**name),
        Subject::None => None,
    };
    let revision = end.revision.or(description.revision);
    let principal = description.principal.as_deref().filter(|_| span.shows_principals());
    let trace_id = context.is_valid().then(|| context.trace_id().to_string());
    tracing::info!(
        target: "mcp_sansio::access",
        direction = if description.direction == Direction::Sent { "sent" } else { "received" },
        method = &*description.method,
        subject,
        request_id = description.request_id.as_deref(),
        revision = revision.map(mcp_sansio::Revision::as_str),
        transport = description.transport.protocol_name.unwrap_or("stream"),
        client_address = description.transport.peer_address.as_deref(),
        principal,
        code = verdict.code,
        error_type = verdict.error_type.as_deref(),
        cancelled = verdict.is_cancelled.then_some(true),
        duration_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        trace_id,
    );
}
