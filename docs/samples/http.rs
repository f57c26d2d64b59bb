//! The code of docs/guide/http.md.

mod access_control {
    fn main() {
        use mcp_sansio_tokio::HttpServerOptions;
        use mcp_sansio_tokio::http::AllowedHosts;
        fn options() -> Result<HttpServerOptions, Box<dyn std::error::Error>> {
            let hosts = AllowedHosts::new()
                .allow_host("mcp.example.com")?
                .allow_origin("https://app.example.com")?;
            let options = HttpServerOptions::new().hosts(hosts);

            Ok(options)
        }
        options().unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod server_card_a_draft {
    fn main() {
        use mcp_sansio_tokio::{Server, ServerCard};

        fn server() -> Result<Server, Box<dyn std::error::Error>> {
            let card = ServerCard::new("com.example/weather", "1.0.0", "Weather at a place")?
                .title("Weather")
                .remote("https://mcp.example.com/mcp")?;
            let server = Server::new("weather", "1.0.0").card(card);

            Ok(server)
        }
        server().unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod server_card_a_draft_2 {
    use mcp_sansio_tokio::http::Location;
    use mcp_sansio_tokio::{Connector, ServerCard};

    async fn run() -> Result<(), Box<dyn std::error::Error>> {
        let url = ServerCard::url_of(&Location::parse("https://mcp.example.com/mcp")?);
        let card = ServerCard::parse(&Connector::new()?.fetch(url).await?)?;
        println!("{} {}", card.name, card.version);

        Ok(())
    }
}

mod on_one_computer_without_a_port {
    #[cfg(unix)]
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    #[cfg(unix)]
    #[tokio::main]
    async fn main() -> Result<(), mcp::Error> {
        let server = Server::new("files", "1.0.0").tool(
            "who",
            "Names the caller",
            |call: Call<NoArguments>| {
                // `uid:1000`
                call.principal().map_or("anonymous".to_owned(), |who| who.as_str().to_owned())
            },
        );
        mcp::serve_http_unix(server, "/run/user/1000/files.sock").await
    }

    #[cfg(not(unix))]
    fn main() {}
}

mod on_one_computer_without_a_port_2 {
    #[cfg(unix)]
    async fn run(service: mcp_sansio_tokio::HttpService) -> Result<(), mcp_sansio_tokio::Error> {
        use mcp_sansio_tokio::HttpListener;
        use mcp_sansio_tokio::adapter::network::UnixSocket;

        let socket = UnixSocket::bind_with_mode("/run/files/files.sock", 0o660)?;
        let shutdown = async { drop(tokio::signal::ctrl_c().await) };
        HttpListener::try_from(socket)?.serve(service, shutdown).await;

        Ok(())
    }
}

mod on_one_computer_without_a_port_3 {
    #[cfg(unix)]
    async fn run(host: mcp_sansio_tokio::Host) -> Result<(), Box<dyn std::error::Error>> {
        use mcp_sansio_tokio::http::Location;
        use mcp_sansio_tokio::{self as mcp, Connector, HttpClientOptions, connect_with};

        // With defaults, at http://localhost/mcp:
        let client = mcp::connect_unix("/run/user/1000/files.sock", &host).await?;

        // With options:
        let connector = Connector::builder().unix_socket("/run/user/1000/files.sock").build()?;
        let options = HttpClientOptions::new(Location::parse("http://localhost/files")?);
        let client = connect_with(options, &connector, &host).await?;

        Ok(())
    }
}

mod connect {
    use mcp_sansio_tokio::http::Location;
    use mcp_sansio_tokio::http::{HttpClientOptions, LostSession};
    use mcp_sansio_tokio::{Connector, Host, Proxy, connect_with};
    use std::time::Duration;

    async fn run(company_root: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
        let connector = Connector::builder()
            .root_certificate(company_root) // DER
            .proxy(Proxy::none())
            .connect_timeout(Duration::from_secs(5))
            .build()?;
        let options = HttpClientOptions::new(Location::parse("https://mcp.example.com/mcp")?)
            .lost_session(LostSession::RepeatCalls);
        let client = connect_with(options, &connector, &Host::new("demo", "1.0.0")).await?;

        client.close().await;
        Ok(())
    }
}

mod connect_2 {
    use mcp_sansio_tokio::Connector;

    fn connector() -> Result<Connector, Box<dyn std::error::Error>> {
        let [root, certificate, key] =
            ["root.der", "client.der", "client-key.der"].map(std::fs::read);
        let connector = Connector::builder()
            .root_certificate(root?)
            .system_roots(false)
            .client_certificate([certificate?], key?)?
            .build()?;

        Ok(connector)
    }
}

mod connect_3 {
    use mcp_sansio_tokio::http::Location;
    use mcp_sansio_tokio::{Connector, Host, HttpClientOptions, connect_with};

    async fn run() -> Result<(), Box<dyn std::error::Error>> {
        let key = std::env::var("WEATHER_API_KEY")?;
        let options = HttpClientOptions::new(Location::parse("https://mcp.example.com/mcp")?)
            .header("X-Api-Key", &key)?;
        let client = connect_with(options, &Connector::new()?, &Host::new("demo", "1.0.0")).await?;

        client.close().await;
        Ok(())
    }
}
