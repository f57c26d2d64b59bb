//! The code of docs/guide/input-rounds.md.

mod ask_the_user {
    use mcp_sansio_tokio::HandlerError;
    use mcp_sansio_tokio::protocol::{ElicitParams, ElicitResult, Map};
    use mcp_sansio_tokio::{self as mcp, Call, Elicit, Host, HostRequest, Server};
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Booking {
        guests: u32,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Confirmation {
        /// Really book?
        sure: bool,
    }

    async fn book(call: Call<Booking>) -> Result<String, HandlerError> {
        let guests = call.arguments.guests;
        match call.input::<Confirmation>("confirm")? {
            None => {
                let form = Elicit::form::<Confirmation>(format!("Book a table for {guests}?"));
                call.require_input("confirm", form).into_result()
            }
            Some(answer) if answer.content.as_ref().is_some_and(|form| form.sure) => {
                Ok(format!("Booked for {guests}."))
            }
            Some(_) => Ok("Not booked.".into()),
        }
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let server = Server::new("tables", "1.0.0").tool("book", "Books a table", book);

        let host = Host::new("assistant", "1.0.0").on_elicit(
            async |question: HostRequest<ElicitParams>| {
                let ElicitParams::Form(form) = question.params else {
                    return Ok(ElicitResult::decline());
                };
                println!("{}", form.message); // Show the form and wait for the user.
                Ok(ElicitResult::accept(Map::new().with("sure", true)))
            },
        );

        for revision in
            [mcp::Revision::V2025_06_18, mcp::Revision::V2025_11_25, mcp::Revision::V2026_07_28]
        {
            let (server, host) =
                (server.clone(), host.clone().revisions(mcp::Revisions::only(revision)));
            let (client, pair) = mcp_sansio_test::connect(&server, &host);
            tokio::spawn(pair.drive());

            let result = client.call_tool("book", &serde_json::json!({ "guests": 4 })).await?;
            assert_eq!(result.first_text(), Some("Booked for 4."));
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod ask_the_model {
    use mcp_sansio_tokio::HandlerError;
    use mcp_sansio_tokio::{self as mcp, Call, Host, HostRequest, Server};

    use mcp_sansio_tokio::protocol::{
        CreateMessageParams, CreateMessageResult, Role, SamplingContent, SamplingMessage,
    };

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Text {
        text: String,
    }

    fn summarize(call: Call<Text>) -> Result<String, HandlerError> {
        let Some(reply) = call.sampled("summary")? else {
            let prompt = format!("Summarize in one sentence: {}", call.arguments.text);
            let question = CreateMessageParams::new([SamplingMessage::user(prompt.as_str())], 200);
            return call.require_input("summary", question).into_result();
        };
        Ok(reply.first_text().unwrap_or_default().to_owned())
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let host = Host::new("assistant", "1.0.0").on_sample(
            async |_: HostRequest<CreateMessageParams>| {
                // Let the user approve `params.messages`, then ask the model.
                Ok(CreateMessageResult::new(
                    Role::Assistant,
                    SamplingContent::text("It is short."),
                    "my-model",
                ))
            },
        );

        for revision in mcp::Revision::ALL {
            let server = Server::new("texts", "1.0.0").tool("summarize", "", summarize);
            let (client, pair) = mcp_sansio_test::connect(
                &server,
                &host.clone().revisions(mcp::Revisions::only(revision)),
            );
            tokio::spawn(pair.drive());
            let result =
                client.call_tool("summarize", &serde_json::json!({ "text": "..." })).await?;
            assert_eq!(result.first_text(), Some("It is short."));
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod questions_that_take_long {
    use mcp_sansio_tokio::HandlerError;
    use mcp_sansio_tokio::protocol::{
        CreateMessageParams, CreateMessageResult, Role, SamplingContent, SamplingMessage,
    };
    use mcp_sansio_tokio::{self as mcp, Call, Host, HostRequest, NoArguments, Server};

    use mcp_sansio_tokio::protocol::InputRequest;
    use std::time::Duration;

    fn review(call: Call<NoArguments>) -> Result<String, HandlerError> {
        let Some(reply) = call.sampled("review")? else {
            let question = CreateMessageParams::new([SamplingMessage::user("Is it good?")], 200);
            let question = InputRequest::from(question).as_task(Some(Duration::from_secs(3600)));
            return call.require_input("review", question).into_result();
        };
        Ok(reply.model)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let host =
            Host::new("assistant", "1.0.0").on_sample(|_: HostRequest<CreateMessageParams>| {
                CreateMessageResult::new(Role::Assistant, SamplingContent::text("Yes."), "my-model")
            });
        for revision in mcp::Revision::ALL {
            let server = Server::new("texts", "1.0.0").tool("review", "", review);
            let (client, pair) = mcp_sansio_test::connect(
                &server,
                &host.clone().revisions(mcp::Revisions::only(revision)),
            );
            tokio::spawn(pair.drive());
            let result = client.call_tool("review", &NoArguments {}).await?;
            assert_eq!(result.first_text(), Some("my-model"));
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod several_rounds {
    use mcp_sansio_tokio::HandlerError;
    use mcp_sansio_tokio::protocol::{ElicitParams, ElicitResult, Map};
    use mcp_sansio_tokio::{self as mcp, Call, Elicit, Host, HostRequest, NoArguments, Server};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Name {
        name: String,
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Colour {
        colour: String,
    }

    fn profile(call: Call<NoArguments>) -> Result<String, HandlerError> {
        if let Some(answer) = call.input::<Colour>("colour")? {
            let colour = answer.content.map_or_else(|| "no colour".into(), |form| form.colour);
            return Ok(format!("{} likes {colour}", call.state().unwrap_or("somebody")));
        }
        if let Some(answer) = call.input::<Name>("name")? {
            let name = answer.content.map_or_else(|| "somebody".into(), |form| form.name);
            let question = Elicit::form::<Colour>("Which colour do you like?");
            return call.require_input("colour", question).state(name).into_result();
        }
        call.require_input("name", Elicit::form::<Name>("What is your name?")).into_result()
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let host = Host::new("assistant", "1.0.0").on_elicit(|_: HostRequest<ElicitParams>| {
            ElicitResult::accept(Map::new().with("name", "Ada").with("colour", "blue"))
        });
        for revision in [mcp::Revision::V2025_11_25, mcp::Revision::V2026_07_28] {
            let server = Server::new("profiles", "1.0.0").tool("profile", "", profile);
            let (client, pair) = mcp_sansio_test::connect(
                &server,
                &host.clone().revisions(mcp::Revisions::only(revision)),
            );
            tokio::spawn(pair.drive());
            let result = client.call_tool("profile", &NoArguments {}).await?;
            assert_eq!(result.first_text(), Some("Ada likes blue"));
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod sealing {
    fn main() {
        use mcp_sansio_tokio::Server;

        use std::time::Duration;

        use mcp_sansio_tokio::machine::seal::Seal; // feature `http-server`

        fn server(server: Server, key: [u8; 32]) -> Server {
            server.seal(Seal::new(key), Duration::from_secs(600))
        }
        let _ = server(Server::new("a", "1"), [0; 32]);
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod failures_and_time {
    use mcp_sansio_tokio::Context;
    use mcp_sansio_tokio::HandlerError;

    use mcp_sansio_tokio::Capability;

    fn check(call: &Context) -> Result<(), HandlerError> {
        if !call.capabilities().contains(Capability::ElicitationForm) {
            return Err(HandlerError::failed("this tool needs a client that shows forms"));
        }

        Ok(())
    }
}
