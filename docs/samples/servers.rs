//! The code of docs/guide/servers.md.

mod servers {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};
    async fn run(
        socket: tokio::net::TcpStream,
        listener: tokio::net::TcpListener,
    ) -> Result<(), mcp::Error> {
        let server = Server::new("clock", "1.0.0").tool(
            "now",
            "The time",
            async |_: Call<NoArguments>| "about noon",
        );

        mcp::serve_stdio(server.clone()).await?; // standard input and output
        let (reader, writer) = socket.into_split();
        mcp::serve(server.clone(), reader, writer).await?; // any AsyncRead and AsyncWrite
        mcp::serve_http(server, listener).await // HTTP, with the feature `http-server`
    }
}

mod servers_2 {
    use mcp_sansio_tokio::{self as mcp, Server};
    async fn run(server: Server) -> Result<(), mcp::Error> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:7000").await?;
        loop {
            let (socket, _) = listener.accept().await?;
            let (reader, writer) = socket.into_split();
            let connection = mcp::serve(server.clone(), reader, writer);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    eprintln!("{error}");
                }
            });
        }
    }
}

mod state {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use std::sync::atomic::{AtomicU32, Ordering};

    use mcp_sansio_tokio::State;

    #[derive(Default)]
    struct Counter(AtomicU32);

    async fn next(_: Call<NoArguments>, counter: State<Counter>) -> String {
        (counter.0.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    fn server() -> Server {
        Server::new("counter", "1.0.0").state(Counter::default()).tool("next", "Counts", next).tool(
            "reset",
            "Starts again",
            |_: Call<NoArguments>, State(counter): State<Counter>| {
                counter.0.store(0, Ordering::Relaxed);
            },
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        for expected in ["1", "2"] {
            let result = client.call_tool("next", &NoArguments {}).await?;
            assert_eq!(result.first_text(), Some(expected));
        }
        client.call_tool("reset", &NoArguments {}).await?;
        let result = client.call_tool("next", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("1"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod state_2 {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use std::sync::Arc;
    use tokio::sync::Mutex;

    fn server() -> Server {
        let count = Arc::new(Mutex::new(0));
        Server::new("counter", "1.0.0").tool("next", "Counts", async move |_: Call<NoArguments>| {
            let mut count = count.lock().await;
            *count += 1;
            format!("{count}")
        })
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        client.call_tool("next", &NoArguments {}).await?;
        let result = client.call_tool("next", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("2"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod state_3 {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use std::sync::Mutex;

    use mcp_sansio_tokio::{HandlerError, IntoHandlerError, State, blocking, fallible};

    mod rusqlite {
        #[derive(Debug)]
        pub struct Error;
        pub type Result<T> = std::result::Result<T, Error>;
        pub struct Connection(std::cell::Cell<usize>);
        impl Connection {
            pub fn open_in_memory() -> Result<Self> {
                Ok(Self(0.into()))
            }
            pub fn execute(&self, _: &str, _: [&str; 1]) -> Result<usize> {
                self.0.set(self.0.get() + 1);
                Ok(self.0.get())
            }
        }
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Note {
        text: String,
    }

    struct Database(Mutex<rusqlite::Connection>);

    struct DatabaseError(rusqlite::Error);

    impl IntoHandlerError for DatabaseError {
        fn into_handler_error(self) -> HandlerError {
            eprintln!("{:?}", self.0); // for you; the text below is for the model
            HandlerError::failed("the notes cannot be used now")
        }
    }

    fn add(call: Call<Note>, database: State<Database>) -> Result<String, DatabaseError> {
        let connection = database.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let count = connection
            .execute("INSERT INTO notes (text) VALUES (?1)", [&*call.arguments.text])
            .map_err(DatabaseError)?;
        Ok(format!("{count} note added"))
    }

    fn server() -> rusqlite::Result<Server> {
        let database = Database(Mutex::new(rusqlite::Connection::open_in_memory()?));
        let server = Server::new("notes", "1.0.0").state(database).tool(
            "add",
            "Adds a note",
            fallible(blocking(add)),
        );

        Ok(server)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) =
            mcp_sansio_test::connect(&server().unwrap(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("add", &serde_json::json!({ "text": "Buy milk" })).await?;
        assert_eq!(result.first_text(), Some("1 note added"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod progress_logging_and_cancellation {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use mcp_sansio_tokio::LoggingLevel;

    fn server() -> Server {
        Server::new("importer", "1.0.0").logging().tool(
            "import",
            "Imports 3 files",
            async |call: Call<NoArguments>| {
                for file in 1..=3 {
                    call.progress(f64::from(file), Some(3.0), "importing");
                    call.log(LoggingLevel::Info, &format!("file {file}"));
                    tokio::task::yield_now().await;
                }
                "Done."
            },
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        use mcp::peer::Event;
        use std::sync::{Arc, Mutex};
        let logs = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&logs);
        let host = mcp::Host::new("test", "1.0.0").observe(move |event| {
            if let Event::Notification(it) = event
                && it.method == mcp::Method::Message
            {
                *seen.lock().unwrap() += 1;
            }
        });
        let (client, pair) = mcp_sansio_test::connect(&server(), &host);
        tokio::spawn(pair.drive());
        let steps = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&steps);
        client
            .call_tool("import", &NoArguments {})
            .log_level(LoggingLevel::Debug)
            .on_progress(move |step| shown.lock().unwrap().push(step.progress))
            .await?;
        assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(*logs.lock().unwrap(), 3);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod blocking_handlers {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use mcp_sansio_tokio::blocking;

    fn server() -> Server {
        Server::new("sums", "1.0.0").tool(
            "sum",
            "Adds for long",
            blocking(|call: Call<NoArguments>| {
                let mut sum = 0_u64;
                for number in 0..1_000_000 {
                    if call.is_cancelled() {
                        return "cancelled".into();
                    }
                    sum += number;
                }
                sum.to_string()
            }),
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("sum", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("499999500000"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod panics {
    use mcp_sansio_tokio::{self as mcp, Call, ClientError, NoArguments, Server};

    use mcp_sansio_tokio::peer::Event;

    fn main() -> Result<(), ClientError> {
        let server = Server::new("sums", "1.0.0").observe(|event| {
            if let Event::HandlerPanicked(panicked) = event {
                eprintln!("{panicked}"); // the handler of tool `sum` panicked: overflow
            }
        });

        let server =
            server.tool("sum", "", |_: Call<NoArguments>| -> String { panic!("for the test") });
        let (client, mut pair) =
            mcp_sansio_test::connect(&server, &mcp::Host::new("test", "1.0.0"));
        pair.catch_panics(mcp::panic_guard());
        let error = pair.run(client.call_tool("sum", &NoArguments {})).unwrap_err();
        assert!(error.to_string().contains("the handler of tool `sum` panicked"), "{error}");
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod options {
    use mcp_sansio_tokio::Server;

    use mcp_sansio_tokio::peer::{Event, Limits};

    fn server() -> Server {
        let mut limits = Limits::DEFAULT;
        limits.requests_in_flight_max = 64;
        Server::new("small", "1.0.0").limits(limits).observe(|event| {
            if let Event::Violation(violation) = event {
                eprintln!("the client broke a rule: {violation}");
            }
        })
    }

    #[test]
    fn runs() {
        assert!(server().endpoint(42).is_ok());
    }
}

mod errors_at_start {
    fn main() {
        use mcp_sansio_tokio::{Call, NoArguments, Server};

        let server = Server::new("demo", "1.0.0")
            .tool("a", "First", |_: Call<NoArguments>| "1")
            .tool("a", "Second", |_: Call<NoArguments>| "2");
        let error = server.endpoint(42).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is a tool \"a\" already; replace it, or choose another key"
        );
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
