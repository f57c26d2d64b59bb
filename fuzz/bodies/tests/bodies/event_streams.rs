//! Properties of Server-Sent Events, over streams of relevant fragments.

use mcp_sansio::framing::{SseDecoder, write_comment, write_event, write_retry};
use mcp_sansio_fuzz_bodies as bodies;
use proptest::collection::vec;
use proptest::prelude::*;

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "data: ", "data:", "data", "id: ", "id", "event: ", "event", "retry: ", "retry", ":", ": ",
        " ", "\n", "\n\n", "\r", "\r\r", "\r\n", "\r\n\r\n", "0", "17", "\0", "\u{feff}", "x: y",
    ]);
    prop_oneof![
        8 => known.prop_map(|text| text.as_bytes().to_vec()),
        1 => "[ -~]{0,40}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    // Rule: [SSE-012] [SSE-013].
    #[test]
    fn however_a_stream_is_split_the_events_are_those_of_the_standard(
        limit in any::<u8>(),
        pattern in any::<u8>(),
        pieces in vec(piece(), 0..60),
    ) {
        bodies::sse(&[vec![limit, pattern], pieces.concat()].concat());
    }

    // Rule: [SSE-012] [SSE-014].
    #[test]
    fn encoded_events_are_decoded(
        data in vec(("[^\r]*", prop::option::of("[^\r\n\0]{0,40}"), any::<bool>()), 0..8),
        split in 1_usize..50,
    ) {
        let mut out = Vec::new();
        for (text, name, comment) in &data {
            if *comment {
                write_comment(&mut out);
                write_retry(&mut out, core::time::Duration::from_millis(u64::MAX));
            }
            write_event(&mut out, name.as_deref(), name.as_deref(), None, text.as_bytes())?;
        }
        let mut decoder = SseDecoder::growing(1 << 20);
        let mut count = 0;
        let mut id = None;
        for bytes in out.chunks(split) {
            prop_assert_eq!(decoder.feed(bytes), bytes.len());
            while let Some(event) = decoder.next_event() {
                let event = event?;
                let (text, name, _) = &data[count];
                let expected = name.as_deref().filter(|name| !name.is_empty());
                id = name.as_deref().or(id);
                prop_assert_eq!(event.text(), Ok(text.as_str()));
                prop_assert_eq!(event.event, expected.unwrap_or("message"));
                prop_assert_eq!(event.id, id);
                count += 1;
            }
        }
        prop_assert_eq!(count, data.len());
        prop_assert_eq!(decoder.handle_eof(), None);
    }
}
