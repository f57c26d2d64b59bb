use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::super::memory::KEPT;
use super::decoder::INITIAL;
use super::*;

/// Formats an event as its type, data and id, with a dash for a missing id.
fn shown(event: SseEvent<'_>) -> String {
    let data = event.text().expect("UTF-8");
    alloc::format!("{} {data:?} {}", event.event, event.id.unwrap_or("-"))
}

/// Returns the output of a decoder whose input arrives in pieces of at most `piece` bytes.
fn decode(decoder: &mut SseDecoder<'_>, input: &[u8], piece: usize) -> Vec<String> {
    let mut outcomes = Vec::new();
    for mut bytes in input.chunks(piece) {
        while !bytes.is_empty() {
            let taken = decoder.feed(bytes);
            assert!(taken > 0);
            bytes = &bytes[taken..];
            while let Some(event) = decoder.next_event() {
                outcomes.push(event.map_or_else(|error| error.to_string(), shown));
            }
        }
    }
    outcomes.extend(decoder.handle_eof().map(|error| error.to_string()));
    outcomes
}

/// Expects the same output for every split and for both kinds of storage.
#[track_caller]
fn check(input: &[u8], expected: &[&str]) {
    for piece in 1..=input.len() {
        assert_eq!(decode(&mut SseDecoder::growing(64), input, piece), expected);
        assert_eq!(decode(&mut SseDecoder::lent(&mut [0; 64]), input, piece), expected);
    }
}

#[test]
fn lines_end_with_any_of_the_three_line_ends() {
    // Rule: [SSE-012].
    check(
        b"data: a\n\ndata: b\r\n\r\ndata: c\r\r",
        &["message \"a\" -", "message \"b\" -", "message \"c\" -"],
    );
    check(b"data: a\r\ndata: b\rdata: c\n\r\n\n", &["message \"a\\nb\\nc\" -"]);
    check(b"\r\n\r\n\r\r\n\n", &[]);
}

#[test]
fn an_event_that_ends_with_carriage_returns_is_complete_at_once() {
    // Rule: [SSE-012].
    let mut decoder = SseDecoder::growing(64);
    assert_eq!(decoder.feed(b"data: a\r\r"), 9);
    assert!(matches!(decoder.next_event(), Some(Ok(event)) if event.data == b"a"));
    assert_eq!(decoder.feed(b"\ndata: b\r\n\r"), 11);
    assert!(matches!(decoder.next_event(), Some(Ok(event)) if event.data == b"b"));
    assert_eq!(decoder.next_event(), None);
}

#[test]
fn one_byte_order_mark_at_the_start_is_skipped() {
    // Rule: [SSE-012].
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes(), &["message \"a\" -"]);
    check("\u{feff}\u{feff}data: a\n\n".as_bytes(), &[]);
    check(b"\xef\xbbdata: a\n\ndata: b\n\n", &["message \"b\" -"]);
}

#[test]
fn comments_and_unknown_fields_are_ignored() {
    // Rule: [SSE-012] [SSE-013].
    check(b": ping\n\n:\n\n", &[]);
    check(b":a\ndata: a\n:data: b\n data: c\nDATA: d\ndatas: e\nx\n\n", &["message \"a\" -"]);
}

#[test]
fn one_space_after_the_colon_is_not_part_of_the_value() {
    // Rule: [SSE-012].
    check(b"data:a\ndata: b\ndata:  c\ndata:\td\n\n", &["message \"a\\nb\\n c\\n\\td\" -"]);
    check(b"event:x:y\ndata::\n\n", &["x:y \":\" -"]);
}

#[test]
fn a_field_without_a_colon_has_an_empty_value() {
    // Rule: [SSE-012].
    check(b"id: 1\nid\nevent: x\nevent\nretry\ndata\ndata\n\n", &["message \"\\n\" "]);
}

#[test]
fn an_event_needs_a_data_field_which_may_be_empty() {
    // Rule: [SSE-005] [SSE-010] [SSE-012].
    check(b"id: 1\ndata:\n\n", &["message \"\" 1"]);
    check(b"id: 1\ndata\n\n", &["message \"\" 1"]);
    check(b"id: 1\nevent: x\n\ndata: a\n\n", &["message \"a\" 1"]);
}

#[test]
fn an_id_stays_until_the_next_one() {
    // Rule: [RESUME-004] [SSE-012].
    let input = b"data: a\n\nid: 1\ndata: b\n\ndata: c\n\nid: 2\n\ndata: d\n\nid\n\ndata: e\n\n";
    let expected = ["\"a\" -", "\"b\" 1", "\"c\" 1", "\"d\" 2", "\"e\" "];
    check(
        input,
        &expected.map(|text| alloc::format!("message {text}")).each_ref().map(|text| &**text),
    );
}

#[test]
fn an_id_with_nul_is_ignored() {
    // Rule: [SSE-012].
    check(b"id: 1\nid: 2\x00\ndata: a\n\n", &["message \"a\" 1"]);
}

#[test]
fn an_id_counts_only_once_its_event_has_ended() {
    // Rule: [RESUME-004] [SSE-012].
    let mut decoder = SseDecoder::growing(64);
    assert_eq!(decode(&mut decoder, b"id: 1\n\nid: 2\n", 64), [""; 0]);
    assert_eq!(decoder.last_event_id(), Some("1"));
    assert_eq!(decode(&mut decoder, b"\ndata: a\n\n", 64), ["message \"a\" 1"]);
}

#[test]
fn a_reconnection_time_is_digits_and_counts_without_an_event() {
    // Rule: [SSE-008] [SSE-012].
    let mut decoder = SseDecoder::growing(64);
    for (input, expected) in [
        ("retry: 1500\n", Some(Duration::from_millis(1500))),
        ("retry:0\n", Some(Duration::ZERO)),
        ("retry: -1\nretry: 1.5\nretry: 1 \nretry:  1\nretry:\nretry\n", Some(Duration::ZERO)),
        ("retry: 99999999999999999999\n", Some(Duration::from_millis(u64::MAX))),
    ] {
        assert_eq!(decode(&mut decoder, input.as_bytes(), 1), [""; 0]);
        assert_eq!(decoder.retry(), expected, "{input}");
    }
}

#[test]
fn an_event_carries_its_reconnection_time() {
    // Rule: [SSE-008].
    let mut decoder = SseDecoder::growing(64);
    assert_eq!(decoder.feed(b"retry: 5\n\ndata: a\n\nretry: 7\ndata: b\n\ndata: c\n\n"), 46);
    for retry in [None, Some(Duration::from_millis(7)), None] {
        assert_eq!(
            decoder.next_event().map(|event| event.map(|event| event.retry)),
            Some(Ok(retry))
        );
    }
}

#[test]
fn an_incomplete_last_event_is_dropped_and_reported() {
    // Rule: [SSE-012].
    let truncated = |length| FrameError::Truncated { length }.to_string();
    check(b"data: a\n\ndata: b\n", &["message \"a\" -", &truncated(2)]);
    check(b"data: b\nda", &[&truncated(4)]);
    check(b"data: b\n: ping", &[&truncated(2)]);
    check(b"\n: ping", &[]);
    check(b"data: b\n\r", &["message \"b\" -"]);
}

#[test]
fn invalid_utf8_is_replaced_in_types_and_left_in_data() {
    // Rule: [SSE-012].
    let mut decoder = SseDecoder::growing(64);
    assert_eq!(decoder.feed(b"event: a\xff\nid: \xf0\x9f\ndata: \xc3\n\n"), 26);
    let event = decoder.next_event().expect("an event").expect("it fits");
    assert_eq!((event.event, event.id, event.data), ("a\u{fffd}", Some("\u{fffd}"), &b"\xc3"[..]));
    assert!(event.text().is_err());
}

#[test]
fn an_overlong_event_is_reported_once_and_skipped() {
    let input = b"event: x\nid: 1\ndata: 0123456789\ndata: a\nid: 2\n\ndata: b\n\n\
        data: 0123\ndata: 4567\ndata: 89\n\ndata: 0123456789\n\ndata: c\n\n";
    let too_long = &*FrameError::TooLong { limit: 16 }.to_string();
    let expected = ["message \"b\" 2", too_long, too_long, "message \"c\" 2"];
    let expected = [&[too_long][..], &expected].concat();
    for piece in 1..=input.len() {
        assert_eq!(decode(&mut SseDecoder::growing(16), input, piece), expected);
        assert_eq!(decode(&mut SseDecoder::lent(&mut [0; 16]), input, piece), expected);
    }
}

#[test]
fn an_overlong_type_or_id_does_not_cost_the_data_of_its_event() {
    // Rule: [SSE-012].
    let long = "x".repeat(SSE_FIELD_LENGTH_MAX);
    let input = alloc::format!(
        "id: {long}\ndata: a\n\ndata: b\nid: {long}x\nevent: {long}x\ndata: c\n\ndata: d\n\n"
    );
    for piece in [1, 7, input.len()] {
        let outcomes = decode(&mut SseDecoder::growing(4096), input.as_bytes(), piece);
        let expected = [
            alloc::format!("message \"a\" {long}"),
            alloc::format!("{long} \"b\\nc\" "),
            "message \"d\" ".into(),
        ];
        assert_eq!(outcomes, expected);
    }
}

#[test]
fn comments_have_no_limit_and_take_no_memory() {
    // Rule: [SSE-013].
    let colons = vec![b':'; 1 << 20];
    let input = [b"data: a\n", &*colons, b"\ndata: b\n\n"].concat();
    let mut decoder = SseDecoder::growing(1 << 20);
    assert_eq!(decode(&mut decoder, &input, 1000), ["message \"a\\nb\" -"]);
    assert_eq!(decoder.buffer_capacity(), INITIAL);
    assert_eq!(decode(&mut SseDecoder::lent(&mut [0; 16]), &input, 1000), ["message \"a\\nb\" -"]);
}

#[test]
fn hostile_input_ends_in_bounded_memory() {
    let limit = 4 * INITIAL;
    for (unit, errors) in [
        ("x", 1),
        ("\r", 0),
        ("data\n", 1),
        ("data: x\r\n", 1),
        ("event: x\n", 0),
        ("id: x\n: \nretry: 1\n", 0),
        ("\u{feff}", 1),
    ] {
        let input = unit.repeat((1 << 20) / unit.len());
        let mut decoder = SseDecoder::growing(limit);
        let outcomes = decode(&mut decoder, input.as_bytes(), 777);
        assert_eq!(outcomes.len(), errors, "{unit:?}");
        assert!(decoder.buffer_capacity() <= limit);
    }
}

#[test]
fn memory_grows_for_a_long_event_and_shrinks_after_it() {
    let limit = 4 * KEPT;
    let mut decoder = SseDecoder::growing(limit);
    assert_eq!(decoder.space().len(), INITIAL);
    let data = "x".repeat(limit - 8);
    let input = alloc::format!("data: {data}\n\n");
    let mut rest = input.as_bytes();
    while !rest.is_empty() {
        rest = &rest[decoder.feed(rest)..];
        if !rest.is_empty() {
            assert!(decoder.next_event().is_none());
        }
    }
    assert_eq!(decoder.buffer_capacity(), limit);
    assert!(matches!(decoder.next_event(), Some(Ok(event)) if event.data.len() == limit - 8));
    assert_eq!(decoder.space().len(), KEPT);
}

#[test]
fn storage_of_length_zero_is_inert() {
    let mut decoder = SseDecoder::lent(&mut []);
    assert_eq!(decoder.feed(b"data\n\n"), 0);
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.handle_eof(), None);
}

#[test]
fn an_event_is_written_as_its_fields_and_its_lines() {
    // Rule: [SSE-005] [SSE-007] [SSE-014].
    let mut out = Vec::new();
    let retry = Duration::from_micros(1_500_900);
    write_event(&mut out, Some("x"), Some("1"), Some(retry), b"a\nb\r\n\rc").expect("it can be");
    assert_eq!(out, b"event: x\nid: 1\nretry: 1500\ndata: a\ndata: b\ndata: \ndata: c\n\n");
    out.clear();
    write_event(&mut out, None, Some("1"), None, b"").expect("it can be");
    write_comment(&mut out);
    write_retry(&mut out, Duration::MAX);
    assert_eq!(out, b"id: 1\ndata: \n\n:\n\nretry: 18446744073709551615\n\n");
}

#[test]
fn an_invalid_event_type_or_id_is_rejected_without_output() {
    let long = "x".repeat(SSE_FIELD_LENGTH_MAX + 1);
    for (text, error) in [
        ("a\nb", SseFieldError::Forbidden),
        ("\r", SseFieldError::Forbidden),
        ("\0", SseFieldError::Forbidden),
        (&long, SseFieldError::TooLong),
    ] {
        let mut out = Vec::new();
        assert_eq!(write_event(&mut out, Some(text), None, None, b"a"), Err(error));
        assert_eq!(write_event(&mut out, None, Some(text), None, b"a"), Err(error));
        assert!(out.is_empty());
    }
}
