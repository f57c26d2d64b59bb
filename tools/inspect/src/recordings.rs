//! Subcommands that use a recording instead of a server.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::diagram::{Diagram, page};
use mcp_sansio::recording::{Difference, Replay, ReplayError};
use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};
use mcp_sansio_cli::recording;

use crate::terminal::show;

/// The subcommand to run on a recording.
#[derive(Debug)]
pub(crate) enum Task {
    Replay { file: PathBuf, step: bool, wire: bool },
    Show { file: PathBuf, output: Option<PathBuf> },
}

impl Task {
    /// Parses a command line that starts with one of these subcommands. Returns `None` for any
    /// other.
    pub(crate) fn parse(arguments: &mut Arguments) -> Result<Option<Self>, Stop> {
        let replay = arguments.first() == Some("replay");
        if !replay && arguments.first() != Some("show") {
            return Ok(None);
        }
        let _name = arguments.shift()?;
        let (mut file, mut output, mut step, mut wire) = (None, None, false, false);
        while let Some(argument) = arguments.shift()? {
            match argument {
                Argument::Word(word) if file.is_none() => file = Some(word.into()),
                Argument::Word(word) => {
                    return Err(Stop::Wrong(format!("unexpected argument `{word}`")));
                }
                Argument::Rest(_) => return Err(Stop::wrong("unexpected argument `--`")),
                Argument::Flag(flag) => match flag.as_str() {
                    "--step" if replay => step = true,
                    "--wire" if replay => wire = true,
                    "-o" | "--output" if !replay => output = Some(arguments.value(&flag)?.into()),
                    _ => return Err(Stop::unknown(&flag)),
                },
            }
        }
        let file: PathBuf = file.ok_or_else(|| Stop::wrong("no recording is given"))?;
        Ok(Some(if replay {
            Self::Replay { file, step, wire }
        } else {
            Self::Show { file, output }
        }))
    }

    pub(crate) fn run(&self) -> Result<(), String> {
        match self {
            Self::Replay { file, step, wire } => replay(&read(file)?, *step, *wire),
            Self::Show { file, output } => {
                let drawn = page(&Diagram::read(&read(file)?)?);
                let output = output.clone().unwrap_or_else(|| file.with_extension("html"));
                recording::create_private(&output)
                    .and_then(|mut file| file.write_all(drawn.as_bytes()))
                    .map_err(|error| format!("cannot write {}: {error}", output.display()))?;
                show(&output.display().to_string());
                Ok(())
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

fn replay(recording: &[u8], every_step: bool, wire: bool) -> Result<(), String> {
    let mut replay = Replay::new(recording).map_err(|error| said(&error))?;
    loop {
        let step = match replay.step() {
            Ok(Some(step)) => step,
            Ok(None) => break,
            Err(error) => {
                let (inputs, outputs) = (replay.inputs(), replay.outputs());
                return Err(format!(
                    "{}\nbefore that: {inputs} inputs, {outputs} outputs, all as recorded",
                    said(&error)
                ));
            }
        };
        let moves = WIRE.iter().any(|verb| step.text.starts_with(&format!("{{\"{verb}\"")));
        if every_step || if wire { moves } else { !step.is_input } {
            let arrow = if step.is_input { "<--" } else { "-->" };
            show(&format!("{arrow} {}", step.text));
        }
    }
    let (inputs, outputs) = (replay.inputs(), replay.outputs());
    show(&format!("{inputs} inputs, {outputs} outputs, all as recorded"));
    Ok(())
}

/// The calls that transfer data on the wire.
const WIRE: [&str; 13] = [
    "message",
    "transmit",
    "sent",
    "request",
    "poll",
    "disconnect",
    "send",
    "abort",
    "response",
    "body",
    "body_end",
    "exchange_failed",
    "end_of_input",
];

fn said(error: &ReplayError) -> String {
    match error {
        ReplayError::Difference(Difference { line, recorded, replayed, .. }) => {
            format!("line {line} differs\nrecorded: {recorded}\nreplayed: {replayed}")
        }
        other => other.to_string(),
    }
}
