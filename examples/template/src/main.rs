use mcp_sansio_tokio::{self as mcp, Call, HandlerError, Server};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The numbers to add
    numbers: Vec<i64>,
}

async fn add(call: Call<Sum>) -> Result<String, HandlerError> {
    let sum = call.arguments.numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number));
    // An error is for the model, which may call again with other arguments.
    sum.map(|sum| sum.to_string()).ok_or_else(|| HandlerError::failed("the sum is too large"))
}

fn server() -> Server {
    Server::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).tool("add", "Adds numbers", add)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mcp::Error> {
    mcp::serve_stdio(server()).await
}

#[cfg(test)]
mod tests {
    use mcp_sansio_tokio::Host;
    use serde_json::json;

    #[test]
    fn numbers_are_added() {
        let (client, mut pair) = mcp_sansio_test::connect(&super::server(), &Host::new("test", "1"));
        let result = pair.run(client.call_tool("add", &json!({ "numbers": [20, 22] }))).unwrap();
        assert_eq!(result.first_text(), Some("42"));
    }
}
