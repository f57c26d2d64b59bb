//! The code of docs/guide/coming-from-rmcp.md.

mod features {
    use mcp_sansio_tokio::{self as mcp, Call, Client, Host, Server};
}

mod tools_tool_tool_router_parameters {
    use mcp_sansio_tokio::{self as mcp, Call, Server, Structured};

    use mcp_sansio_tokio::Host;

    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    struct AddParameter {
        left: usize,
        right: usize,
    }

    #[derive(Serialize)]
    struct Sum {
        sum: usize,
    }

    fn adder() -> Server {
        Server::new("adder", "1.0.0").tool("add", "Add two integers", |call: Call<AddParameter>| {
            let AddParameter { left, right } = call.arguments;
            Structured(Sum { sum: left.wrapping_add(right) })
        })
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&adder(), &Host::new("demo", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("add", &serde_json::json!({ "left": 1, "right": 2 })).await?;
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"sum":3}"#);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod tools_tool_tool_router_parameters_2 {
    fn main() {
        use mcp_sansio_tokio::{Server, Structured, tool};

        #[derive(serde::Serialize, schemars::JsonSchema)]
        struct Sum {
            sum: usize,
        }

        /// Add two integers
        #[tool]
        fn add(left: usize, right: usize) -> Structured<Sum> {
            Structured(Sum { sum: left.wrapping_add(right) })
        }

        let server = Server::new("adder", "1.0.0").add_item(add_tool());

        assert!(server.endpoint(1).is_ok());
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod tools_tool_tool_router_parameters_3 {
    fn main() {
        use mcp_sansio_tokio::{Call, NoArguments, Server, ServerItem, Structured};

        #[derive(serde::Serialize, schemars::JsonSchema)]
        struct Sum {
            sum: usize,
        }

        let total = |_: Call<NoArguments>| Structured(Sum { sum: 3 });
        let server = Server::new("adder", "1.0.0").add_item(
            ServerItem::structured_tool("total", "The total so far", total)
                .title("Total")
                .read_only(),
        );

        assert!(server.endpoint(1).is_ok());
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod state_self {
    use std::sync::atomic::{AtomicU64, Ordering};

    use mcp_sansio_tokio::{Call, NoArguments, Server, State};

    struct Counter(AtomicU64);

    async fn increment(_: Call<NoArguments>, counter: State<Counter>) -> String {
        format!("{}", counter.0.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn counter() -> Server {
        Server::new("counter", "1.0.0")
            .state(Counter(AtomicU64::new(0)))
            .tool("increment", "Add one", increment)
            .tool("get", "The count", |_: Call<NoArguments>, State(counter): State<Counter>| {
                format!("{}", counter.0.load(Ordering::Relaxed))
            })
    }

    fn main() {
        counter().endpoint(1).unwrap();
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod prompts_and_resources {
    use mcp_sansio_tokio::protocol::{
        Prompt, PromptArgument, Resource, ResourceTemplate, TextResourceContents,
    };
    use mcp_sansio_tokio::{self as mcp, Call, ReadResource, Server};

    use mcp_sansio_tokio::Host;

    #[derive(serde::Deserialize)]
    struct Greeting {
        name: String,
    }

    fn server() -> Server {
        Server::new("greeter", "1.0.0")
            .prompt_with(
                Prompt::new("greeting")
                    .description("Greet someone")
                    .arguments([PromptArgument::new("name").required(true)]),
                |call: Call<Greeting>| format!("Please greet {}.", call.arguments.name),
            )
            .resource(
                Resource::new("config://app", "config").mime_type("text/plain"),
                |call: Call<ReadResource>| {
                    TextResourceContents::new(call.arguments.uri.as_str(), "debug = false")
                },
            )
            .resource_template(
                ResourceTemplate::new("user://{id}", "user"),
                |call: Call<ReadResource>| {
                    let id = call.arguments.variable("id").unwrap_or_default();
                    TextResourceContents::new(call.arguments.uri.as_str(), format!("user {id}"))
                },
            )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &Host::new("demo", "1.0.0"));
        tokio::spawn(pair.drive());
        let prompt = client.get_prompt("greeting", [("name".into(), "Ada".into())]).await?;
        assert_eq!(prompt.messages.len(), 1);
        let read = client.read_resource("user://7").await?;
        assert_eq!(read.contents.len(), 1);
        assert!(client.read_resource("user://7/8").await.unwrap_err().is_resource_not_found());
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod requestcontext {
    use std::time::Duration;

    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server};

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let server = Server::new("slow", "1.0.0").tool(
            "work",
            "Take a while",
            async |call: Call<NoArguments>| {
                for step in 1..=3 {
                    call.progress(f64::from(step), Some(3.0), "working");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                "done"
            },
        );
        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0")); // in memory
        tokio::spawn(pair.drive());
        let result = client
            .call_tool("work", &NoArguments {})
            .on_progress(|progress| eprintln!("{} of 3", progress.progress))
            .await?;
        assert_eq!(result.first_text(), Some("done"));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod elicitation_sampling_and_roots {
    use mcp_sansio_tokio::protocol::{ElicitParams, ElicitResult};
    use mcp_sansio_tokio::{self as mcp, Call, Elicit, Host, HostRequest, NoArguments, Server};

    use mcp_sansio_tokio::{Revision, Revisions};

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
                Some(answer) if answer.content.as_ref().is_some_and(|it| it.sure) => Ok("Booked."),
                Some(_) => Ok("Not booked."),
            },
        )
    }

    fn host() -> Host {
        Host::new("demo", "1.0.0").on_elicit(async |question: HostRequest<ElicitParams>| {
            // Show `question.params` to the user here.

            let _ = question;

            Ok(ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect()))
        })
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let (client, pair) =
                mcp_sansio_test::connect(&server(), &host().revisions(Revisions::only(revision)));
            tokio::spawn(pair.drive());
            let result = client.call_tool("book", &NoArguments {}).await?;
            assert_eq!(result.first_text(), Some("Booked."));
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod peer_roleclient {
    use std::time::Duration;

    use mcp_sansio_tokio::{self as mcp, Host};
    use tokio::process::Command;

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let client =
            mcp::spawn(Command::new("weather-server"), &Host::new("demo", "1.0.0")).await?;
        let result = client
            .call_tool("forecast", &serde_json::json!({ "location": "Oslo" }))
            .timeout(Duration::from_secs(30))
            .await?;
        client.shutdown().await?;

        let _ = result;
        Ok(())
    }
}
