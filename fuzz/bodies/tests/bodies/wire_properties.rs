//! Properties of the text layer, over generated and damaged messages.

use mcp_sansio::framing::LineDecoder;
use mcp_sansio::jsonrpc::RequestId;
use mcp_sansio_fuzz_bodies as bodies;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,200}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    btree_map(any::<String>(), value(), 0..6)
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::from),
        "\\PC{0,16}".prop_map(|text| RequestId::from(text.as_str())),
    ]
}

/// Envelopes of the known members, most of them invalid in some way.
fn envelope() -> impl Strategy<Value = Value> {
    let jsonrpc = prop_oneof![8 => Just(json!("2.0")), 1 => value()];
    let id = prop_oneof![4 => id().prop_map(|id| json!(id)), 1 => value()];
    let method = prop_oneof![4 => any::<String>().prop_map(Value::from), 1 => value()];
    let error = (any::<i64>(), any::<String>(), value())
        .prop_map(|(code, message, data)| json!({"code": code, "message": message, "data": data}));
    let members = (
        prop::option::weighted(0.9, jsonrpc),
        prop::option::weighted(0.7, id),
        prop::option::weighted(0.6, method),
        prop::option::weighted(0.5, prop_oneof![4 => object(), 1 => value()]),
        prop::option::weighted(0.3, prop_oneof![4 => object(), 1 => value()]),
        prop::option::weighted(0.2, prop_oneof![4 => error, 1 => value()]),
    );
    members.prop_map(|(jsonrpc, id, method, params, result, error)| {
        let members = [
            ("jsonrpc", jsonrpc),
            ("id", id),
            ("method", method),
            ("params", params),
            ("result", result),
            ("error", error),
        ];
        members.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256, failure_persistence: None, ..ProptestConfig::default()
    })]

    // Rule: [RPC-001] [RPC-002] [RPC-007] [RPC-008] [RPC-010] [RPC-011].
    #[test]
    fn envelopes_are_judged_as_a_tree_would_be(tree in envelope(), pretty: bool) {
        let text = if pretty { serde_json::to_vec_pretty(&tree) } else { serde_json::to_vec(&tree) };
        bodies::envelope(&text.expect("a tree is JSON"));
    }

    // Rule: [BATCH-001] [BATCH-003].
    #[test]
    fn batches_are_judged_element_by_element(trees in vec(prop_oneof![envelope(), value()], 0..6)) {
        bodies::envelope(&serde_json::to_vec(&trees).expect("a tree is JSON"));
    }

    // Rule: [RPC-014] [RPC-017].
    #[test]
    fn damaged_envelopes_are_judged_as_serde_json_judges_them(
        tree in envelope(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let mut text = serde_json::to_vec(&tree).expect("a tree is JSON");
        for (at, byte, kind) in damage {
            let at = at.index(text.len().max(1));
            match kind {
                _ if text.is_empty() => {}
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => { text.remove(at); }
            }
        }
        bodies::envelope(&text);
    }

    #[test]
    fn any_bytes_are_judged_as_serde_json_judges_them(bytes in vec(any::<u8>(), 0..64)) {
        bodies::envelope(&bytes);
    }

    #[test]
    fn strings_of_escapes_are_judged_as_serde_json_judges_them(
        text in r#""([ -~]|\\["\\/bfnrtux]|\\u[dD][89abcdefAF][0-9a-f]{2}|[é\n]){0,60}""#,
    ) {
        bodies::envelope(text.as_bytes());
    }

    #[test]
    fn numbers_are_judged_as_serde_json_judges_them(text in "-?[0-9]{0,3}[.eE+-]{0,2}[0-9]{0,2}") {
        bodies::envelope(text.as_bytes());
    }

    // Rule: [STDIO-001].
    #[test]
    fn frames_do_not_depend_on_how_the_stream_is_split(
        limit: u8,
        pattern: u8,
        stream in vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'x')], 0..300),
    ) {
        bodies::lines(&[&[limit, pattern], stream.as_slice()].concat());
    }
}

#[test]
fn a_long_line_in_small_reads_is_linear_work() {
    // Quadratic work would take minutes.
    let limit = 4 << 20;
    let mut decoder = LineDecoder::growing(limit);
    let line = vec![b'x'; limit - 1];
    for piece in line.chunks(7) {
        assert_eq!(decoder.feed(piece), piece.len());
        assert!(decoder.next_frame().is_none());
    }
    assert_eq!(decoder.feed(b"\n"), 1);
    assert!(matches!(decoder.next_frame(), Some(Ok(frame)) if frame == line));
}
