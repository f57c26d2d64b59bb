//! The code of docs/guide/skills.md.

mod a_server_from_a_folder {
    use mcp_sansio_tokio::Server;
    use mcp_sansio_tokio::skills::{ServedSkills, SkillSet};

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let set = SkillSet::builder()
            .file(
                "refunds/SKILL.md",
                "---\nname: refunds\ndescription: Refunds an order\n---\nAsk first.\n",
            )
            .build()?;
        let server = ServedSkills::new(set).register(Server::new("shop", "1.0.0"));

        assert!(server.endpoint(42).is_ok());
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod a_client {
    use mcp_sansio_tokio::Host;
    use mcp_sansio_tokio::machine::Printable;
    use mcp_sansio_tokio::skills::{self, SkillApproval, SkillClient};

    fn server() -> Result<mcp_sansio_tokio::Server, Box<dyn std::error::Error>> {
        let set = skills::SkillSet::builder()
            .file(
                "refunds/SKILL.md",
                "---\nname: refunds\ndescription: d\n---\nWrite `email.md`.\n",
            )
            .file("refunds/email.md", "Dear customer,\n")
            .build()?;
        Ok(skills::ServedSkills::new(set).register(mcp_sansio_tokio::Server::new("shop", "1.0.0")))
    }

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let host = skills::declare(Host::new("demo", "1.0.0"));

        let (client, mut pair) = mcp_sansio_test::connect(&server()?, &host);
        pair.run(async {
            let skills = SkillClient::new("shop", client);

            let listing = skills.list().await?;
            for (label, skill) in listing.labels().iter().zip(&listing.skills) {
                // For the model, with the name of the server. Control characters would reach a terminal.
                let line = format!("{label}: {}", skill.description());
                println!("{}", Printable::new(&line));
            }

            // The model wants a skill. Show the user `skill.entry()`, and store the approval.
            let skill = &listing.skills[0];
            let approval = SkillApproval::new(skill)?;
            let loaded = skills.load_approved(skill, &approval).await?;
            println!("{}", Printable::new(loaded.instructions())); // into the context of the model

            // The model follows a reference in the instructions.
            let email = loaded.read("email.md").await?;
            assert_eq!(email.text(), Some("Dear customer,\n"));
            assert_eq!(email.origin().server, "shop");

            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
