//! A model and a machine with the same operations, and the transcript of both.

use std::fmt::{Display, Write};

use proptest::test_runner::{Config, TestCaseError};

use crate::outcome::Outcome;

/// A model, or a machine in its harness.
pub(crate) trait Subject<O> {
    fn apply(&mut self, operation: &O) -> Outcome;
}

/// Applies the operations to both. If they differ, the error is the transcript up to the expected
/// and the observed outcome.
pub(crate) fn compare<O: Display>(
    model: &mut impl Subject<O>,
    machine: &mut impl Subject<O>,
    setting: &impl Display,
    operations: &[O],
) -> Result<(), TestCaseError> {
    let mut story = format!("\n{setting}\n");
    for operation in operations {
        let expected = model.apply(operation);
        let mut seen = machine.apply(operation);
        if expected.unordered {
            seen.sort();
        }
        let _ = writeln!(story, "  {operation}");
        if expected != seen {
            let _ = write!(story, "  expected:\n{expected}  seen:\n{seen}");
            return Err(TestCaseError::fail(story));
        }
        let _ = write!(story, "{seen}");
    }
    Ok(())
}

/// Returns a configuration with `cases` cases, unless the environment sets their number. Failures
/// are not stored: each becomes a named test.
pub(crate) fn config(cases: u32) -> Config {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config { failure_persistence: None, ..Config::default() };
    if asked { config } else { Config { cases, ..config } }
}
