//! The replacement for `observed` without the feature `observer`.

use mcp_sansio_collections::Key;

use crate::binding::Binding;
use crate::jsonrpc::{ErrorObject, Message, RawJson, RequestId, WriteError, WriteJson};
use crate::protocol::{Method, Side, ToolOutput};
use crate::{Caller, Revision};

use super::call_context::CallContext;
use super::calls::Calls;
use super::connection::Flow;
use super::event::{CloseReason, Failure};
use super::options::ConnectionConfig;
use super::outgoing::{CallOptions, Outgoing};
use super::queue::Tag;
use super::requests::Requests;

/// Observes nothing.
#[derive(Debug)]
pub(in crate::peer) struct Observed;

/// A call that is not observed.
#[derive(Debug)]
pub(in crate::peer) struct Begun;

impl Begun {
    #[inline(always)]
    pub(in crate::peer) const fn meta<'a>(
        &self,
        own: Option<&'a RawJson<'a>>,
    ) -> Option<&'a RawJson<'a>> {
        own
    }
}

/// Keeps no result.
#[derive(Debug)]
pub(in crate::peer) struct KeptResult;

impl KeptResult {
    #[inline(always)]
    pub(in crate::peer) const fn keep(&self, _: &str) {}
}

impl Observed {
    pub(in crate::peer) const fn assert_consistent(&self, _calls: &Calls, _requests: &Requests) {}

    #[inline(always)]
    pub(in crate::peer) const fn new(_: &ConnectionConfig, _: Side, _: Binding) -> Self {
        Self
    }

    #[inline(always)]
    pub(in crate::peer) const fn opened(&mut self, _: Revision) {}

    #[inline(always)]
    pub(in crate::peer) const fn session_ended(&mut self) {}

    #[inline(always)]
    pub(in crate::peer) const fn closed(&mut self, _: &CloseReason) {}

    #[inline(always)]
    pub(in crate::peer) const fn lost(&mut self) {}

    #[inline(always)]
    pub(in crate::peer) fn begin_received(
        &mut self,
        _: &Message<'_>,
        _: impl FnOnce(&RequestId) -> Tag,
        _: Option<&Caller>,
    ) {
    }

    #[inline(always)]
    pub(in crate::peer) const fn received(&mut self, _: &Flow<'_>) {}

    #[inline(always)]
    pub(in crate::peer) const fn tool_output(&mut self, _: ToolOutput<'_>) {}

    #[inline(always)]
    pub(in crate::peer) const fn keeps_result(&self, _: Tag, _: Option<Method>) -> KeptResult {
        KeptResult
    }

    #[inline(always)]
    pub(in crate::peer) const fn answered(&mut self, _: Tag, _: Option<Method>, _: KeptResult) {}

    #[inline(always)]
    pub(in crate::peer) const fn answered_empty(&mut self, _: Tag) {}

    #[inline(always)]
    pub(in crate::peer) const fn refused(&mut self, _: Tag, _: &ErrorObject<'_>) {}

    #[inline(always)]
    pub(in crate::peer) const fn cancelled(&mut self, _: Tag) {}

    #[inline(always)]
    pub(in crate::peer) const fn all_cancelled(&mut self) {}

    #[inline(always)]
    pub(in crate::peer) const fn begin_call(
        &mut self,
        _: &Outgoing<'_>,
        _: i64,
        _: &dyn WriteJson,
        _: &CallOptions<'_>,
        _: Option<Tag>,
    ) -> Result<Begun, WriteError> {
        Ok(Begun)
    }

    #[inline(always)]
    pub(in crate::peer) fn begin_round(
        &mut self,
        _: Key,
        _: (i64, Method),
        _: &dyn WriteJson,
        _: Option<&RawJson<'_>>,
        _: Option<Revision>,
        _: Option<CallContext>,
    ) -> Result<Begun, WriteError> {
        Ok(Begun)
    }

    #[inline(always)]
    pub(in crate::peer) const fn called(&mut self, _: Key, _: Begun) {}

    #[inline(always)]
    pub(in crate::peer) const fn call_answered(
        &mut self,
        _: Key,
        _: &Result<RawJson<'_>, ErrorObject<'_>>,
    ) {
    }

    #[inline(always)]
    pub(in crate::peer) const fn call_ended(&mut self, _: Key, _: &Failure<'_>) {}

    #[inline(always)]
    pub(in crate::peer) const fn notify(
        &mut self,
        _: &str,
        _: Option<&dyn WriteJson>,
        _: Tag,
    ) -> Option<RawJson<'static>> {
        None
    }
}
