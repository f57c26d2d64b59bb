//! Requests that are refused by their head, as an observer sees them.

use std::sync::{Arc, Mutex};

use mcp_sansio::Caller;
use mcp_sansio::http::RequestHead;
use mcp_sansio::peer::{Observation, Operation, OperationEnd, OperationObserver, OperationOutcome};
use mcp_sansio_handlers::{Call, NoArguments, Server};

use crate::protected_server::ProtectedServer;

/// Notes the method and the status of each refused operation.
#[derive(Clone, Debug, Default)]
struct Refusals(Arc<Mutex<Vec<(String, u16)>>>);

#[derive(Debug)]
struct Begun(Refusals, String);

impl OperationObserver for Refusals {
    fn begin(&self, operation: &Operation<'_>) -> Option<Arc<dyn Observation>> {
        Some(Arc::new(Begun(self.clone(), operation.method.to_owned())))
    }
}

impl Observation for Begun {
    fn end(&self, end: &OperationEnd<'_>) {
        if let OperationOutcome::Refused { status, .. } = end.outcome {
            self.0.0.lock().unwrap().push((self.1.clone(), status));
        }
    }
}

#[test]
fn a_request_without_a_valid_token_is_observed_once() {
    let refusals = Refusals::default();
    let server = Server::new("s", "1").tool("use", "", |_: Call<NoArguments>| "used");
    let mut fixture = ProtectedServer::new(server.observe_operations(refusals.clone()));
    assert!(fixture.call("ann/use", "use").text.contains("used"));
    assert_eq!(*refusals.0.lock().unwrap(), []);
    for (token, status) in
        [("ann/use/forged", 401), ("ann/use/revoked", 401), ("ann/use/down", 503)]
    {
        assert_eq!(fixture.call(token, "use").status, status);
        let seen = std::mem::take(&mut *refusals.0.lock().unwrap());
        assert_eq!(seen, [("tools/call".to_owned(), status)], "{token}");
    }
    // Without a token, and with a wrong host: decided without the check.
    for (host, status) in [("localhost", 401), ("evil.example", 403)] {
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", host.as_bytes());
        let refused = fixture.server.authorize(&head, &Caller::ANONYMOUS);
        assert!(matches!(refused, mcp_sansio_handlers::TokenRequirement::Respond(_)));
        let seen = std::mem::take(&mut *refusals.0.lock().unwrap());
        assert_eq!(seen, [(String::new(), status)]);
    }
}
