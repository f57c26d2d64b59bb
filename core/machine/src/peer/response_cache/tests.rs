use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use mcp_sansio_collections::Slab;

use crate::Revision;
use crate::jsonrpc::ErrorObject;
use crate::peer::event::{CloseReason, InputRequested, Opened};
use crate::peer::handle::{InputHandle, InputSource};
use crate::peer::method_name::MethodName;

use super::*;

const LISTS: [Method; 5] = [
    Method::Discover,
    Method::ToolsList,
    Method::PromptsList,
    Method::ResourcesList,
    Method::ResourcesTemplatesList,
];

/// A cache, and the handles of its calls.
struct Bench {
    cache: ResponseCache,
    calls: Slab<()>,
}

impl Bench {
    fn new(options: CacheOptions) -> Self {
        Self { cache: ResponseCache::new(options), calls: Slab::new() }
    }

    fn send(&mut self, method: Method, params: &str) -> CallHandle {
        let call = CallHandle::new(self.calls.insert(()));
        self.cache.handle_call(call, method, &RawJson::trusted(params));
        call
    }

    fn end(&mut self, call: CallHandle, outcome: Result<&str, ErrorObject<'_>>, at: u64) {
        let outcome = outcome.map(RawJson::trusted).map_err(Failure::Refused);
        self.event(Event::Ended(Ended { call, outcome, input_rounds: 0 }), at);
    }

    /// Sends a request and receives its result at the same time.
    fn fetch(&mut self, method: Method, params: &str, result: &str, at: u64) {
        let call = self.send(method, params);
        self.end(call, Ok(result), at);
    }

    fn event(&mut self, event: Event<'_>, at: u64) {
        self.cache.handle_event(&event, Instant::from_millis(at));
    }

    fn notify(&mut self, method: Method, params: &str) {
        let notification = Notification {
            method: MethodName::Known(method),
            params: RawJson::trusted(params),
            revision: Revision::LATEST,
            subscriptions: Box::default(),
        };
        self.event(Event::Notification(notification), 0);
    }

    fn open(&mut self, revision: Revision) {
        self.event(Event::Opened(Opened { revision }), 0);
    }

    fn has(&mut self, method: Method, params: &str, at: u64) -> bool {
        let params = RawJson::trusted(params);
        self.cache.get(method, &params, Instant::from_millis(at)).is_some()
    }
}

fn bench() -> Bench {
    Bench::new(CacheOptions::DEFAULT)
}

const SECOND: &str = r#"{"ttlMs":1000,"cacheScope":"private"}"#;
const SHARED: &str = r#"{"ttlMs":1000,"cacheScope":"public"}"#;

fn uri(uri: &str) -> String {
    format!(r#"{{"uri":"{uri}"}}"#)
}

#[test]
fn a_result_answers_only_the_same_method_and_parameters() {
    // Rule: [CACHE-003].
    let mut it = bench();
    let page = r#"{"cursor":"2"}"#;
    it.fetch(Method::ToolsList, page, SECOND, 0);
    it.fetch(Method::ResourcesRead, &uri("a:b"), SHARED, 0);
    for method in LISTS.into_iter().chain([Method::ResourcesRead]) {
        for params in ["{}", page, r#"{"cursor":"3"}"#, r#"{"cursor":"2" }"#, &uri("a:b")] {
            let known = (method, params) == (Method::ToolsList, page)
                || (method, params) == (Method::ResourcesRead, &uri("a:b"));
            assert_eq!(it.has(method, params, 0), known, "{method:?} {params}");
        }
    }
    let read = RawJson::trusted(r#"{"uri":"a:b"}"#);
    let result = it.cache.get(Method::ResourcesRead, &read, Instant::ZERO);
    assert_eq!(result.map(RawJson::as_str), Some(SHARED));
}

#[test]
fn only_methods_with_hints_are_cached() {
    let mut it = bench();
    for method in Method::ALL {
        it.fetch(*method, "{}", SECOND, 0);
        let is_cacheable = LISTS.contains(method) || *method == Method::ResourcesRead;
        assert_eq!(it.has(*method, "{}", 0), is_cacheable, "{method:?}");
    }
}

#[test]
fn a_result_that_depends_on_input_is_not_cached() {
    // Rule: [CACHE-004].
    let mut it = bench();
    let rounds = [r#"{"uri":"a:b","inputResponses":{}}"#, r#"{"uri":"a:b","requestState":"s"}"#];
    for params in rounds {
        it.fetch(Method::ResourcesRead, params, SECOND, 0);
    }
    for input_rounds in [1, 2] {
        let call = it.send(Method::ResourcesRead, &uri("a:b"));
        let outcome = Ok(RawJson::trusted(SECOND));
        it.event(Event::Ended(Ended { call, outcome, input_rounds }), 0);
    }
    assert!(it.cache.is_empty());
}

#[test]
fn a_result_is_not_cached_if_a_legacy_server_asked_meanwhile() {
    let mut it = Bench::new(CacheOptions::DEFAULT.default_ttl(Duration::from_secs(1)));
    it.open(Revision::V2025_11_25);
    let call = it.send(Method::ResourcesRead, &uri("a:b"));
    let input = InputRequested {
        handle: InputHandle(InputSource::Request(mcp_sansio_collections::Key::NONE)),
        method: Method::ElicitationCreate,
        params: RawJson::EMPTY_OBJECT,
        revision: Revision::V2025_11_25,
        call: None,
    };
    it.event(Event::InputRequested(input), 0);
    it.end(call, Ok("{}"), 0);
    assert!(it.cache.is_empty());
}

#[test]
fn other_credentials_find_only_public_results() {
    // Rule: [CACHE-005].
    let mut it = bench();
    it.fetch(Method::ToolsList, "{}", SHARED, 0);
    it.fetch(Method::PromptsList, "{}", SECOND, 0);
    it.fetch(Method::ResourcesList, "{}", r#"{"ttlMs":1000}"#, 0);
    it.fetch(Method::Discover, "{}", r#"{"ttlMs":1000,"cacheScope":"everyone"}"#, 0);
    let late = it.send(Method::ResourcesTemplatesList, "{}");
    it.cache.credentials_changed();
    it.end(late, Ok(SECOND), 0);
    let kept: Vec<_> = LISTS.into_iter().filter(|method| it.has(*method, "{}", 0)).collect();
    assert_eq!(kept, [Method::ToolsList]);
}

#[test]
fn a_result_is_fresh_for_its_ttl_after_its_receipt() {
    // Rule: [CACHE-006].
    let mut it = bench();
    let call = it.send(Method::ToolsList, "{}");
    it.end(call, Ok(SECOND), 500);
    assert!(it.has(Method::ToolsList, "{}", 1499));
    assert!(!it.has(Method::ToolsList, "{}", 1500));
    assert!(it.cache.is_empty(), "a stale result takes no memory after its lookup");
    // No result is fresh for more than a day.
    const DAY: u64 = 24 * 60 * 60 * 1000;
    it.fetch(Method::ToolsList, "{}", r#"{"ttlMs":18446744073709551615}"#, 500);
    assert!(it.has(Method::ToolsList, "{}", 499 + DAY));
    assert!(!it.has(Method::ToolsList, "{}", 500 + DAY));
    // Without a bound, a result may never expire: the sum saturates.
    let mut it = Bench::new(CacheOptions::DEFAULT.ttl_max(Duration::MAX));
    it.fetch(Method::ToolsList, "{}", r#"{"ttlMs":18446744073709551615}"#, 500);
    assert!(it.has(Method::ToolsList, "{}", 1 << 40));
}

#[test]
fn a_ttl_that_is_zero_negative_absent_or_not_a_number_is_stale() {
    // Rule: [CACHE-006].
    let mut it = bench();
    for hints in
        [r#"{"ttlMs":0}"#, r#"{"ttlMs":-1}"#, r#"{"ttlMs":"9"}"#, r#"{"ttlMs":null}"#, "{}"]
    {
        it.fetch(Method::ToolsList, "{}", hints, 0);
        assert!(it.cache.is_empty(), "{hints}");
    }
}

#[test]
fn a_default_applies_to_results_without_a_ttl_only() {
    let mut it = Bench::new(CacheOptions::DEFAULT.default_ttl(Duration::from_secs(5)));
    for (hints, fresh) in [("{}", true), (r#"{"ttlMs":null}"#, true), (r#"{"ttlMs":0}"#, false)] {
        it.cache.clear();
        it.fetch(Method::ToolsList, "{}", hints, 0);
        assert_eq!(it.has(Method::ToolsList, "{}", 4999), fresh, "{hints}");
        assert!(!it.has(Method::ToolsList, "{}", 5000));
    }
}

#[test]
fn a_legacy_server_has_no_hints() {
    for (default, fresh) in [(Duration::ZERO, false), (Duration::from_millis(7), true)] {
        let mut it = Bench::new(CacheOptions::DEFAULT.default_ttl(default));
        it.open(Revision::V2025_11_25);
        it.fetch(Method::ToolsList, "{}", SHARED, 0);
        assert_eq!(it.has(Method::ToolsList, "{}", 6), fresh);
        assert!(!it.has(Method::ToolsList, "{}", 7));
        // Without a scope, a result is private.
        it.fetch(Method::ToolsList, "{}", SHARED, 0);
        it.cache.credentials_changed();
        assert!(!it.has(Method::ToolsList, "{}", 6));
    }
}

#[test]
fn a_notification_invalidates_the_results_that_it_concerns() {
    // Rule: [CACHE-009].
    let methods: [(Method, &[Method]); 4] = [
        (Method::ToolsListChanged, &[Method::ToolsList]),
        (Method::PromptsListChanged, &[Method::PromptsList]),
        (Method::ResourcesListChanged, &[Method::ResourcesList, Method::ResourcesTemplatesList]),
        (Method::Message, &[]),
    ];
    for (notification, stale) in methods {
        let mut it = bench();
        for method in LISTS {
            for page in ["{}", r#"{"cursor":"2"}"#] {
                it.fetch(method, page, SHARED, 0);
            }
        }
        it.fetch(Method::ResourcesRead, &uri("a:b"), SHARED, 0);
        it.notify(notification, "{}");
        for method in LISTS {
            for page in ["{}", r#"{"cursor":"2"}"#] {
                let is_kept = it.has(method, page, 0);
                assert_eq!(is_kept, !stale.contains(&method), "{notification:?} {method:?}");
            }
        }
        assert!(it.has(Method::ResourcesRead, &uri("a:b"), 0));
    }
}

#[test]
fn an_update_invalidates_the_resource_and_those_that_contain_it() {
    // Rule: [CACHE-009].
    let mut it = bench();
    for name in ["file:///a", "file:///a/b", "file:///a/b/c", "file:///b"] {
        it.fetch(Method::ResourcesRead, &uri(name), SECOND, 0);
    }
    it.fetch(Method::ResourcesList, "{}", SECOND, 0);
    it.notify(Method::ResourcesUpdated, r#"{"uri":"file:\/\/\/a/b"}"#);
    assert!(!it.has(Method::ResourcesRead, &uri("file:///a"), 0));
    assert!(!it.has(Method::ResourcesRead, &uri("file:///a/b"), 0));
    assert!(it.has(Method::ResourcesRead, &uri("file:///a/b/c"), 0));
    assert!(it.has(Method::ResourcesRead, &uri("file:///b"), 0));
    assert!(it.has(Method::ResourcesList, "{}", 0));
    // It cannot be known which one an update without a URI means.
    it.notify(Method::ResourcesUpdated, "{}");
    assert_eq!(it.cache.len(), 1);
}

#[test]
fn a_result_that_a_notification_overtook_is_not_cached() {
    // Rule: [CACHE-009].
    let mut it = bench();
    let (tools, prompts) = (it.send(Method::ToolsList, "{}"), it.send(Method::PromptsList, "{}"));
    it.notify(Method::ToolsListChanged, "{}");
    let next = it.send(Method::ToolsList, r#"{"cursor":"2"}"#);
    for call in [tools, prompts, next] {
        it.end(call, Ok(SECOND), 0);
    }
    assert!(!it.has(Method::ToolsList, "{}", 0));
    assert!(it.has(Method::PromptsList, "{}", 0));
    assert!(it.has(Method::ToolsList, r#"{"cursor":"2"}"#, 0));
}

#[test]
fn each_page_has_its_own_ttl_and_an_invalid_cursor_drops_all_pages() {
    // Rule: [CACHE-010].
    let pages = ["{}", r#"{"cursor":""}"#, r#"{"cursor":"3"}"#];
    let mut it = bench();
    for (page, at) in pages.into_iter().zip([0, 400, 800]) {
        it.fetch(Method::ToolsList, page, SECOND, at);
    }
    it.fetch(Method::PromptsList, "{}", SECOND, 800);
    assert_eq!(pages.map(|page| it.has(Method::ToolsList, page, 1399)), [false, true, true]);
    assert_eq!(pages.map(|page| it.has(Method::ToolsList, page, 1400)), [false, false, true]);
    let (again, refused) = (it.send(Method::ToolsList, "{}"), it.send(Method::ToolsList, pages[1]));
    it.end(refused, Err(ErrorObject::invalid_params("the cursor")), 1400);
    it.end(again, Ok(SECOND), 1400);
    assert_eq!(pages.map(|page| it.has(Method::ToolsList, page, 1400)), [false; 3]);
    assert!(it.has(Method::PromptsList, "{}", 1400));
}

#[test]
fn other_errors_remove_nothing() {
    let mut it = bench();
    it.fetch(Method::ToolsList, "{}", SECOND, 0);
    for params in ["{}", r#"{"cursor":null}"#] {
        let call = it.send(Method::ToolsList, params);
        it.end(call, Err(ErrorObject::internal("busy")), 0);
    }
    let call = it.send(Method::ToolsList, r#"{"cursor":"2"}"#);
    let outcome = Err(Failure::TimedOut { hard: false });
    it.event(Event::Ended(Ended { call, outcome, input_rounds: 0 }), 0);
    assert!(it.has(Method::ToolsList, "{}", 0));
}

#[test]
fn a_later_result_replaces_the_earlier_one() {
    let mut it = bench();
    it.fetch(Method::ToolsList, "{}", SECOND, 0);
    it.fetch(Method::ToolsList, "{}", SHARED, 500);
    assert_eq!(it.cache.len(), 1);
    assert!(it.has(Method::ToolsList, "{}", 1499));
    it.fetch(Method::ToolsList, "{}", r#"{"ttlMs":0}"#, 600);
    assert!(it.cache.is_empty());
}

#[test]
fn the_oldest_goes_first_when_the_cache_is_full() {
    let mut it = Bench::new(CacheOptions::DEFAULT.entries_max(3));
    for name in ["a:1", "a:2", "a:3", "a:1", "a:4"] {
        it.fetch(Method::ResourcesRead, &uri(name), SECOND, 0);
    }
    let kept = ["a:1", "a:2", "a:3", "a:4"].map(uri);
    let kept = kept.map(|params| it.has(Method::ResourcesRead, &params, 0));
    assert_eq!(kept, [true, false, true, true]);

    let long = format!(r#"{{"ttlMs":1000,"text":"{}"}}"#, "x".repeat(1000));
    let mut it = Bench::new(CacheOptions::DEFAULT.bytes_max(4000));
    for number in 0..100 {
        it.fetch(Method::ResourcesRead, &uri(&number.to_string()), &long, 0);
        assert!(it.cache.bytes <= 4000);
    }
    assert_eq!(it.cache.len(), 3);
    assert!(it.has(Method::ResourcesRead, &uri("97"), 0));
    // A result that is too long for the cache does not empty it.
    it.fetch(Method::ToolsList, "{}", &format!(r#"{{"ttlMs":9,"t":"{}"}}"#, "x".repeat(4000)), 0);
    assert_eq!(it.cache.len(), 3);
    let mut it = Bench::new(CacheOptions::DEFAULT.entries_max(0));
    it.fetch(Method::ToolsList, "{}", SECOND, 0);
    assert!(it.cache.is_empty() && it.cache.in_flight.is_empty());
}

#[test]
fn requests_in_flight_are_remembered_up_to_the_limit() {
    let mut it = Bench::new(CacheOptions::DEFAULT.entries_max(2));
    let calls = ["a:1", "a:2", "a:3"].map(|name| it.send(Method::ResourcesRead, &uri(name)));
    for call in calls {
        it.end(call, Ok(SECOND), 0);
    }
    assert!(it.has(Method::ResourcesRead, &uri("a:2"), 0));
    assert!(!it.has(Method::ResourcesRead, &uri("a:3"), 0));
    assert!(it.cache.in_flight.is_empty());
}

#[test]
fn another_session_and_the_end_of_the_connection_empty_the_cache() {
    let opened = Event::Opened(Opened { revision: Revision::LATEST });
    for event in [opened, Event::Closed(CloseReason::Local)] {
        let mut it = bench();
        it.fetch(Method::ToolsList, "{}", SHARED, 0);
        let late = it.send(Method::PromptsList, "{}");
        it.event(event, 0);
        it.end(late, Ok(SHARED), 0);
        assert!(it.cache.is_empty());
        assert_eq!(it.cache.bytes, 0);
    }
}
