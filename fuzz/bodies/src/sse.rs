//! Server-Sent Events: the decoder compared with the algorithm of the HTML standard.

use std::time::Duration;

use mcp_sansio::framing::{FrameError, SseDecoder, write_event};

use super::chunk_lengths::random_lengths;

/// However a stream is split, the events are those that the algorithm in the HTML standard yields,
/// and encoding and decoding them yields the same events. The first byte sets the limit, the second
/// the pattern of the chunks.
pub fn sse(bytes: &[u8]) {
    let [limit, pattern, stream @ ..] = bytes else { return };
    let limit = usize::from(*limit).max(1);
    let expected = plain_events(stream, limit);
    let mut random = random_lengths(*pattern, 2 * limit);
    let pieces: [&mut dyn FnMut() -> usize; 3] = [&mut || usize::MAX, &mut || 1, &mut random];
    let mut storage = vec![0; limit];
    for piece in pieces {
        assert_eq!(decode_events(SseDecoder::lent(&mut storage), stream, piece), expected);
        assert_eq!(decode_events(SseDecoder::growing(limit), stream, piece), expected);
    }
    check_written_events(&expected);
}

/// The events of a stream, and the last id and reconnection time after it.
#[derive(Debug, Default, PartialEq)]
struct Events {
    events: Vec<Result<Event, FrameError>>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

#[derive(Debug, PartialEq)]
struct Event {
    event: String,
    data: Vec<u8>,
    id: Option<String>,
    retry: Option<Duration>,
}

fn decode_events(
    mut decoder: SseDecoder<'_>,
    stream: &[u8],
    piece: &mut dyn FnMut() -> usize,
) -> Events {
    let mut events = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let piece = piece().min(rest.len());
        let taken = decoder.feed(&rest[..piece]);
        assert!(taken > 0, "no space although every event was taken");
        rest = &rest[taken..];
        while let Some(event) = decoder.next_event() {
            events.push(event.map(|event| Event {
                event: event.event.into(),
                data: event.data.into(),
                id: event.id.map(String::from),
                retry: event.retry,
            }));
        }
    }
    events.extend(decoder.handle_eof().map(Err));
    Events { events, last_id: decoder.last_event_id().map(String::from), retry: decoder.retry() }
}

/// The algorithm of the HTML standard, sentence by sentence, with a limit.
fn plain_events(stream: &[u8], limit: usize) -> Events {
    let mut out = Events::default();
    let mark = if limit < 3 { &[][..] } else { "\u{feff}".as_bytes() };
    let mut rest = stream.strip_prefix(mark).unwrap_or(stream);
    let mut data = Vec::new();
    let (mut event, mut id, mut retry) = (String::new(), None, None);
    let mut skipping = false;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| b"\r\n".contains(byte));
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = match &rest[line.len()..] {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => &[],
        };
        let colon = line.iter().position(|byte| *byte == b':');
        if data.len() + line.len() + 1 > limit && colon != Some(0) {
            if !std::mem::replace(&mut skipping, true) {
                out.events.push(Err(FrameError::TooLong { limit }));
            }
            data.clear();
            continue;
        }
        if end.is_none() {
            let length = data.len() + if colon == Some(0) { 0 } else { line.len() };
            if !skipping && length > 0 {
                out.events.push(Err(FrameError::Truncated { length }));
            }
            return out;
        }
        if line.is_empty() {
            if let Some(id) = id.take() {
                out.last_id = Some(id);
            }
            let (event, retry) = (std::mem::take(&mut event), retry.take());
            if data.pop().is_some() && !skipping {
                let event = if event.is_empty() { "message".into() } else { event };
                let data = std::mem::take(&mut data);
                out.events.push(Ok(Event { event, data, id: out.last_id.clone(), retry }));
            }
            skipping = false;
            continue;
        }
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = String::from_utf8_lossy(value);
        match name {
            b"event" => event = text.into_owned(),
            b"data" if skipping => {}
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"id" if !value.contains(&0) => id = Some(text.into_owned()),
            b"retry" if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                retry = Some(Duration::from_millis(text.parse().unwrap_or(u64::MAX)));
                out.retry = retry;
            }
            _ => {}
        }
    }
    if !skipping && !data.is_empty() {
        out.events.push(Err(FrameError::Truncated { length: data.len() }));
    }
    out
}

fn check_written_events(events: &Events) {
    let mut out = Vec::new();
    let mut expected = Vec::new();
    // The standard allows a type with NUL to be read, but it is not written.
    for event in events.events.iter().flatten().filter(|event| !event.event.contains('\0')) {
        let (name, id) = (event.event.as_str(), event.id.as_deref());
        write_event(&mut out, Some(name), id, event.retry, &event.data)
            .expect("a decoded event can be written");
        expected.push(event);
    }
    let limit = out.len();
    let again = decode_events(SseDecoder::growing(limit), &out, &mut || usize::MAX);
    let again: Vec<_> = again.events.iter().map(|event| event.as_ref().expect("fits")).collect();
    assert_eq!(again, expected);
}
