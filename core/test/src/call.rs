use alloc::string::String;
use alloc::sync::Arc;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::Tool;
use mcp_sansio_handlers::{Call, Client, Context, Host, NoArguments, Server};
use mcp_sansio_sync::Mutex;

use super::pair::{Pair, Transport};
use super::stream::connect;

/// Creates the call of a tool by hand, to test a handler as a function.
///
/// The call has the latest revision and no principal: see `Identity::call` for one with a
/// principal. Its connection is over, so that its progress and its logs are lost, and commands such
/// as `resource_updated` return `SendError::Closed`. To test those, and what clients receive, use
/// [`connect`](crate::connect()).
///
/// ```
/// use mcp_sansio_handlers::{Call, HandlerError};
///
/// struct Division { dividend: i64, divisor: i64 }
///
/// fn divide(call: Call<Division>) -> Result<i64, HandlerError> {
///     let Division { dividend, divisor } = call.arguments;
///     dividend.checked_div(divisor).ok_or_else(|| HandlerError::failed("not a number"))
/// }
///
/// let quotient = divide(mcp_sansio_test::call(Division { dividend: 6, divisor: 3 }));
/// assert_eq!(quotient.ok(), Some(2));
/// ```
#[must_use]
pub fn call<A>(arguments: A) -> Call<A> {
    Call::new(arguments, context(|server| connect(server, &Host::new("test", "1"))))
}

/// Returns the context of a call that a client of `connect` makes.
pub(crate) fn context<T: Transport>(connect: impl FnOnce(&Server) -> (Client, Pair<T>)) -> Context {
    let received = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&received);
    let receive = move |call: Call<NoArguments>| {
        let (_, context) = call.into_parts();
        slot.lock(|slot| *slot = Some(context));
        String::new()
    };
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("an object");
    let server = Server::new("test", "1").tool_with(Tool::new("tool", schema), receive);
    let (client, mut pair) = connect(&server);
    let called = pair.run(client.call_tool("tool", &NoArguments {}));
    called.unwrap_or_else(|error| panic!("the call failed: {error}"));
    let context = received.lock(Option::take);
    context.expect("the handler was called")
}
