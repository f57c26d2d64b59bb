//! The code of docs/guide/authorization.md.

mod in_a_client {
    fn main() {
        use mcp_sansio_tokio::auth::client::{
            AuthorizationOptions, ClientSecret, RegisteredClient,
        };
        use mcp_sansio_tokio::{Authorization, Host};

        fn host(password: String) -> Result<Host, Box<dyn std::error::Error>> {
            // A service that signs in with a password:
            let secret = ClientSecret::Password(password);
            let client =
                RegisteredClient::new("nightly-report", secret).issuer("https://auth.example.com");
            let options = AuthorizationOptions::client_credentials()
                .registered(client)?
                .scopes(["reports:read"])?;
            let host = Host::new("report", "1.0.0").authorization(Authorization::new(options));

            Ok(host)
        }
        host("secret".into()).unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod in_a_server {
    use mcp_sansio_tokio::auth::protected_resource::{Operation, ProtectedResource};
    use mcp_sansio_tokio::{self as mcp, Call, Connector, JwtVerifier, NoArguments, Server};

    async fn run() -> Result<(), Box<dyn std::error::Error>> {
        let (issuer, url) = ("https://auth.example.com", "https://mcp.example.com/mcp");
        let resource = ProtectedResource::new(url, [issuer])?
            .base_scopes(["files:read"])?
            .scopes_for(Operation::tool("delete"), ["files:write"])?
            .implies("files", ["files:read", "files:write"])?;
        let connector = Connector::new()?;
        let verifier = JwtVerifier::new(issuer, url, move |url| connector.fetch(url))?;

        let server = Server::new("files", "1.0.0")
            .tool("delete", "Deletes a file", |call: Call<NoArguments>| {
                format!("deleted for {:?}", call.principal())
            })
            .protect(resource, move |check| verifier.check(check));

        let _ = server;
        Ok(())
    }
}

mod in_a_server_2 {
    fn main() {
        use mcp_sansio_tokio::{Principal, TokenCheck, TokenRefusal, VerifiedToken};

        struct Claims {
            iss: String,
            sub: String,
            aud: Vec<String>,
            scope: String,
            exp: u64,
        }
        async fn introspect(_: &str) -> Result<Claims, std::io::Error> {
            Err(std::io::ErrorKind::Other.into())
        }

        async fn check(check: TokenCheck) -> Result<VerifiedToken, TokenRefusal> {
            let claims = introspect(check.token()).await.map_err(|_| TokenRefusal::Invalid)?;
            // Subjects are unique within one issuer only.
            let principal = Principal::new(format!("{}|{}", claims.iss, claims.sub));
            Ok(VerifiedToken::new(principal)
                .audiences(claims.aud)
                .scope(&claims.scope)
                .expires_at(claims.exp))
        }

        let _ = check;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod tokens_without_an_authorization_server {
    fn main() {
        use mcp_sansio_tokio::auth::protected_resource::StaticTokens;
        use mcp_sansio_tokio::{self as mcp, Principal, ProtectedResource, Server, VerifiedToken};

        fn server(ann: String, nightly: String) -> Result<Server, Box<dyn std::error::Error>> {
            let tokens = StaticTokens::new([
                (
                    ann,
                    VerifiedToken::new(Principal::new("ann")).scopes(["files:read", "files:write"]),
                ),
                (
                    nightly,
                    VerifiedToken::new(Principal::new("nightly-report")).scopes(["files:read"]),
                ),
            ])?;
            let resource = ProtectedResource::without_issuer("https://mcp.example.com/mcp")?
                .base_scopes(["files:read"])?;
            let server =
                Server::new("files", "1.0.0").protect(resource, move |check| tokens.check(&check));

            Ok(server)
        }
        server("kX9vQmZ0b1xw0D7p".into(), "F3sR5Aq8c2LzT6Hn".into()).unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod tokens_that_are_bound_to_a_key {
    fn main() {
        use std::time::Duration;

        use mcp_sansio_tokio::ProtectedResource;
        use mcp_sansio_tokio::auth::dpop_verifier;

        fn resource(secret: &[u8; 32]) -> Result<ProtectedResource, Box<dyn std::error::Error>> {
            let verifier = dpop_verifier() // with the feature `auth`
                .required() // tokens that are not bound are refused
                .nonces(secret, Duration::from_secs(300)); // proofs cannot be made in advance
            let resource = ProtectedResource::new(
                "https://mcp.example.com/mcp",
                ["https://auth.example.com"],
            )?
            .dpop(verifier)?;

            Ok(resource)
        }
        resource(&[7; 32]).unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod scopes {
    fn main() {
        use mcp_sansio_tokio::Call;
        use mcp_sansio_tokio::HandlerError;

        struct File {
            path: String,
        }
        async fn exists(_: &str) -> bool {
            true
        }

        async fn save(call: Call<File>) -> Result<&'static str, HandlerError> {
            if exists(&call.arguments.path).await {
                call.require_scopes(&["files:overwrite"])?;
            }
            Ok("Saved.")
        }

        let _ = save;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
