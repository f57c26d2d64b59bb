//! Calls made by hand.

use mcp_sansio::Revision;
use mcp_sansio_handlers::{Context, SendError};

/// Uses everything in the context of a handler.
fn uses(context: &Context) -> Result<(), SendError> {
    context.progress(1.0, None, "");
    context.resource_updated("file:///a")
}

#[test]
fn a_call_by_hand_has_no_connection() {
    let (arguments, context) = mcp_sansio_test::call(7).into_parts();
    assert_eq!((arguments, context.revision()), (7, Revision::LATEST));
    assert!(context.principal().is_none() && !context.is_cancelled());
    assert_eq!(uses(&context), Err(SendError::Closed));
}

#[test]
fn a_call_by_hand_has_the_scopes_of_its_identity() {
    let identity = mcp_sansio_test::Identity::new("ann").scopes(["write"]);
    let (_, context) = identity.call(()).into_parts();
    assert_eq!(context.principal().map(|it| it.as_str()), Some("ann"));
    assert!(context.caller().has_scope("write") && !context.caller().has_scope("read"));
    assert_eq!(uses(&context), Err(SendError::Closed));
}
