//! Decodes the results of calls.

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Event, Violation};
use serde::de::DeserializeOwned;

use super::client::{Client, ClientError};

impl Client {
    /// Decodes a result.
    #[inline]
    pub(super) fn decode<T: DeserializeOwned>(
        &self,
        result: &RawJson<'_>,
    ) -> Result<T, ClientError> {
        match result.decode() {
            Ok(value) => Ok(value),
            Err(_) => self.decode_lossy(result),
        }
    }

    /// Decodes a result that is not valid as a whole without the malformed elements of its lists,
    /// and reports these to the observers of the host.
    #[cold]
    fn decode_lossy<T: DeserializeOwned>(&self, result: &RawJson<'_>) -> Result<T, ClientError> {
        let (value, omissions) = result.decode_lossy()?;
        if !omissions.is_empty() {
            self.report(Violation::ElementsOmitted(omissions));
        }
        Ok(value)
    }

    /// Shows a violation of the server that was found in the context of the caller, who may have
    /// the last handle of a connection that is closed.
    fn report(&self, violation: Violation) {
        let shared = self.shared();
        let guard = shared.guard.lock(|guard| *guard);
        // An observer cannot affect the client, not even by a panic.
        let _shown = shared.observers.show(&Event::Violation(violation), guard);
    }
}
