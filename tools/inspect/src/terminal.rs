//! Output for people: colours, tables and a progress bar, where a stream is a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_sansio::Printable;

use crate::NAME;

/// A style of text.
#[derive(Clone, Copy)]
pub(crate) struct Style(&'static str);

/// For names and labels.
pub(crate) const BOLD: Style = Style("\x1b[1m");

/// For failures.
const RED: Style = Style("\x1b[31m");

const RESET: &str = "\x1b[0m";

/// Returns to the start of the line, and erases it.
const ERASE_LINE: &str = "\r\x1b[K";

/// The width of the progress bar.
const BAR_WIDTH: u16 = 24;

/// The maximum length of the message next to the progress bar, so that both fit in a line.
const MESSAGE_LENGTH_MAX: usize = 40;

/// The maximum width of the names in a table.
const NAME_WIDTH_MAX: usize = 32;

/// Whether the current line of standard error is a progress bar.
static HAS_BAR: AtomicBool = AtomicBool::new(false);

/// Prints a line of results, without control characters of the server. Write errors are ignored.
pub(crate) fn show(line: &str) {
    erase_bar();
    let _ = writeln!(io::stdout(), "{}", Printable::new(line));
}

/// Prints a line to standard error, separate from the results.
pub(crate) fn say(line: &str) {
    erase_bar();
    let _ = writeln!(io::stderr(), "{}", Printable::new(line));
}

/// Prints why the command failed to standard error.
pub(crate) fn say_failure(message: &str) {
    erase_bar();
    let name = painted(&io::stderr(), RED, &format!("{NAME}:"));
    let _ = writeln!(io::stderr(), "{name} {}", Printable::new(message));
}

/// Prints a labelled value.
pub(crate) fn show_field(label: &str, value: &str) {
    erase_bar();
    let label = painted(&io::stdout(), BOLD, &format!("{label:<12}"));
    let _ = writeln!(io::stdout(), "{label}  {}", Printable::new(value));
}

/// Prints names with their descriptions: as a table on a terminal, otherwise each in a line of its
/// own, so that other programs can read it.
pub(crate) fn show_table(rows: &[(&str, Option<&str>)]) {
    erase_bar();
    let mut stdout = io::stdout();
    if !stdout.is_terminal() {
        for (name, about) in rows {
            let words = [name, about.unwrap_or_default()].map(lines_joined);
            show(words.join("  ").trim_end());
        }
        return;
    }
    let printable = |text: &str| Printable::new(text).to_string();
    let rows: Vec<_> = rows.iter().map(|(n, a)| (printable(n), a.map(printable))).collect();
    let widths = rows.iter().map(|(name, _)| name.chars().count());
    let width = widths.max().unwrap_or_default().min(NAME_WIDTH_MAX);
    for (name, about) in &rows {
        let name = painted(&stdout, BOLD, &format!("{name:<width$}"));
        let mut lines = about.as_deref().unwrap_or_default().lines();
        let _ = writeln!(stdout, "{name}  {}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(stdout, "{:width$}  {line}", "");
        }
    }
}

fn lines_joined(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Prints the progress of a call to standard error, in a line of its own.
pub(crate) fn say_progress(progress: f64, total: Option<f64>, message: &str) {
    let total = total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    say(&format!("progress: {progress}{total}{message}"));
}

/// Draws the progress of a call on a terminal, in place of the one before.
pub(crate) fn draw_progress(progress: f64, total: Option<f64>, message: &str) {
    let mut stderr = io::stderr();
    if !moves_cursor(&stderr) {
        return say_progress(progress, total, message);
    }
    let bar = match total {
        Some(total) if total > 0.0 => {
            let part = (progress / total).clamp(0.0, 1.0);
            let is_done = |at: u16| (f64::from(at) + 0.5) / f64::from(BAR_WIDTH) < part;
            let bar = (0..BAR_WIDTH).map(|at| if is_done(at) { '#' } else { '-' });
            format!("[{}] {:3.0} %", bar.collect::<String>(), part * 100.0)
        }
        _ => format!("progress: {progress}"),
    };
    let line = message.lines().next().unwrap_or_default();
    let message: String = line.chars().take(MESSAGE_LENGTH_MAX).collect();
    let _ = write!(stderr, "{ERASE_LINE}{bar} {}", Printable::new(&message));
    let _ = stderr.flush();
    HAS_BAR.store(true, Ordering::Relaxed);
}

fn erase_bar() {
    if HAS_BAR.swap(false, Ordering::Relaxed) {
        let _ = write!(io::stderr(), "{ERASE_LINE}");
    }
}

fn painted(stream: &impl IsTerminal, style: Style, text: &str) -> String {
    let text = Printable::new(text);
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_plain || !moves_cursor(stream) {
        return text.to_string();
    }
    format!("{}{text}{RESET}", style.0)
}

/// Whether a stream is a terminal that obeys control sequences.
fn moves_cursor(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}
