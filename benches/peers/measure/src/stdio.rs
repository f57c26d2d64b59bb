//! Servers on standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Effort;
use crate::messages::{self, INITIALIZE, INITIALIZED, STEPS};
use crate::process::Process;
use crate::programs::{PYTHON, Program, TYPESCRIPT};
use crate::table::{Table, spread};

const WINDOW: u64 = 16;

/// How often each figure is measured.
const SERIES: u32 = 5;

const PROGRAMS: [Program; 11] = [
    Program::new("this project: std", "peer-sansio", "std"),
    Program::new("this project: tokio", "peer-sansio", "tokio"),
    Program::new("this project: tokio, 2026-07-28", "peer-sansio", "tokio").modern(),
    Program::new("rmcp 3.11.0, as documented", "peer-rmcp", "documented"),
    Program::new("rmcp 3.11.0, router kept", "peer-rmcp", "cached"),
    Program::new("rmcp 3.11.0, router kept, pipes", "peer-rmcp", "cached-pipes"),
    Program::new("tower-mcp 0.25.0", "peer-tower-mcp", "documented"),
    Program::new("rust-mcp-sdk 2.0.0, 2026-07-28", "peer-rust-mcp-sdk", "documented").modern(),
    Program::new("TypeScript SDK 2.4.0", TYPESCRIPT, "documented"),
    Program::new("Python SDK 2.3.0", PYTHON, "documented"),
    Program::new("floor", "peer-floor", "serde_json"),
];

pub(crate) fn compare(effort: Effort) {
    let mut table = Table::default();
    for program in PROGRAMS {
        let Some(path) = program.build() else { continue };
        let mut session = Session::open(&path, &program);
        let part = effort.time / SERIES;
        session.echo(WINDOW, part);
        let busy: Vec<_> = (0..SERIES).map(|_| session.echo(WINDOW, part)).collect();
        let single: Vec<_> = (0..SERIES).map(|_| session.echo(1, part)).collect();
        let reported: Option<Vec<_>> = session
            .progress(part)
            .and_then(|_| (0..SERIES).map(|_| session.progress(part)).collect());
        let reported = reported.map_or_else(|| "answers first".into(), spread);
        let of = |series: &[Series], figure: fn(&Series) -> f64| {
            spread(series.iter().map(figure).collect())
        };
        let figures = vec![
            ("echo 64 B, 16 in flight: CPU, µs".into(), of(&busy, Series::cpu_per_call)),
            ("echo 64 B, 16 in flight: a second".into(), of(&busy, Series::calls_a_second)),
            ("echo 64 B, 1 in flight: CPU, µs".into(), of(&single, Series::cpu_per_call)),
            ("echo 64 B, 1 in flight: p50, µs".into(), of(&single, Series::median)),
            (format!("{STEPS} notifications: CPU, µs"), reported),
        ];
        table.column(program.title, figures);
    }
    table.print("On standard streams, a call; at 2025-11-25 unless stated");
}

/// Measurements for a series of calls.
struct Series {
    cpu: Duration,
    time: Duration,
    latencies: Vec<Duration>,
}

impl Series {
    fn cpu_per_call(&self) -> f64 {
        micros(self.cpu) / self.latencies.len() as f64
    }

    fn calls_a_second(&self) -> f64 {
        self.latencies.len() as f64 / self.time.as_secs_f64()
    }

    /// The median latency.
    fn median(&self) -> f64 {
        let mut latencies = self.latencies.clone();
        latencies.sort();
        micros(latencies[latencies.len() / 2])
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A session with a server process.
struct Session {
    modern: bool,
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    next_id: u64,
}

impl Session {
    fn open(path: &Path, program: &Program) -> Self {
        let mut command = Command::new(path);
        command.args([program.variant, "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("the server starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::with_capacity(64 * 1024, child.stdout.take().expect("a pipe"));
        let process = Process(child);
        let (modern, line) = (program.modern, String::new());
        let mut session = Self { modern, process, input, output, line, next_id: 1 };
        if modern {
            return session;
        }
        session.write(&format!("{INITIALIZE}\n"));
        while session.read_answer() != 0 {}
        session.write(&format!("{INITIALIZED}\n"));
        session
    }

    /// Calls `echo` for `time`, with `window` calls in flight.
    fn echo(&mut self, window: u64, time: Duration) -> Series {
        let (start, cpu) = (Instant::now(), self.process.cpu());
        let mut latencies = Vec::new();
        // The start times of the calls in flight, of which there are few.
        let mut in_flight: Vec<(u64, Instant)> = Vec::new();
        let mut requests = String::new();
        for _ in 0..window {
            self.call(&mut in_flight, &mut requests);
        }
        while !in_flight.is_empty() {
            // All available responses are processed before the next requests go out in one write,
            // as other clients do.
            if !requests.is_empty() && !self.output.buffer().contains(&b'\n') {
                self.write(&requests);
                requests.clear();
            }
            let id = self.read_answer();
            messages::check_echo(&self.line, id);
            let index = in_flight.iter().position(|(known, _)| *known == id);
            let (_, since) = in_flight.swap_remove(index.expect("an answer to a call"));
            latencies.push(since.elapsed());
            if start.elapsed() < time {
                self.call(&mut in_flight, &mut requests);
            }
        }
        Series { cpu: self.process.cpu() - cpu, time: start.elapsed(), latencies }
    }

    /// Calls `progress` for `time`, one call at a time. Returns the CPU time of the server for a call, in
    /// microseconds, or `None` if a response arrives before all of its notifications.
    fn progress(&mut self, time: Duration) -> Option<f64> {
        let (start, cpu) = (Instant::now(), self.process.cpu());
        let mut calls = 0_u32;
        while start.elapsed() < time {
            let id = self.take_id();
            let request = if self.modern { messages::modern_progress } else { messages::progress };
            self.write(&format!("{}\n", request(id)));
            let mut steps = 0;
            let answered = loop {
                self.read();
                steps += messages::steps(&self.line);
                if let Some(answered) = messages::answered(&self.line) {
                    break answered;
                }
            };
            assert_eq!(answered, id, "{}", self.line);
            if steps != STEPS {
                return None;
            }
            calls += 1;
        }
        Some(micros(self.process.cpu() - cpu) / f64::from(calls))
    }

    fn call(&mut self, in_flight: &mut Vec<(u64, Instant)>, requests: &mut String) {
        let id = self.take_id();
        in_flight.push((id, Instant::now()));
        let request = if self.modern { messages::modern_echo } else { messages::echo };
        requests.push_str(&request(id));
        requests.push('\n');
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn write(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).expect("the server reads");
    }

    fn read(&mut self) {
        self.line.clear();
        let length = self.output.read_line(&mut self.line).expect("the server writes");
        assert!(length > 0, "the server has ended");
    }

    /// Reads until a response arrives and returns its request id.
    fn read_answer(&mut self) -> u64 {
        loop {
            self.read();
            if let Some(id) = messages::answered(&self.line) {
                return id;
            }
        }
    }
}
