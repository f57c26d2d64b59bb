//! The code of docs/guide/cluster.md.

mod sealing_keys {
    fn main() {
        use mcp_sansio_tokio::Server;
        use mcp_sansio_tokio::machine::seal::Seal;
        let (current, previous) = ([1; 32], [2; 32]);

        let seal = Seal::new(current).with_previous_keys([previous]);
        let server = Server::new("clock", "1.0.0").seal(seal, std::time::Duration::from_secs(600));

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
