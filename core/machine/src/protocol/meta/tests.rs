use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;

fn meta(text: &str) -> Meta {
    RawJson::parse(text).unwrap().decode().unwrap()
}

fn written(meta: &Meta) -> String {
    meta.to_json_at(Revision::LATEST).unwrap().as_str().into()
}

fn json(text: &str) -> Json {
    RawJson::parse(text).unwrap().into()
}

#[test]
fn entries_keep_their_order_and_text() {
    let meta = meta(r#" { "z" : [1, 2] ,"a":{"b": null}, "m":"x" } "#);
    let found: Vec<_> = meta.iter().collect();
    let raw = RawJson::trusted;
    let expected = [("z", raw("[1, 2]")), ("a", raw(r#"{"b": null}"#)), ("m", raw(r#""x""#))];
    assert_eq!(found, expected.map(|(key, value)| (Cow::Borrowed(key), value)));
    assert_eq!((meta.len(), meta.is_empty()), (3, false));
    assert_eq!(meta.get("a"), Some(raw(r#"{"b": null}"#)));
    assert_eq!(meta.get("b"), None);
    assert_eq!(written(&meta), r#"{"z":[1, 2],"a":{"b": null},"m":"x"}"#);
}

#[test]
fn a_key_is_the_same_in_every_spelling() {
    let mut meta = meta(r#"{"\u0061\/b":1,"q\"\u000a":2}"#);
    assert_eq!(meta.get("a/b"), Some(RawJson::trusted("1")));
    assert_eq!(meta.get("q\"\n"), Some(RawJson::trusted("2")));
    assert_eq!(meta.get(r"\u0061\/b"), None);
    assert_eq!(meta, self::meta(r#"{"a/b":1,"q\"\n":2}"#));
    assert_eq!(written(&meta), r#"{"a/b":1,"q\"\n":2}"#);
    assert_eq!(meta.insert("q\"\n", json("3")), Some(json("2")));
    assert_eq!(meta.remove("a/b"), Some(json("1")));
    assert_eq!(written(&meta), r#"{"q\"\n":3}"#);
}

#[test]
fn the_last_entry_with_a_repeated_key_wins() {
    let twice = meta(r#"{"z":1,"a":2,"\u007a":3,"m":4,"a":5,"z":6}"#);
    assert_eq!(written(&twice), r#"{"m":4,"a":5,"z":6}"#);
    assert_eq!(twice.len(), 3);
    assert_eq!(written(&meta(r#"{"":1,"":2}"#)), r#"{"":2}"#);
    let many: Vec<String> = (0..100).map(|n| alloc::format!("\"{}\":{n}", n % 50)).collect();
    let many = meta(&alloc::format!("{{{}}}", many.join(",")));
    assert_eq!((many.len(), many.get("7")), (50, Some(RawJson::trusted("57"))));
    let collected: Meta = [("a", "1"), ("b", "2"), ("a", "3")]
        .map(|(k, v)| (k.into(), json(v)))
        .into_iter()
        .collect();
    assert_eq!(written(&collected), r#"{"b":2,"a":3}"#);
}

#[test]
fn entries_are_set_and_removed_at_any_position() {
    let mut meta = Meta::new();
    assert_eq!(meta.set("a", &1).unwrap(), None);
    assert_eq!(meta.insert(String::from("b"), json("[]")), None);
    assert_eq!(meta.insert("c\\", json(r#""x""#)), None);
    assert_eq!(written(&meta), r#"{"a":1,"b":[],"c\\":"x"}"#);
    assert_eq!(meta.set("b", &true).unwrap(), Some(json("[]")));
    for key in ["a", "b", "c\\"] {
        let (mut rest, mut again) = (meta.clone(), meta.clone());
        let value = rest.remove(key).unwrap();
        assert_eq!((rest.len(), rest.get(key)), (2, None));
        assert_eq!(rest.remove(key), None);
        rest.insert(key, value.clone());
        assert_eq!(rest.iter().last(), Some((Cow::Borrowed(key), value.as_raw())));
        assert_eq!(again.insert(key, value), self::meta(&written(&meta)).remove(key));
        assert_eq!(again, meta);
    }
    for key in ["b", "a", "c\\"] {
        assert!(meta.remove(key).is_some(), "{key}");
    }
    assert_eq!(meta, Meta::new());
    assert_eq!((written(&meta).as_str(), meta.is_empty()), ("{}", true));
}

#[test]
fn metadata_without_entries_is_an_empty_object() {
    for text in ["{}", "{ }", " { \n} "] {
        assert_eq!(meta(text), Meta::new(), "{text}");
    }
    assert_eq!((Meta::new().len(), Meta::new().iter().count()), (0, 0));
}

#[test]
fn metadata_must_be_an_object() {
    for (text, found) in [
        ("[1]", "array"),
        ("null", "null"),
        ("7", "integer `7`"),
        ("\"{}\"", "string \"{}\""),
        ("true", "boolean `true`"),
    ] {
        let error = RawJson::parse(text).unwrap().decode::<Meta>().unwrap_err();
        let expected = alloc::format!("invalid type: {found}, expected an object");
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(serde_json::from_str::<Meta>(text).unwrap_err().is_data(), "{text}");
    }
    for text in [r#"{"a":}"#, r#"{"a" 1}"#, r#"{"a":1"#] {
        assert!(serde_json::from_str::<Meta>(text).is_err(), "{text}");
    }
    for text in [r#"{"\ud800":1}"#, r#"{"a":1,"\ud800":1}"#] {
        assert!(serde_json::from_str::<Meta>(text).is_err(), "{text}");
    }
}

#[test]
fn values_may_be_nested_deeply() {
    let text = ["{\"a\":", &"[".repeat(500), &"]".repeat(500), ",\"b\":1}"].concat();
    let meta = meta(&text);
    assert_eq!(meta.get("b"), Some(RawJson::trusted("1")));
    assert_eq!(written(&meta), text);
}

#[test]
fn reserved_keys_have_typed_accessors() {
    // Rule: [META-010] [META-015].
    let meta: Meta = serde_json::from_str(
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},
            "io.modelcontextprotocol/clientCapabilities":{"sampling":{}},
            "io.modelcontextprotocol/logLevel":"error",
            "io.modelcontextprotocol/subscriptionId":"s",
            "io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"},
            "io.modelcontextprotocol/related-task":{"taskId":"t"}}"#,
    )
    .unwrap();
    assert_eq!(meta.protocol_version().as_deref(), Some("2026-07-28"));
    assert_eq!(meta.client_info(), Some(Implementation::new("c", "1")));
    assert!(meta.client_capabilities().unwrap().sampling.is_some());
    assert_eq!(meta.log_level(), Some(LoggingLevel::Error));
    assert_eq!(meta.subscription_id(), Some(RequestId::from("s")));
    assert_eq!(meta.server_info(), Some(Implementation::new("s", "2")));
    assert_eq!(meta.related_task(), Some(RelatedTask::new("t")));
    assert_eq!(Meta::new().client_info(), None);
}

#[test]
fn a_value_of_another_shape_reads_as_absent() {
    let meta: Meta = serde_json::from_str(
        r#"{"io.modelcontextprotocol/logLevel":"loud","progressToken":7,"x":null}"#,
    )
    .unwrap();
    assert_eq!(meta.log_level(), None);
    assert_eq!(meta.progress_token(), Some(ProgressToken::Number(7)));
    // Rule: [META-001].
    assert_eq!(
        meta.to_json_at(Revision::LATEST).unwrap().as_str(),
        r#"{"io.modelcontextprotocol/logLevel":"loud","progressToken":7,"x":null}"#
    );
}
