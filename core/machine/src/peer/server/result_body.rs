//! Results as they are written: with the members that the modern era requires, and through the
//! middleware.

use alloc::string::{String, ToString};

use crate::Revision;
use crate::jsonrpc::{AsJson, ErrorObject, RawJson, RequestId, WriteError, WriteJson};
use crate::peer::Exchanged;
use crate::peer::connection::Connection;
use crate::protocol::{AtRevision, CacheHints, CacheScope, Method};

/// A result to be written.
pub(super) struct Body<'a> {
    pub(super) result: &'a dyn WriteJson,
    pub(super) contents: Contents,
    /// Whether only some callers can see its item.
    pub(super) restricted: bool,
}

impl<'a> Body<'a> {
    pub(super) const fn new(result: &'a dyn WriteJson) -> Self {
        Self { result, contents: Contents::Any, restricted: false }
    }
}

/// What is known of the members of a result, so that they need not be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// It may have any members.
    Any,
    /// See [`WriteJsonAt::is_plain`](crate::protocol::WriteJsonAt::is_plain).
    Plain,
    /// Like `Plain`, with the hints for its cache.
    Page,
}

impl Contents {
    pub(super) const fn new(is_plain: bool) -> Self {
        if is_plain { Self::Plain } else { Self::Any }
    }
}

/// The members that the modern era requires in every result.
pub(super) struct Additions<'a> {
    pub(super) identity: &'a str,
    pub(super) cache: Option<&'a CacheHints>,
    /// Whether only some callers can see the item that the result is from.
    pub(super) restricted: bool,
    pub(super) revision: Revision,
    pub(super) contents: Contents,
}

impl Additions<'_> {
    /// Completes the result that starts at `start`.
    // MCP 2026-07-28 schema.json#Result [RPC-010], MCP 2026-07-28 basic/index#result-responses
    // [RPC-019] [META-011], MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001]
    pub(super) fn complete(&self, out: &mut String, start: usize) -> Result<(), WriteError> {
        let complete = match self.contents {
            Contents::Any => false,
            Contents::Plain => self.cache.is_none(),
            Contents::Page => true,
        };
        if complete {
            out.pop();
            if !self.identity.is_empty() {
                out.push_str(r#","_meta":{"#);
                out.push_str(self.identity);
                out.push('}');
            }
            out.push('}');
            return Ok(());
        }
        let text = out.get(start..).unwrap_or_default();
        if !text.starts_with('{') || !text.ends_with('}') {
            return Err(WriteError::NotAnObject);
        }
        let (mut result_type, mut interim, mut meta) = (false, false, None);
        let (mut timed, mut scoped) = (false, false);
        for member in RawJson::trusted(text).members() {
            match &*member.name() {
                "resultType" => {
                    result_type = true;
                    interim = member.value.as_str() != r#""complete""#;
                }
                "_meta" => {
                    let named = member.value.get(crate::gate::metadata::SERVER_INFO).is_some();
                    meta = Some((member.range, named, member.value.is_object()));
                }
                "ttlMs" => timed = true,
                "cacheScope" => scoped = true,
                _ => {}
            }
        }
        let mut empty = text.bytes().filter(|b| !b.is_ascii_whitespace()).nth(1) == Some(b'}');
        if let Some((range, _, false)) = &meta {
            // Types of handlers write `null` for a `_meta` that they do not have.
            let rest = out.split_off(start + range.end);
            out.truncate(start + range.start);
            for part in ["{", self.identity, "}", &rest] {
                out.push_str(part);
            }
        } else if let Some((range, false, _)) = &meta
            && !self.identity.is_empty()
        {
            // The identity is added to the existing `_meta`.
            let at = start + range.start + 1;
            let only = text.split_at(range.start + 1).1.trim_ascii_start().starts_with('}');
            if !only {
                out.insert(at, ',');
            }
            out.insert_str(at, self.identity);
        }
        out.pop();
        let mut add = |out: &mut String, part: &str| {
            if !core::mem::take(&mut empty) {
                out.push(',');
            }
            out.push_str(part);
        };
        if !result_type {
            add(out, r#""resultType":"complete""#);
        }
        if meta.is_none() && !self.identity.is_empty() {
            add(out, r#""_meta":{"#);
            out.push_str(self.identity);
            out.push('}');
        }
        if let Some(cache) = self.cache.filter(|_| !interim) {
            if !timed {
                add(out, r#""ttlMs":"#);
                AsJson(&AtRevision(&cache.ttl, self.revision)).write_json(out)?;
            }
            if !scoped {
                add(out, r#""cacheScope":"#);
                // The scope of the configuration belongs to the time of the configuration.
                let private = self.restricted || timed;
                let scope = if private { &CacheScope::Private } else { &cache.scope };
                AsJson(&AtRevision(scope, self.revision)).write_json(out)?;
            }
        }
        out.push('}');
        Ok(())
    }
}

/// Passes a completed result through the middleware. Returns the result to send instead, if any.
#[inline]
pub(super) fn pass_completed(
    connection: &mut Connection,
    id: &RequestId,
    method: Option<Method>,
    additions: Option<&Additions<'_>>,
    complete: &dyn WriteJson,
) -> Result<Option<RawJson<'static>>, ErrorObject<'static>> {
    if !connection.has_middleware() {
        return Ok(None);
    }
    let mut text = String::new();
    if complete.write_json(&mut text).is_err() || !text.starts_with('{') {
        // The caller meets the same error.
        return Ok(None);
    }
    match connection.pass_result(id, method, &RawJson::trusted(&text)) {
        Exchanged::Unchanged => Ok(Some(RawJson::trusted_string(text))),
        Exchanged::Changed(changed) => {
            let mut text = String::from(changed.as_str());
            let completed = additions.map_or(Ok(()), |it| {
                // It may have any members.
                Additions { contents: Contents::Any, ..*it }.complete(&mut text, 0)
            });
            completed.map_err(|error| ErrorObject::internal(error.to_string()))?;
            Ok(Some(RawJson::trusted_string(text)))
        }
        Exchanged::Refused(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(result: &str, cache: Option<&CacheHints>, contents: Contents) -> [String; 2] {
        [r#""io.modelcontextprotocol/serverInfo":{}"#, ""].map(|identity| {
            let revision = Revision::LATEST;
            let additions = Additions { identity, cache, restricted: false, revision, contents };
            let mut out = ["<", result].concat();
            additions.complete(&mut out, 1).unwrap();
            out
        })
    }

    #[test]
    fn a_plain_result_gets_the_same_additions_as_a_scanned_one() {
        let result = r#"{"resultType":"complete","content":[]}"#;
        let [plain, scanned] =
            [Contents::Plain, Contents::Any].map(|it| completed(result, None, it));
        assert_eq!(plain, scanned);
    }

    #[test]
    fn a_page_gets_the_same_additions_as_a_scanned_result() {
        let hints = CacheHints::public(core::time::Duration::from_secs(1));
        for rest in [r#""cacheScope":"private"}"#, r#""cacheScope":"public","nextCursor":"1"}"#] {
            let result = [r#"{"resultType":"complete","tools":[],"ttlMs":0,"#, rest].concat();
            let [page, scanned] =
                [Contents::Page, Contents::Any].map(|it| completed(&result, Some(&hints), it));
            assert_eq!(page, scanned);
        }
    }

    #[test]
    fn a_result_with_one_cache_hint_gets_the_other() {
        // Rule: [CACHE-001].
        let hints = CacheHints::public(core::time::Duration::from_secs(1));
        for (own, added) in [
            (r#""cacheScope":"private""#, r#","ttlMs":1000"#),
            (r#""ttlMs":5"#, r#","cacheScope":"private""#),
            (r#""ttlMs":5,"cacheScope":"public""#, ""),
        ] {
            let result = [r#"{"resultType":"complete","contents":[],"#, own].concat();
            let [_, completed] = completed(&[&result, "}"].concat(), Some(&hints), Contents::Any);
            assert_eq!(completed, ["<", &result, added, "}"].concat());
        }
    }
}
