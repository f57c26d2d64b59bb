//! Streams of an HTTP server and their model; the test is a client that loses its connections.

mod machine;
mod model;
mod operation;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::transcript::{compare, config};
use machine::Machine;
use model::Model;
use operation::{operation, setting};

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn streams_are_resumed_as_the_model_says(
        setting in setting(),
        operations in vec(operation(), 1..80),
    ) {
        let mut machine = Machine::new(&setting);
        compare(&mut Model::new(&setting), &mut machine, &setting, &operations)?;
    }
}
