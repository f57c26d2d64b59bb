//! A user signs in.

use crate::world::{World, code};

#[test]
fn a_user_signs_in_when_the_server_asks_for_a_token() {
    // Rule: [AUTHC-005] [AUTHC-015] [AUTHC-040] [AUTHC-043].
    let mut world = World::new(code());
    insta::assert_snapshot!(world.run(), @"");
    world.call("echo");
    insta::assert_snapshot!(world.run(), @"");
}
