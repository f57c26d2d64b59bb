//! The lists of a catalog for one request.

use mcp_sansio_sync::Arc;

use super::Catalog;
use crate::Caller;
use crate::jsonrpc::{ErrorObject, Json, RawJson, to_shared_json};
use crate::protocol::{CacheHints, Method, Revision};

/// The lists of a server as the sender of a request sees them, for an application that answers list
/// requests itself: see [`Policy::lists`](crate::peer::Policy::lists).
#[derive(Clone, Debug)]
pub struct Lists {
    catalog: Arc<Catalog>,
    cache: CacheHints,
    tasks: bool,
}

impl Lists {
    pub(crate) const fn new(catalog: Arc<Catalog>, cache: CacheHints, tasks: bool) -> Self {
        Self { catalog, cache, tasks }
    }

    /// Returns the result of a list request, as the machine would answer it.
    ///
    /// # Errors
    ///
    /// Those of [`Catalog::list`], and an internal error if an item cannot be written at
    /// `revision`.
    pub fn page(
        &self,
        method: Method,
        params: &RawJson<'_>,
        revision: Revision,
        caller: &Caller,
    ) -> Result<Json, ErrorObject<'static>> {
        let page = self.catalog.list(method, params, revision, &self.cache, caller)?;
        let page = if self.tasks { page } else { page.without_tasks() };
        to_shared_json(&page)
            .map(Json::from)
            .map_err(|_| ErrorObject::internal("the list cannot be written"))
    }
}
