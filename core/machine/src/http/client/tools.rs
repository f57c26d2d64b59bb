//! The tool arguments that are mirrored into headers, as declared by the server's lists of tools.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::Instant;
use crate::http::ExchangeId;
use crate::http::header_params::HeaderParams;
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::peer::{Event, Violation};

use super::Client;
use super::message::Message;

/// The tools with mirrored arguments, and the calls that wait for a refreshed list.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: BTreeMap<String, Known>,
    /// The names in the order in which they were listed.
    listed: BTreeMap<u64, String>,
    count: u64,
    refreshes: Vec<Refresh>,
}

#[derive(Debug)]
struct Known {
    header_params: HeaderParams,
    listed: u64,
}

/// A call that was refused for its headers, while the list of tools is read again.
#[derive(Debug)]
struct Refresh {
    call: Message,
    error: ErrorObject<'static>,
    tool: String,
    /// The `tools/list` in flight.
    page: i64,
    pages: u32,
    /// The tool was on the page.
    found: bool,
    /// The cursor of the next page.
    next: Option<String>,
    /// The cursor of this page, to detect a server that repeats it.
    cursor: Option<String>,
}

impl Tools {
    pub(super) fn header_params(&self, tool: &str) -> Option<&HeaderParams> {
        self.known.get(tool).map(|known| &known.header_params)
    }

    /// Returns the calls that wait for a page of tools.
    pub(super) fn corrected(&self) -> impl Iterator<Item = i64> {
        self.refreshes.iter().filter_map(|refresh| refresh.call.request()).map(|(id, _)| id)
    }

    /// Stores the header parameters of a tool.
    fn learn(&mut self, tool: &str, header_params: HeaderParams, tools_max: usize) {
        if let Some(old) = self.known.remove(tool) {
            self.listed.remove(&old.listed);
        }
        if header_params.is_empty() || tools_max == 0 {
            return;
        }
        while self.known.len() >= tools_max {
            let Some((_, oldest)) = self.listed.pop_first() else { break };
            self.known.remove(&oldest);
        }
        self.count += 1;
        self.known.insert(tool.into(), Known { header_params, listed: self.count });
        self.listed.insert(self.count, tool.into());
    }
}

impl Client {
    /// Stores the header parameters of the listed tools. Returns the page without the tools that
    /// cannot be used, or `None` if all can be used.
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-016] [HDR-017]
    pub(super) fn take_note_of_tools(
        &mut self,
        request: i64,
        result: &RawJson<'_>,
    ) -> Option<String> {
        let text = result.as_str();
        let limit = self.options.limits.mirrored_tools_max;
        let mut cuts = Vec::new();
        let mut names = Vec::new();
        for member in result.members().filter(|member| member.is_named("tools")) {
            let Ok(tools) = member.value.decode::<Vec<RawJson<'_>>>() else { continue };
            let mut bad = Vec::new();
            for tool in &tools {
                let name = tool.get("name").and_then(|name| name.to_text().map(String::from));
                let Some(name) = name else {
                    bad.push(false);
                    continue;
                };
                let schema = tool.get("inputSchema").unwrap_or(RawJson::EMPTY_OBJECT);
                let header_params = HeaderParams::from_schema(&schema);
                bad.push(header_params.is_err());
                match header_params {
                    Ok(header_params) => self.tools.learn(&name, header_params, limit),
                    Err(fault) => {
                        self.tools.learn(&name, HeaderParams::default(), limit);
                        let reason = fault.to_string();
                        let violation = Violation::ToolExcluded { tool: name.clone(), reason };
                        self.peer.report(Event::Violation(violation));
                    }
                }
                names.push(name);
            }
            cuts.extend(cuts_of(text, &tools, &bad));
        }
        if let Some(refresh) = self.tools.refreshes.iter_mut().find(|r| r.page == request) {
            refresh.found = names.contains(&refresh.tool);
            let next = result.get("nextCursor");
            refresh.next = next.and_then(|cursor| cursor.to_text().map(String::from));
        }
        (!cuts.is_empty()).then(|| without(text, &cuts))
    }

    // ------------------------------------------------------------------ header mismatch

    /// Handles a call on this exchange that was refused for its headers. Returns whether the
    /// headers are being corrected.
    // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-032]
    pub(super) fn correct_headers(
        &mut self,
        id: ExchangeId,
        error: &ErrorObject<'static>,
        now: Instant,
    ) -> bool {
        let Some(message) = self.detach(id, now).and_then(|exchange| exchange.message) else {
            return false;
        };
        self.correct_message(message, error.clone(), now).is_none()
    }

    /// Corrects the headers of a call that has already left its exchange. Returns the error if the
    /// call must end with it.
    pub(super) fn correct_message(
        &mut self,
        message: Message,
        error: ErrorObject<'static>,
        now: Instant,
    ) -> Option<ErrorObject<'static>> {
        let pending = message.request().is_some_and(|(id, _)| self.peer.is_pending(id));
        if message.corrected || !pending {
            return Some(error);
        }
        let Some(tool) = message.tool_if_called() else { return Some(error) };
        let Some(page) = self.ask_for_tools(None, now) else { return Some(error) };
        self.tools.refreshes.push(Refresh {
            call: message,
            error,
            tool,
            page,
            pages: 1,
            found: false,
            next: None,
            cursor: None,
        });
        None
    }

    /// Continues the calls whose page of tools has arrived or failed. Returns whether there were
    /// any.
    pub(super) fn resolve_refreshes(&mut self, now: Instant) -> bool {
        let peer = &self.peer;
        let done = |refresh: &Refresh| !peer.is_pending(refresh.page);
        let Some(at) = self.tools.refreshes.iter().position(done) else { return false };
        let mut refresh = self.tools.refreshes.swap_remove(at);
        let Some((call, _)) = refresh.call.request() else { return true };
        if !self.peer.is_pending(call) {
            return true;
        }
        if refresh.found {
            // Retried once, even with equal headers: the server may have changed in between.
            refresh.call.corrected = true;
            self.queue.push_first(refresh.call);
            return true;
        }
        if refresh.pages < self.options.limits.refresh_pages_max
            && refresh.next.is_some()
            && refresh.next != refresh.cursor
            && let Some(page) = self.ask_for_tools(refresh.next.as_deref(), now)
        {
            let (cursor, pages) = (refresh.next.take(), refresh.pages + 1);
            self.tools.refreshes.push(Refresh { page, pages, cursor, ..refresh });
            return true;
        }
        // The header parameters are unchanged, so the refusal is final.
        self.answer_with(call, refresh.error, now);
        true
    }

    /// Requests a page of tools. Returns the id of the request.
    fn ask_for_tools(&mut self, cursor: Option<&str>, now: Instant) -> Option<i64> {
        self.take_posts(now);
        if !self.peer.refresh_tools(cursor, now) {
            return None;
        }
        let message = self.next_post()?;
        let (id, _) = message.request()?;
        self.queue.push_first(message);
        Some(id)
    }
}

/// Returns the ranges to remove from the text of a list, so that the marked elements are gone and
/// the others are still separated by commas.
fn cuts_of(text: &str, elements: &[RawJson<'_>], marked: &[bool]) -> Vec<Range<usize>> {
    // The elements are slices of the text.
    let start = |element: &RawJson<'_>| element.as_str().as_ptr() as usize - text.as_ptr() as usize;
    let starts: Vec<usize> = elements.iter().map(start).collect();
    let end = |at: usize| starts[at] + elements[at].as_str().len();
    let last_kept = marked.iter().rposition(|marked| !marked);
    let mut cuts = Vec::new();
    for at in (0..elements.len()).filter(|at| marked[*at]) {
        match last_kept {
            // An element before a kept one is removed with the comma after it.
            Some(kept) if at < kept => cuts.push(starts[at]..starts[at + 1]),
            // An element at the end is removed with the comma before it.
            _ if at > 0 && last_kept.is_some() => cuts.push(end(at - 1)..end(at)),
            _ => cuts.push(if at == 0 { starts[0] } else { end(at - 1) }..end(at)),
        }
    }
    cuts
}

fn without(text: &str, cuts: &[Range<usize>]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for cut in cuts {
        kept.push_str(&text[from..cut.start]);
        from = cut.end;
    }
    kept.push_str(&text[from..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluding_tools_leaves_the_other_bytes_unchanged() {
        // Rule: [HDR-016].
        let text = r#"{ "a":1, "tools" : [ 0 ,1, 2 ,3 ] ,"z":[ ] }"#;
        let result = RawJson::trusted(text);
        let tools = result.get("tools").unwrap();
        let elements: Vec<RawJson<'_>> = tools.decode().unwrap();
        let cut = |marked: [u8; 4]| {
            let marked = marked.map(|mark| mark == 1);
            let text = without(text, &cuts_of(text, &elements, &marked));
            let start = text.find('[').unwrap();
            assert!(
                text.starts_with(r#"{ "a":1, "tools" : ["#) && text.ends_with(r#"] ,"z":[ ] }"#)
            );
            String::from(&text[start..=text.find(']').unwrap()])
        };
        assert_eq!(cut([0, 0, 0, 0]), "[ 0 ,1, 2 ,3 ]");
        assert_eq!(cut([1, 0, 0, 0]), "[ 1, 2 ,3 ]");
        assert_eq!(cut([0, 1, 1, 0]), "[ 0 ,3 ]");
        assert_eq!(cut([0, 0, 0, 1]), "[ 0 ,1, 2 ]");
        assert_eq!(cut([0, 0, 1, 1]), "[ 0 ,1 ]");
        assert_eq!(cut([1, 0, 1, 0]), "[ 1, 3 ]");
        assert_eq!(cut([1, 1, 1, 1]), "[  ]");
    }

    #[test]
    fn tools_beyond_the_limit_are_forgotten_oldest_first() {
        let schema = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;
        let header_params = HeaderParams::from_schema(&RawJson::trusted(schema)).unwrap();
        let mut tools = Tools::default();
        for name in ["one", "two", "one", "three"] {
            tools.learn(name, header_params.clone(), 2);
        }
        assert!(tools.header_params("two").is_none());
        assert!(tools.header_params("one").is_some() && tools.header_params("three").is_some());
        tools.learn("one", HeaderParams::default(), 2);
        assert!(tools.header_params("one").is_none());
        assert_eq!((tools.known.len(), tools.listed.len()), (1, 1));
    }
}
