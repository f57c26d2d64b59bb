//! Servers whose entries and files do not agree.

use mcp_sansio::Revision;
use mcp_sansio::protocol::{Resource, TextResourceContents};
use mcp_sansio_extensions::skills::{
    InvalidSkill, SkillClient, SkillError, SkillLimits, VerificationError,
};
use mcp_sansio_handlers::{Call, ClientError, ReadResource};
use serde_json::json;

use super::fixtures::{connect, connect_at, skill};
use super::forged::{Forged, entry};

const A: &str = "skill://a/SKILL.md";
const B: &str = "skill://x/a/SKILL.md";

fn text() -> String {
    skill("a")
}

#[test]
fn a_file_that_differs_from_its_entry_is_not_handed_out() {
    // Rule: [SKILL-072] [SKILL-073] [SKILL-050].
    let forged = Forged::new();
    forged.entry(entry(A, &[(A, &text()), ("skill://a/x.md", "one")])).file(A, &text());
    let (skills, mut pair) = connect(&forged.server());
    let loaded = pair.run(async { skills.load(&skills.get(A).await?).await }).expect("valid");
    for (content, size) in [("two", false), ("", true), ("one more", true)] {
        forged.file("skill://a/x.md", content);
        match pair.run(loaded.read("x.md")) {
            Err(SkillError::Verification(VerificationError::Size { expected: 3, .. })) => {
                assert!(size)
            }
            Err(SkillError::Verification(VerificationError::Digest { .. })) => assert!(!size),
            other => panic!("{content}: {other:?}"),
        }
    }
    // It is fetched again, and not kept from before.
    forged.file("skill://a/x.md", "one");
    assert_eq!(pair.run(loaded.read("x.md")).expect("the same").text(), Some("one"));
}

#[test]
fn a_skill_file_with_another_frontmatter_is_not_loaded() {
    // Rule: [SKILL-078] [SKILL-079].
    let more = "---\nname: a\ndescription: About a\nallowed-tools: Bash\n---\n";
    for (file, resources) in [
        // The digest is that of the file: the server describes it differently.
        (more, json!(null)),
        (more, json!("dynamic")),
        ("---\nname: a\ndescription: Another\n---\n", json!("dynamic")),
        ("no frontmatter", json!("dynamic")),
    ] {
        let forged = Forged::new();
        let mut entry = entry(A, &[(A, file)]);
        if !resources.is_null() {
            entry["resources"] = resources;
        }
        forged.entry(entry).file(A, file);
        let (skills, mut pair) = connect(&forged.server());
        let loaded = pair.run(async { skills.load(&skills.get(A).await?).await });
        match loaded {
            Err(SkillError::Verification(VerificationError::Frontmatter { reason, .. })) => {
                match reason {
                    InvalidSkill::Difference(field) => {
                        assert_ne!(file, "no frontmatter");
                        assert!(["allowed-tools", "description"].contains(&field.as_str()));
                    }
                    _ => assert_eq!(file, "no frontmatter"),
                }
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}

#[test]
fn invalid_entries_are_reported_separately() {
    // Rule: [SKILL-048] [SKILL-028].
    let forged = Forged::new();
    let good = entry(A, &[(A, "")]);
    let with = |member: &str, value| {
        let mut entry = entry(B, &[(B, "")]);
        entry[member] = value;
        entry
    };
    forged.list([
        good.clone(),
        with("resources", json!("static")),
        with("resources", json!(null)),
        with("resources", json!([])),
        with("resources", json!([{ "uri": B, "digest": "md5:00", "size": 0 }])),
        with("frontmatter", json!({ "name": "a" })),
        with("frontmatter", json!({ "name": "b", "description": "d" })),
        with("uri", json!("skill://a/readme.md")),
        json!("skill"),
        good,
    ]);
    let (skills, mut pair) = connect(&forged.server());
    let listing = pair.run(skills.list()).expect("a list");
    assert_eq!(listing.skills.len(), 1);
    assert_eq!(listing.invalid.len(), 9);
    let last = listing.invalid.last().expect("reported");
    assert_eq!(last.reason, InvalidSkill::Duplicate(A.into()));
    assert_eq!(last.uri.as_deref(), Some(A));
    let incomplete = &listing.invalid[2];
    assert_eq!(incomplete.reason, InvalidSkill::Incomplete);
    assert_eq!(incomplete.uri.as_deref(), Some(B));

    forged.entry(entry(B, &[(B, "")]));
    let other = pair.run(skills.get(A));
    let uri = match other {
        Err(SkillError::Entry(InvalidSkill::OtherSkill(uri))) => uri,
        other => panic!("{other:?}"),
    };
    assert_eq!(uri, B);
}

#[test]
fn skills_of_one_name_are_told_apart() {
    // Rule: [SKILL-036] [SKILL-037].
    let forged = Forged::new();
    let c = "skill://c/SKILL.md";
    forged.list([entry(A, &[(A, "")]), entry(B, &[(B, "")]), entry(c, &[(c, "")])]);
    let (skills, mut pair) = connect(&forged.server());
    let listing = pair.run(skills.list()).expect("a list");
    assert_eq!(listing.labels(), ["a", "x/a", "c"]);
    let named: Vec<_> = listing.named("a").map(|skill| skill.uri().as_str()).collect();
    assert_eq!(named, [A, B]);
}

#[test]
fn pages_are_read_until_there_is_no_cursor() {
    // Rule: [SKILL-062] [SKILL-060].
    let forged = Forged::new();
    let page = |uri| vec![entry(uri, &[(uri, "")])];
    forged.pages(vec![(page(A), Some("1")), (vec![], Some("2")), (page(B), None)]);
    let (skills, mut pair) = connect(&forged.server());
    assert_eq!(pair.run(skills.list()).expect("a list").skills.len(), 2);
    forged.pages(vec![(page(A), Some("1")), (page(B), Some("1"))]);
    let error = pair.run(skills.list()).expect_err("the pages form a loop");
    assert!(
        matches!(&error, SkillError::Call(call) if matches!(**call, ClientError::CursorLoop(_)))
    );
    // An empty list is no proof.
    forged.pages(vec![(vec![], None)]);
    forged.entry(entry(A, &[(A, "")]));
    assert!(pair.run(skills.list()).expect("a list").skills.is_empty());
    assert!(pair.run(skills.get(A)).is_ok());
}

#[test]
fn a_skill_beyond_the_limits_is_declined_before_any_read() {
    // Rule: [SKILL-051] [SKILL-052] [SKILL-054].
    let forged = Forged::new();
    let uris: Vec<String> = (0..511).map(|n| format!("skill://a/{n}.md")).collect();
    let text = text();
    let mut files = vec![(A, text.as_str())];
    files.extend(uris.iter().map(|uri| (uri.as_str(), "x")));
    forged.entry(entry(A, &files)).file(A, &text);
    let (skills, mut pair) = connect(&forged.server());
    assert!(pair.run(async { skills.load(&skills.get(A).await?).await }).is_ok());
    forged.reads();
    files.push(("skill://a/one-more.md", "x"));
    forged.entry(entry(A, &files));
    let declined = pair.run(skills.get(A));
    let reason = match declined {
        Err(SkillError::Entry(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason, InvalidSkill::TooManyFiles { files: 513, limit: 512 });
    assert_eq!(forged.reads(), [""; 0]);
    let larger = skills.limited(SkillLimits::default().files_max(1000));
    assert!(pair.run(larger.get(A)).is_ok());
}

#[test]
fn generated_content_is_read_up_to_the_limit_or_declined() {
    // Rule: [SKILL-049] [SKILL-055].
    let forged = Forged::new();
    let mut generated = entry(A, &[]);
    generated["resources"] = json!("dynamic");
    let (text, x) = (text(), "skill://a/x.md");
    forged.entry(generated).file(A, &text).file(x, &"x".repeat(100));
    forged.file("skill://b/x.md", "elsewhere");
    let (skills, mut pair) = connect(&forged.server());
    let limit = text.len() as u64 + 100;
    let skills = skills.limited(SkillLimits::default().bytes_max(limit));
    let loaded = pair.run(async { skills.load(&skills.get(A).await?).await }).expect("loaded");
    assert_eq!(pair.run(loaded.read("x.md")).expect("within the limit").bytes().len(), 100);
    assert!(matches!(pair.run(loaded.read("x.md")), Err(SkillError::TooLarge { .. })));
    assert!(loaded.children(".").expect("inside").is_empty());

    forged.children([Resource::new(x, "x.md"), Resource::new("skill://b/x.md", "x.md")]);
    let directory = pair.run(loaded.read_directory(".")).expect("listed");
    assert_eq!(directory.children.len(), 1);

    forged.reads();
    let declining = skills.decline_generated();
    let declined = pair.run(async { declining.load(&declining.get(A).await?).await });
    assert!(matches!(declined, Err(SkillError::Generated)));
    assert_eq!(forged.reads(), [""; 0]);
}

#[test]
fn a_resource_is_no_skill_because_of_its_uri() {
    // Rule: [SKILL-019].
    let uri = "skill://none/SKILL.md";
    let server = super::fixtures::server()
        .resource(Resource::new(uri, "none"), |call: Call<ReadResource>| {
            TextResourceContents::new(&call.arguments.uri, skill("none"))
        });
    let (client, mut pair) = connect_at(&server, Revision::LATEST);
    assert!(pair.run(client.read_resource(uri)).is_ok());
    let skills = SkillClient::new("shop", client);
    let error = pair.run(skills.get(uri)).expect_err("no skill");
    let SkillError::Call(call) = error else { panic!("{error:?}") };
    let refusal = call.as_refusal().expect("refused");
    assert_eq!(refusal.code, super::fixtures::INVALID);
    let error = pair.run(skills.get("skill://none")).expect_err("no skill");
    assert!(matches!(error, SkillError::Uri(_)), "{error:?}");
}
