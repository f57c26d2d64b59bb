//! The messages of a session.

use mcp_sansio::Revision;
use mcp_sansio_extensions::skills::{ServedSkills, SkillClient, SkillError, SkillSet};
use mcp_sansio_handlers::Server;

use super::fixtures::{connect_at, skill};

fn transcript(revision: Revision) -> String {
    let set = SkillSet::builder()
        .file("a/SKILL.md", skill("a"))
        .file("a/x.md", "x\n")
        .build()
        .expect("valid");
    let server = ServedSkills::new(set).register(Server::new("shop", "1.0.0"));
    let (client, mut pair) = connect_at(&server, revision);
    let skills = SkillClient::new("shop", client);
    pair.run(async {
        let listing = skills.list().await?;
        let loaded = skills.load(&listing.skills[0]).await?;
        loaded.read("x.md").await?;
        loaded.read_directory(".").await?;
        loaded.refresh().await?;
        let missing = skills.get("skill://none/SKILL.md").await;
        assert!(missing.is_err());
        Ok::<_, SkillError>(())
    })
    .expect("served");
    pair.transcript.lines().join("\n")
}

#[test]
fn a_modern_session() {
    insta::assert_snapshot!(transcript(Revision::V2026_07_28));
}

#[test]
fn a_legacy_session() {
    insta::assert_snapshot!(transcript(Revision::V2025_11_25));
}
