//! The code of docs/guide/extensions.md.

mod an_extension_of_your_own {
    fn main() -> Result<(), Box<dyn std::error::Error>> {
        use mcp_sansio_tokio::extension::{Extension, ExtensionMethod};
        use mcp_sansio_tokio::{Call, HandlerError, Host, NoArguments, Server};
        use serde::{Deserialize, Serialize};

        const ID: &str = "com.example/greetings";
        const GREET: ExtensionMethod<Person, Greeting> =
            ExtensionMethod::new(ID, "greetings/greet");

        #[derive(Deserialize, Serialize)]
        struct Person {
            name: String,
        }

        #[derive(Deserialize, Serialize)]
        struct Greeting {
            text: String,
        }

        #[derive(Deserialize, Serialize)]
        struct Settings {
            languages: Vec<String>,
        }

        async fn greet(call: Call<Person>) -> Result<Greeting, HandlerError> {
            if call.arguments.name.is_empty() {
                return Err(HandlerError::invalid_params("the name is empty"));
            }
            Ok(Greeting { text: format!("Hello, {}!", call.arguments.name) })
        }

        let settings = Settings { languages: vec!["en".into()] };
        let server = Server::new("greeter", "1.0.0")
            .extension(Extension::new(ID)?.settings(&settings)?.request(&GREET, greet))
            .tool("about", "What the client supports", |call: Call<NoArguments>| {
                // Any handler can ask what the client declared.
                if call.client_extension(ID).is_some() { "greetings" } else { "text only" }
            });
        let host = Host::new("demo", "1.0.0").extension(Extension::new(ID)?);

        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        let greeting = pair.run(client.call_extension(&GREET, &Person { name: "Ada".into() }))?;
        assert_eq!(greeting.text, "Hello, Ada!");
        // What the server declared:
        let session = client.session().expect("an open connection");
        let settings: Settings = session.extension(ID).expect("a declared extension").decode()?;
        assert_eq!(settings.languages, ["en"]);
        let about = pair.run(client.call_tool("about", &NoArguments {}))?;
        assert_eq!(about.first_text(), Some("greetings"));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod requests_of_a_server_and_notifications {
    fn main() -> Result<(), Box<dyn std::error::Error>> {
        use mcp_sansio_tokio::extension::{Extension, ExtensionMethod, ExtensionNotification};
        use mcp_sansio_tokio::{Call, HandlerError, Host, HostRequest, NoArguments, Server, Side};
        use serde::{Deserialize, Serialize};

        const ID: &str = "com.example/paint";
        const COLOUR: ExtensionMethod<NoArguments, Colour> =
            ExtensionMethod::new(ID, "paint/colour").sent_by(Side::Server);
        const STROKE: ExtensionNotification<Stroke> =
            ExtensionNotification::new(ID, "paint/stroke");
        const DRAWN: ExtensionNotification<Stroke> =
            ExtensionNotification::new(ID, "paint/drawn").sent_by(Side::Server);

        #[derive(Deserialize, Serialize)]
        struct Colour {
            name: String,
        }

        #[derive(Deserialize, Serialize)]
        struct Stroke {
            length: u32,
        }

        fn draw(call: Call<NoArguments>) -> Result<String, HandlerError> {
            let Some(colour) = call.extension_result(&COLOUR, "colour")? else {
                let request = call.extension_request(&COLOUR, &NoArguments {})?;
                return call.require_input("colour", request).into_result();
            };
            call.notify_extension(&DRAWN, &Stroke { length: 3 })?;
            Ok(format!("drawn in {}", colour.name))
        }

        let server = Server::new("canvas", "1.0.0").tool("draw", "Draws a line", draw).extension(
            Extension::new(ID)?.notification(&STROKE, |stroke| println!("{} cm", stroke.length)),
        );
        let paint = Extension::new(ID)?
            .notification(&DRAWN, |stroke| println!("{} cm", stroke.length))
            .request(&COLOUR, |_: HostRequest<NoArguments>| Colour { name: "blue".into() });
        let host = Host::new("demo", "1.0.0").extension(paint);

        let host = host
            .revisions(mcp_sansio_tokio::Revisions::only(mcp_sansio_tokio::Revision::V2025_11_25));
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);

        client.notify_extension(&STROKE, &Stroke { length: 2 })?;
        let result = pair.run(client.call_tool("draw", &NoArguments {}))?;
        assert_eq!(result.first_text(), Some("drawn in blue"));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
