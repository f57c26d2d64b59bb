//! The code of docs/guide/several-servers.md.

mod several_servers {
    use mcp_sansio_tokio::{self as mcp, Call, Host, Server};

    use mcp_sansio_tokio::{NoArguments, Servers};

    async fn open(city: &'static str, host: &Host) -> Result<mcp::Client, mcp::Error> {
        let server =
            Server::new(city, "1.0.0").tool("weather", "", move |_: Call<NoArguments>| city);
        let (client, pair) = mcp_sansio_test::connect(&server, host);
        tokio::spawn(pair.drive());
        Ok(client)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let host = Host::new("test", "1.0.0");

        let servers = Servers::new();
        for city in ["lima", "oslo"] {
            let host = host.clone();
            let connect = async move || open(city, &host).await; // yours: `mcp::spawn(command, &host)` or `mcp::connect(url, &host)`
            tokio::spawn(servers.connect(city, connect, tokio::time::sleep)?);
        }
        for error in servers.ready(tokio::time::sleep(std::time::Duration::from_secs(10))).await {
            eprintln!("{error}"); // not connected, or not yet
        }

        let tools = servers.all_tools().await;
        for tool in &tools.items {
            println!("{} of {}", tool.item.name, tool.server); // lima_weather, oslo_weather
        }
        for error in &tools.errors {
            eprintln!("{error}");
        }
        let result = servers.call_tool("oslo_weather", &NoArguments {})?.await?;

        assert_eq!(tools.items.len(), 2);
        assert_eq!(result.first_text(), Some("oslo"));

        // As the section "End" says.
        servers.client("oslo")?.close();
        while !matches!(servers.states()[1].1, mcp::handlers::ServerState::Ended { .. }) {
            tokio::task::yield_now().await;
        }
        let connect = async move || open("oslo", &host).await;
        tokio::spawn(servers.connect("oslo", connect, tokio::time::sleep)?);
        assert!(
            servers.ready(tokio::time::sleep(std::time::Duration::from_secs(10))).await.is_empty()
        );
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod which_server_asks {
    use mcp_sansio_tokio::peer::Event;
    use mcp_sansio_tokio::protocol::{ElicitParams, ElicitResult};
    use mcp_sansio_tokio::{self as mcp, AnyConnection, Host, HostRequest, Servers, ServersConfig};

    async fn ask_user(server: &str, question: ElicitParams) -> ElicitResult {
        ElicitResult::decline()
    }

    fn start(
        servers: Servers<AnyConnection>,
        config: ServersConfig,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let host = Host::new("editor", "1.0.0")
            .on_elicit(async |question: HostRequest<ElicitParams>| {
                let server = question.server.unwrap_or_default();
                Ok(ask_user(&server, question.params).await)
            })
            .observe_servers(|server, event| {
                if let Event::Violation(violation) = event {
                    eprintln!("{}: {violation}", server.unwrap_or_default());
                }
            });
        mcp::connect_servers(&servers, config, &host)?;
        Ok(())
    }
}

mod names {
    use mcp_sansio_tokio::{Client, Servers};
    async fn run(servers: Servers<Client>) -> Result<(), Box<dyn std::error::Error>> {
        for resource in servers.all_resources().await.items {
            let client = servers.client(&resource.server)?;
            let result = client.read_resource(&resource.item.uri).await?;
            println!("{}: {} parts", resource.item.name, result.contents.len());
        }

        Ok(())
    }

    fn main() {}

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod failures {
    use mcp_sansio_tokio::{self as mcp, Host, Servers, SpawnOptions};
    use tokio::process::Command;
    async fn run(
        servers: Servers<mcp::ChildConnection>,
        host: Host,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let policy = servers.backoff_policy();
        let connect = async move || {
            let options = SpawnOptions::new().respawn(policy);
            mcp::spawn_with(Command::new("weather-server"), &host, options).await
        };
        tokio::spawn(servers.connect("weather", connect, tokio::time::sleep)?);

        Ok(())
    }

    fn main() {}
}

mod several_transports {
    use mcp_sansio_tokio::{self as mcp, Host};

    use mcp_sansio_tokio::{AnyConnection, Servers};
    use tokio::process::Command;

    async fn run(host: Host) -> Result<(), Box<dyn std::error::Error>> {
        let servers = Servers::<AnyConnection>::new();
        for program in ["files", "notes"] {
            let host = host.clone();
            let connect = async move || {
                mcp::spawn(Command::new(program), &host).await.map(AnyConnection::from)
            };
            tokio::spawn(servers.connect(program, connect, tokio::time::sleep)?);
        }
        let connect = async move || {
            mcp::connect("https://mcp.example.com/mcp", &host).await.map(AnyConnection::from)
        };
        tokio::spawn(servers.connect("weather", connect, tokio::time::sleep)?);
        servers.ready(tokio::time::sleep(std::time::Duration::from_secs(10))).await;

        let said = servers.with_connection("files", |connection| connection.stderr_tail())?;
        if let Some(connection) = servers.remove("files") {
            connection.shutdown().await?;
        }
        drop(said);
        for (_, connection) in servers.close() {
            connection.shutdown().await?;
        }
        Ok(())
    }
}

mod end {
    use mcp_sansio_tokio::{AnyConnection, Servers};
    async fn run(servers: Servers<AnyConnection>) -> Result<(), Box<dyn std::error::Error>> {
        for (_, connection) in servers.close() {
            connection.shutdown().await?;
        }

        Ok(())
    }
}

mod other_adapters {
    use mcp_sansio_std::{self as mcp, Host};
    use std::process::Command;

    use mcp_sansio_std::{Servers, block_on, sleep};

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let host = Host::new("demo", "1.0.0");

        let servers = Servers::new();
        let connect = async move || mcp::spawn(Command::new("weather-server"), &host);
        let connection = servers.connect("weather", connect, sleep)?;
        std::thread::spawn(move || block_on(connection));
        block_on(servers.ready(sleep(std::time::Duration::from_secs(10))));
        let tools = block_on(servers.all_tools());

        drop(tools);
        Ok(())
    }
}
