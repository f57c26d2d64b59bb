//! The link on a line without noise.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_examples::serial::link::{Event, Link, SILENCE_MAX};

/// Two links on a line without noise, with a transfer time of one millisecond per packet.
struct Links {
    ends: [Link; 2],
    now: Instant,
}

impl Links {
    fn new() -> Self {
        Self { ends: [Link::new(Instant::ZERO), Link::new(Instant::ZERO)], now: Instant::ZERO }
    }

    /// Moves one packet in each direction. Packets to `unreachable` are lost.
    fn turn(&mut self, unreachable: Option<usize>) {
        self.now = self.now + Duration::from_millis(1);
        for from in [0, 1] {
            let packet = self.ends[from].poll_transmit(self.now).map(<[u8]>::to_vec);
            if let Some(packet) = packet.filter(|_| unreachable != Some(1 - from)) {
                self.ends[1 - from].handle_bytes(&packet, self.now);
            }
            self.ends[from].handle_timeout(self.now);
        }
    }
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut links = Links::new();
    let all: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
    let (mut written, mut read) = (0, Vec::new());
    while read.len() < all.len() {
        written += links.ends[0].write(&all[written..]);
        links.turn(None);
        while let Some(event) = links.ends[1].poll_event() {
            let Event::Received(bytes) = event else { panic!("{event:?}") };
            read.extend(bytes);
        }
    }
    assert_eq!(read, all);
    assert!(links.ends[0].counts().sent > 256 && links.ends[0].counts().resent == 0);
}

#[test]
fn a_reader_that_stops_reading_blocks_the_writer() {
    let mut links = Links::new();
    let mut written = 0;
    for _ in 0..3000 {
        written += links.ends[0].write(&[0; 1000]);
        links.turn(None);
    }
    // The pending bytes, a full window, and the receive queue.
    assert!(written <= 4096 + (8 + 16) * 128, "{written}");
    let mut read = 0;
    for _ in 0..3000 {
        links.turn(None);
        while let Some(Event::Received(bytes)) = links.ends[1].poll_event() {
            read += bytes.len();
        }
    }
    assert_eq!(read, written);
}

#[test]
fn the_end_is_delivered_last_and_once() {
    let mut links = Links::new();
    links.ends[0].write(b"last words");
    links.ends[0].close();
    assert_eq!(links.ends[0].write(b"too late"), 8);
    for _ in 0..10 {
        links.turn(None);
    }
    assert_eq!(links.ends[1].poll_event(), Some(Event::Received(b"last words".to_vec())));
    assert_eq!(links.ends[1].poll_event(), Some(Event::Ended));
    assert!(!links.ends[0].is_over() && !links.ends[1].is_over());
    // The peer still sends data, and the acknowledgements for it are lost at first.
    links.ends[1].write(b"an answer");
    links.ends[1].close();
    for _ in 0..300 {
        links.turn(Some(1));
    }
    for _ in 0..300 {
        links.turn(None);
    }
    assert_eq!(links.ends[0].poll_event(), Some(Event::Received(b"an answer".to_vec())));
    assert_eq!(links.ends[0].poll_event(), Some(Event::Ended));
    for end in &mut links.ends {
        assert!(end.is_over());
        assert_eq!(end.poll_timeout(), None);
        assert_eq!(end.poll_event(), None);
    }
}

#[test]
fn an_unreachable_side_is_lost_to_the_peer_and_then_stops() {
    let mut links = Links::new();
    for _ in 0..=2 * SILENCE_MAX.as_millis() {
        links.turn(Some(1));
    }
    for end in &mut links.ends {
        assert_eq!(end.poll_event(), Some(Event::Lost));
        assert_eq!(end.poll_event(), None);
        assert_eq!(end.poll_transmit(links.now), None);
        assert_eq!(end.write(&[0; 10_000]), 10_000);
    }
}
