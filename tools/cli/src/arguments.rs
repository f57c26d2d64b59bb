//! A minimal command line parser for a few flags.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;

/// The arguments of a process, in order.
#[derive(Debug)]
pub struct Arguments {
    rest: VecDeque<String>,
    /// The flag whose value is the first of these, behind `=`, until it is taken.
    attached: Option<String>,
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `--name`. A part after `=` is the next value.
    Flag(String),
    /// A positional argument.
    Word(String),
    /// The arguments after `--`.
    Rest(Vec<String>),
}

/// Why a program stops before it does its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Help was requested.
    Help,
    /// The command line is invalid, with a message.
    Wrong(String),
}

impl Stop {
    /// Creates a [`Stop::Wrong`].
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }

    /// Returns the error for an unknown option.
    #[must_use]
    pub fn unknown(flag: &str) -> Self {
        Self::Wrong(format!("unknown option `{flag}`"))
    }

    /// Prints the help or the message, and returns the exit status: 0 for help, otherwise 2.
    #[must_use]
    pub fn report(&self, program: &str, usage: &str) -> ExitCode {
        // There is nothing left to report a write error to.
        match self {
            Self::Help => {
                let _ = io::stdout().write_all(usage.as_bytes());
                ExitCode::SUCCESS
            }
            Self::Wrong(message) => {
                let _ = writeln!(io::stderr(), "{program}: {message}\nsee `{program} --help`");
                ExitCode::from(2)
            }
        }
    }
}

impl FromIterator<String> for Arguments {
    /// Takes arguments, without a program name.
    fn from_iter<T: IntoIterator<Item = String>>(arguments: T) -> Self {
        Self { rest: arguments.into_iter().collect(), attached: None }
    }
}

impl Arguments {
    /// Returns the arguments of this process, without the program name.
    ///
    /// # Errors
    ///
    /// Fails if an argument is not valid UTF-8.
    pub fn from_args() -> Result<Self, Stop> {
        let texts = std::env::args_os().skip(1).map(|argument| {
            argument
                .into_string()
                .map_err(|argument| Stop::Wrong(format!("{argument:?} is not valid UTF-8")))
        });
        Ok(Self { rest: texts.collect::<Result<_, _>>()?, attached: None })
    }

    /// Returns the first remaining argument as it was written.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.rest.front().map(String::as_str)
    }

    /// Removes and returns the next argument.
    ///
    /// # Errors
    ///
    /// Returns [`Stop::Help`] if help is requested.
    pub fn shift(&mut self) -> Result<Option<Argument>, Stop> {
        if let Some(flag) = self.attached.take() {
            return Err(Stop::Wrong(format!("`{flag}` takes no value")));
        }
        let Some(text) = self.rest.pop_front() else { return Ok(None) };
        match text.as_str() {
            "--" => Ok(Some(Argument::Rest(self.rest.drain(..).collect()))),
            "--help" | "-h" => Err(Stop::Help),
            _ if text.len() > 1 && text.starts_with('-') => {
                let (flag, value) = match text.split_once('=') {
                    Some((flag, value)) => (flag, Some(value)),
                    None => (text.as_str(), None),
                };
                if let Some(value) = value {
                    self.rest.push_front(value.into());
                    self.attached = Some(flag.into());
                }
                Ok(Some(Argument::Flag(flag.into())))
            }
            _ => Ok(Some(Argument::Word(text))),
        }
    }

    /// Removes and returns the value of `flag`, which is the next argument.
    ///
    /// # Errors
    ///
    /// Fails if the value is missing.
    pub fn value(&mut self, flag: &str) -> Result<String, Stop> {
        let missing = || Stop::Wrong(format!("`{flag}` needs a value"));
        self.attached = None;
        self.rest.pop_front().filter(|value| value != "--").ok_or_else(missing)
    }
}

impl<const N: usize> From<[&str; N]> for Arguments {
    fn from(texts: [&str; N]) -> Self {
        texts.into_iter().map(Into::into).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_words_and_the_rest_are_distinguished() {
        let mut arguments = Arguments::from(["--a", "1", "--b=2=3", "word", "-", "--", "--c", "x"]);
        assert_eq!(arguments.shift(), Ok(Some(Argument::Flag("--a".into()))));
        assert_eq!(arguments.value("--a"), Ok("1".into()));
        assert_eq!(arguments.shift(), Ok(Some(Argument::Flag("--b".into()))));
        assert_eq!(arguments.value("--b"), Ok("2=3".into()));
        assert_eq!(arguments.shift(), Ok(Some(Argument::Word("word".into()))));
        assert_eq!(arguments.shift(), Ok(Some(Argument::Word("-".into()))));
        assert_eq!(arguments.shift(), Ok(Some(Argument::Rest(vec!["--c".into(), "x".into()]))));
        assert_eq!(arguments.shift(), Ok(None));
    }

    #[test]
    fn a_missing_value_is_an_error_that_names_its_flag() {
        let mut arguments = Arguments::from(["--a", "--"]);
        assert!(arguments.shift().is_ok());
        assert_eq!(arguments.value("--a"), Err(Stop::wrong("`--a` needs a value")));
        assert_eq!(Arguments::from(["--help"]).shift(), Err(Stop::Help));
        let mut arguments = Arguments::from(["--json=true", "info"]);
        assert!(arguments.shift().is_ok());
        assert_eq!(arguments.shift(), Err(Stop::wrong("`--json` takes no value")));
    }
}
