//! Clients and servers over byte streams: each connection has its own two machines, all share one
//! clock, and the network between them splits, stalls, cuts, closes and drops bytes.

use std::time::Duration;

use mcp_sansio::framing::LineDecoder;
use mcp_sansio::{Instant, Side as Role};

use crate::checker::Checker;
use crate::coverage::Happening;
use crate::pipe::Pipe;
use crate::scene::Scene;
use crate::side::Side;

/// Creates the two sides of a connection.
pub(crate) trait Maker {
    fn client(&mut self, name: String, scene: &mut Scene) -> Box<dyn Side>;
    fn server(&mut self, name: String, scene: &mut Scene) -> Box<dyn Side>;
    /// The longest line that either side accepts.
    fn line_length_max(&self) -> usize;
}

/// One end of a connection: a node and its input.
struct End {
    role: Role,
    /// The machine and its application, or `None` after a crash.
    side: Option<Box<dyn Side>>,
    decoder: LineDecoder<'static>,
    /// Bytes in transit from the other end.
    inbound: Pipe,
    /// Bytes of the line being sent, for the checker.
    leaving: Vec<u8>,
    acts_at: Instant,
    wakes_at: Instant,
}

struct Connection {
    number: usize,
    generation: u32,
    ends: [End; 2],
    checker: Checker,
    judged: bool,
}

/// Indices of the ends: the client's and the server's.
const ENDS: [usize; 2] = [0, 1];

#[derive(Clone, Copy, Debug)]
enum Move {
    /// Writes the output of an end to the pipe of the other.
    Write(usize),
    Read(usize),
    Wake(usize),
    Act(usize),
}

pub(crate) struct Streams<M> {
    maker: M,
    connections: Vec<Connection>,
    renewals: u32,
}

/// More moves than any calm phase needs.
const MOVES_MAX: usize = 200_000;

impl End {
    fn new(role: Role, side: Box<dyn Side>, line: usize, scene: &mut Scene) -> Self {
        let capacity = scene.random.one_of([64, 700, 4096, 1 << 16, 1 << 20]);
        Self {
            role,
            side: Some(side),
            decoder: LineDecoder::growing(line),
            inbound: Pipe::new(capacity),
            leaving: Vec::new(),
            acts_at: scene.now,
            wakes_at: Instant::ZERO,
        }
    }

    fn is_closed(&self) -> bool {
        self.side.as_ref().is_none_or(|side| side.is_closed())
    }

    /// Returns how many bytes wait to be sent.
    fn waiting(&mut self) -> usize {
        let mut waiting = 0;
        if let Some(side) = &mut self.side {
            side.transmit(&mut |bytes| {
                waiting = bytes.len();
                0
            });
        }
        waiting
    }
}

impl Connection {
    fn new(number: usize, generation: u32, maker: &mut impl Maker, scene: &mut Scene) -> Self {
        let name = |role| format!("{role} {number}.{generation}");
        let client = maker.client(name(Role::Client), scene);
        let server = maker.server(name(Role::Server), scene);
        let line = maker.line_length_max();
        scene.note(format_args!("connection {number}.{generation}"));
        Self {
            number,
            generation,
            ends: [
                End::new(Role::Client, client, line, scene),
                End::new(Role::Server, server, line, scene),
            ],
            checker: Checker::new(format!("connection {number}.{generation}")),
            judged: true,
        }
    }

    fn assert_consistent(&self) {
        for end in &self.ends {
            if let Some(side) = &end.side {
                side.assert_consistent();
            }
        }
    }

    fn due(&mut self, what: Move, now: Instant, calm: bool) -> Option<Instant> {
        match what {
            Move::Write(at) => {
                let room = self.ends[1 - at].inbound.room();
                let writable_at = self.ends[1 - at].inbound.writable_at;
                (room > 0 && self.ends[at].waiting() > 0).then_some(writable_at)
            }
            Move::Read(at) => {
                let end = &self.ends[at];
                let congested = end.side.as_ref().is_some_and(|side| side.is_congested());
                if congested { None } else { end.inbound.due() }
            }
            Move::Wake(at) => {
                let end = &self.ends[at];
                let deadline = end.side.as_ref()?.deadline()?;
                Some(deadline.max(end.wakes_at).max(now))
            }
            Move::Act(at) => {
                let end = &self.ends[at];
                let side = end.side.as_ref()?;
                (!calm || side.pending() > 0).then_some(end.acts_at)
            }
        }
    }

    fn make(&mut self, what: Move, scene: &mut Scene) {
        match what {
            Move::Write(at) => self.write(at, scene),
            Move::Read(at) => self.read(at, scene),
            Move::Wake(at) => {
                let end = &mut self.ends[at];
                if scene.strikes(15) {
                    scene.count(Happening::LateWake);
                    end.wakes_at = scene.now + scene.stall();
                    return;
                }
                let Some(side) = &mut end.side else { return };
                side.wake(scene);
                let deadline = side.deadline();
                let later = deadline.is_none_or(|deadline| deadline > scene.now);
                assert!(later, "an expired deadline is still set: {deadline:?}");
            }
            Move::Act(at) => {
                let end = &mut self.ends[at];
                let pause = if scene.calm { 200 } else { 1500 };
                end.acts_at = scene.now + Duration::from_millis(1) + scene.random.millis(pause);
                if let Some(side) = &mut end.side {
                    side.act(scene);
                }
                self.trouble(scene);
            }
        }
        self.hang_up(scene);
    }

    /// Writes the waiting bytes, or a part of them.
    fn write(&mut self, at: usize, scene: &mut Scene) {
        let [client, server] = &mut self.ends;
        let (from, to) = if at == 0 { (client, server) } else { (server, client) };
        let room = to.inbound.room();
        let Some(side) = &mut from.side else { return };
        side.transmit(&mut |bytes| {
            let mut length = bytes.len().min(room);
            if length > 1 && scene.strikes(3) {
                scene.count(Happening::Split);
                length = 1 + scene.random.index(length - 1);
            }
            from.leaving.extend_from_slice(&bytes[..length]);
            to.inbound.write(&bytes[..length], scene);
            length
        });
        if scene.strikes(40) {
            scene.count(Happening::Stall);
            to.inbound.writable_at = scene.now + scene.stall();
        }
        while let Some(end) = from.leaving.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = from.leaving.drain(..=end).collect();
            let line = str::from_utf8(&line[..end]).expect("UTF-8");
            scene.tally.messages += 1;
            scene.note(format_args!(
                "{}.{} the {} sends {line}",
                self.number, self.generation, from.role
            ));
            // The rest of a line that was examined at its receiver is blank.
            if self.judged && !line.is_empty() {
                self.checker.examine(from.role, line);
            }
        }
    }

    fn read(&mut self, at: usize, scene: &mut Scene) {
        let [client, server] = &mut self.ends;
        let (end, unexamined) = if at == 0 { (client, server) } else { (server, client) };
        if scene.strikes(60) {
            scene.count(Happening::SlowReader);
            end.inbound.readable_at = scene.now + scene.stall();
            return;
        }
        let End { side, decoder, inbound, .. } = end;
        let Some(bytes) = inbound.read(scene) else {
            let rest = decoder.handle_eof();
            if let Some(side) = side {
                if let Some(rest) = rest {
                    // The end of its line was lost, so it was not examined when it was sent.
                    if let Ok(line) = rest
                        && line == unexamined.leaving
                        && self.judged
                    {
                        let line = str::from_utf8(line).expect("UTF-8");
                        self.checker.examine(unexamined.role, line);
                        unexamined.leaving.clear();
                    }
                    side.take(rest, scene);
                }
                side.end(scene);
            }
            return;
        };
        let Some(side) = side else { return };
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            rest = &rest[decoder.feed(rest)..];
            while let Some(frame) = decoder.next_frame() {
                side.take(frame, scene);
            }
        }
        if side.is_congested() {
            scene.count(Happening::Congested);
        }
    }

    /// Injects a random fault.
    fn trouble(&mut self, scene: &mut Scene) {
        if !scene.strikes(60) {
            return;
        }
        let at = scene.random.index(2);
        match scene.random.below(5) {
            0 => {
                scene.count(Happening::Cut);
                scene.note(format_args!("connection {} is cut", self.number));
                let cut = ENDS.map(|at| self.ends[at].inbound.cut(scene));
                if cut.contains(&true) {
                    scene.count(Happening::CutInFrame);
                }
            }
            1 => {
                scene.count(Happening::HalfClosed);
                let role = self.ends[at].role;
                scene.note(format_args!("{} closes towards the {role}", self.number));
                self.ends[at].inbound.close(scene.now);
            }
            2 => {
                let fault = [Happening::ClientRestart, Happening::ServerRestart][at];
                scene.count(fault);
                scene.note(format_args!("the {} {} crashes", self.ends[at].role, self.number));
                self.ends[at].side = None;
                if self.ends[1 - at].inbound.cut(scene) {
                    scene.count(Happening::CutInFrame);
                }
            }
            _ => {
                scene.count(Happening::Stall);
                self.ends[at].inbound.readable_at = scene.now + scene.stall();
            }
        }
    }

    /// Closes the output of a drained side, and both directions after a crash.
    fn hang_up(&mut self, scene: &Scene) {
        for at in ENDS {
            let done = match &self.ends[at].side {
                None => true,
                Some(side) => side.is_drained(),
            };
            if done {
                self.ends[1 - at].inbound.close(scene.now);
            }
        }
    }

    /// Returns whether both directions are closed.
    fn is_over(&mut self) -> bool {
        let written = self.ends[0].is_closed() && self.ends[1].is_closed();
        written && self.ends.iter().all(|end| !end.inbound.is_open())
    }

    fn is_quiet(&mut self) -> bool {
        ENDS.into_iter().all(|at| {
            let sent = self.ends[at].waiting() == 0;
            let end = &self.ends[at];
            let idle = end.side.as_ref().is_none_or(|side| side.is_closed() || side.pending() == 0);
            sent && idle && end.inbound.is_idle()
        })
    }
}

impl<M: Maker> Streams<M> {
    pub(crate) fn new(mut maker: M, scene: &mut Scene) -> Self {
        let count = 1 + scene.random.index(4);
        let connections =
            (0..count).map(|number| Connection::new(number, 0, &mut maker, scene)).collect();
        Self { maker, connections, renewals: 6 }
    }

    /// Makes one of the moves that are due, or advances the clock.
    fn step(&mut self, scene: &mut Scene) {
        scene.tally.steps += 1;
        let (mut ready, mut next) = (Vec::new(), None);
        for (number, connection) in self.connections.iter_mut().enumerate() {
            for at in ENDS {
                for what in [Move::Write(at), Move::Read(at), Move::Wake(at), Move::Act(at)] {
                    let Some(due) = connection.due(what, scene.now, scene.calm) else { continue };
                    if due <= scene.now {
                        ready.push((number, what));
                    } else if next.is_none_or(|next| due < next) {
                        next = Some(due);
                    }
                }
            }
        }
        if let Some(&(number, what)) = scene.random.pick(&ready) {
            self.connections[number].make(what, scene);
            self.connections[number].assert_consistent();
            return self.renew(number, scene);
        }
        let Some(next) = next else { return };
        scene.pass_to(next);
    }

    /// Opens a new connection in place of one that has ended.
    fn renew(&mut self, number: usize, scene: &mut Scene) {
        if scene.calm || self.renewals == 0 || !self.connections[number].is_over() {
            return;
        }
        if !scene.random.once_in(4) {
            return;
        }
        self.renewals -= 1;
        let generation = self.connections[number].generation + 1;
        self.connections[number] = Connection::new(number, generation, &mut self.maker, scene);
    }

    /// Runs the whole schedule: first with faults, then without, then the end.
    pub(crate) fn run(&mut self, moves: usize, scene: &mut Scene) {
        for _ in 0..moves {
            self.step(scene);
        }
        scene.calm = true;
        scene.note(format_args!("calm"));
        for connection in &mut self.connections {
            for at in ENDS {
                let end = &mut connection.ends[at];
                (end.inbound.readable_at, end.inbound.writable_at) = (scene.now, scene.now);
                end.wakes_at = scene.now;
            }
        }
        self.pump(scene);
        self.probe(scene);
        for connection in &mut self.connections {
            if let Some(client) = &mut connection.ends[0].side
                && !client.is_closed()
            {
                client.leave(scene);
            }
            connection.hang_up(scene);
        }
        self.pump(scene);
        for connection in &mut self.connections {
            connection.assert_over();
        }
    }

    /// Runs until no delivery or call is pending.
    fn pump(&mut self, scene: &mut Scene) {
        for _ in 0..MOVES_MAX {
            if self.connections.iter_mut().all(Connection::is_quiet) {
                return;
            }
            self.step(scene);
        }
        panic!("no end after {MOVES_MAX} moves");
    }

    /// Checks that every listening client still receives broadcasts and updates.
    fn probe(&mut self, scene: &mut Scene) {
        let heard = |connection: &Connection| {
            let client = connection.ends[0].side.as_ref();
            client.and_then(|client| Some((client.heard()?, client.listens())))
        };
        let before: Vec<_> = self.connections.iter().map(heard).collect();
        let mut open = Vec::new();
        for connection in &mut self.connections {
            let [client, server] = &mut connection.ends;
            let closed = client.is_closed() || server.is_closed();
            open.push(!closed && client.inbound.is_open() && server.inbound.is_open());
            if let Some(server) = &mut server.side {
                server.announce(scene);
            }
        }
        self.pump(scene);
        for ((connection, before), open) in self.connections.iter().zip(before).zip(open) {
            let Some(((_, updates), (hears, subscribed))) = before.filter(|_| open) else {
                continue;
            };
            let Some(((broadcast, updates_now), _)) = heard(connection) else { continue };
            let said = connection.ends[1].side.as_ref().map_or(0, |server| server.said());
            assert!(!hears || broadcast == said, "{} of {said}", broadcast);
            if let Some(expected) = subscribed {
                assert_eq!(updates_now - updates, expected, "updates of {}", connection.number);
            }
        }
    }
}

impl Connection {
    fn assert_over(&mut self) {
        let [client, server] = &mut self.ends;
        if let Some(side) = &client.side {
            assert!(
                side.is_closed() && side.deadline().is_none(),
                "the client is not closed or has a deadline"
            );
            assert_eq!(side.pending(), 0, "the client has pending work");
            assert!(side.is_drained() || server.side.is_none(), "the client is not drained");
        }
        if let Some(side) = &server.side {
            assert!(side.is_closed(), "the server is not closed");
            assert!(side.deadline().is_none(), "the server has a deadline: {:?}", side.deadline());
            let drained = side.is_drained() || side.pending() > 0;
            assert!(drained, "the server is not drained");
        }
    }
}
