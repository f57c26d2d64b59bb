//! The common interface of the two machines, for tests that drive either, and events as text.

use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{ConnectionClosed, Event, InputResponseParams, Subject};
use mcp_sansio::{Instant, Side};

use crate::played::Client;
use crate::played::Server;

/// The inputs and outputs of the driving contract.
pub(crate) trait Machine {
    const ROLE: Side;

    fn take(
        &mut self,
        frame: &[u8],
        now: Instant,
    ) -> Result<Option<Event<'static>>, ConnectionClosed>;
    fn take_error(&mut self, error: FrameError)
    -> Result<Option<Event<'static>>, ConnectionClosed>;
    fn end(&mut self);
    fn wake(&mut self, now: Instant);
    fn transmit(&mut self) -> Option<Vec<u8>>;
    fn event(&mut self) -> Option<Event<'static>>;
    fn deadline(&self) -> Option<Instant>;
}

macro_rules! machine {
    ($machine:ty, $role:expr) => {
        impl Machine for $machine {
            const ROLE: Side = $role;

            fn take(
                &mut self,
                frame: &[u8],
                now: Instant,
            ) -> Result<Option<Event<'static>>, ConnectionClosed> {
                self.handle_message(frame, now).map(|event| event.map(Event::into_owned))
            }

            fn take_error(
                &mut self,
                error: FrameError,
            ) -> Result<Option<Event<'static>>, ConnectionClosed> {
                self.handle_frame_error(error)
            }

            fn end(&mut self) {
                self.handle_eof();
            }

            fn wake(&mut self, now: Instant) {
                self.handle_timeout(now);
            }

            fn transmit(&mut self) -> Option<Vec<u8>> {
                self.poll_transmit().map(<[u8]>::to_vec)
            }

            fn event(&mut self) -> Option<Event<'static>> {
                self.poll_event()
            }

            fn deadline(&self) -> Option<Instant> {
                self.poll_timeout()
            }
        }
    };
}

machine!(Client, Side::Client);
machine!(Server, Side::Server);

/// Describes an event in one line, without handles.
pub(crate) fn describe(event: &Event<'_>) -> String {
    match event {
        Event::Opened(opened) => format!("opened at {}", opened.revision),
        Event::Request(request) => {
            let mut text = format!("request {} {}", request.method, request.params);
            if !request.inputs.is_empty() {
                text.push_str(&describe_inputs(&request.inputs));
            }
            text
        }
        Event::Notification(notification) => {
            let stream = if !notification.subscriptions.is_empty() { " (subscribed)" } else { "" };
            format!("notification {} {}{stream}", notification.method, notification.params)
        }
        Event::Progress(progress) => {
            format!(
                "progress {} of {:?}: {:?}",
                progress.progress, progress.total, progress.message
            )
        }
        Event::Ended(ended) => match &ended.outcome {
            Ok(result) => format!("ended with {result}"),
            Err(failure) => format!("failed: {failure}"),
        },
        Event::InputRequested(input) => format!("input {} {}", input.method, input.params),
        Event::Cancelled(cancelled) => {
            let subject = match cancelled.subject {
                Subject::Request(_) => "request",
                Subject::Input(_) => "input",
                other => panic!("{other:?}"),
            };
            format!("cancelled {subject}: {:?}", cancelled.reason)
        }
        Event::Subscribed(subscribed) => format!("subscribed {:?}", subscribed.honoured),
        Event::Violation(violation) => format!("violation: {violation}"),
        Event::Closed(reason) => format!("closed: {reason}"),
        other => format!("{other:?}"),
    }
}

fn describe_inputs(inputs: &InputResponseParams<'_>) -> String {
    format!(" with {inputs:?}")
}
