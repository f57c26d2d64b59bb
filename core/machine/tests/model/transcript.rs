//! A model and a machine under the same operations, told as one story.

use std::fmt::{Display, Write};

use proptest::test_runner::{Config, TestCaseError};

use crate::outcome::Outcome;

/// What takes operations: a model, or a machine in its harness.
pub(crate) trait Subject<O> {
    fn apply(&mut self, operation: &O) -> Outcome;
}

/// Applies the operations to both. Where they differ the error is the whole conversation, up to
/// what was expected and what was seen.
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

/// `cases`, unless the environment says otherwise. What fails becomes a test with a name.
pub(crate) fn config(cases: u32) -> Config {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config { failure_persistence: None, ..Config::default() };
    if asked { config } else { Config { cases, ..config } }
}
