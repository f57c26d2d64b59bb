//! The types between a function and the request that it handles.
//!
//! A program that only registers functions does not name them. [`Handler`] says which functions can
//! be registered: its parameter implements [`FromRequest`], its result [`IntoOutcome`], each for
//! the kind of request that its result type names. Implement these two for types of your own.
//!
//! ```
//! use mcp_sansio::protocol::CallToolResult;
//! use mcp_sansio_handlers::handler::{IntoOutcome, Outcome};
//! use mcp_sansio_handlers::{Call, NoArguments, Server};
//!
//! struct Celsius(f32);
//!
//! impl IntoOutcome<CallToolResult> for Celsius {
//!     fn into_outcome(self) -> Outcome {
//!         IntoOutcome::<CallToolResult>::into_outcome(format!("{:.1} °C", self.0))
//!     }
//! }
//!
//! let server = Server::new("thermometer", "1.0.0")
//!     .tool("read", "The temperature", |_: Call<NoArguments>| Celsius(21.5));
//! ```

pub use super::context::{FromRequest, LogSource, RequestParts};
pub use super::function::{Async, Blocking, Callback, Fallible, Handler, HandlerInput};
#[cfg(feature = "http")]
pub use super::protection::{TokenCheckFuture, TokenResult};
pub use super::reply::{AnyResult, IntoOutcome, Outcome, ResultBody};
#[cfg(feature = "schemars")]
pub use super::schema::{Described, DescribedOutput};
pub use super::server_item::ItemDefinition;
pub use super::state::{StateTypes, States, TakesState};
pub use super::threading::{Step, Threading};
pub use mcp_sansio::{Job, Spawner};
