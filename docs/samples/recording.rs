//! The code of docs/guide/recording.md.

mod make_a_recording {
    fn main() {
        use std::io::Write;

        use mcp_sansio::Tape;

        use mcp_sansio_tokio::Server;
        let server = Server::new("weather", "1.0.0");

        let server = server.record(|number| {
            let mut file = std::fs::File::create(format!("connection-{number}.jsonl")).ok()?;
            Some(Tape::new(move |line| {
                if let Err(error) = file.write_all(line) {
                    eprintln!("the recording is incomplete: {error}");
                }
            }))
        });
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
