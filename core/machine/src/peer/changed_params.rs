//! Parameters that a layer changes after a request was received.

use crate::jsonrpc::RawJson;

use super::event::Request;
use crate::gate::metadata::Metadata;

impl Request<'_> {
    /// Returns the request with other parameters, for a layer that changes them before they reach
    /// the handler. They are read like those of a message: a repeated member is refused. Validate
    /// the arguments again: see
    /// [`Catalog::argument_check`](crate::catalog::Catalog::argument_check).
    ///
    /// # Errors
    ///
    /// A description of the fault, which is that of the layer: the parameters are no object, repeat
    /// a member, have arguments that are no object, or name another subject. The subject cannot be
    /// changed, because the item, its audience and the scopes of the caller were checked for it.
    pub fn with_params(&self, params: RawJson<'_>) -> Result<Request<'static>, &'static str> {
        if !params.is_object() {
            return Err("the parameters must be an object");
        }
        // Only borrowed text has members to walk through.
        let text = RawJson::trusted(params.as_str());
        let metadata = Metadata::read(&text)?;
        let method = self.method.known();
        if let Some(fault) = method.and_then(|method| metadata.fault_of_arguments(method)) {
            return Err(fault);
        }
        let spans = method.map(|method| metadata.spans(method)).unwrap_or_default();
        let is_same = |one: Option<RawJson<'_>>, other: Option<RawJson<'_>>| match (one, other) {
            (Some(one), Some(other)) => {
                one.as_str() == other.as_str()
                    || one.to_text().is_some_and(|text| Some(text) == other.to_text())
            }
            (one, other) => one.is_none() && other.is_none(),
        };
        if !is_same(self.subject(), spans.subject(params.view()).map(RawJson::from)) {
            return Err("the subject of a request cannot be changed");
        }
        let same = Request { params: RawJson::EMPTY_OBJECT, ..self.clone() };
        Ok(Request { params: params.into_owned(), spans, ..same.into_owned() })
    }
}
