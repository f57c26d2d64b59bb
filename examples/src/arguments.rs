//! Command lines, taken apart by hand: a few flags need no library.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;

/// The arguments of a process, one after the other.
#[derive(Debug)]
pub struct Arguments(VecDeque<String>);

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// `--name`; what follows an `=` is the next value.
    Flag(String),
    /// Anything else.
    Word(String),
    /// What stands behind `--`.
    Rest(Vec<String>),
}

/// Why a program does not start to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was asked how to use it.
    Help,
    /// It was used wrongly, and how.
    Wrong(String),
}

impl Stop {
    /// A wrong use.
    pub fn wrong(message: impl Into<String>) -> Self {
        Self::Wrong(message.into())
    }

    /// A flag that the program does not have.
    #[must_use]
    pub fn unknown(flag: &str) -> Self {
        Self::Wrong(format!("there is no option `{flag}`"))
    }

    /// Says so, and with what status to exit: 0 after help, else 2.
    #[must_use]
    pub fn report(&self, program: &str, usage: &str) -> ExitCode {
        // Nobody is left to tell if these fail.
        match self {
            Self::Help => {
                let _ = io::stdout().write_all(usage.as_bytes());
                ExitCode::SUCCESS
            }
            Self::Wrong(message) => {
                let _ = writeln!(
                    io::stderr(),
                    "{program}: {message}\n`{program} --help` tells how to use it"
                );
                ExitCode::from(2)
            }
        }
    }
}

impl Arguments {
    /// Those of this process, without its name.
    ///
    /// # Errors
    ///
    /// The caller's fault: one of them is not UTF-8.
    pub fn from_args() -> Result<Self, Stop> {
        let texts = std::env::args_os().skip(1).map(|argument| {
            argument
                .into_string()
                .map_err(|argument| Stop::Wrong(format!("{argument:?} is not valid UTF-8")))
        });
        texts.collect::<Result<_, _>>().map(Self)
    }

    /// The first of those that are left, as it was written.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.0.front().map(String::as_str)
    }

    /// The next argument.
    ///
    /// # Errors
    ///
    /// Help was asked for.
    pub fn shift(&mut self) -> Result<Option<Argument>, Stop> {
        let Some(text) = self.0.pop_front() else { return Ok(None) };
        match text.as_str() {
            "--" => Ok(Some(Argument::Rest(self.0.drain(..).collect()))),
            "--help" | "-h" => Err(Stop::Help),
            _ if text.len() > 1 && text.starts_with('-') => {
                let (flag, value) = match text.split_once('=') {
                    Some((flag, value)) => (flag, Some(value)),
                    None => (text.as_str(), None),
                };
                if let Some(value) = value {
                    self.0.push_front(value.into());
                }
                Ok(Some(Argument::Flag(flag.into())))
            }
            _ => Ok(Some(Argument::Word(text))),
        }
    }

    /// The value of `flag`, which is the next argument.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn value(&mut self, flag: &str) -> Result<String, Stop> {
        let missing = || Stop::Wrong(format!("`{flag}` needs a value"));
        self.0.pop_front().filter(|value| value != "--").ok_or_else(missing)
    }
}

impl<const N: usize> From<[&str; N]> for Arguments {
    fn from(texts: [&str; N]) -> Self {
        Self(texts.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_words_and_the_rest_are_told_apart() {
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
    fn what_is_missing_is_named() {
        let mut arguments = Arguments::from(["--a", "--"]);
        assert!(arguments.shift().is_ok());
        assert_eq!(arguments.value("--a"), Err(Stop::wrong("`--a` needs a value")));
        assert_eq!(Arguments::from(["--help"]).shift(), Err(Stop::Help));
    }
}
