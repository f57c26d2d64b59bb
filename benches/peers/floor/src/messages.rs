use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shape::Work;

#[derive(Deserialize, Serialize)]
struct Request<'a, P> {
    jsonrpc: &'a str,
    /// `None` for a notification.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    method: &'a str,
    params: P,
}

#[derive(Deserialize, Serialize)]
struct Response<'a, R> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    result: R,
}

#[derive(Deserialize, Serialize)]
struct Params<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Arguments<'a>,
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Arguments<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    text: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
}

#[derive(Deserialize, Serialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: &'a RawValue,
}

#[derive(Serialize)]
struct Progress<'a> {
    #[serde(rename = "progressToken")]
    progress_token: &'a RawValue,
    progress: f64,
    total: f64,
}

#[derive(Deserialize, Serialize)]
struct Content<'a> {
    #[serde(borrow)]
    content: [Block<'a>; 1],
}

#[derive(Deserialize, Serialize)]
struct Block<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    text: &'a RawValue,
}

/// The result of `initialize`.
const OPENING: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1.0.0"}}"#;

/// Appends a request.
pub(crate) fn call(id: u64, work: Work, text: &RawValue, out: &mut Vec<u8>) {
    let id = RawValue::from_string(id.to_string()).expect("a number");
    let id = Some(&*id);
    let arguments = Arguments { text: Some(text), count: None };
    let params = Params { name: "echo", arguments, meta: None };
    let written = match work {
        Work::Ping => write(out, &Request { jsonrpc: "2.0", id, method: "ping", params: () }),
        Work::Echo(_) => write(out, &Request { jsonrpc: "2.0", id, method: "tools/call", params }),
    };
    written.expect("writes");
}

/// Appends the response to a message. Returns `false` for a notification.
pub(crate) fn answer(message: &[u8], out: &mut Vec<u8>) -> bool {
    #[derive(Deserialize)]
    struct Any<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        method: &'a str,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    let request: Any<'_> = serde_json::from_slice(message).expect("a message");
    let Some(id) = request.id else { return false };
    let jsonrpc = "2.0";
    let written = match (request.method, request.params) {
        ("tools/call", Some(params)) => {
            let params: Params<'_> = serde_json::from_str(params.get()).expect("a call");
            let steps;
            let text = match (params.arguments.text, params.arguments.count, params.meta) {
                (Some(text), ..) => text,
                (None, Some(count), Some(meta)) => {
                    steps = progress(count, meta.progress_token, out);
                    &*steps
                }
                (None, ..) => panic!("the call has neither a text nor a count"),
            };
            let result = Content { content: [Block { r#type: "text", text }] };
            write(out, &Response { jsonrpc, id, result })
        }
        ("initialize", _) => {
            let result: &RawValue = serde_json::from_str(OPENING).expect("JSON");
            write(out, &Response { jsonrpc, id, result })
        }
        _ => write(out, &Response { jsonrpc, id, result: serde_json::Map::new() }),
    };
    written.expect("writes");
    true
}

/// Appends progress notifications and returns the result of the call.
fn progress(count: u32, progress_token: &RawValue, out: &mut Vec<u8>) -> Box<RawValue> {
    for step in 1..=count {
        let (progress, total) = (f64::from(step), f64::from(count));
        let params = Progress { progress_token, progress, total };
        let method = "notifications/progress";
        let notification = Request { jsonrpc: "2.0", id: None, method, params };
        write(out, &notification).expect("writes");
        out.push(b'\n');
    }
    RawValue::from_string(format!("\"{count} steps\"")).expect("JSON")
}

/// Returns the text of a tool result, as JSON.
pub(crate) fn result_text(message: &[u8]) -> Option<&str> {
    let response: Response<'_, &RawValue> = serde_json::from_slice(message).expect("a response");
    let result: Option<Content<'_>> = serde_json::from_str(response.result.get()).ok();
    let [block] = result?.content;
    Some(block.text.get())
}

fn write(out: &mut Vec<u8>, message: &impl Serialize) -> serde_json::Result<()> {
    serde_json::to_writer(out, message)
}
