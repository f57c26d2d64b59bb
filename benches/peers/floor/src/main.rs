//! The lower bound of the comparison: reads and writes the same bytes with `serde_json`, without
//! any checks.

mod http;
mod messages;

use std::io::{BufRead, BufReader, Write, stdin, stdout};

use messages::{answer, call, result_text};
use serde_json::value::RawValue;
use shape::{Meter, Subject, Task, Work};

/// The number of responses that are written first, so that the client can continue while the server
/// produces the others.
const FIRST_BURST: u32 = 2;

fn main() {
    match Subject::from_args().task {
        Task::Link { work, rounds } => link(work, rounds),
        Task::Pairs(_) => panic!("the floor has no clients and servers to open"),
        Task::Stdio => serve_stdio().expect("serves"),
        Task::Http { address, .. } => http::serve(&address),
    }
}

fn link(work: Work, rounds: u64) {
    let text = RawValue::from_string(format!("\"{}\"", work.text())).expect("JSON");
    let (mut request, mut response) = (Vec::new(), Vec::new());
    let meter = Meter::start();
    for id in 0..rounds {
        request.clear();
        response.clear();
        call(id, work, &text, &mut request);
        answer(&request, &mut response);
        let result = result_text(&response);
        assert_eq!(result, (work != Work::Ping).then_some(text.get()));
    }
    meter.report();
}

/// Reads the available messages and writes the responses after 2 of them, after 4 more, and so on.
fn serve_stdio() -> std::io::Result<()> {
    let (mut input, mut output) = (BufReader::with_capacity(64 * 1024, stdin()), stdout());
    let (mut line, mut answers) = (Vec::new(), Vec::new());
    let (mut burst, mut left) = (FIRST_BURST, FIRST_BURST);
    while input.read_until(b'\n', &mut line)? > 0 {
        if answer(&line, &mut answers) {
            answers.push(b'\n');
        }
        line.clear();
        left -= 1;
        let last = !input.buffer().contains(&b'\n');
        if last || left == 0 {
            burst = if last { FIRST_BURST } else { burst * 2 };
            left = burst;
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
    Ok(())
}
