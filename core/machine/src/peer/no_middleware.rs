//! The replacement for `passing` without the feature `extensions`.

use crate::PanicGuard;
use crate::jsonrpc::{ErrorObject, RawJson, RequestId, WriteJson};
use crate::protocol::Method;

use super::connection::Connection;
use super::error::CommandError;

/// A connection without middleware.
#[derive(Debug, Default)]
pub(in crate::peer) struct Passing {}

impl Passing {
    #[inline(always)]
    pub(in crate::peer) const fn set_guard(&mut self, _: PanicGuard) {}
}

/// Changed parameters, which do not exist without middleware.
#[derive(Debug)]
pub(in crate::peer) enum ChangedJson {}

impl ChangedJson {
    pub(in crate::peer) const fn json(&self) -> &RawJson<'static> {
        match *self {}
    }
}

/// A changed error, which does not exist without middleware.
#[derive(Debug)]
pub(in crate::peer) enum ChangedError {}

/// Returns the changed error, if there is one.
#[inline(always)]
pub(in crate::peer) const fn changed_or<'e>(
    changed: Option<&'e ChangedError>,
    error: &'e ErrorObject<'e>,
) -> &'e ErrorObject<'e> {
    match changed {
        Some(changed) => match *changed {},
        None => error,
    }
}

/// The decision about a notification, or about the parameters of a request.
#[derive(Debug)]
#[allow(dead_code, reason = "constructed only with the feature `extensions`")]
pub(in crate::peer) enum Passed {
    Unchanged,
    Changed(ChangedJson),
    Dropped,
}

/// The decision about a received request, or about a response.
#[derive(Debug)]
#[allow(dead_code, reason = "constructed only with the feature `extensions`")]
pub(in crate::peer) enum Exchanged {
    Unchanged,
    Changed(RawJson<'static>),
    Refused(ErrorObject<'static>),
}

/// The changed parameters of a call, which do not exist without middleware.
#[derive(Debug)]
pub(in crate::peer) enum ChangedCall {}

impl ChangedCall {
    pub(in crate::peer) const fn params(&self) -> &RawJson<'static> {
        match *self {}
    }

    pub(in crate::peer) const fn meta(&self) -> Option<&RawJson<'static>> {
        match *self {}
    }
}

impl Connection {
    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the signature is that with the feature")]
    pub(in crate::peer) const fn has_middleware(&self) -> bool {
        false
    }

    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the signature is that with the feature")]
    pub(in crate::peer) const fn pass_sent(&self, _: &str, _: Option<&dyn WriteJson>) -> Passed {
        Passed::Unchanged
    }

    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the signature is that with the feature")]
    pub(in crate::peer) const fn take_early_result(&mut self) -> Option<RawJson<'static>> {
        None
    }

    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the signature is that with the feature")]
    pub(in crate::peer) const fn pass_call(
        &self,
        _: i64,
        _: &str,
        _: &dyn WriteJson,
        _: Option<&RawJson<'_>>,
    ) -> Result<Option<ChangedCall>, CommandError> {
        Ok(None)
    }

    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the signature is that with the feature")]
    pub(in crate::peer) const fn pass_result(
        &mut self,
        _: &RequestId,
        _: Option<Method>,
        _: &RawJson<'_>,
    ) -> Exchanged {
        Exchanged::Unchanged
    }

    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the signature is that with the feature")]
    pub(in crate::peer) const fn pass_error(
        &mut self,
        _: &RequestId,
        _: &ErrorObject<'_>,
    ) -> Option<ChangedError> {
        None
    }
}
