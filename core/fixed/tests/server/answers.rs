//! Both servers give the same answer to every message.

use std::panic::AssertUnwindSafe;

use mcp_sansio::framing::FrameError;
use mcp_sansio_fixed::{Server, Service};
use seeded_random::{Random, scaled};
use serde_json::Value;

use crate::offers::{Allocating, Fixed};

/// Enough for every answer to the messages below.
const OUTPUT: usize = 4096;
/// See `Server::handle_message`.
const BATCH_LENGTH_MAX: usize = OUTPUT / (128 + 64);

/// The metadata of a modern request.
pub(crate) const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A pair of servers that have got the same messages.
struct Pair<'b, const SPOKEN: u8> {
    fixed: Server<'b, Fixed<SPOKEN>>,
    allocating: Allocating,
}

impl<'b, const SPOKEN: u8> Pair<'b, SPOKEN> {
    fn new(output: &'b mut [u8]) -> Self {
        let fixed = Server::new(Fixed, output).expect("the output is large enough");
        Self { fixed, allocating: Allocating::new(SPOKEN, BATCH_LENGTH_MAX) }
    }

    /// Sends a frame to both, and compares their answers.
    fn send(&mut self, frame: &[u8]) {
        let fixed = self.fixed.handle_message(frame).line.map(<[u8]>::to_vec);
        let allocating = self.allocating.answer(frame);
        compare(frame, fixed, allocating);
    }
}

fn compare(frame: &[u8], fixed: Option<Vec<u8>>, allocating: Option<Vec<u8>>) {
    let read = |line: Option<Vec<u8>>| {
        let line = String::from_utf8(line?).expect("UTF-8");
        assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
        let value: Value = serde_json::from_str(&line).expect(&line);
        Some(value)
    };
    let (fixed, mut allocating) = (read(fixed), read(allocating));
    // Without an allocator, the error does not say which member of a filter is wrong.
    if let Some(Value::String(message)) =
        allocating.as_mut().and_then(|it| it.pointer_mut("/error/message"))
        && let Some(filter) = message.find("filter, an object: ")
    {
        message.truncate(filter + "filter, an object".len());
    }
    assert_eq!(fixed, allocating, "{}", String::from_utf8_lossy(frame));
}

fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

const VERSIONS: [&str; 6] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01"];

/// The parameters of requests, without metadata.
const CALLS: [(&str, &str); 41] = [
    ("ping", ""),
    ("server/discover", ""),
    ("tools/list", ""),
    ("tools/list", r#""cursor":null"#),
    ("tools/list", r#""cursor":7"#),
    ("tools/list", r#""cursor":"x""#),
    ("resources/list", ""),
    ("resources/list", r#""cursor":"\u0039""#),
    ("resources/templates/list", ""),
    ("resources/templates/list", r#""cursor":"1""#),
    ("tools/call", ""),
    ("tools/call", r#""name":1"#),
    ("tools/call", r#""name":"no\n\u00e9\ud83d\ude00""#),
    ("tools/call", r#""name":"add""#),
    ("tools/call", r#""name":"add","arguments":{"a":3.0}"#),
    ("tools/call", r#""name":"\u0061dd","arguments":{"\u0061":-7}"#),
    ("tools/call", r#""name":"add","arguments":null"#),
    ("tools/call", r#""name":"add","arguments":[1]"#),
    ("tools/call", r#""name":"add","arguments":[]"#),
    ("tools/call", r#""name":"add","name":"echo""#),
    ("tools/call", r#""name":"echo","arguments":{"text":"é\u0001\"\\\/ \ud83d\ude00"}"#),
    ("tools/call", r#""name":"echo","arguments":{"text":"\r\n"},"task":{"ttl":1}"#),
    ("tools/call", r#""name":"fail""#),
    ("tools/call", r#""name":"break""#),
    ("tools/call", r#""uri":"add""#),
    ("tools/list", r#""arguments":1"#),
    ("resources/read", ""),
    ("resources/read", r#""uri":"sensor://temperature""#),
    ("resources/read", r#""uri":"sensor:\/\/temperature","arguments":1"#),
    ("resources/read", r#""uri":"sensor://broken""#),
    ("resources/read", r#""uri":"sensor://\"other\"""#),
    ("resources/subscribe", r#""uri":"sensor://temperature""#),
    ("prompts/list", ""),
    ("prompts/get", r#""name":"x""#),
    ("completion/complete", r#""ref":{"type":"ref/prompt","name":"x"}"#),
    ("logging/setLevel", r#""level":"info""#),
    ("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#),
    ("subscriptions/listen", r#""notifications":7"#),
    ("tasks/get", r#""taskId":"x""#),
    ("notifications/initialized", ""),
    ("no/such\"method", r#""x":1"#),
];

/// The `_meta` member of a request: absent, valid, or malformed.
const METADATA: [&str; 16] = [
    "",
    MODERN,
    r#""_meta":{"progressToken":7}"#,
    r#""_meta":{"progressToken":[]}"#,
    r#""_meta":{"progressToken":"0123456789012345678901234567890123456789012345678901234567890123456789"}"#,
    r#""_meta":{"progressToken":"t","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":"info"}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":7}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{},"roots":{}}}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"20\u0032\"","io.modelcontextprotocol/clientCapabilities":{}}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud"}"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol\/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#,
    r#""_meta":7"#,
    r#""_meta":null"#,
];

const IDS: [&str; 9] = [
    "1",
    r#""a""#,
    r#""\u0061\"\u0001é""#,
    "3.0",
    "-9223372036854775808",
    "1.5",
    "null",
    "{}",
    r#""0123456789012345678901234567890123456789012345678901234567890123456789""#,
];

/// Messages that are malformed, or no requests.
const OTHERS: [&str; 42] = [
    "",
    "x",
    "[]",
    "{}",
    "7",
    "null",
    "\u{feff}{}",
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":1}"#,
    r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
    r#"{"id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"\u0069d":1,"m\u0065thod":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"m\u0065thod":"p\u0069ng"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x","data":[1]},"id":null}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/other","params":{"x":1}}"#,
    r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","method":"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":tru}}"#,
    r#"{"jsonrpc":"2.0","id":"\ud83d","method":"ping","params":{"x":tru}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7,[],{"id":2},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}]"#,
    r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}},{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}]"#,
    r#"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},]"#,
    r#"[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"#,
];

/// Parameters of `initialize`.
const HANDSHAKES: [&str; 13] = [
    "",
    r#""protocolVersion":7"#,
    r#""protocolVersion":"2025-06-18""#,
    r#""protocolVersion":"2025-06-18","capabilities":{}"#,
    r#""protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"c","version":"1"}"#,
    r#""protocolVersion":"2025-06-18","capabilities":[1],"clientInfo":{"name":"c","version":"1"}"#,
    r#""protocolVersion":"2025-06-18","capabilities":null,"clientInfo":{"name":"c","version":"1"}"#,
    r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c"}"#,
    r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":1,"version":"1"}"#,
    r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":[]"#,
    r#""protocolVersion":"2025-06-18","capabilities":{"roots":7},"clientInfo":{"name":"c","version":"1"}"#,
    r#""protocolVersion":"2025\u002d06-18","capabilities":{"roots":{},"x":[]},"clientInfo":{"na\u006de":"c","version":"1"}"#,
    r#""protocolVersion":"a","protocolVersion":"b""#,
];

fn request(id: &str, method: &str, params: &[&str]) -> String {
    let params: Vec<_> = params.iter().copied().filter(|it| !it.is_empty()).collect();
    let method = serde_json::to_string(method).expect("a string");
    if params.is_empty() {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#);
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{{{}}}}}"#, params.join(","))
}

/// Every message, each of which is the first after an opening.
pub(crate) fn corpus() -> Vec<String> {
    let mut all: Vec<String> = OTHERS.into_iter().map(String::from).collect();
    for (method, params) in CALLS {
        for metadata in METADATA {
            all.push(request("1", method, &[params, metadata]));
        }
    }
    for id in IDS {
        all.push(request(id, "ping", &[]));
        all.push(request(id, "tools/call", &[r#""name":"x""#, MODERN]));
        all.push(request(id, "tools/call", &[r#""name":"fail""#]));
    }
    for handshake in HANDSHAKES {
        all.push(request("1", "initialize", &[handshake]));
        all.push(request("1", "initialize", &[handshake, MODERN]));
    }
    all.extend(VERSIONS.map(initialize));
    all
}

fn openings() -> Vec<Option<String>> {
    [None].into_iter().chain(VERSIONS.map(|version| Some(initialize(version)))).collect()
}

fn every_message<const SPOKEN: u8>()
where
    Fixed<SPOKEN>: Service,
{
    for opening in openings() {
        for message in corpus() {
            let mut output = [0; OUTPUT];
            let mut pair = Pair::<SPOKEN>::new(&mut output);
            for frame in opening.iter().chain([&message]) {
                let sent =
                    std::panic::catch_unwind(AssertUnwindSafe(|| pair.send(frame.as_bytes())));
                assert!(sent.is_ok(), "after {opening:?}: {message}");
            }
        }
    }
}

#[test]
fn a_server_of_all_revisions_gives_the_same_answers() {
    // Rule: [LIFE-002] [VER-003] [DISC-001] [TOOL-007] [RSRC-009] [CACHE-001].
    every_message::<0>();
}

#[test]
fn a_server_of_the_newest_revisions_gives_the_same_answers() {
    // Rule: [VER-012] [META-009] [RPC-019].
    every_message::<1>();
}

#[test]
fn a_server_of_one_era_gives_the_same_answers() {
    // Rule: [VER-016] [VER-017].
    every_message::<2>();
    every_message::<3>();
}

/// Damages a message in one to three places. It stays one line.
pub(crate) fn damage(mut frame: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.index(3) {
        let at = random.index(frame.len());
        let end = at + random.index(frame.len() - at).min(8);
        let piece = frame[at..end].to_vec();
        match random.index(4) {
            0 => drop(frame.drain(at..end)),
            1 => drop(frame.splice(at..at, piece)),
            2 => frame.truncate(at),
            _ if frame.is_empty() => {}
            _ => frame[at] = random.one_of(*b"{}[]\",:\\0e \x01\xff"),
        }
    }
    frame.retain(|byte| *byte != b'\n');
    frame
}

#[test]
fn damaged_messages_get_the_same_answers() {
    // Rule: [RPC-009] [RPC-017].
    let (corpus, openings) = (corpus(), openings());
    let mut random = Random::new(7);
    for _ in 0..scaled(1_500) {
        let frame = random.pick(&corpus).expect("messages").clone().into_bytes();
        let frame = damage(frame, &mut random);
        let mut output = [0; OUTPUT];
        let mut pair = Pair::<0>::new(&mut output);
        if let Some(opening) = random.pick(&openings).expect("openings") {
            pair.send(opening.as_bytes());
        }
        pair.send(&frame);
    }
}

#[test]
fn framing_errors_get_the_same_answers() {
    // Rule: [RPC-017] [RPC-009].
    for opening in openings() {
        for error in [FrameError::TooLong { limit: 7 }, FrameError::Truncated { length: 3 }] {
            let mut output = [0; OUTPUT];
            let mut pair = Pair::<0>::new(&mut output);
            if let Some(opening) = &opening {
                pair.send(opening.as_bytes());
            }
            let fixed = pair.fixed.handle_frame_error(error).line.map(<[u8]>::to_vec);
            compare(b"", fixed, pair.allocating.frame_error(error));
        }
    }
}
