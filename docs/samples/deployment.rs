//! The code of docs/guide/deployment.md.

mod behind_a_proxy {
    fn main() {
        use axum::extract::Request;
        use axum::middleware::Next;
        use axum::response::Response;
        use mcp_sansio_tokio::http::RemoteAddress;
        use std::net::IpAddr;

        async fn client_address(mut request: Request, next: Next) -> Response {
            let address = request.headers().get("x-real-ip").and_then(|value| value.to_str().ok());
            if let Some(address) = address.and_then(|text| text.parse::<IpAddr>().ok()) {
                request.extensions_mut().insert(RemoteAddress::new(address));
            }
            next.run(request).await
        }

        let _ = axum::Router::<()>::new().layer(axum::middleware::from_fn(client_address));
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod memory {
    fn main() {
        use mcp_sansio_tokio::HttpServerOptions;
        use mcp_sansio_tokio::http::{ServerLimits, ServerTimeouts};
        use std::time::Duration;

        let mut limits = ServerLimits::DEFAULT;
        limits.sessions_max = 500;
        limits.bodies_bytes_max = 32 * 1024 * 1024;
        limits.replay_bytes_total_max = 8 * 1024 * 1024;
        let mut timeouts = ServerTimeouts::default();
        timeouts.session_idle = Duration::from_secs(300);
        let options = HttpServerOptions::new().limits(limits).timeouts(timeouts);

        let _ = options;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod event_stores {
    use mcp_sansio_tokio::Principal;
    use mcp_sansio_tokio::adapter::http_server::ExternalEventStore;
    use mcp_sansio_tokio::http::SessionId;
    use mcp_sansio_tokio::http::{EventPosition, NotStored, StoredEvent};

    struct Redis;

    impl ExternalEventStore for Redis {
        async fn append(&self, event: StoredEvent) {
            // RPUSH to a list whose key is session, stream and principal. Set an expiry.

            let _ = event;
        }

        async fn read(
            &self,
            from: EventPosition,
            events_max: usize,
            bytes_max: usize,
        ) -> Result<Vec<StoredEvent>, NotStored> {
            // LRANGE from `from`.

            let _ = (from, events_max, bytes_max);

            Err(NotStored)
        }

        async fn forget(
            &self,
            session: SessionId,
            stream: Option<u32>,
            principal: Option<Principal>,
        ) {
            // DEL; of all streams of the session if `stream` is `None`.

            let _ = (session, stream, principal);
        }
    }
}

mod a_shared_store {
    fn main() {
        use core::time::Duration;
        use mcp_sansio_tokio::http::{HttpServerOptions, SharedOptions};

        let mut shared = SharedOptions::new();
        shared.lease = Duration::from_secs(10);
        let options = HttpServerOptions::new().shared(shared);

        let _ = options;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
