//! The code of docs/guide/clients.md.

mod connect {
    use mcp_sansio_tokio::{self as mcp, Host};
    use tokio::process::Command;

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let host = Host::new("editor", "1.0.0");

        let mut command = Command::new("npx");
        command.args(["-y", "@modelcontextprotocol/server-everything"]);
        let client = mcp::spawn(command, &host).await?;

        let session = client.session().expect("it is open");
        println!("revision {}", session.revision);
        if let Some(instructions) = &session.instructions {
            println!("{instructions}");
        }

        client.shutdown().await?;
        Ok(())
    }
}

mod connect_2 {
    use mcp_sansio_tokio::{self as mcp, Host};

    async fn run(host: Host) -> Result<mcp::Client, mcp::Error> {
        let socket = tokio::net::TcpStream::connect("127.0.0.1:7000").await?;
        let (reader, writer) = socket.into_split();
        let client = mcp::connect_over(reader, writer, &host).await?;

        Ok(client)
    }
}

mod call {
    use mcp_sansio_tokio::{self as mcp, Call, Host, Server};
    use std::time::Duration;

    use serde::{Deserialize, Serialize};

    #[derive(Serialize)]
    struct Place<'a> {
        location: &'a str,
    }

    #[derive(Deserialize)]
    struct Reading {
        celsius: f64,
    }

    async fn run(client: mcp::Client) -> Result<(), Box<dyn std::error::Error>> {
        let result = client
            .call_tool("temperature", &Place { location: "Oslo" })
            .timeout(Duration::from_secs(10))
            .on_progress(|step| println!("{} of {:?}", step.progress, step.total))
            .await?;
        if result.is_error == Some(true) {
            return Err(result.first_text().unwrap_or("the tool failed").into());
        }
        let reading: Reading = result.structured_content.ok_or("no data")?.decode()?;
        println!("{} °C", reading.celsius);

        Ok(())
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = Server::new("station", "1.0.0").tool(
            "temperature",
            "",
            |_: Call<serde_json::Map<String, serde_json::Value>>| {
                mcp::Structured(serde_json::json!({ "celsius": 21.5 }))
            },
        );
        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        run(client).await
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod call_2 {
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server};
    async fn run(client: mcp::Client) -> Result<(), mcp::ClientError> {
        let (first, second) = tokio::try_join!(
            client.call_tool("now", &NoArguments {}).into_future(),
            client.call_tool("now", &NoArguments {}).into_future(),
        )?;

        assert_eq!(first, second);
        Ok(())
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let server = Server::new("clock", "1.0.0").tool("now", "", |_: Call<NoArguments>| "noon");
        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        Ok(run(client).await?)
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod header_fields {
    use mcp_sansio_tokio::{self as mcp, Host, NoArguments};

    use mcp_sansio_tokio::http::{HttpClientOptions, Location};
    use mcp_sansio_tokio::{Connector, connect_with};

    async fn run(host: Host, key: &str) -> Result<(), Box<dyn std::error::Error>> {
        let url = Location::parse("https://notes.example.com/mcp")?;
        let options = HttpClientOptions::new(url).header("X-Api-Key", key)?;
        let client = connect_with(options, &Connector::new()?, &host).await?;
        let result =
            client.call_tool("search", &NoArguments {}).header("X-Tenant", "north").await?;

        let _ = result;
        Ok(())
    }
}

mod cache_results {
    fn main() -> Result<(), mcp_sansio_tokio::ClientError> {
        use mcp_sansio_tokio::protocol::CacheHints;
        use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server};
        use std::time::Duration;

        use mcp_sansio_tokio::peer::CacheOptions;

        let host = Host::new("editor", "1.0.0").cache(CacheOptions::DEFAULT);

        let server = Server::new("clock", "1.0.0")
            .cache(CacheHints::public(Duration::from_secs(60)))
            .tool("now", "", |_: Call<NoArguments>| "noon");
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        pair.run(async {
            let tools = client.list_tools(None).await?;
            let same = client.list_tools(None).await?; // no request
            let fresh = client.list_tools(None).reload().await?; // a request; its result replaces the cached one

            assert!(tools == same && same == fresh);
            Ok::<(), mcp::ClientError>(())
        })?;
        assert_eq!(pair.transcript.count("\"method\":\"tools/list\""), 2);
        Ok::<(), mcp::ClientError>(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod timeouts {
    fn main() {
        use mcp_sansio_tokio::Host;
        use std::time::Duration;

        use mcp_sansio_tokio::peer::Timeouts;

        let mut timeouts = Timeouts::default();
        timeouts.call = Duration::from_secs(15);
        let host = Host::new("editor", "1.0.0").timeouts(timeouts);

        let _ = host;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod answer_the_server {
    fn main() {
        use mcp_sansio_tokio::{Host, HostRequest};

        use mcp_sansio_tokio::protocol::{
            CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Root,
        };

        async fn ask_user(_: ElicitParams) -> Option<ElicitResult> {
            None
        }
        async fn ask_model(_: CreateMessageParams) -> Result<CreateMessageResult, std::io::Error> {
            Err(std::io::ErrorKind::Other.into())
        }

        let host = Host::new("editor", "1.0.0")
            .on_elicit(async |question: HostRequest<ElicitParams>| {
                Ok(ask_user(question.params).await.unwrap_or_else(ElicitResult::cancel))
            })
            .on_sample(async |question: HostRequest<CreateMessageParams>| {
                Ok(ask_model(question.params).await?)
            })
            .on_roots(|_: HostRequest<()>| vec![Root::new("file:///home/ada/project")]);

        let _ = host;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod notifications_and_logs {
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server};

    use mcp_sansio_tokio::peer::Event;
    use mcp_sansio_tokio::protocol::LoggingMessageParams;
    use mcp_sansio_tokio::{LoggingLevel, Method};
    use tokio::sync::mpsc;

    async fn connected(host: Host) -> Result<mcp::Client, mcp::Error> {
        let server =
            Server::new("s", "1.0.0").logging().tool("work", "", |call: Call<NoArguments>| {
                call.log(LoggingLevel::Debug, "not wanted");
                call.log(LoggingLevel::Warning, "low on disk");
            });
        let (client, pair) = mcp_sansio_test::connect(&server, &host);
        tokio::spawn(pair.drive());
        Ok(client)
    }

    async fn run() -> Result<(), Box<dyn std::error::Error>> {
        let (sender, mut logs) = mpsc::unbounded_channel();
        let host = Host::new("editor", "1.0.0").observe(move |event| match event {
            Event::Notification(it) if it.method == Method::Message => {
                if let Ok(log) = it.params.decode::<LoggingMessageParams>() {
                    let _ = sender.send(log);
                }
            }
            Event::Violation(violation) => eprintln!("the server broke a rule: {violation}"),
            Event::EventStreamLost(failure) => eprintln!("no more notifications: {failure}"),
            Event::Closed(reason) => eprintln!("closed: {reason}"),
            _ => {}
        });
        let client = connected(host).await?;
        client.set_log_level(LoggingLevel::Info)?;
        client.call_tool("work", &NoArguments {}).await?;
        let log = logs.recv().await.ok_or("no message")?;
        println!("{}: {}", log.level, log.data.as_str());

        assert_eq!(log.data.as_str(), "\"low on disk\"");
        Ok(())
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        run().await
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod errors {
    use mcp_sansio_tokio::{self as mcp, Client};

    use mcp_sansio_tokio::ClientError;
    use mcp_sansio_tokio::peer::Failure;

    async fn run(client: Client) -> Result<(), ClientError> {
        match client.read_resource("file:///notes").await {
            Ok(result) => println!("{} parts", result.contents.len()),
            Err(error) if error.is_resource_not_found() => println!("there are no notes"),
            Err(ClientError::Failed(Failure::Refused(error))) => {
                println!("{}: {}", error.code, error.message)
            }
            Err(ClientError::TimedOut { .. }) => println!("try again later"),
            Err(error) => return Err(error),
        }

        Ok(())
    }

    fn main() {
        let server = mcp::Server::new("s", "1.0.0").tool(
            "slow",
            "",
            async |_: mcp::Call<mcp::NoArguments>| std::future::pending::<String>().await,
        );
        let (client, mut pair) = mcp_sansio_test::connect(&server, &mcp::Host::new("h", "1.0.0"));
        let error = pair.run(run(client.clone())).unwrap_err();
        assert!(matches!(error, ClientError::NotSent(_)), "{error}");
        let slow = pair.run(client.call_tool("slow", &mcp::NoArguments {}));
        assert!(matches!(slow, Err(ClientError::TimedOut { hard: false, .. })));
        let waiting = pair.start(client.call_tool("slow", &mcp::NoArguments {}));
        client.close();
        let lost = pair.run(waiting);
        assert!(matches!(lost, Err(ClientError::Failed(Failure::ConnectionLost))), "{lost:?}");
        assert!(matches!(
            pair.run(client.call_tool("slow", &mcp::NoArguments {})),
            Err(ClientError::Closed(_))
        ));
        assert!(client.era().is_some());
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod several_servers {
    use mcp_sansio_tokio::{self as mcp, Host};

    use mcp_sansio_tokio::http::{HttpClientOptions, Location};
    use mcp_sansio_tokio::{Connector, connect_with};

    async fn run(host: Host) -> Result<(), Box<dyn std::error::Error>> {
        let connector = Connector::new()?;
        for url in ["https://one.example.com/mcp", "https://two.example.com/mcp"] {
            let client =
                connect_with(HttpClientOptions::new(Location::parse(url)?), &connector, &host)
                    .await?;
            println!("{} tools", client.all_tools().await?.len());
            client.close().await;
        }

        Ok(())
    }
}

mod end_and_reconnect {
    use mcp_sansio_tokio::peer::Failure;
    use mcp_sansio_tokio::{self as mcp, ClientError, Host};
    use tokio::process::Command;

    use mcp_sansio_tokio::SpawnOptions;
    use mcp_sansio_tokio::machine::Backoff;

    async fn run(host: Host) -> Result<(), mcp::Error> {
        let options = SpawnOptions::new().respawn(Backoff::DEFAULT);
        let client = mcp::spawn_with(Command::new("weather-server"), &host, options).await?;
        match client.call_tool("forecast", &serde_json::json!({ "location": "Oslo" })).await {
            Ok(result) => println!("{:?}", result.content),
            // The next call waits for the new process.
            Err(ClientError::Failed(Failure::ConnectionLost)) => {
                println!("the server ended meanwhile")
            }
            Err(error) => return Err(error.into()),
        }

        Ok(())
    }
}
