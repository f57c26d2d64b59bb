use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use mcp_sansio::http::RequestHead;

use super::ServedBody;
use super::shared_server::SharedServer;

/// The answers to health checks.
#[derive(Debug)]
pub(super) struct Health {
    path: String,
    /// Whether the node is to get no new requests.
    unready: AtomicBool,
}

impl Health {
    pub(super) const fn new(path: String) -> Self {
        Self { path, unready: AtomicBool::new(false) }
    }

    pub(super) fn set_ready(&self, ready: bool) {
        self.unready.store(!ready, Ordering::Relaxed);
    }

    /// Returns the response to a request if it is a health check.
    pub(super) fn answer(
        &self,
        parts: &http::request::Parts,
        head: &RequestHead<'_>,
        shared: &SharedServer,
    ) -> Option<http::Response<ServedBody>> {
        let is_check = parts.uri.path() == self.path
            && (parts.method == Method::GET || parts.method == Method::HEAD);
        if !is_check {
            return None;
        }
        let state = shared.lock();
        let machine = state.server.machine();
        let is_closing = machine.is_closing() || self.unready.load(Ordering::Relaxed);
        let (status, ready) = match (is_closing, !machine.has_reached_store()) {
            (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
            (false, true) => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
            (false, false) => (StatusCode::OK, "ready"),
        };
        // A page of another site could read the body. Balancers that cannot set `Host` need the status.
        let is_readable = shared.reader.check_host(head).is_ok();
        let store = if machine.is_store_available() { "available" } else { "unavailable" };
        // The sender has shown no token, and how much a protected server is used is not for
        // strangers.
        let counts = if state.server.resource().is_some() {
            String::new()
        } else {
            let (sessions, dropped) = (machine.session_count(), machine.dropped_store_actions());
            format!(",\"sessions\":{sessions},\"dropped_store_actions\":{dropped}")
        };
        drop(state);
        let text = if is_readable {
            format!("{{\"status\":\"{ready}\",\"store\":\"{store}\"{counts}}}\n")
        } else {
            String::new()
        };
        let mut response = http::Response::new(ServedBody::whole(text.into_bytes()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(response)
    }
}
