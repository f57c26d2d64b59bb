//! The answers of a server.

use core::num::NonZeroUsize;
use core::time::Duration;

use mcp_sansio::protocol::{CacheHints, ReadResourceResult, ResourceContents, SubscriptionFilter};
use mcp_sansio::{ErrorCode, Revision};
use mcp_sansio_extensions::skills::{
    Frontmatter, GeneratedSkill, ID, ServedSkills, Skill, SkillDigest, SkillSet, SkillSetBuilder,
    SkillSetError,
};
use mcp_sansio_handlers::{Connections, Host, Server};
use serde_json::{Value, json};

use super::fixtures::{
    DAILY, Daily, ESCALATION, HIDDEN, INVALID, LOGO, REFUNDS, REFUNDS_FILE, SUPPORT, builder, call,
    connect_at, refusal, served, server, skill,
};

const SINCE_EXTENSIONS: [Revision; 3] =
    [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

fn names(children: &Value) -> Vec<(&str, &str)> {
    let children = children.as_array().expect("a list");
    children
        .iter()
        .map(|child| {
            let (uri, media_type) = (&child["uri"], &child["mimeType"]);
            (uri.as_str().unwrap_or_default(), media_type.as_str().unwrap_or_default())
        })
        .collect()
}

#[test]
fn a_server_declares_the_extension_with_resources() {
    // Rule: [SKILL-001] [SKILL-004].
    for (server, settings) in [
        (server(), r#"{"directoryRead":true}"#),
        (
            served().directory_read(false).register(Server::new("shop", "1.0.0")),
            r#"{"directoryRead":false}"#,
        ),
        (
            ServedSkills::new(SkillSet::default()).register(Server::new("shop", "1.0.0")),
            r#"{"directoryRead":true}"#,
        ),
    ] {
        for revision in SINCE_EXTENSIONS {
            let (client, _pair) = connect_at(&server, revision);
            let session = client.session().expect("open");
            assert_eq!(session.extension(ID).expect("declared").as_str(), settings);
            let declared = session.capabilities_json.as_raw();
            assert!(declared.get("resources").is_some(), "{declared}");
        }
    }
}

#[test]
fn all_methods_are_served_at_every_revision_with_extensions() {
    // Rule: [SKILL-002] [SKILL-003] [SKILL-056] [SKILL-057] [SKILL-059] [SKILL-064].
    let server = served()
        .cache(CacheHints::public(Duration::from_secs(300)))
        .register(Server::new("shop", "1.0.0"));
    for revision in SINCE_EXTENSIONS {
        let (client, mut pair) = connect_at(&server, revision);
        let (list, get, directory) = pair
            .run(async {
                let list = call(&client, "skills/list", json!({})).await?;
                let get = call(&client, "skills/get", json!({ "uri": REFUNDS })).await?;
                let uri = "skill://acme/billing/refunds";
                let directory =
                    call(&client, "resources/directory/read", json!({ "uri": uri })).await?;
                Ok::<_, mcp_sansio_handlers::ClientError>((list, get, directory))
            })
            .expect("served");
        assert!(list["skills"].as_array().expect("a list").contains(&get["skill"]));
        assert!(list.get("nextCursor").is_none() && get.get("nextCursor").is_none());
        let modern = revision == Revision::V2026_07_28;
        for (result, cached) in [(&list, true), (&get, true), (&directory, false)] {
            assert_eq!(result.get("resultType"), modern.then_some(&json!("complete")), "{result}");
            let cached = modern && cached;
            assert_eq!(result.get("ttlMs"), cached.then_some(&json!(300_000)), "{result}");
            assert_eq!(result.get("cacheScope"), cached.then_some(&json!("public")), "{result}");
        }
    }
}

#[test]
fn a_listing_is_flat_and_leaves_out_what_the_server_hides() {
    // Rule: [SKILL-027] [SKILL-058] [SKILL-066] [SKILL-017] [SKILL-047].
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let list = pair.run(call(&client, "skills/list", json!({}))).expect("a list");
    let entries = list["skills"].as_array().expect("a list");
    let uris: Vec<&str> = entries.iter().filter_map(|entry| entry["uri"].as_str()).collect();
    assert_eq!(uris, sorted([REFUNDS, ESCALATION, SUPPORT, DAILY]));
    assert!(entries.iter().all(|entry| entry.as_object().map(|entry| entry.len()) == Some(3)));
    assert_eq!(entries.last().expect("entries")["resources"], "dynamic");
    let hidden = pair.run(call(&client, "skills/get", json!({ "uri": HIDDEN }))).expect("served");
    assert_eq!(hidden["skill"]["uri"], HIDDEN);
}

fn sorted<const N: usize>(mut uris: [&str; N]) -> [&str; N] {
    uris.sort_unstable();
    uris
}

#[test]
fn an_entry_lists_every_file_with_its_digest_and_size() {
    // Rule: [SKILL-041] [SKILL-043] [SKILL-045] [SKILL-046] [SKILL-010] [SKILL-012].
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let result = pair.run(call(&client, "skills/get", json!({ "uri": REFUNDS }))).expect("served");
    let entry: Skill = serde_json::from_value(result["skill"].clone()).expect("an entry");
    let uris: Vec<&str> = entry.files().iter().map(|file| file.uri.as_str()).collect();
    let root = "skill://acme/billing/refunds";
    let expected = [
        "SKILL.md",
        "escalation/SKILL.md",
        "escalation/steps.md",
        "examples/email.md",
        "logo.png",
        "templates/invoice.md",
        "templates/regional/eu.md",
    ];
    assert_eq!(uris, expected.map(|path| format!("{root}/{path}")));
    for file in entry.files() {
        let read: ReadResourceResult =
            pair.run(client.read_resource(&file.uri)).expect("every file is read");
        let bytes = match &read.contents[..] {
            [ResourceContents::Text(text)] => text.text.clone().into_bytes(),
            [ResourceContents::Blob(blob)] => blob.bytes().expect("base64"),
            other => panic!("{other:?}"),
        };
        assert_eq!((bytes.len() as u64, SkillDigest::of(&bytes)), (file.size, file.digest));
    }
    assert_eq!(
        entry.file(REFUNDS).expect("listed").digest,
        SkillDigest::of(REFUNDS_FILE.as_bytes())
    );
    let logo = entry.file(&format!("{root}/logo.png")).expect("listed");
    assert_eq!(logo.digest, SkillDigest::of(LOGO));
}

#[test]
fn an_entry_has_the_whole_frontmatter() {
    // Rule: [SKILL-032] [SKILL-013].
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let result = pair.run(call(&client, "skills/get", json!({ "uri": REFUNDS }))).expect("served");
    let expected = json!({
        "name": "refunds", "description": "Refunds an order", "license": "MIT",
        "metadata": { "version": "2" },
    });
    assert_eq!(result["skill"]["frontmatter"], expected);
    let other = SkillSet::builder().file("returns/SKILL.md", skill("refunds")).build();
    assert!(matches!(other, Err(SkillSetError::Skill { .. })), "{other:?}");
}

#[test]
fn pages_cover_all_skills_and_split_none() {
    // Rule: [SKILL-056].
    let server = served()
        .page_size(NonZeroUsize::new(2).expect("not 0"))
        .register(Server::new("shop", "1.0.0"));
    let (client, mut pair) = connect_at(&server, Revision::LATEST);
    let all = pair.run(async {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = call(&client, "skills/list", json!({ "cursor": cursor })).await?;
            let skills = page["skills"].as_array().expect("a list").clone();
            assert_eq!(skills.len(), 2);
            all.extend(skills);
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => return Ok::<_, mcp_sansio_handlers::ClientError>(all),
            }
        }
    });
    assert_eq!(all.expect("pages").len(), 4);
    let cursor = json!({ "cursor": "made up" });
    assert_eq!(refusal(pair.run(call(&client, "skills/list", cursor))).code, INVALID);
}

#[test]
fn a_page_is_bounded_by_its_bytes() {
    let mut builder = SkillSet::builder();
    for n in 0..6 {
        builder = builder.file(format!("s{n}/SKILL.md"), skill(&format!("s{n}")));
        for file in 0..500 {
            builder = builder.file(format!("s{n}/{file}.md"), "x");
        }
    }
    let skills = ServedSkills::new(builder.build().expect("valid"));
    let (client, mut pair) =
        connect_at(&skills.register(Server::new("shop", "1.0.0")), Revision::LATEST);
    let first = pair.run(call(&client, "skills/list", json!({}))).expect("a page");
    assert!(first.to_string().len() < 512 << 10);
    assert!(first["skills"].as_array().is_some_and(|skills| (2..6).contains(&skills.len())));
    assert!(first["nextCursor"].is_string());
}

#[test]
fn unknown_skills_files_and_directories_are_invalid_params() {
    // Rule: [SKILL-065] [SKILL-083] [SKILL-092] [SKILL-094].
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    for (method, uri, words) in [
        ("skills/get", "skill://other/SKILL.md", "no skill is served at skill://other/SKILL.md"),
        ("skills/get", "skill://acme/billing/refunds", "no skill is served at"),
        ("skills/get", "skill://acme/billing/refunds/examples/email.md", "no skill is served at"),
        ("resources/directory/read", "skill://other", "no directory is served at skill://other"),
        ("resources/directory/read", "skill://acme/", "no directory is served at"),
        ("resources/directory/read", REFUNDS, "SKILL.md is not a directory resource"),
        ("resources/directory/read", DAILY, "SKILL.md is not a directory resource"),
        ("resources/read", "skill://acme/billing/refunds/none.md", "resource not found"),
        ("resources/read", "skill://acme/billing/refunds/../refunds/SKILL.md", "not found"),
        ("resources/read", "skill://reports/daily/none.md", "resource not found"),
    ] {
        let refused = refusal(pair.run(call(&client, method, json!({ "uri": uri }))));
        assert_eq!(refused.code, INVALID, "{method} {uri}");
        assert!(refused.message.contains(words), "{method} {uri}: {refused}");
    }
}

#[test]
fn a_directory_has_its_direct_children() {
    // Rule: [SKILL-085] [SKILL-086] [SKILL-084].
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let mut read = |uri: &str| {
        let params = json!({ "uri": uri });
        let result = pair.run(call(&client, "resources/directory/read", params));
        result.expect("a directory")["resources"].take()
    };
    let root = "skill://acme/billing/refunds";
    let children = read(root);
    let expected = [
        ("SKILL.md", "text/markdown"),
        ("empty", "inode/directory"),
        ("escalation", "inode/directory"),
        ("examples", "inode/directory"),
        ("logo.png", "image/png"),
        ("templates", "inode/directory"),
    ];
    let expected = expected.map(|(name, media_type)| (format!("{root}/{name}"), media_type));
    let expected: Vec<_> = expected.iter().map(|(uri, kind)| (uri.as_str(), *kind)).collect();
    assert_eq!(names(&children), expected);
    assert_eq!(children[0]["name"], "refunds");
    assert_eq!(children[4]["size"], LOGO.len());
    assert_eq!(read(&format!("{root}/empty")), json!([]));
    assert_eq!(names(&read("skill://acme")).len(), 2);
    assert_eq!(names(&read("skill://hidden")), [(HIDDEN, "text/markdown")]);
    let daily = read("skill://reports/daily");
    assert_eq!(
        names(&daily),
        [(DAILY, "text/markdown"), ("skill://reports/daily/data", "inode/directory")]
    );
    let data = read("skill://reports/daily/data");
    assert_eq!(names(&data), [("skill://reports/daily/data/day%207.csv", "text/csv")]);
    assert_eq!(data[0]["name"], "day 7.csv");
}

#[test]
fn directories_are_read_page_by_page() {
    // Rule: [SKILL-084].
    let server = served()
        .page_size(NonZeroUsize::new(4).expect("not 0"))
        .register(Server::new("shop", "1.0.0"));
    let (client, mut pair) = connect_at(&server, Revision::LATEST);
    let mut read = |cursor: Value| {
        let params = json!({ "uri": "skill://acme/billing/refunds", "cursor": cursor });
        pair.run(call(&client, "resources/directory/read", params))
    };
    let first = read(Value::Null).expect("a page");
    assert_eq!(names(&first["resources"]).len(), 4);
    let second = read(first["nextCursor"].clone()).expect("a page");
    assert_eq!(names(&second["resources"]).len(), 2);
    assert!(second.get("nextCursor").is_none());
    assert_eq!(refusal(read(json!("made up"))).code, INVALID);
}

#[test]
fn without_the_setting_the_method_is_unknown() {
    // Rule: [SKILL-093].
    let server = served().directory_read(false).register(Server::new("shop", "1.0.0"));
    for revision in SINCE_EXTENSIONS {
        let (client, mut pair) = connect_at(&server, revision);
        let params = json!({ "uri": "skill://acme" });
        let refused = refusal(pair.run(call(&client, "resources/directory/read", params)));
        assert_eq!(refused.code, ErrorCode::METHOD_NOT_FOUND, "{revision}");
    }
}

#[test]
fn a_client_without_the_extension_is_served() {
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &Host::new("plain", "1.0.0"));
    let list = pair.run(call(&client, "skills/list", json!({}))).expect("a list");
    assert_eq!(list["skills"].as_array().map(Vec::len), Some(4));
}

#[test]
fn the_skill_file_is_described_as_a_resource() {
    // Rule: [SKILL-020] [SKILL-021] [SKILL-022] [SKILL-023] [SKILL-024] [SKILL-095].
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let resources = pair.run(client.all_resources()).expect("a list");
    let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!(uris, sorted([REFUNDS, ESCALATION, SUPPORT, DAILY]));
    let refunds = resources.iter().find(|resource| resource.uri == REFUNDS).expect("listed");
    assert_eq!(refunds.mime_type.as_deref(), Some("text/markdown"));
    assert_eq!(refunds.name, "refunds");
    assert_eq!(refunds.description.as_deref(), Some("Refunds an order"));
    assert_eq!(refunds.size, Some(REFUNDS_FILE.len() as u64));
    let meta = refunds.meta.as_ref().expect("metadata");
    let keys: Vec<_> = meta.iter().map(|(key, _)| key.into_owned()).collect();
    let prefixed =
        ["license", "metadata"].map(|key| format!("io.modelcontextprotocol.skills/{key}"));
    assert_eq!(keys, prefixed);
}

#[test]
fn skills_of_several_schemes_are_listed_together() {
    // Rule: [SKILL-018] [SKILL-011] [SKILL-015].
    let of = |base: &str, name: &str| {
        let builder = SkillSet::builder().base(base);
        builder.file(format!("{name}/SKILL.md"), skill(name)).build().expect("valid")
    };
    let set = of("skill://", "one").merge(of("github://owner/repo/skills/", "two"));
    let set = set.and_then(|set| set.merge(of("skill://a", "three"))).expect("other URIs");
    let uris: Vec<&str> = set.skills().map(|skill| skill.uri.as_str()).collect();
    let expected = [
        "github://owner/repo/skills/two/SKILL.md",
        "skill://a/three/SKILL.md",
        "skill://one/SKILL.md",
    ];
    assert_eq!(uris, expected);
    let server = ServedSkills::new(set).register(Server::new("shop", "1.0.0"));
    let (client, mut pair) = connect_at(&server, Revision::LATEST);
    for uri in expected {
        assert!(pair.run(client.read_resource(uri)).is_ok(), "{uri}");
    }
    let same = of("skill://", "one").merge(of("skill://", "one"));
    assert_eq!(same.unwrap_err(), SkillSetError::Duplicate("skill://one/SKILL.md".into()));
    let odd =
        SkillSet::builder().file("a b@c:1/one/SKILL.md", skill("one")).build().expect("valid");
    assert!(odd.get("skill://a%20b%40c%3A1/one/SKILL.md").is_some());
}

#[test]
fn files_that_are_no_skills_are_refused_with_their_path() {
    // Rule: [SKILL-008] [SKILL-009] [SKILL-014] [SKILL-007] [SKILL-053] [SKILL-033].
    let build = |path: &str, text: &str| SkillSet::builder().file(path, text).build();
    assert!(build("notes/readme.md", "x").expect("no skills").is_empty());
    for (path, text) in [
        ("a/SKILL.md", "# No frontmatter\n"),
        ("a/SKILL.md", "---\nname: a\n---\n"),
        ("a/SKILL.md", "---\nname: a\ndescription: ''\n---\n"),
        ("Bad_Name/SKILL.md", "---\nname: Bad_Name\ndescription: d\n---\n"),
        ("a/SKILL.md", "---\nname: b\ndescription: d\n---\n"),
        ("SKILL.md", "---\nname: a\ndescription: d\n---\n"),
        ("/a/SKILL.md", "---\nname: a\ndescription: d\n---\n"),
        ("x/../a/SKILL.md", "---\nname: a\ndescription: d\n---\n"),
    ] {
        let error = build(path, text).expect_err(path);
        assert!(error.to_string().contains(path), "{error}");
    }
    let mut large = SkillSet::builder().file("a/SKILL.md", skill("a"));
    for file in 0..512 {
        large = large.file(format!("a/{file}"), "");
    }
    assert!(matches!(large.build(), Err(SkillSetError::Skill { .. })));
    let twice = SkillSet::builder().file("a/x", "1").file("a/x", "2").build();
    assert_eq!(twice.unwrap_err(), SkillSetError::Duplicate("a/x".into()));
    assert_eq!(
        builder().unlisted("none/SKILL.md").build().unwrap_err(),
        SkillSetError::NoSuchSkill("none/SKILL.md".into())
    );
    assert!(matches!(SkillSet::builder().base("skills").build(), Err(SkillSetError::Base(_))));
}

#[test]
fn a_folder_may_be_one_skill() {
    let set = SkillSet::builder().base("skill://acme/refunds").file("SKILL.md", skill("refunds"));
    let set = set.file("x.md", "x").build().expect("valid");
    let entry = set.get("skill://acme/refunds/SKILL.md").expect("served");
    assert_eq!(entry.files().len(), 2);
}

#[test]
fn generated_content_has_the_frontmatter_of_its_entry() {
    // Rule: [SKILL-032] [SKILL-047].
    struct Wrong;
    impl GeneratedSkill for Wrong {
        fn read(&self, _path: &str) -> Option<Vec<u8>> {
            Some(skill("wrong").into_bytes())
        }
    }
    let set = |skill: Box<dyn GeneratedSkill>| {
        struct Boxed(Box<dyn GeneratedSkill>);
        impl GeneratedSkill for Boxed {
            fn read(&self, path: &str) -> Option<Vec<u8>> {
                self.0.read(path)
            }
        }
        let frontmatter = Frontmatter::from_name("daily", "Today's report");
        SkillSet::builder().generated("reports/daily", frontmatter, Boxed(skill)).build()
    };
    for (generated, served) in
        [(Box::new(Daily) as Box<dyn GeneratedSkill>, true), (Box::new(Wrong), false)]
    {
        let set = set(generated).expect("valid");
        assert_eq!(matches!(set.read(DAILY), Ok(Some(_))), served);
        let server = ServedSkills::new(set).register(Server::new("shop", "1.0.0"));
        let (client, mut pair) = connect_at(&server, Revision::LATEST);
        let read = pair.run(client.read_resource(DAILY));
        if served {
            assert!(read.is_ok(), "{read:?}");
        } else {
            assert_eq!(refusal(read).code, ErrorCode::INTERNAL_ERROR);
        }
    }
}

#[test]
fn files_of_a_generated_skill_are_read_by_their_names() {
    let (client, mut pair) = connect_at(&server(), Revision::LATEST);
    let uri = "skill://reports/daily/data/day%207.csv";
    let read = pair.run(client.read_resource(uri)).expect("served");
    let [ResourceContents::Text(text)] = &read.contents[..] else { panic!("{read:?}") };
    assert_eq!((text.text.as_str(), text.mime_type.as_deref()), ("a,b\n", Some("text/csv")));
    for other in ["data/day%207%2Ecsv", "/SKILL.md", "data/../SKILL.md", "data%2Fday%207.csv"] {
        let uri = format!("skill://reports/daily/{other}");
        assert_eq!(refusal(pair.run(client.read_resource(&uri))).code, INVALID, "{uri}");
    }
}

#[test]
fn a_generated_skill_has_its_directory_for_itself() {
    // Rule: [SKILL-041].
    let generated = |builder: SkillSetBuilder| {
        let frontmatter = Frontmatter::from_name("daily", "Today's report");
        builder.generated("reports/daily", frontmatter, Daily).build()
    };
    let mixed = SkillSetError::Mixed("reports/daily/SKILL.md".into());
    for path in ["reports/daily", "reports/daily/x/y", "reports"] {
        let name = path.rsplit('/').next().unwrap_or(path);
        let builder = SkillSet::builder().file(format!("{path}/SKILL.md"), skill(name));
        assert_eq!(generated(builder).unwrap_err(), mixed, "{path}");
    }
    let beside = SkillSet::builder().file("reports/daily-2/SKILL.md", skill("daily-2"));
    assert_eq!(generated(beside).expect("separate").len(), 2);
}

#[test]
fn a_replaced_set_is_served_and_announced() {
    let skills = served();
    let connections = Connections::new();
    let server =
        skills.register(Server::new("shop", "1.0.0").subscriptions()).connections(&connections);
    let (client, mut pair) = connect_at(&server, Revision::LATEST);
    let email = "skill://acme/billing/refunds/examples/email.md";
    let filter = SubscriptionFilter::new()
        .resources_list_changed(true)
        .resource_subscriptions([email.to_owned()]);
    let mut subscription = client.subscribe(filter);
    pair.run(subscription.honoured()).expect("subscribed");
    let before = pair.run(client.read_resource(email)).expect("served");

    let new = SkillSet::builder()
        .file("acme/billing/refunds/SKILL.md", REFUNDS_FILE)
        .file("acme/billing/refunds/examples/email.md", "Hello,\n")
        .file("new/SKILL.md", skill("new"))
        .build()
        .expect("valid");
    let changes = skills.replace(new);
    assert_eq!(changes.updated, [email]);
    assert_eq!(changes.removed, sorted([ESCALATION, SUPPORT, DAILY]));
    assert_eq!(changes.described.len(), 1);
    skills.announce(&changes, &connections).expect("announced");

    let mut seen = Vec::new();
    for _ in 0..2 {
        let next = pair.run(subscription.next()).expect("open").expect("a notification");
        seen.push(next.method.as_str().to_owned());
    }
    seen.sort_unstable();
    assert_eq!(seen, ["notifications/resources/list_changed", "notifications/resources/updated"]);
    let resources = pair.run(client.all_resources()).expect("a list");
    let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!(uris, [REFUNDS, "skill://new/SKILL.md"]);
    assert_ne!(pair.run(client.read_resource(email)).expect("served"), before);
    assert!(pair.run(client.read_resource("skill://new/SKILL.md")).is_ok());
    assert_eq!(refusal(pair.run(client.read_resource(SUPPORT))).code, INVALID);
    assert!(skills.replace((*skills.set()).clone()).is_empty());
}
