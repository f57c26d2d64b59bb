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
                .title("Weather")?
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
        let (card, _omissions) = ServerCard::parse(&Connector::new()?.fetch(url).await?)?;
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
                call.principal().map_or("anonymous", |who| who.as_str()).to_owned()
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
        use mcp_sansio_tokio::adapter::http_server::UnixSocket;

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

mod what_surrounds_a_request {
    use std::collections::HashMap;
    use std::sync::Arc;

    use axum::Router;
    use axum::extract::{self, Request};
    use axum::http::StatusCode;
    use axum::middleware::{Next, from_fn_with_state};
    use axum::response::{IntoResponse, Response};
    use mcp_sansio_tokio::{
        Call, Caller, HandlerError, HttpServerOptions, HttpService, NoArguments, Principal, Server,
        ServerItem, State,
    };
    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;

    /// What the application knows of a user.
    #[derive(Clone)]
    struct User {
        name: String,
        roles: Vec<String>,
        tenants: Vec<String>,
    }

    type Users = Arc<HashMap<String, User>>;

    /// Stands for the connection pool of a database, such as `sqlx::PgPool`.
    struct Pool(Semaphore);

    impl Pool {
        async fn orders(&self, tenant: &str) -> Result<Vec<String>, tokio::sync::AcquireError> {
            let _connection = self.0.acquire().await?;
            Ok(vec![format!("an order of {tenant}")])
        }
    }

    /// A layer: authenticates requests in the application's own way, here by an API key.
    async fn authenticate(
        users: extract::State<Users>,
        mut request: Request,
        next: Next,
    ) -> Response {
        let key = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
        let Some(user) = key.and_then(|key| users.get(key)).cloned() else {
            return StatusCode::UNAUTHORIZED.into_response();
        };
        // Sessions, tasks and limits belong to the principal. Roles are scopes, for `requires`.
        let principal = Principal::new(user.name.clone());
        request.extensions_mut().insert(Caller::from_scopes(principal, &user.roles));
        request.extensions_mut().insert(user);
        next.run(request).await
    }

    /// A tool: the orders of the tenant that the request names, if they are the user's.
    async fn orders(call: Call<NoArguments>, pool: State<Pool>) -> Result<String, HandlerError> {
        let tenant = call.header("x-tenant").unwrap_or_default();
        let user = call.extension::<User>();
        if !user.is_some_and(|user| user.tenants.iter().any(|it| it == tenant)) {
            return Err(HandlerError::failed("this is none of your tenants: set X-Tenant"));
        }
        Ok(pool.orders(tenant).await?.join("\n"))
    }

    fn app(users: Users) -> Result<Router, mcp_sansio_tokio::Error> {
        let purge =
            ServerItem::tool("purge", "Deletes all orders", |_: Call<NoArguments>| "deleted");
        let server = Server::new("orders", "1.0.0")
            .state(Pool(Semaphore::new(16)))
            .tool("orders", "The orders of a tenant", orders)
            .add_item(purge.requires("admin"));
        let options = HttpServerOptions::new().any_path().keep_headers(["x-tenant"]);
        let service = HttpService::new(&server, options)?.extension::<User>();
        Ok(Router::new()
            .route_service("/mcp", service)
            .layer(from_fn_with_state(users, authenticate)))
    }

    #[tokio::main]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let ann =
            User { name: "ann".into(), roles: vec!["admin".into()], tenants: vec!["acme".into()] };
        let users: Users = Arc::new(HashMap::from([("s3cret".to_owned(), ann)]));
        let listener = TcpListener::bind("127.0.0.1:8000").await?;
        axum::serve(listener, app(users)?).await?;
        Ok(())
    }

    /// Posts a call with these fields, and returns the status and the body.
    async fn post(app: &Router, tool: &str, key: &str, tenant: &str) -> (StatusCode, String) {
        use tower::ServiceExt as _;

        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .header("x-api-key", key)
            .header("x-tenant", tenant);
        let response =
            app.clone().oneshot(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 65_536).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn each_user_gets_the_orders_of_its_tenants() {
        let user = |name: &str, role: &str| User {
            name: name.into(),
            roles: vec![role.into()],
            tenants: vec!["acme".into()],
        };
        let users = [("a", user("ann", "admin")), ("b", user("bob", "clerk"))];
        let users = users.map(|(key, user)| (key.to_owned(), user));
        let app = app(Arc::new(HashMap::from(users))).unwrap();
        assert_eq!(post(&app, "orders", "c", "acme").await.0, StatusCode::UNAUTHORIZED);
        for key in ["a", "b"] {
            assert!(post(&app, "orders", key, "acme").await.1.contains("an order of acme"));
            assert!(post(&app, "orders", key, "other").await.1.contains("none of your tenants"));
        }
        assert!(post(&app, "purge", "a", "acme").await.1.contains("deleted"));
        assert!(!post(&app, "purge", "b", "acme").await.1.contains("deleted"));
    }
}
