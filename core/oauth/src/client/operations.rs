use alloc::collections::VecDeque;

use mcp_sansio::http::OutgoingRequest;
use mcp_sansio::jsonrpc::RawJson;
use sha2::{Digest, Sha256};

/// The operation of a request: its method, and the tool, prompt or resource that it names. Requests
/// for the same operation compare equal. A digest, because names can be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation([u8; 32]);

/// How often each operation caused an authorization because of insufficient scopes, since its last
/// success.
// MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-054]: all requests go
// to one resource.
#[derive(Debug, Default)]
pub(super) struct Operations(VecDeque<(Operation, u32)>);

impl Operation {
    /// Reads the operation from the fields, or else from the body. Linear in its length.
    pub(super) fn from_request(request: &OutgoingRequest) -> Self {
        let field = |wanted| request.fields().find(|(name, _)| *name == wanted).map(|it| it.1);
        if let Some(method) = field("mcp-method") {
            return Self::new(method, field("mcp-name").unwrap_or_default());
        }
        // The HTTP client wrote the body, so it is valid JSON.
        let body = core::str::from_utf8(&request.body).ok().filter(|it| it.starts_with('{'));
        let message = RawJson::trusted(body.unwrap_or("{}"));
        let text = |value: Option<RawJson<'_>>| {
            value.and_then(|it| it.to_text().map(|it| it.into_owned()))
        };
        let Some(method) = text(message.get("method")) else {
            return Self::new(request.method, "");
        };
        let params = message.get("params");
        let member = |name| text(params.as_ref().and_then(|params| params.get(name)));
        let name = member("name").or_else(|| member("uri"));
        Self::new(&method, &name.unwrap_or_default())
    }

    fn new(method: &str, name: &str) -> Self {
        let digest = Sha256::new().chain_update(method).chain_update([0]).chain_update(name);
        Self(digest.finalize().into())
    }
}

impl Operations {
    /// Returns the number of authorizations for the operation.
    pub(super) fn count(&self, operation: Operation) -> u32 {
        self.0.iter().find(|it| it.0 == operation).map_or(0, |it| it.1)
    }

    /// Counts another authorization. Keeps at most `max` operations and drops the oldest.
    pub(super) fn add(&mut self, operation: Operation, max: usize) {
        let count = self.count(operation).saturating_add(1);
        self.forget(operation);
        if self.0.len() >= max.max(1) {
            self.0.pop_front();
        }
        self.0.push_back((operation, count));
    }

    /// Removes the operation after a success.
    pub(super) fn forget(&mut self, operation: Operation) {
        self.0.retain(|it| it.0 != operation);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_oldest_operations_are_dropped_first() {
        let operations: Vec<_> = ["a", "b", "c"].map(|it| Operation::new("tools/call", it)).into();
        let mut counts = Operations::default();
        for at in [0, 1, 0, 2] {
            counts.add(operations[at], 2);
        }
        let counted: Vec<_> = operations.iter().map(|it| counts.count(*it)).collect();
        assert_eq!(counted, [2, 0, 1]);
        counts.forget(operations[0]);
        assert_eq!(counts.count(operations[0]), 0);
    }

    #[test]
    fn a_method_and_a_name_are_distinguished() {
        assert_ne!(Operation::new("a", "bc"), Operation::new("ab", "c"));
    }
}
