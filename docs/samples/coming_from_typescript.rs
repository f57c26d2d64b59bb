//! The code of docs/guide/coming-from-typescript.md.

mod mcpserver_registertool_and_zod_schemas {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::Host;

    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Person {
        /// Weight in kilograms
        weight_kg: f64,
        /// Height in metres
        height_m: f64,
    }

    fn server() -> Server {
        Server::new("health", "1.0.0").tool(
            "calculate-bmi",
            "Calculate Body Mass Index",
            async |call: Call<Person>| {
                let Person { weight_kg, height_m } = call.arguments;
                format!("{:.1}", weight_kg / (height_m * height_m))
            },
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &Host::new("demo", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client
            .call_tool("calculate-bmi", &serde_json::json!({ "weightKg": 80.0, "heightM": 2.0 }))
            .await?;
        assert_eq!(result.first_text(), Some("20.0"));
        let result =
            client.call_tool("calculate-bmi", &serde_json::json!({ "weightKg": "80" })).await?;
        assert_eq!(result.is_error, Some(true));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod resources_prompts_completion {
    use mcp_sansio_tokio::protocol::{
        CompleteParams, Prompt, PromptArgument, ResourceTemplate, TextResourceContents,
    };
    use mcp_sansio_tokio::{Call, ReadResource, Server};

    #[derive(serde::Deserialize)]
    struct Review {
        code: String,
    }

    fn main() {
        let server = Server::new("users", "1.0.0")
            .resource_template(
                ResourceTemplate::new("users://{userId}/profile", "user-profile")
                    .title("User Profile"),
                |call: Call<ReadResource>| {
                    let user = call.arguments.variable("userId").unwrap_or_default();
                    TextResourceContents::new(
                        call.arguments.uri.as_str(),
                        format!("profile of {user}"),
                    )
                },
            )
            .prompt_with(
                Prompt::new("review-code").arguments([PromptArgument::new("code").required(true)]),
                |call: Call<Review>| format!("Please review this code:\n\n{}", call.arguments.code),
            )
            .completion(|call: Call<CompleteParams>| {
                let typed = call.arguments.argument.value.as_str();
                let names = ["Alice", "Bob", "Charlie"];
                names
                    .iter()
                    .filter(|it| it.starts_with(typed))
                    .map(|it| (*it).into())
                    .collect::<Vec<String>>()
            });

        server.endpoint(1).unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod resources_prompts_completion_2 {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use mcp_sansio_tokio::Host;

    fn server() -> Server {
        Server::new("switch", "1.0.0")
            .tool("off", "Remove the tool `hello`", |call: Call<NoArguments>| {
                call.edit_catalog(|catalog| {
                    catalog.remove_tool("hello");
                })?;
                Ok("removed")
            })
            .tool("hello", "Say hello", |_: Call<NoArguments>| "Hello!")
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &Host::new("demo", "1.0.0"));
        tokio::spawn(pair.drive());
        client.call_tool("off", &NoArguments {}).await?;
        assert_eq!(client.all_tools().await?.len(), 1);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod sessions {
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server};
    use tokio::net::TcpListener;

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let server = Server::new("hello", "1.0.0").tool(
            "hello",
            "Say hello",
            |_: Call<NoArguments>| "Hello!",
        );

        let opened = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&opened);
        let server = server.observe(move |event| {
            if let mcp::peer::Event::Opened(_) = event {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });

        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        tokio::spawn(mcp::serve_http(server, listener));

        let client = mcp::connect(&url, &Host::new("demo", "1.0.0")).await?;
        let result = client.call_tool("hello", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("Hello!"));
        client.close().await;

        let host = Host::new("demo", "1.0.0");
        let client =
            mcp::connect(&url, &host.revisions(mcp::Revisions::only(mcp::Revision::V2025_11_25)))
                .await?;
        client.call_tool("hello", &NoArguments {}).await?;
        assert_eq!(opened.load(std::sync::atomic::Ordering::Relaxed), 1);
        client.close().await;
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod elicitation_and_sampling {
    use mcp_sansio_tokio::{self as mcp, Call, Elicit, NoArguments, Server};

    use mcp_sansio_tokio::protocol::{ElicitParams, ElicitResult};
    use mcp_sansio_tokio::{Host, HostRequest, Revision, Revisions};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Confirmation {
        sure: bool,
    }

    fn server() -> Server {
        Server::new("tables", "1.0.0").tool(
            "book",
            "Book a table",
            async |call: Call<NoArguments>| match call.input::<Confirmation>("confirm")? {
                None => call
                    .require_input("confirm", Elicit::form::<Confirmation>("Book it?"))
                    .into_result(),
                Some(answer) if answer.content.as_ref().is_some_and(|form| form.sure) => {
                    Ok("Booked.")
                }
                Some(_) => Ok("Not booked."),
            },
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let host = Host::new("demo", "1.0.0")
            .on_elicit(|_: HostRequest<ElicitParams>| ElicitResult::decline());
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let (client, pair) = mcp_sansio_test::connect(
                &server(),
                &host.clone().revisions(Revisions::only(revision)),
            );
            tokio::spawn(pair.drive());
            let result = client.call_tool("book", &NoArguments {}).await?;
            assert_eq!(result.first_text(), Some("Not booked."));
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod client {
    use mcp_sansio_tokio::protocol::Root;
    use mcp_sansio_tokio::{self as mcp, Host, HostRequest};
    use serde_json::json;
    use tokio::process::Command;

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let host = Host::new("demo", "1.0.0")
            .on_roots(|_: HostRequest<()>| vec![Root::new("file:///home/ada")]);
        let client = mcp::spawn(Command::new("weather-server"), &host).await?;
        let result = client.call_tool("forecast", &json!({ "location": "Oslo" })).await?;
        println!("{}", result.first_text().unwrap_or("no text"));
        client.shutdown().await?;

        Ok(())
    }
}
