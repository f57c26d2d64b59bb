use std::collections::VecDeque;
use std::net::TcpListener;
use std::time::Duration;

use mcp_sansio::Instant;

use super::connection::Connection;
use crate::now;

/// The longest pause. 20 ms where sockets cannot be waited for: nobody notices, and 50 looks in a
/// second, while a user signs in, cost nothing that can be measured.
const PAUSE_MAX: Duration = Duration::from_millis(if cfg!(unix) { 60_000 } else { 20 });

/// Waits until there is something to accept or to read, a connection's time is over, or `end`.
pub(super) fn until_ready(
    listener: &TcpListener,
    connections: &VecDeque<Connection>,
    end: Instant,
) {
    let first = connections.iter().map(Connection::end).min().map_or(end, |it| it.min(end));
    let pause = first.saturating_since(now()).min(PAUSE_MAX);
    wait(listener, connections, pause);
}

#[cfg(unix)]
fn wait(listener: &TcpListener, connections: &VecDeque<Connection>, pause: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // What ends in half a millisecond would be looked at in between, again and again.
    let pause = Timespec::try_from(pause + Duration::from_millis(1)).ok();
    let mut polled = vec![PollFd::new(listener, PollFlags::IN)];
    polled.extend(connections.iter().map(|it| PollFd::new(it.stream(), PollFlags::IN)));
    // What went wrong, a signal mostly, shows in the look that follows.
    let _ = poll(&mut polled, pause.as_ref());
}

#[cfg(not(unix))]
fn wait(_: &TcpListener, _: &VecDeque<Connection>, pause: Duration) {
    std::thread::sleep(pause);
}
