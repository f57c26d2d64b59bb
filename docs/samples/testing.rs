//! The code of docs/guide/testing.md.

mod time {
    fn main() {
        use mcp_sansio_test::connect;
        use mcp_sansio_tokio::{Call, ClientError, Host, NoArguments, Server};

        let server = Server::new("slow", "1.0.0").tool(
            "wait",
            "Never ends",
            async |_: Call<NoArguments>| std::future::pending::<String>().await,
        );
        let (client, mut pair) = connect(&server, &Host::new("test", "1.0.0"));
        let result = pair.run(client.call_tool("wait", &NoArguments {}));
        assert!(matches!(result, Err(ClientError::TimedOut { .. })));
        assert_eq!(pair.clock().elapsed().as_secs(), 60);
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod timers_of_tokio {
    use std::time::Duration;

    use mcp_sansio_test::connect;
    use mcp_sansio_tokio::{Call, ClientError, Host, NoArguments, Server};

    async fn countdown(_: Call<NoArguments>) -> &'static str {
        tokio::time::sleep(Duration::from_secs(10)).await;
        "lift-off"
    }

    #[tokio::test(start_paused = true)]
    async fn counts_down() -> Result<(), ClientError> {
        let server = Server::new("rocket", "1.0.0").tool("countdown", "Counts down", countdown);
        let (client, pair) = connect(&server, &Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("countdown", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("lift-off"));
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn times_out_without_the_clock_of_tokio() {
        let server = Server::new("rocket", "1.0.0").tool("countdown", "Counts down", countdown);
        let (client, mut pair) = connect(&server, &Host::new("test", "1.0.0"));
        let result = pair.run(client.call_tool("countdown", &NoArguments {}));
        assert!(matches!(result, Err(ClientError::TimedOut { .. })));
    }
}

mod handlers_over_http_with_a_caller {
    use mcp_sansio_test::{Identity, URL, connect_http};
    use mcp_sansio_tokio::auth::protected_resource::Operation;
    use mcp_sansio_tokio::{
        Call, Host, NoArguments, ProtectedResource, Server, TokenCheck, TokenRefusal,
    };

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let resource = ProtectedResource::new(URL, ["https://auth.example.com"])?
            .scopes_for(Operation::tool("delete"), ["write"])?;
        let server = Server::new("files", "1.0.0")
            .tool("delete", "Delete", |call: Call<NoArguments>| {
                call.principal().map_or("anonymous", |it| it.as_str()).to_owned()
            })
            .protect(resource, async |_: TokenCheck| Err(TokenRefusal::Unavailable));

        let host = Host::new("test", "1.0.0");
        let (client, mut pair) =
            connect_http(&server, &host, Identity::new("ann").scopes(["write"]));
        let result = pair.run(client.call_tool("delete", &NoArguments {}))?;
        assert_eq!(result.first_text(), Some("ann"));

        let (client, mut pair) =
            connect_http(&server, &host, Identity::new("bob").scopes(["read"]));
        assert!(pair.run(client.call_tool("delete", &NoArguments {})).is_err());
        assert_eq!(pair.transcript.count("< 403"), 1);

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod a_handler_alone {
    use mcp_sansio_test::{Identity, call};
    use mcp_sansio_tokio::Call;

    struct Place {
        location: String,
    }

    async fn forecast(call: Call<Place>) -> String {
        let user = call.principal().map_or("you", |it| it.as_str());
        format!("Sunny in {}, {user}", call.arguments.location)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() {
        let oslo = || Place { location: "Oslo".into() };
        assert_eq!(forecast(call(oslo())).await, "Sunny in Oslo, you");
        assert_eq!(forecast(Identity::new("ann").call(oslo())).await, "Sunny in Oslo, ann");
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod transcripts {
    fn main() -> Result<(), mcp_sansio_tokio::ClientError> {
        use mcp_sansio_test::connect;
        use mcp_sansio_tokio::{Call, Host, NoArguments, Revision, Revisions, Server};
        let server =
            Server::new("clock", "1.0.0").tool("now", "The time", |_: Call<NoArguments>| "noon");
        let host = Host::new("test", "1.0.0").revisions(Revisions::only(Revision::V2025_11_25));

        let (client, mut pair) = connect(&server, &host);
        pair.transcript.clear(); // without the handshake
        pair.run(client.call_tool("now", &NoArguments {}))?;
        assert_eq!(pair.transcript.outline(), ["> tools/call", "< result"]);
        assert_eq!(
            pair.transcript.lines()[1],
            r#"< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"noon"}]}}"#
        );

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod faults {
    fn main() {
        use mcp_sansio_test::connect;
        use mcp_sansio_tokio::{Call, Host, NoArguments, Server};

        use std::time::Duration;

        use mcp_sansio_test::Faults;

        let server =
            Server::new("clock", "1.0.0").tool("now", "The time", |_: Call<NoArguments>| "noon");

        for seed in 0..10 {
            let (client, mut pair) = connect(&server, &Host::new("test", "1.0.0"));
            let slow = Faults::new(seed).delay(Duration::ZERO..=Duration::from_secs(5));
            pair.set_faults(slow.cut_after(seed));
            // The call ends, with a result or with an error.
            let result = pair.run(client.call_tool("now", &NoArguments {}));
            assert_eq!(result.is_ok(), seed >= 2, "{}", pair.transcript);
        }
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod recordings_as_regression_tests {
    fn main() -> Result<(), mcp_sansio_tokio::ClientError> {
        use mcp_sansio_test::{Recording, assert_replays, connect};
        use mcp_sansio_tokio::{Call, Host, NoArguments, Server};

        let recording = Recording::default();
        let tape = recording.clone();
        let server = Server::new("clock", "1.0.0")
            .tool("now", "The time", |_: Call<NoArguments>| "noon")
            .record(move |_| Some(tape.tape()));
        let (client, mut pair) = connect(&server, &Host::new("test", "1.0.0"));
        pair.run(client.call_tool("now", &NoArguments {}))?;

        let bytes = recording.to_bytes(); // In a test: `include_bytes!("session.jsonl")`
        assert_replays(&bytes);

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
