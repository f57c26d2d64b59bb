//! A server machine and its model; the test is the client.

mod machine;
mod model;
mod operation;

use mcp_sansio::peer::Server;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::transcript::{compare, config};
use machine::Machine;
use model::Model;
use operation::{operation, setting, traffic};

pub(crate) use operation::policy;

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_server_behaves_like_its_model(
        setting in setting(),
        operations in vec(operation(), 1..60),
    ) {
        let mut machine = Machine::new(Server::new(setting.options(), 0));
        compare(&mut Model::new(&setting), &mut machine, &setting, &operations)?;
    }

    #[test]
    fn the_gate_of_a_session_is_that_of_the_model(
        setting in setting(),
        operations in traffic(),
    ) {
        let mut machine = Machine::new(Server::new(setting.options(), 0));
        compare(&mut Model::new(&setting), &mut machine, &setting, &operations)?;
    }
}
