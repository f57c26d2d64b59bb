//! Clients that list, load and read the skills of a server that keeps the rules.

use mcp_sansio::Revision;
use mcp_sansio::protocol::Resource;
use mcp_sansio_extensions::skills::{
    NotApproved, ServedSkills, SkillApproval, SkillClient, SkillError, SkillSet, VerificationError,
};
use mcp_sansio_handlers::{Host, NoArguments, Server};
use serde_json::json;

use super::fixtures::{
    DAILY, ESCALATION, HIDDEN, LOGO, REFUNDS, SUPPORT, connect, connect_at, server, skill,
};
use super::forged::{Forged, entry};

const A: &str = "skill://a/SKILL.md";

#[test]
fn a_skill_is_listed_loaded_and_read() {
    // Rule: [SKILL-061] [SKILL-063] [SKILL-071] [SKILL-072] [SKILL-096].
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect_at(&server(), revision);
        let skills = SkillClient::new("shop", client);
        pair.run(async {
            let listing = skills.list().await?;
            let uris: Vec<&str> = listing.skills.iter().map(|skill| skill.uri().as_str()).collect();
            assert_eq!(uris.len(), 4);
            assert!(listing.invalid.is_empty());
            let refunds = listing.skills.iter().find(|skill| skill.uri().as_str() == REFUNDS);
            let refunds = refunds.expect("listed");
            assert_eq!(skills.get(REFUNDS).await?, *refunds);

            let loaded = skills.load(refunds).await?;
            assert_eq!(loaded.instructions(), "Write [an email](examples/email.md).\r\n");
            let email = loaded.read("examples/email.md").await?;
            assert_eq!(email.text(), Some("Dear customer,\r\n"));
            assert_eq!(email.media_type(), Some("text/markdown"));
            assert_eq!((email.origin().server.as_str(), email.origin()), ("shop", loaded.id()));
            let logo = loaded.read("./logo.png").await?;
            assert_eq!((logo.bytes(), logo.text()), (LOGO, None));

            // A skill that is not listed is loaded by its URI alone.
            let hidden = skills.load(&skills.get(HIDDEN).await?).await?;
            assert_eq!(hidden.instructions(), "");
            Ok::<_, SkillError>(())
        })
        .unwrap_or_else(|error| panic!("{revision}: {error}"));
    }
}

#[test]
fn references_in_a_nested_skill_resolve_against_its_directory() {
    // Rule: [SKILL-071] [SKILL-025].
    let (skills, mut pair) = connect(&server());
    pair.run(async {
        let refunds = skills.load(&skills.get(REFUNDS).await?).await?;
        let nested = refunds.read("escalation/SKILL.md").await?;
        assert_eq!(nested.origin().uri.as_str(), REFUNDS);
        let steps = refunds.read_from(&nested, "steps.md").await?;
        assert_eq!(steps.text(), Some("Ask a person.\n"));
        let again = refunds.read_from(&steps, "SKILL.md").await?;
        assert_eq!(again.uri(), ESCALATION);
        let email = refunds.read("examples/email.md").await?;
        let logo = refunds.read_from(&email, "logo.png").await?;
        assert_eq!(logo.bytes(), LOGO);
        Ok::<_, SkillError>(())
    })
    .expect("served");
}

#[test]
fn a_directory_is_listed_from_the_entry() {
    // Rule: [SKILL-088].
    let forged = Forged::new();
    let files = [(A, &*skill("a")), ("skill://a/t/x.md", "x"), ("skill://a/t/u/y.md", "y")];
    forged.entry(entry(A, &files)).file(A, &skill("a"));
    let (skills, mut pair) = connect(&forged.server());
    let loaded = pair.run(async { skills.load(&skills.get(A).await?).await }).expect("valid");
    forged.calls();
    let children = |reference| -> Vec<(String, bool)> {
        let children = loaded.children(reference).expect("inside");
        children.into_iter().map(|child| (child.name, child.is_directory)).collect()
    };
    assert_eq!(children("."), [("SKILL.md".into(), false), ("t".into(), true)]);
    assert_eq!(children("t/"), [("u".into(), true), ("x.md".into(), false)]);
    assert_eq!(children("t/x.md"), []);
    assert_eq!(forged.calls(), [""; 0]);
}

#[test]
fn a_file_that_only_the_server_lists_is_no_file_of_the_skill() {
    // Rule: [SKILL-089] [SKILL-091] [SKILL-077].
    let forged = Forged::new();
    forged.entry(entry(A, &[(A, &skill("a")), ("skill://a/t/x.md", "x")])).file(A, &skill("a"));
    forged.file("skill://a/t/new.md", "new");
    let (skills, mut pair) = connect(&forged.server());
    let loaded = pair.run(async { skills.load(&skills.get(A).await?).await }).expect("valid");
    forged.children(
        ["x.md", "new.md"].map(|name| Resource::new(format!("skill://a/t/{name}"), name)),
    );
    let directory = pair.run(loaded.read_directory("t")).expect("listed");
    let names: Vec<&str> = directory.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!((names, directory.is_changed), (vec!["x.md"], true));
    forged.reads();
    let read = pair.run(loaded.read("t/new.md"));
    assert!(matches!(read, Err(SkillError::Verification(VerificationError::Unlisted { .. }))));
    assert_eq!(forged.reads(), [""; 0]);
    forged.children([Resource::new("skill://a/t/x.md", "x.md")]);
    assert!(!pair.run(loaded.read_directory("t")).expect("listed").is_changed);
    forged.children([]);
    assert!(pair.run(loaded.read_directory("t")).expect("listed").is_changed);
}

#[test]
fn directories_are_read_only_if_the_server_declares_it() {
    // Rule: [SKILL-005].
    for settings in
        [json!({}), json!({ "directoryRead": false }), json!({ "directoryRead": "yes" })]
    {
        let forged = Forged::new();
        let (skills, mut pair) = connect(&forged.server_with(&settings));
        let read = pair.run(skills.directory("skill://a"));
        assert!(matches!(read, Err(SkillError::NoDirectories)), "{read:?}");
        assert_eq!(forged.calls(), [""; 0]);
    }
}

#[test]
fn a_server_without_the_extension_is_not_asked() {
    // Rule: [SKILL-006].
    let server = Server::new("plain", "1.0.0").tool(
        "now",
        "The time",
        |_: mcp_sansio_handlers::Call<NoArguments>| "noon",
    );
    for revision in Revision::ALL {
        let (client, mut pair) = connect_at(&server, revision);
        let skills = SkillClient::new("plain", client);
        assert!(matches!(pair.run(skills.list()), Err(SkillError::NotOffered)), "{revision}");
        assert!(matches!(pair.run(skills.get(A)), Err(SkillError::NotOffered)), "{revision}");
        let directory = pair.run(skills.directory("skill://a"));
        assert!(matches!(directory, Err(SkillError::NotOffered)), "{revision}");
    }
    // Nothing is known of a server before the connection is open.
    let (client, _endpoint) = Host::new("demo", "1.0.0").connect(42, mcp_sansio::Instant::ZERO);
    let declared = SkillClient::new("later", client).lists_directories();
    assert!(matches!(declared, Err(SkillError::NotOffered)));
}

#[test]
fn nothing_is_fetched_before_it_is_needed() {
    // Rule: [SKILL-080] [SKILL-081] [SKILL-108].
    let forged = Forged::new();
    let files = [(A, &*skill("a")), ("skill://a/x.md", "x"), ("skill://a/y.md", "y")];
    forged.list([entry(A, &files)]).entry(entry(A, &files));
    for (uri, text) in files {
        forged.file(uri, text);
    }
    let (skills, mut pair) = connect(&forged.server());
    let listing = pair.run(skills.list()).expect("a list");
    let approval = SkillApproval::new(&listing.skills[0]).expect("verifiable");
    assert_eq!(forged.reads(), [""; 0]);
    let loaded = pair.run(skills.load_approved(&listing.skills[0], &approval)).expect("valid");
    assert_eq!(forged.reads(), [A]);
    pair.run(loaded.read("x.md")).expect("valid");
    assert_eq!(forged.reads(), ["skill://a/x.md"]);
    // From the cache, as long as the entry has the same digest.
    pair.run(loaded.read("x.md")).expect("valid");
    pair.run(skills.load(&listing.skills[0])).expect("valid");
    assert_eq!(forged.reads(), [""; 0]);
    forged.entry(entry(A, &[(A, &skill("a")), ("skill://a/x.md", "newer")]));
    forged.file("skill://a/x.md", "newer");
    let newer = pair.run(async { skills.load(&skills.get(A).await?).await }).expect("valid");
    assert_eq!(pair.run(newer.read("x.md")).expect("valid").text(), Some("newer"));
    assert_eq!(forged.reads(), ["skill://a/x.md"]);
    skills.forget_files();
    pair.run(newer.read("x.md")).expect("valid");
    assert_eq!(forged.reads(), ["skill://a/x.md"]);
}

#[test]
fn an_approval_is_bound_to_the_server_the_uri_and_the_files() {
    // Rule: [SKILL-102] [SKILL-103] [SKILL-104] [SKILL-026] [SKILL-029].
    let (skills, mut pair) = connect(&server());
    let get = |pair: &mut mcp_sansio_test::StreamPair, skills: &SkillClient, uri: &str| {
        pair.run(skills.get(uri)).expect("served")
    };
    let refunds = get(&mut pair, &skills, REFUNDS);
    let approval = SkillApproval::new(&refunds).expect("verifiable");
    let stored = serde_json::to_string(&approval).expect("JSON");
    let approval: SkillApproval = serde_json::from_str(&stored).expect("the same");
    assert!(pair.run(skills.load_approved(&refunds, &approval)).is_ok());
    for uri in [SUPPORT, ESCALATION] {
        let other = get(&mut pair, &skills, uri);
        assert_eq!(approval.check(&other), Err(NotApproved::OtherSkill), "{uri}");
        let loaded = pair.run(skills.load_approved(&other, &approval));
        assert!(matches!(loaded, Err(SkillError::NotApproved(_))), "{loaded:?}");
    }
    let daily = get(&mut pair, &skills, DAILY);
    assert_eq!(SkillApproval::new(&daily), Err(NotApproved::Generated));

    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let other = SkillClient::new("mirror", client);
    let same_uri = get(&mut pair, &other, REFUNDS);
    assert_eq!(approval.check(&same_uri), Err(NotApproved::OtherSkill));
    let loaded = pair.run(other.load(&refunds));
    assert!(matches!(loaded, Err(SkillError::NotApproved(NotApproved::OtherSkill))));
}

#[test]
fn a_changed_skill_needs_a_new_approval() {
    // Rule: [SKILL-103] [SKILL-074] [SKILL-073].
    let set = |email: &str, more: Option<&str>| {
        let mut builder = SkillSet::builder().file("a/SKILL.md", skill("a")).file("a/x.md", email);
        if let Some(more) = more {
            builder = builder.file("a/y.md", more);
        }
        builder.build().expect("valid")
    };
    let served = ServedSkills::new(set("one", None));
    let (skills, mut pair) = connect(&served.register(Server::new("shop", "1.0.0")));
    let skills = skills.cache_bytes(0);
    let before = pair.run(skills.get(A)).expect("served");
    let approval = SkillApproval::new(&before).expect("verifiable");
    let loaded = pair.run(skills.load_approved(&before, &approval)).expect("approved");
    let same = pair.run(loaded.refresh()).expect("served");
    assert!(same.entry().has_same_files(before.entry()));

    for changed in [set("two", None), set("one", Some("new"))] {
        served.replace(changed);
        let now = pair.run(loaded.refresh()).expect("served");
        assert!(!now.entry().has_same_files(before.entry()));
        assert_eq!(approval.check(&now), Err(NotApproved::Changed));
        let again = pair.run(skills.load_approved(&now, &approval));
        assert!(matches!(again, Err(SkillError::NotApproved(NotApproved::Changed))));
        // The loaded skill keeps the entry that was approved.
        assert_eq!(*loaded.skill(), before);
    }
    served.replace(set("two", None));
    let read = pair.run(loaded.read("x.md"));
    assert!(matches!(read, Err(SkillError::Verification(VerificationError::Digest { .. }))));
}

#[test]
fn references_that_leave_the_skill_are_not_read() {
    // Rule: [SKILL-098] [SKILL-076].
    let forged = Forged::new();
    forged.entry(entry(A, &[(A, &skill("a"))])).file(A, &skill("a"));
    forged.file("skill://b/secret.md", "secret");
    let (skills, mut pair) = connect(&forged.server());
    let loaded = pair.run(async { skills.load(&skills.get(A).await?).await }).expect("valid");
    forged.reads();
    for reference in ["../b/secret.md", "skill://b/secret.md", "file:///etc/passwd", "/etc/passwd"]
    {
        let read = pair.run(loaded.read(reference));
        let outside = matches!(&read, Err(SkillError::Reference(text)) if text == reference);
        assert!(outside, "{read:?}");
    }
    assert_eq!(forged.reads(), [""; 0]);
}
