//! A stream that is cut at every byte, with a server that replays the events after an id.

use mcp_sansio::Revision;

use crate::net::{EVENTS, Net, OK, RESUMING, notification, result};

/// Returns the events of a stream, each with its id.
fn script() -> Vec<(String, String)> {
    let mut events = vec![("s-0".into(), String::new())];
    for (at, level) in (1..).zip(["debug", "info", "notice"]) {
        events.push((format!("s-{at}"), notification(level)));
    }
    events.push(("s-4".into(), result(2, OK)));
    events
}

fn text_of(events: &[(String, String)], line_end: &str) -> String {
    let line = |(id, data): &(String, String)| {
        format!("id: {id}{line_end}data: {data}{line_end}{line_end}")
    };
    events.iter().map(line).collect()
}

fn cut(revision: Revision, at: usize, line_end: &str, inclusive: bool, graceful: bool) -> String {
    let events = script();
    let mut net = Net::legacy(revision);
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    let text = text_of(&events, line_end);
    net.body(4, &text[..at]);
    if graceful {
        net.end(4)
    } else {
        net.broken(4)
    }
    let mut told = net.told();
    if told.contains("call 1") {
        net.expect_silence();
        return told;
    }
    net.wait_for_request();
    let after = net.field(5, "last-event-id").unwrap();
    let had = events.iter().position(|(id, _)| *id == after).unwrap();
    net.answer_head(5, 200, EVENTS);
    let from = if inclusive { had } else { had + 1 };
    for byte in text_of(&events[from..], line_end).chars() {
        net.body(5, byte.encode_utf8(&mut [0; 4]));
    }
    net.end(5);
    told.push_str(&net.told());
    net.expect_silence();
    told
}

#[test]
fn each_message_of_a_cut_stream_is_received_exactly_once_and_in_order() {
    // Rule: [RESUME-004] [RESUME-006] [SSE-011] [SSE-012].
    for (revision, line_end) in RESUMING.into_iter().zip(["\n", "\r\n", "\r"]) {
        let text = text_of(&script(), line_end);
        let whole = cut(revision, text.len(), line_end, false, true);
        assert_eq!(whole.lines().count(), 4, "{whole}");
        // Without a complete first event the client cannot resume.
        // The CR of CR LF completes it.
        let first = text_of(&script()[..1], line_end).len() - (line_end.len() - 1);
        for at in 0..=text.len() {
            for (inclusive, graceful) in [(false, false), (true, false), (false, true)] {
                let told = cut(revision, at, line_end, inclusive, graceful);
                let expected = match (at < first, graceful) {
                    (true, true) if told.contains("its last event is incomplete") => continue,
                    (true, true) => "call 1 failed: StreamEnded\n",
                    (true, false) => "call 1 failed: Broken\n",
                    (false, _) => &whole,
                };
                assert_eq!(told, *expected, "{revision}, cut at {at}");
            }
        }
    }
}
