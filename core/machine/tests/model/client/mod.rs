//! A client machine and its model; the test is the server.

mod machine;
mod model;
mod operation;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::transcript::{compare, config};
use machine::Machine;
use model::Model;
use operation::{opening, operation, setting};

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_client_behaves_like_its_model(
        (setting, opening) in setting().prop_flat_map(|it| (Just(it.clone()), opening(&it))),
        operations in vec(operation(), 1..60),
    ) {
        let operations = [opening, operations].concat();
        let mut machine = Machine::new(setting.options());
        compare(&mut Model::new(&setting), &mut machine, &setting, &operations)?;
    }
}
