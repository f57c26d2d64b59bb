//! The bodies of the fuzz targets. Each takes any bytes and panics when a promise is broken.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Map, Value};

use crate::framing::{FrameError, LineDecoder, SseDecoder, SseError, write_event};
use crate::jsonrpc::{
    Frame, ID_LENGTH_MAX, Malformed, Message, ParseLimits, RawJson, Reason, RequestId, parse,
    write_error, write_notification, write_request, write_result,
};

/// Compares [`parse`] with a reading of the same bytes through a tree.
///
/// Two differences are meant: numbers too large for an `f64` are JSON here, and a key that occurs
/// twice in an envelope or an error is refused here.
pub fn envelope(bytes: &[u8]) {
    let parsed = parse(bytes, ParseLimits::default());
    match serde_json::from_slice::<Value>(bytes) {
        Ok(tree) => match (parsed, tree) {
            (Ok(Frame::Single(message)), tree) => check_element(Ok(message), &tree),
            (Ok(Frame::Batch(batch)), Value::Array(trees)) => {
                assert_eq!(batch.len(), trees.len());
                batch.zip(&trees).for_each(|(element, tree)| check_element(element, tree));
            }
            (Ok(Frame::Batch(_)), tree) => panic!("a batch of {tree}"),
            (Err(malformed), Value::Array(trees)) => match malformed.reason {
                Reason::BatchEmpty => assert!(trees.is_empty()),
                Reason::BatchTooLong { limit } => assert!(trees.len() > limit),
                other => panic!("{other:?} for an array"),
            },
            (Err(malformed), tree) => check_element(Err(malformed), &tree),
        },
        Err(error) => {
            let error = error.to_string();
            if error.starts_with("number out of range") || error.starts_with("recursion limit") {
                return;
            }
            let reason = parsed.expect_err("not JSON").reason;
            assert!(
                matches!(reason, Reason::NotUtf8 { .. } | Reason::NotJson { .. }),
                "{reason:?}, but {error}"
            );
        }
    }
}

fn check_element(element: Result<Message<'_>, Malformed>, tree: &Value) {
    match element {
        Ok(message) => {
            let Value::Object(object) = tree else { panic!("a message of {tree}") };
            check_message(&message, object);
            check_written(&message);
        }
        Err(Malformed { reason: Reason::DuplicateMember(_) | Reason::ErrorMalformed, .. }) => {}
        Err(malformed) => {
            let reason = malformed.reason;
            assert!(
                !matches!(reason, Reason::NotUtf8 { .. } | Reason::NotJson { .. }),
                "{reason:?} for {tree}"
            );
            assert!(!is_message(tree), "{reason:?} for {tree}");
        }
    }
}

fn is_message(tree: &Value) -> bool {
    let Value::Object(object) = tree else { return false };
    if object.get("jsonrpc") != Some(&Value::from("2.0")) {
        return false;
    }
    let is_id = |id: &Value| match id {
        Value::Number(number) => number.is_i64(),
        Value::String(text) => text.len() <= ID_LENGTH_MAX,
        _ => false,
    };
    let id = object.get("id");
    match (object.get("method"), object.get("result"), object.get("error")) {
        (Some(method), None, None) => {
            method.is_string()
                && id.is_none_or(is_id)
                && object.get("params").is_none_or(Value::is_object)
        }
        (None, Some(result), None) => result.is_object() && id.is_some_and(is_id),
        (None, None, Some(error)) => {
            error["code"].is_i64()
                && error["message"].is_string()
                && id.is_none_or(|id| id.is_null() || is_id(id))
        }
        _ => false,
    }
}

fn check_message(message: &Message<'_>, object: &Map<String, Value>) {
    match message {
        Message::Request(request) => {
            check_id(Some(&request.id), object);
            assert_eq!(object["method"], *request.method);
            check_text(request.params.as_ref(), object.get("params"));
        }
        Message::Notification(notification) => {
            assert_eq!(object.get("id"), None);
            assert_eq!(object["method"], *notification.method);
            check_text(notification.params.as_ref(), object.get("params"));
        }
        Message::Response(response) => {
            check_id(response.id.as_ref(), object);
            match &response.outcome {
                Ok(result) => check_text(Some(result), object.get("result")),
                Err(error) => {
                    let tree = &object["error"];
                    assert_eq!(tree["message"], *error.message);
                    // The tree reads `-0` as a number with a fraction.
                    assert!(tree["code"] == error.code.0 || error.code.0 == 0);
                    check_text(error.data.as_ref(), tree.get("data"));
                }
            }
        }
    }
}

fn check_id(id: Option<&RequestId>, object: &Map<String, Value>) {
    match (id, object.get("id")) {
        (None, None | Some(Value::Null)) => {}
        (Some(RequestId::Text(text)), Some(id)) => assert_eq!(id, text.as_str()),
        // The tree reads `-0` as a number with a fraction.
        (Some(RequestId::Number(number)), Some(id)) => assert!(id == number || *number == 0),
        (id, tree) => panic!("{id:?} for {tree:?}"),
    }
}

fn check_text(text: Option<&RawJson<'_>>, tree: Option<&Value>) {
    assert_eq!(text.is_some(), tree.is_some());
    let (Some(text), Some(tree)) = (text, tree) else { return };
    assert_eq!(&text.decode::<Value>().expect("checked"), tree);
    // The tree keeps the last of the members that share a key.
    let members: Map<String, Value> = text
        .members()
        .map(|member| (member.name().into(), member.value.decode().expect("checked")))
        .collect();
    assert_eq!(members, tree.as_object().cloned().unwrap_or_default());
}

/// What is written from a message reads back as that message.
fn check_written(message: &Message<'_>) {
    let mut out = Vec::new();
    match message {
        Message::Request(request) => {
            write_request(&mut out, &request.id, &request.method, request.params.as_ref())
        }
        Message::Notification(notification) => {
            write_notification(&mut out, &notification.method, notification.params.as_ref())
        }
        Message::Response(response) => match (&response.id, &response.outcome) {
            (Some(id), Ok(result)) => write_result(&mut out, id, result),
            (id, Err(error)) => {
                write_error(&mut out, id.as_ref(), error);
                Ok(())
            }
            (None, Ok(_)) => panic!("a result without an id"),
        },
    }
    .expect("what was parsed can be written");
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
    match parse(&out, ParseLimits::default()) {
        Ok(Frame::Single(again)) => assert_eq!(joined(&again), joined(message)),
        other => panic!("{other:?} from {message:?}"),
    }
}

/// A form of a message that is the same for texts that differ in line ends.
fn joined(message: &Message<'_>) -> String {
    alloc::format!("{message:?}").replace(['\n', '\r'], " ")
}

/// However a stream is split, the frames are those of a plain search for line ends. The first byte
/// sets the limit, the second the pattern of the pieces.
pub fn lines(bytes: &[u8]) {
    let [limit, pattern, stream @ ..] = bytes else { return };
    let limit = usize::from(*limit).max(1);
    let expected = plain_lines(stream, limit);
    let mut random = random_lengths(*pattern, 2 * limit);
    let pieces: [&mut dyn FnMut() -> usize; 3] = [&mut || usize::MAX, &mut || 1, &mut random];
    let mut storage = vec![0; limit];
    for piece in pieces {
        assert_eq!(decode(LineDecoder::lent(&mut storage), stream, piece), expected);
        assert_eq!(decode(LineDecoder::growing(limit), stream, piece), expected);
    }
}

/// Lengths from one up to `limit`, the same ones for the same `seed`.
fn random_lengths(seed: u8, limit: usize) -> impl FnMut() -> usize {
    let mut seed = u32::from(seed);
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as usize % limit + 1
    }
}

type Frames = Vec<Result<Vec<u8>, FrameError>>;

fn decode(mut decoder: LineDecoder<'_>, stream: &[u8], piece: &mut dyn FnMut() -> usize) -> Frames {
    let mut frames = Vec::new();
    let mut rest = stream;
    while !rest.is_empty() {
        let piece = piece().min(rest.len());
        let taken = decoder.feed(&rest[..piece]);
        assert!(taken > 0, "no room although every frame was taken");
        rest = &rest[taken..];
        while let Some(frame) = decoder.next_frame() {
            frames.push(frame.map(Vec::from));
        }
    }
    frames.extend(decoder.handle_eof().map(Err));
    frames
}

fn plain_lines(stream: &[u8], limit: usize) -> Frames {
    let mut frames = Vec::new();
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        let ended = line.strip_suffix(b"\n");
        let content = ended.unwrap_or(line);
        // Without its line end a line that fills the storage is already too long.
        if line.len() > limit || (ended.is_none() && line.len() == limit) {
            frames.push(Err(FrameError::TooLong { limit }));
        } else if content.iter().all(|byte| b" \t\r".contains(byte)) {
        } else if ended.is_none() {
            frames.push(Err(FrameError::Truncated { length: line.len() }));
        } else {
            frames.push(Ok(content.strip_suffix(b"\r").unwrap_or(content).to_vec()));
        }
    }
    frames
}

/// However a stream is split, the events are those of the algorithm of the HTML standard, and what
/// is written from them reads back as them. The first byte sets the limit, the second the pattern
/// of the pieces.
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

/// What a stream yields, and the last id and the reconnection time after it.
#[derive(Debug, Default, PartialEq)]
struct Events {
    events: Vec<Result<Event, SseError>>,
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
        assert!(taken > 0, "no room although every event was taken");
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
            if !core::mem::replace(&mut skipping, true) {
                out.events.push(Err(SseError::TooLong { limit }));
            }
            data.clear();
            continue;
        }
        if end.is_none() {
            let length = data.len() + if colon == Some(0) { 0 } else { line.len() };
            if !skipping && length > 0 {
                out.events.push(Err(SseError::Truncated { length }));
            }
            return out;
        }
        if line.is_empty() {
            if let Some(id) = id.take() {
                out.last_id = Some(id);
            }
            let (event, retry) = (core::mem::take(&mut event), retry.take());
            if data.pop().is_some() && !skipping {
                let event = if event.is_empty() { "message".into() } else { event };
                let data = core::mem::take(&mut data);
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
        out.events.push(Err(SseError::Truncated { length: data.len() }));
    }
    out
}

fn check_written_events(events: &Events) {
    let mut out = Vec::new();
    let mut expected = Vec::new();
    // A type with NUL is read, as the standard says, but not written.
    for event in events.events.iter().flatten().filter(|event| !event.event.contains('\0')) {
        let (name, id) = (event.event.as_str(), event.id.as_deref());
        write_event(&mut out, Some(name), id, event.retry, &event.data)
            .expect("what was read can be written");
        expected.push(event);
    }
    let limit = out.len();
    let again = decode_events(SseDecoder::growing(limit), &out, &mut || usize::MAX);
    let again: Vec<_> = again.events.iter().map(|event| event.as_ref().expect("fits")).collect();
    assert_eq!(again, expected);
}
