use super::*;
use alloc::string::String;
use alloc::vec::Vec;
use seeded_random::Random;

const MESSAGE: Part = Part::Answer(Verdict::Result);

fn push(outbox: &mut Outbox, lane: Lane, text: &str) {
    outbox.push(lane, Channel::UNSOLICITED, MESSAGE, Tag::NONE, |out| {
        out.push_str(text);
    });
}

#[test]
fn messages_are_taken_one_by_one_with_the_channel_of_each() {
    let mut outbox = Outbox::new(Binding::ChannelPerRequest);
    push(&mut outbox, Lane::Bulk, "one");
    outbox.push(Lane::Control, Channel(7), Part::Answer(Verdict::Result), Tag::NONE, |out| {
        out.push_str("two");
    });
    outbox.signal(Channel(8), Part::Withdrawn);
    let (message, text) = outbox.next_message().unwrap();
    assert_eq!((message.channel, message.part, text), (Channel::UNSOLICITED, MESSAGE, "one"));
    outbox.skip_message();
    assert_eq!(outbox.next_message().unwrap().0.channel, Channel(7));
    assert_eq!(outbox.take_message(), "two");
    let (message, text) = outbox.next_message().unwrap();
    assert_eq!((message.part, text), (Part::Withdrawn, ""));
    outbox.skip_message();
    assert_eq!(outbox.next_message(), None);
    assert_eq!(outbox.len(), 0);
}

fn poll(outbox: &mut Outbox) -> Option<String> {
    outbox.poll().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn queued_messages_leave_in_one_chunk_and_control_goes_first() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    push(&mut outbox, Lane::Bulk, "one");
    push(&mut outbox, Lane::Bulk, "two");
    push(&mut outbox, Lane::Control, "urgent");
    assert_eq!(poll(&mut outbox).unwrap(), "urgent\n");
    assert_eq!(poll(&mut outbox).unwrap(), "one\ntwo\n");
    assert_eq!(poll(&mut outbox), None);
    assert_eq!(poll(&mut outbox), None);
}

#[test]
fn a_flood_of_control_traffic_does_not_block_bulk() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    push(&mut outbox, Lane::Bulk, "answer");
    push(&mut outbox, Lane::Control, "ping");
    assert_eq!(poll(&mut outbox).unwrap(), "ping\n");
    push(&mut outbox, Lane::Control, "ping");
    assert_eq!(poll(&mut outbox).unwrap(), "answer\n");
    assert_eq!(poll(&mut outbox).unwrap(), "ping\n");
}

#[test]
fn control_never_interrupts_a_partially_written_chunk() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    push(&mut outbox, Lane::Bulk, "bulk");
    assert_eq!(outbox.peek(), b"bulk\n");
    outbox.consume(2);
    push(&mut outbox, Lane::Control, "urgent");
    assert_eq!(outbox.peek(), b"lk\n");
    outbox.consume(3);
    assert_eq!(outbox.peek(), b"urgent\n");
    assert_eq!(outbox.len(), 7);
}

#[test]
fn control_waits_for_one_chunk_of_whole_lines_at_most() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    let line = "x".repeat(40_000);
    for _ in 0..3 {
        push(&mut outbox, Lane::Bulk, &line);
    }
    assert_eq!(outbox.poll().unwrap().len(), 40_001);
    push(&mut outbox, Lane::Control, "urgent");
    assert_eq!(poll(&mut outbox).unwrap(), "urgent\n");
    assert_eq!(outbox.poll().unwrap().len(), 40_001);
}

#[test]
fn a_queue_that_is_never_empty_uses_bounded_memory() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    outbox.hold_to(4096);
    for _ in 0..10_000 {
        push(&mut outbox, Lane::Bulk, &"x".repeat(100));
        let taken = outbox.peek().len();
        push(&mut outbox, Lane::Bulk, &"x".repeat(100));
        outbox.consume(taken);
    }
    assert!(outbox.bulk.text.capacity() <= Outbox::memory_max(4096, 202), "grown");
    assert!(outbox.bulk.text.capacity() < 2048, "{}", outbox.bulk.text.capacity());
}

/// Pushes a tagged line.
fn tag(outbox: &mut Outbox, id: i64, text: &str) {
    outbox.push(Lane::Bulk, Channel::UNSOLICITED, MESSAGE, Tag::own(id), |out| {
        out.push_str(text);
    });
}

#[test]
fn withdrawn_messages_are_neither_sent_nor_counted() {
    // Rule: [CANC-016].
    let mut outbox = Outbox::new(Binding::ByteStream);
    for (id, text) in [(1, "a"), (2, "b"), (1, "c"), (3, "d"), (1, "e")] {
        tag(&mut outbox, id, text);
    }
    assert!(outbox.withdraw(Tag::own(1)));
    assert!(!outbox.withdraw(Tag::own(1)) && !outbox.withdraw(Tag::own(4)));
    assert_eq!(outbox.len(), 4);
    tag(&mut outbox, 1, "f");
    let mut sent = String::new();
    while let Some(text) = poll(&mut outbox) {
        sent.push_str(&text);
    }
    assert_eq!((&*sent, outbox.len()), ("b\nd\nf\n", 0));
    assert!(!outbox.withdraw(Tag::own(2)));
}

#[test]
fn messages_being_written_are_not_withdrawn() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    tag(&mut outbox, 1, "first");
    assert_eq!(outbox.peek(), b"first\n");
    assert!(!outbox.withdraw(Tag::own(1)));
    outbox.consume(2);
    tag(&mut outbox, 2, "second");
    assert!(!outbox.withdraw(Tag::own(1)));
    assert!(outbox.withdraw(Tag::own(2)));
    assert_eq!(outbox.peek(), b"rst\n");
    outbox.consume(4);
    assert_eq!(outbox.peek(), b"");
    assert_eq!(outbox.len(), 0);
}

#[test]
fn messages_are_withdrawn_from_their_array() {
    let texts = ["0", "11", "222", "3333"];
    for gone in 0..16_u32 {
        // Once near the head of the queue, and once moved by a compaction.
        for before in [1, 1000] {
            let mut outbox = Outbox::new(Binding::ByteStream);
            tag(&mut outbox, 9, &"x".repeat(before));
            let messages = texts.iter().zip(0..).map(|(it, id)| (Tag::own(id), *it));
            let messages: Vec<_> = messages.collect();
            outbox.push_batch(Channel::UNSOLICITED, MESSAGE, &messages);
            push(&mut outbox, Lane::Bulk, "last");
            for id in (0..4).filter(|id| gone >> id & 1 > 0) {
                assert!(outbox.withdraw(Tag::own(id)));
            }
            assert!(outbox.withdraw(Tag::own(9)));
            let left: Vec<_> = (0..4).filter(|id| gone >> id & 1 == 0).collect();
            let left: Vec<_> = left.into_iter().map(|id| texts[id as usize]).collect();
            let array = alloc::format!("[{}]\n", left.join(","));
            let expected = if left.is_empty() { "" } else { &*array };
            let mut sent = String::new();
            while let Some(text) = poll(&mut outbox) {
                sent.push_str(&text);
            }
            assert_eq!(sent, alloc::format!("{expected}last\n"), "without {gone:04b}");
            assert_eq!(outbox.len(), 0);
        }
    }
}

#[test]
fn withdrawing_frees_queued_messages_and_their_memory() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    outbox.hold_to(4096);
    for round in 0..1000 {
        for id in 0..10 {
            tag(&mut outbox, id, &"x".repeat(100));
        }
        for id in 0..10 {
            assert!(outbox.withdraw(Tag::own(id)), "{id} in round {round}");
        }
        assert_eq!(outbox.len(), 0);
    }
    assert!(outbox.bulk.text.capacity() <= Outbox::memory_max(4096, 1240), "grown");
    assert_eq!(outbox.held(), 0);
    assert_eq!(poll(&mut outbox), None);
}

#[test]
fn random_pushes_and_withdrawals_leave_the_other_messages() {
    let mut random = Random::new(1);
    for _ in 0..200 {
        let mut outbox = Outbox::new(Binding::ByteStream);
        // The expected content of the queue: tag and line.
        let mut waiting: Vec<(i64, String)> = Vec::new();
        for number in 0..300 {
            match random.below(10) {
                0..6 => {
                    let id = i64::try_from(random.below(20)).unwrap();
                    let character = if random.below(2) == 0 { "x" } else { "\u{1F600}" };
                    let text =
                        alloc::format!("{number}{}", character.repeat(random.below(60) as usize));
                    tag(&mut outbox, id, &text);
                    waiting.push((id, text));
                }
                6..9 => {
                    let id = i64::try_from(random.below(20)).unwrap();
                    let known = waiting.iter().any(|(other, _)| *other == id);
                    assert_eq!(outbox.withdraw(Tag::own(id)), known);
                    waiting.retain(|(other, _)| *other != id);
                }
                _ => {
                    let mut chunk = Vec::new();
                    // In chunks that end anywhere, with withdrawals in between.
                    loop {
                        let shown = outbox.peek();
                        let length = shown.len().min(1 + random.below(200) as usize);
                        chunk.extend_from_slice(&shown[..length]);
                        let last = length == shown.len();
                        outbox.consume(length);
                        if last {
                            break;
                        }
                    }
                    let mut chunk = String::from_utf8(chunk).unwrap();
                    for (_, line) in waiting.drain(..chunk.lines().count()) {
                        assert_eq!(chunk.lines().next(), Some(&*line));
                        chunk.drain(..=line.len());
                    }
                }
            }
            let length: usize = waiting.iter().map(|(_, line)| line.len() + 1).sum();
            assert_eq!(outbox.len(), length);
        }
    }
}

#[test]
fn a_failed_message_leaves_no_output() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    let failed = outbox.try_push(Lane::Bulk, Channel::UNSOLICITED, MESSAGE, Tag::NONE, |out| {
        out.push_str("half");
        Err(())
    });
    assert_eq!(failed, Err(()));
    assert_eq!(outbox.len(), 0);
    assert_eq!(outbox.poll(), None);
}

#[test]
fn memory_of_a_burst_is_released() {
    let mut outbox = Outbox::new(Binding::ByteStream);
    push(&mut outbox, Lane::Bulk, &"x".repeat(2 * RETAINED));
    outbox.poll();
    outbox.poll();
    assert!(outbox.bulk.text.capacity() <= RETAINED);
}
