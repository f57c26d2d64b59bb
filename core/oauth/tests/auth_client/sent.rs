//! Requests that were sent.

use std::fmt::Write;

use mcp_sansio::http::OutgoingRequest;
use mcp_sansio::jsonrpc::RawJson;

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Sent {
    pub(crate) fn from_request(request: &OutgoingRequest) -> Self {
        Self {
            method: request.method,
            url: request.url().as_str().into(),
            fields: request.fields().map(|(name, value)| (name.into(), value.into())).collect(),
            body: String::from_utf8(request.body.to_vec()).expect("text"),
        }
    }

    /// Returns the URL without its query.
    pub(crate) fn place(&self) -> String {
        self.url.split('?').next().expect("a URL").into()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(it, _)| it == name).map(|(_, value)| &**value)
    }

    /// Returns a parameter of the form in the body.
    pub(crate) fn form(&self, name: &str) -> Option<String> {
        parameters(&self.body).find(|(it, _)| it == name).map(|(_, value)| value)
    }

    /// Returns the method of the message in the body, or an empty string.
    pub(crate) fn asks(&self) -> String {
        let message = RawJson::parse(&self.body).ok();
        let method = message.as_ref().and_then(|it| it.get("method"));
        method.and_then(|it| it.to_text().map(Into::into)).unwrap_or_default()
    }

    /// Describes the request in one line.
    pub(crate) fn describe(&self) -> String {
        let mut text = match &*self.asks() {
            "" => format!("{} {}", self.method, self.place()),
            method => method.into(),
        };
        if let Some(name) = self.field("mcp-name") {
            write!(text, " {name}").expect("text");
        }
        if let Some(grant) = self.form("grant_type") {
            write!(text, " {}", grant.rsplit(':').next().expect("a name")).expect("text");
        }
        if let Some(value) = self.field("authorization") {
            write!(text, " [{value}]").expect("text");
        }
        text
    }
}

/// Decodes the parameters of a query or form.
pub(crate) fn parameters(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter_map(|it| it.split_once('=')).map(|(name, value)| {
        let mut bytes = value.bytes();
        let mut decoded = Vec::new();
        while let Some(byte) = bytes.next() {
            decoded.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let digits = [bytes.next().expect("a digit"), bytes.next().expect("a digit")];
                    let digits = core::str::from_utf8(&digits).expect("digits");
                    u8::from_str_radix(digits, 16).expect("digits")
                }
                byte => byte,
            });
        }
        (name.into(), String::from_utf8(decoded).expect("text"))
    })
}
