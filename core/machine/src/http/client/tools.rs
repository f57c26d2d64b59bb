//! The tool arguments that are mirrored into headers, as declared by the server's lists of tools.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use crate::Instant;
use crate::http::ExchangeId;
use crate::http::header_params::{HeaderParams, InvalidHeaderParam};
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::peer::{self, Event, Failure, TransportFailure, Violation};

use super::Client;
use super::message::Message;

/// The tools that were listed, and the calls that wait for a list.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: BTreeMap<String, Known>,
    /// The names in the order in which they are evicted.
    listed: BTreeMap<Listed, String>,
    count: u64,
    /// The memory for the known tools.
    bytes: usize,
    lookups: Vec<Lookup>,
    /// The server has refused a call in a session for want of mirrored arguments.
    pub(super) is_mirrored_in_sessions: bool,
}

#[derive(Debug)]
struct Known {
    /// The error of its definition, if it cannot be called.
    header_params: Result<HeaderParams, InvalidHeaderParam>,
    listed: Listed,
    bytes: usize,
}

/// Whether a tool needs more than the standard headers, and when it was listed.
type Listed = (bool, u64);

/// A page of tools that is read for calls.
#[derive(Debug)]
struct Lookup {
    /// The `tools/list` in flight.
    page: i64,
    /// The cursor of the page.
    cursor: Option<String>,
    /// The page has arrived.
    arrived: bool,
    /// The cursor of the next page.
    next: Option<String>,
    calls: Vec<WaitingCall>,
}

/// A call whose headers are unknown or were refused, while the list of tools is read.
#[derive(Debug)]
struct WaitingCall {
    call: Message,
    /// The refusal, if the call was sent.
    error: Option<ErrorObject<'static>>,
    tool: String,
    /// The number of pages that were read for it, with this one.
    pages: u32,
    /// The tool was on the page.
    found: bool,
}

impl Tools {
    /// Returns the header parameters of a tool, or the error of its definition, if it was listed.
    pub(super) fn header_params(
        &self,
        tool: &str,
    ) -> Option<Result<&HeaderParams, &InvalidHeaderParam>> {
        self.known.get(tool).map(|known| known.header_params.as_ref())
    }

    /// Returns the calls that wait for any page of tools.
    pub(super) fn waiting_calls(&self) -> impl Iterator<Item = i64> {
        let calls = self.lookups.iter().flat_map(|lookup| &lookup.calls);
        calls.filter_map(|waiting| waiting.call.request()).map(|(id, _)| id)
    }

    /// Returns the first call that waits for a page of tools.
    pub(super) fn call_waiting_for(&self, page: i64) -> Option<i64> {
        let lookup = self.lookups.iter().find(|lookup| lookup.page == page)?;
        lookup.calls.first()?.call.request().map(|(id, _)| id)
    }

    /// Stores the header parameters of a tool, or the error of its definition. The caller
    /// [evicts](Self::evict) others.
    fn learn(&mut self, tool: &str, header_params: Result<HeaderParams, InvalidHeaderParam>) {
        /// The memory for a tool, except for texts.
        const TOOL: usize = 256;
        self.count += 1;
        let plain = header_params.as_ref().is_ok_and(HeaderParams::is_empty);
        let listed = (!plain, self.count);
        let own = match &header_params {
            Ok(header_params) => header_params.bytes(),
            Err(fault) => fault.to_string().len(),
        };
        let bytes = TOOL + 2 * tool.len() + own;
        self.bytes += bytes;
        if let Some(old) = self.known.insert(tool.into(), Known { header_params, listed, bytes }) {
            self.listed.remove(&old.listed);
            self.bytes -= old.bytes;
        }
        self.listed.insert(listed, tool.into());
    }

    /// Makes a tool the last one of its kind to be evicted.
    fn keep(&mut self, tool: &str) {
        let Some(known) = self.known.get_mut(tool) else { return };
        self.count += 1;
        let listed = (known.listed.0, self.count);
        let before = core::mem::replace(&mut known.listed, listed);
        if let Some(name) = self.listed.remove(&before) {
            self.listed.insert(known.listed, name);
        }
    }

    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            let Some((_, evicted)) = self.listed.pop_first() else { break };
            if let Some(old) = self.known.remove(&evicted) {
                self.bytes -= old.bytes;
            }
        }
    }

    /// Adds calls to those that wait for the page at `cursor`.
    fn wait(&mut self, page: i64, cursor: Option<String>, calls: Vec<WaitingCall>) {
        match self.lookups.iter_mut().find(|lookup| lookup.page == page) {
            Some(lookup) => lookup.calls.extend(calls),
            None => {
                self.lookups.push(Lookup { page, cursor, arrived: false, next: None, calls });
            }
        }
    }

    /// Returns the request in flight for the page at `cursor`.
    fn page_in_flight(&self, cursor: Option<&str>, peer: &peer::Client) -> Option<i64> {
        let mut pages = self.lookups.iter().filter(|it| it.cursor.as_deref() == cursor);
        pages.find(|it| peer.is_pending(it.page)).map(|it| it.page)
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
        // The list of a session is returned whole.
        let is_modern = self.is_modern();
        let mut cuts = Vec::new();
        let mut names = BTreeSet::new();
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
                let known = self.tools.header_params(&name);
                if is_modern
                    && let Err(fault) = &header_params
                    && known != Some(Err(fault))
                {
                    let reason = fault.to_string();
                    let violation = Violation::ToolExcluded { tool: name.clone(), reason };
                    self.peer.report(Event::Violation(violation));
                }
                self.tools.learn(&name, header_params);
                names.insert(name);
            }
            cuts.extend(cuts_of(text, &tools, &bad));
        }
        let at = self.tools.lookups.iter().position(|lookup| lookup.page == request);
        if let Some(mut lookup) = at.map(|at| self.tools.lookups.swap_remove(at)) {
            let next = result.get("nextCursor");
            lookup.next = next.and_then(|cursor| cursor.to_text().map(String::from));
            lookup.arrived = true;
            for waiting in &mut lookup.calls {
                waiting.found = names.contains(&waiting.tool);
                if waiting.found {
                    self.tools.keep(&waiting.tool);
                }
            }
            self.tools.lookups.push(lookup);
        }
        self.tools.evict(self.options.limits.mirrored_bytes_max);
        (!cuts.is_empty()).then(|| without(text, &cuts))
    }

    // ------------------------------------------------------------------ calls that wait for a list

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
        // In a session, where the code may mean anything, it has another reason then.
        let is_final = message.corrected || message.mirrored && message.revision.is_none();
        if is_final || !pending {
            return Some(error);
        }
        let Some(tool) = message.tool_if_called() else { return Some(error) };
        let Some(page) = self.ask_for_tools(None, now) else { return Some(error) };
        self.tools.wait(page, None, [WaitingCall::new(message, Some(error), tool)].into());
        None
    }

    /// Reads the list of tools before a call of a tool that was not listed. If the list cannot be
    /// requested, the call is sent without it.
    // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-008]
    pub(super) fn look_up_tool(&mut self, mut call: Message, tool: String, now: Instant) {
        let mirrors = self.options.limits.mirrored_bytes_max > 0;
        match mirrors.then(|| self.ask_for_tools(None, now)).flatten() {
            Some(page) => {
                self.tools.wait(page, None, [WaitingCall::new(call, None, tool)].into());
            }
            None => {
                call.looked_up = true;
                self.queue.push_first(call);
            }
        }
    }

    /// Ends the calls that wait for a page of tools which the server refused for want of a valid
    /// token: it would refuse them too, and the user would be asked to sign in again.
    pub(super) fn fail_lookups(&mut self, page: i64, failure: &TransportFailure, now: Instant) {
        let (TransportFailure::Unauthorized { status: 401, .. }
        | TransportFailure::AuthorizationFailed { .. }) = failure
        else {
            return;
        };
        // A call with header fields of its own may have another token. They are not distinguished,
        // because recordings do not contain these fields.
        let lookups = self.tools.lookups.iter().filter(|lookup| lookup.page == page);
        let calls = lookups.flat_map(|lookup| &lookup.calls).filter(|it| it.error.is_none());
        for (call, _) in calls.filter_map(|it| it.call.request()) {
            self.peer.fail_call(call, Failure::Transport(failure.clone()), now);
        }
    }

    /// Continues the calls whose page of tools has arrived or failed. Returns whether there were
    /// any.
    pub(super) fn resolve_lookups(&mut self, now: Instant) -> bool {
        let peer = &self.peer;
        let done = |lookup: &Lookup| !peer.is_pending(lookup.page);
        let Some(at) = self.tools.lookups.iter().position(done) else { return false };
        let Lookup { cursor, arrived, next, calls, .. } = self.tools.lookups.swap_remove(at);
        let next = next.filter(|next| cursor.as_ref() != Some(next));
        let pages_max = self.options.limits.refresh_pages_max;
        let mut later = Vec::new();
        // Each is queued before the others.
        for mut waiting in calls.into_iter().rev() {
            let call = waiting.call.request().map(|(id, _)| id);
            if !call.is_some_and(|call| self.peer.is_pending(call)) {
                continue;
            }
            if waiting.found && self.may_be_sent(&waiting) {
                // A refused call is repeated even with equal headers: the server may have changed.
                self.send_looked_up(waiting, arrived);
            } else if !waiting.found && next.is_some() && waiting.pages < pages_max {
                waiting.pages += 1;
                later.push(waiting);
            } else {
                self.end_lookup(waiting, arrived, now);
            }
        }
        if later.is_empty() {
            return true;
        }
        later.reverse();
        match self.ask_for_tools(next.as_deref(), now) {
            Some(page) => self.tools.wait(page, next, later),
            None => later.into_iter().for_each(|waiting| self.end_lookup(waiting, arrived, now)),
        }
        true
    }

    /// Continues a call whose tool is not on the list.
    fn end_lookup(&mut self, mut waiting: WaitingCall, arrived: bool, now: Instant) {
        match (waiting.error.take(), waiting.call.request()) {
            // The header parameters are unchanged, so the refusal is final.
            (Some(error), Some((call, _))) => self.answer_with(call, error, now),
            _ => self.send_looked_up(waiting, arrived),
        }
    }

    /// Returns whether a call whose tool was found on the list is sent. One that was refused in a
    /// session, where the code of the error may mean anything, only if it lacked a header.
    fn may_be_sent(&mut self, waiting: &WaitingCall) -> bool {
        if waiting.call.revision.is_some() {
            return true;
        }
        let listed = self.tools.header_params(&waiting.tool);
        let lacked = listed.is_some_and(|it| it.is_ok_and(|it| !it.is_empty()));
        self.tools.is_mirrored_in_sessions |= lacked;
        lacked
    }

    /// Sends a call for which the list was read. Later calls of the tool do not read it again,
    /// unless it did not arrive.
    fn send_looked_up(&mut self, waiting: WaitingCall, arrived: bool) {
        let WaitingCall { mut call, error, tool, .. } = waiting;
        if arrived && self.tools.header_params(&tool).is_none() {
            self.tools.learn(&tool, Ok(HeaderParams::default()));
            self.tools.evict(self.options.limits.mirrored_bytes_max);
        }
        call.corrected = error.is_some();
        call.looked_up = true;
        self.queue.push_first(call);
    }

    /// Requests a page of tools, unless a request for it is in flight. Returns the id of the request.
    fn ask_for_tools(&mut self, cursor: Option<&str>, now: Instant) -> Option<i64> {
        if let Some(page) = self.tools.page_in_flight(cursor, &self.peer) {
            // The call is paused with the page.
            self.queue.grown = true;
            return Some(page);
        }
        self.take_posts(now);
        if self.options.limits.refresh_pages_max == 0 || !self.peer.refresh_tools(cursor, now) {
            return None;
        }
        let message = self.next_post()?;
        let (id, _) = message.request()?;
        self.queue.push_first(message);
        Some(id)
    }
}

impl WaitingCall {
    const fn new(call: Message, error: Option<ErrorObject<'static>>, tool: String) -> Self {
        Self { call, error, tool, pages: 1, found: false }
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
    fn tools_beyond_the_limit_are_forgotten_those_without_mirrored_arguments_first() {
        let schema = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;
        let header_params = HeaderParams::from_schema(&RawJson::trusted(schema));
        let mut tools = Tools::default();
        let learn = |tools: &mut Tools, name, header_params| {
            tools.learn(name, header_params);
            tools.evict(800);
        };
        for name in ["one", "two", "one", "three"] {
            learn(&mut tools, name, header_params.clone());
        }
        assert!(tools.header_params("two").is_none());
        assert!(tools.header_params("one").is_some() && tools.header_params("three").is_some());
        learn(&mut tools, "plain", Ok(HeaderParams::default()));
        assert!(tools.header_params("plain").is_none());
        for plain in ["one", "last"] {
            learn(&mut tools, plain, Ok(HeaderParams::default()));
        }
        assert!(tools.header_params("one").is_none());
        assert!(tools.header_params("three").is_some() && tools.header_params("last").is_some());
        assert_eq!((tools.known.len(), tools.listed.len()), (2, 2));
        assert_eq!(tools.bytes, tools.known.values().map(|known| known.bytes).sum::<usize>());
    }
}
