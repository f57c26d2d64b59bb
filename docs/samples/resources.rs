//! The code of docs/guide/resources.md.

mod resources {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::HandlerError;
    use mcp_sansio_tokio::ReadResource;
    use mcp_sansio_tokio::protocol::{
        BlobResourceContents, Resource, ResourceTemplate, TextResourceContents,
    };

    fn server() -> Server {
        Server::new("library", "1.0.0")
            .resource(
                Resource::new("file:///readme", "readme").mime_type("text/plain"),
                |call: Call<ReadResource>| {
                    TextResourceContents::new(call.arguments.uri.as_str(), "Read me")
                },
            )
            .resource(
                Resource::new("file:///logo", "logo").mime_type("image/png"),
                |call: Call<ReadResource>| {
                    BlobResourceContents::from_bytes(call.arguments.uri.as_str(), &[1, 2, 3])
                },
            )
            .resource_template(
                ResourceTemplate::new("books:///{isbn}/{chapter}", "book"),
                async |call: Call<ReadResource>| {
                    let ReadResource { uri, .. } = &call.arguments;
                    match call.arguments.variable("isbn") {
                        Some("42") => Ok(TextResourceContents::new(uri.as_str(), "Chapter 1")),
                        _ => Err(HandlerError::resource_not_found(uri)),
                    }
                },
            )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        assert_eq!(client.all_resources().await?.len(), 2);
        client.read_resource("file:///logo").await?;
        client.read_resource("books:///42/1").await?;
        assert!(client.read_resource("books:///43/1").await.unwrap_err().is_resource_not_found());
        assert!(client.read_resource("file:///other").await.unwrap_err().is_resource_not_found());
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod prompts_and_completion {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::ServerItem;
    use mcp_sansio_tokio::protocol::{CompleteParams, PromptMessage};
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Review {
        /// Programming language
        language: String,
        style: Option<String>,
    }

    fn review(call: Call<Review>) -> Vec<PromptMessage> {
        let style = call.arguments.style.as_deref().unwrap_or("short");
        vec![PromptMessage::user(format!("A {style} review of {} code:", call.arguments.language))]
    }

    fn languages(call: Call<CompleteParams>) -> Vec<String> {
        let typed = &call.arguments.argument.value;
        ["Ruby", "Rust"]
            .iter()
            .filter(|it| it.starts_with(typed))
            .map(|it| it.to_string())
            .collect()
    }

    fn server() -> Server {
        Server::new("reviews", "1.0.0").add_item(
            ServerItem::prompt("review", "Asks for a code review", review)
                .complete("language", languages),
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        use mcp::protocol::{CompletionArgument, CompletionReference, Map, PromptReference};
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let prompt = client.get_prompt("review", Map::from([("language", "Rust")])).await?;
        assert_eq!(prompt.messages[0].content.as_text(), Some("A short review of Rust code:"));
        let error = client.get_prompt("review", []).await.unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code.0, -32602);
        let reference = CompletionReference::Prompt(PromptReference::new("review"));
        let params = CompleteParams::new(reference, CompletionArgument::new("language", "Rus"));
        assert_eq!(client.complete(&params).await?.completion.values, ["Rust"]);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod changes_at_runtime {
    use mcp_sansio_tokio::{Call, Connections, NoArguments, Server, ServerItem};

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let connections = Connections::new();
        let server = Server::new("plugins", "1.0.0").connections(&connections);

        let _ = server.clone();

        // Serve any number of connections; then, from any thread:
        connections.edit_catalog(|catalog| {
            catalog.add_item(ServerItem::tool(
                "hello",
                "Says hello",
                |_: Call<NoArguments>| "Hello!",
            ))
        })??;

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod changes_at_runtime_2 {
    use mcp_sansio_tokio::{self as mcp, Host};

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        use mcp_sansio_tokio::{Call, HandlerError, NoArguments, Server, ServerItem};
        use tokio::sync::oneshot;

        async fn unlock(call: Call<NoArguments>) -> Result<&'static str, HandlerError> {
            let (report, edited) = oneshot::channel();
            call.edit_catalog(move |catalog| {
                let open =
                    ServerItem::tool("open", "Opens the door", |_: Call<NoArguments>| "open");
                let _sent = report.send(catalog.add_item(open));
            })?;
            edited.await??; // for example the error of a name that is taken
            Ok("There is a new tool: open.")
        }

        let server = Server::new("doors", "1.0.0").tool("unlock", "Unlocks the door", unlock);

        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let first = client.call_tool("unlock", &NoArguments {}).await?;
        assert_eq!(first.first_text(), Some("There is a new tool: open."));
        let second = client.call_tool("unlock", &NoArguments {}).await?;
        assert_eq!(second.is_error, Some(true), "the name is taken");
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod items_for_some_callers {
    fn main() {
        use mcp_sansio_tokio::machine::catalog::Audience;
        use mcp_sansio_tokio::protocol::{Resource, TextResourceContents};
        use mcp_sansio_tokio::{Call, NoArguments, Principal, ReadResource, Server, ServerItem};

        async fn purge(_: Call<NoArguments>) -> &'static str {
            "purged"
        }

        async fn read_diary(call: Call<ReadResource>) -> TextResourceContents {
            TextResourceContents::new(call.arguments.uri.as_str(), "Dear diary")
        }

        let ann = Audience::new().principal(Principal::new("https://auth.example.com|ann"));
        let diary = Resource::new("note:ann/diary", "Diary");
        let server = Server::new("notes", "1.0.0")
            .add_item(ServerItem::tool("purge", "Deletes old notes", purge).requires("notes:write"))
            .add_item(ServerItem::new(diary, read_diary).audience(ann));

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod items_for_some_callers_2 {
    fn main() {
        use mcp_sansio_tokio::{Call, NoArguments, Principal, Server, ServerItem};
        use std::collections::HashSet;
        use std::sync::{Arc, RwLock};

        let testers: Arc<RwLock<HashSet<Principal>>> = Arc::default();
        let known = Arc::clone(&testers);
        let beta = ServerItem::tool("beta", "A new tool", |_: Call<NoArguments>| "done")
            .visible_if("tester", move |caller| {
                let known = known.read().unwrap_or_else(|it| it.into_inner());
                caller.principal().is_some_and(|who| known.contains(who))
            });
        let server = Server::new("notes", "1.0.0").add_item(beta);

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod items_for_some_callers_3 {
    fn main() {
        use mcp_sansio_tokio::{Call, HandlerError, NoArguments, Server, ServerItem};

        fn open(call: Call<NoArguments>) -> Result<&'static str, HandlerError> {
            let session =
                call.session().ok_or_else(|| HandlerError::failed("this tool needs a session"))?;
            call.edit_catalog(move |catalog| {
                let close = ServerItem::tool(
                    &format!("close-{session}"),
                    "Closes the file",
                    |_: Call<NoArguments>| "closed",
                );
                let _added = catalog.add_item(close.for_session(session));
            })?;
            Ok("The file is open: close it with the new tool.")
        }

        let server = Server::new("files", "1.0.0").tool("open", "Opens a file", open);

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
