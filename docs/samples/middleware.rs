//! The code of docs/guide/middleware.md.

mod a_function_around_every_handler {
    use mcp_sansio_tokio::middleware::{MiddlewareResult, Next, ServerRequest};
    use mcp_sansio_tokio::{self as mcp, Call, HandlerError, Host, NoArguments, Server};

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        async fn maintenance(request: ServerRequest, next: Next) -> MiddlewareResult {
            if request.target().as_deref() == Some("forecast") {
                return Err(HandlerError::failed("The stations are under repair until noon."));
            }
            next.run(request).await
        }

        let server = Server::new("weather", "1.0.0")
            .middleware(maintenance)
            .tool("forecast", "The weather of tomorrow", |_: Call<NoArguments>| "Sunny")
            .tool("stations", "All stations", |_: Call<NoArguments>| "Oslo, Rome");

        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
        tokio::spawn(pair.drive());

        // In the client:
        let result = client.call_tool("forecast", &NoArguments {}).await?;
        assert_eq!(result.is_error, Some(true));
        let result = client.call_tool("stations", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("Oslo, Rome"));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod lists {
    fn main() {
        use mcp_sansio_tokio::middleware::{MiddlewareResult, Next, ServerRequest};
        use mcp_sansio_tokio::{Call, NoArguments, Server};

        async fn label(request: ServerRequest, next: Next) -> MiddlewareResult {
            let (is_list, revision) = (request.is_list(), request.revision());
            let result = next.run(request).await?;
            if !is_list {
                return Ok(result);
            }
            Ok(result.insert_meta("com.example/region", "north", revision)?)
        }

        let server = Server::new("weather", "1.0.0")
            .middleware(label)
            .lists_through_middleware()
            .tool("forecast", "The weather of tomorrow", |_: Call<NoArguments>| "Sunny");

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod all_messages {
    fn main() {
        use mcp_sansio_tokio::jsonrpc::{ErrorObject, Json, RawJson};
        use mcp_sansio_tokio::middleware::{
            MessageMiddleware, MiddlewareMessage, MiddlewareResponse, RequestAction, ResponseAction,
        };
        use mcp_sansio_tokio::{self as mcp, Host, Method, Server};

        /// Admits editors only, and adds a notice to the answer.
        struct Editors;

        impl MessageMiddleware for Editors {
            fn request(&self, message: &MiddlewareMessage<'_>) -> RequestAction {
                let opens = matches!(message.method(), "initialize" | "server/discover");
                if opens && !message.params().as_str().contains("editor") {
                    return RequestAction::Refuse(ErrorObject::invalid_request(
                        "this server is for editors",
                    ));
                }
                RequestAction::Forward
            }

            fn response(
                &self,
                response: &MiddlewareResponse<'_>,
                outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
            ) -> ResponseAction {
                let (Some(Method::Initialize | Method::Discover), Ok(result)) =
                    (response.method(), outcome)
                else {
                    return ResponseAction::Forward;
                };
                let Ok(mut result) = result.decode::<serde_json::Value>() else {
                    return ResponseAction::Forward;
                };
                result["_meta"]["com.example/notice"] = "Maintenance at noon.".into();
                Json::from_serialize(&result)
                    .map_or(ResponseAction::Forward, ResponseAction::Replace)
            }
        }

        let server = Server::new("notes", "1.0.0").message_middleware(Editors);

        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("editor", "1.0.0"));
        assert_eq!(pair.transcript.count("Maintenance"), 1);
        drop(client);
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod notifications {
    fn main() {
        use mcp_sansio_tokio::middleware::NotificationAction;
        use mcp_sansio_tokio::{Call, LoggingLevel, NoArguments, Server};

        let server = Server::new("weather", "1.0.0")
            .logging()
            .notification_middleware(|notification| {
                if notification.method() == "notifications/message"
                    && notification.params().as_str().contains("token")
                {
                    return NotificationAction::Drop;
                }
                NotificationAction::Forward
            })
            .tool("forecast", "The weather of tomorrow", |call: Call<NoArguments>| {
                call.log(LoggingLevel::Debug, "asking the station");
                "Sunny"
            });

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod limits {
    fn main() {
        use mcp_sansio_tokio::middleware::{RateLimit, ServerRequest, when};
        use mcp_sansio_tokio::{Call, NoArguments, Server};
        use std::time::Duration;

        let is_report = |request: &ServerRequest| request.target().as_deref() == Some("report");
        let server = Server::new("reports", "1.0.0")
            .middleware(RateLimit::new(60, Duration::from_secs(60)))
            .middleware(when(is_report, RateLimit::new(1, Duration::from_secs(60))))
            .tool("report", "The yearly report", async |_: Call<NoArguments>| "Nothing to report");

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod limits_2 {
    fn main() {
        use mcp_sansio_tokio::HandlerError;
        use mcp_sansio_tokio::middleware::{MiddlewareResult, Next, ServerRequest};
        use std::future::poll_fn;
        use std::pin::{Pin, pin};
        use std::task::Poll;
        use std::time::Duration;

        async fn timeout(request: ServerRequest, next: Next) -> MiddlewareResult {
            let mut sleep = request.sleep(Duration::from_secs(20));
            let mut run = pin!(next.run(request));
            poll_fn(|cx| match run.as_mut().poll(cx) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => Pin::new(&mut sleep)
                    .poll(cx)
                    .map(|()| Err(HandlerError::failed("The report takes too long."))),
            })
            .await
        }

        let _ = timeout;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod an_access_log {
    fn main() {
        use mcp_sansio_tokio::Server;
        use mcp_sansio_tokio::middleware::AccessLog;

        let server = Server::new("notes", "1.0.0")
            .middleware(AccessLog::new(|record| eprintln!("{record}")));

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod time {
    fn main() {
        use mcp_sansio_tokio::handler::ResultBody;
        use mcp_sansio_tokio::middleware::{MiddlewareResult, Next, ServerRequest};
        use std::time::Duration;

        /// Tries a tool up to three times.
        async fn retry(request: ServerRequest, next: Next) -> MiddlewareResult {
            for attempt in 1..3 {
                match next.run(request.clone()).await {
                    Ok(ResultBody::Tool(result))
                        if result.is_error == Some(true) && request.is_read_only() => {}
                    result => return result,
                }
                request.sleep(Duration::from_millis(100 * attempt)).await;
            }
            next.run(request).await
        }

        let _ = retry;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod around_the_calls_of_a_client {
    use mcp_sansio_tokio::middleware::{AccessLog, Calls, ClientRequest, MiddlewareResult, Next};
    use mcp_sansio_tokio::{self as mcp, Call, ClientError, Host, NoArguments, Server};

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// Marks each call with a project, and reads once more if that failed.
        async fn project(mut request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
            request.insert_meta("com.example/project", "apollo")?;
            match next.run(request.clone()).await {
                Err(ClientError::Failed(_)) if request.is_read() => next.run(request).await,
                result => result,
            }
        }

        /// Writes a line for each call.
        async fn audit(request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
            let (method, target) =
                (request.method().to_string(), request.target().map(|it| it.into_owned()));
            let result = next.run(request).await;
            eprintln!("{method} {target:?}: {}", if result.is_ok() { "ok" } else { "failed" });
            result
        }

        let host = Host::new("editor", "1.0.0")
            .call_middleware(audit)
            .call_middleware(project)
            .call_middleware(AccessLog::new(|record| eprintln!("{record}")));

        let server = Server::new("s", "1.0.0").tool("build", "", |_: Call<NoArguments>| "done");
        let (client, pair) = mcp_sansio_test::connect(&server, &host);
        tokio::spawn(pair.drive());

        let result = client.call_tool("build", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("done"));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod layers_of_tower {
    fn main() {
        use mcp_sansio_tokio::tower::around;
        use mcp_sansio_tokio::{Call, Host, NoArguments, Server};
        use std::time::Duration;
        use tower::timeout::TimeoutLayer;

        let layers = tower::ServiceBuilder::new().load_shed().concurrency_limit(8).into_inner();
        let server = Server::new("reports", "1.0.0").middleware(around(layers)).tool(
            "report",
            "The yearly report",
            |_: Call<NoArguments>| "Nothing to report",
        );
        let host = Host::new("editor", "1.0.0")
            .call_middleware(around(TimeoutLayer::new(Duration::from_secs(20))));

        let _ = (server, host);
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
