//! Events as a recording describes them, with enough detail to see where two runs diverge.

use alloc::format;
use alloc::string::{String, ToString};

use crate::peer::{Event, Failure, Subject};
use crate::protocol::SerializeAt;

use super::handle::{Handle, InputName};

/// Describes an event in one line: its kind, its subject and its outcome.
pub(crate) fn describe(event: &Event<'_>) -> String {
    let mut text = summary(event);
    // The query of a URL may contain secrets, so it is left out of recordings.
    if let Some(start) = text.find("redirects to `")
        && let Some(query) = text[start..].find('?').map(|at| start + at)
        && let Some(end) = text[query..].find('`').map(|at| query + at)
    {
        text.replace_range(query..end, "");
    }
    text
}

fn summary(event: &Event<'_>) -> String {
    match event {
        Event::Opened(opened) => format!("opened {}", opened.revision),
        Event::Request(request) => {
            let round = if request.inputs.is_empty() { "" } else { " with inputs" };
            format!("request {} {}{round}", Handle::from(request.handle), request.method)
        }
        Event::Notification(notification) => {
            let mut text = format!("notification {}", notification.method);
            for (call, number) in notification.subscriptions.iter().zip(0_usize..) {
                text.push_str(if number == 0 { " of " } else { ", " });
                text.push_str(&Handle::from(*call).to_string());
            }
            text
        }
        Event::Progress(progress) => {
            format!("progress {} {}", Handle::from(progress.call), progress.progress)
        }
        Event::Ended(ended) => {
            let outcome = match &ended.outcome {
                Ok(_) => "result".to_string(),
                Err(failure @ Failure::Refused(error)) => format!("{} {failure}", error.code.0),
                Err(failure) => failure.to_string(),
            };
            format!("ended {}: {outcome}", Handle::from(ended.call))
        }
        Event::InputRequested(input) => {
            format!("input {} {}", InputName::from(input.handle), input.method.as_str())
        }
        Event::Cancelled(cancelled) => match cancelled.subject {
            Subject::Request(handle) => format!("cancelled {}", Handle::from(handle)),
            Subject::Input(handle) => {
                format!("cancelled input {}", InputName::from(handle))
            }
        },
        Event::Subscribed(subscribed) => {
            let honoured = subscribed.honoured.to_json_at(crate::Revision::LATEST);
            let honoured = honoured.as_ref().map_or("", |json| json.as_str());
            format!("subscribed {} {honoured}", Handle::from(subscribed.subscription))
        }
        Event::Violation(violation) => format!("violation: {violation}"),
        // The next two were violations when the format was defined, so they are still written as
        // such: the lines of older recordings are compared with these.
        Event::DeliveryFailed(failed) => format!("violation: {failed}"),
        Event::EventStreamLost(failure) => {
            format!("violation: the server's event stream was lost: {failure}")
        }
        Event::Closed(reason) => format!("closed: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{DeliveryFailed, TransportFailure};
    use crate::protocol::Method;

    #[test]
    fn failures_of_the_transport_are_described_as_in_older_recordings() {
        let failure = TransportFailure::SessionLost;
        let lost = describe(&Event::EventStreamLost(failure.clone()));
        assert_eq!(lost, format!("violation: the server's event stream was lost: {failure}"));
        let failed = |method| {
            describe(&Event::DeliveryFailed(DeliveryFailed { method, failure: failure.clone() }))
        };
        let expected = |what| format!("violation: `{what}` could not be delivered: {failure}");
        assert_eq!(failed(None), expected("response"));
        assert_eq!(failed(Some(Method::Initialized)), expected("notifications/initialized"));
    }
}
