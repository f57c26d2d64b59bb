use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::jsonrpc::RawJson;

/// Bytes, as a line of a recording stores them: without loss, and as readable as possible.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Payload<'a> {
    /// One JSON text, unchanged.
    Json(#[serde(borrow)] RawJson<'a>),
    /// JSON texts, each ended by a newline.
    Lines(#[serde(borrow)] Vec<RawJson<'a>>),
    /// Any other text.
    Text(#[serde(borrow)] Cow<'a, str>),
    /// Bytes that are not UTF-8.
    Base64(#[serde(borrow)] Cow<'a, str>),
}

/// The text cannot be decoded to bytes. The recording is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotBase64;

impl<'a> Payload<'a> {
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Self {
        let Ok(text) = str::from_utf8(bytes) else {
            return Self::Base64(BASE64_STANDARD.encode(bytes).into());
        };
        if let Some(json) = json(text) {
            return Self::Json(json);
        }
        let lines = text.strip_suffix('\n').map(|lines| lines.split('\n').map(json).collect());
        match lines {
            Some(Some(lines)) => Self::Lines(lines),
            _ => Self::Text(text.into()),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>, NotBase64> {
        Ok(match self {
            Self::Json(json) => Cow::Borrowed(json.as_str().as_bytes()),
            Self::Lines(lines) => {
                let ended = |line: &RawJson<'_>| [line.as_str(), "\n"].concat();
                Cow::Owned(lines.iter().map(ended).collect::<String>().into_bytes())
            }
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Base64(text) => {
                Cow::Owned(BASE64_STANDARD.decode(&**text).map_err(|_| NotBase64)?)
            }
        })
    }
}

/// Returns the text as JSON, if reading it from a line gives back the same text.
fn json(text: &str) -> Option<RawJson<'_>> {
    let whole = text.trim_ascii().len() == text.len() && !text.contains(['\n', '\r']);
    if whole { RawJson::parse(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(bytes: &[u8]) -> String {
        serde_json::to_string(&Payload::from_bytes(bytes)).unwrap()
    }

    #[test]
    fn readable_payloads_are_written_as_text() {
        assert_eq!(written(br#"{"a": 1.50}"#), r#"{"json":{"a": 1.50}}"#);
        assert_eq!(written(b"{}\n[ ]\n"), r#"{"lines":[{},[ ]]}"#);
        assert_eq!(written(b"{}\nx\n"), r#"{"text":"{}\nx\n"}"#);
        assert_eq!(written(b" {}"), r#"{"text":" {}"}"#);
        assert_eq!(written(b""), r#"{"text":""}"#);
        assert_eq!(written(b"\xFF"), r#"{"base64":"/w=="}"#);
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(bytes: Vec<u8>, text in r#"[{}\[\]",: 0-9a\n\r\\]{0,20}"#) {
            for bytes in [&bytes[..], text.as_bytes()] {
                let line = written(bytes);
                let read: Payload<'_> = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(&*read.bytes().unwrap(), bytes);
            }
        }
    }
}
