//! The types between a function and the request that it handles.
//!
//! A program that only registers functions does not name them. [`Handler`] says which functions can
//! be registered: its parameter implements [`FromRequest`], its result [`IntoOutcome`], each for
//! the kind of request that a `For` type names. Implement these two for types of your own.
//!
//! ```
//! use mcp_sansio_handlers::handler::{ForTool, IntoOutcome, Outcome};
//! use mcp_sansio_handlers::{Call, NoArguments, Server};
//!
//! struct Celsius(f32);
//!
//! impl IntoOutcome<ForTool> for Celsius {
//!     fn into_outcome(self) -> Outcome {
//!         IntoOutcome::<ForTool>::into_outcome(format!("{:.1} °C", self.0))
//!     }
//! }
//!
//! let server = Server::new("thermometer", "1.0.0")
//!     .tool("read", "The temperature", |_: Call<NoArguments>| Celsius(21.5));
//! ```

pub use super::arguments::ForCompletion;
pub use super::ask::InputRequired;
#[cfg(all(feature = "client", feature = "http"))]
pub use super::authorization::AuthorizationFunction;
pub use super::context::{FromRequest, RequestParts};
pub use super::function::{Async, Handler, HandlerInput, Plain};
pub use super::function::{Blocking, BlockingMarker};
pub use super::function::{Fallible, FallibleMarker, WithError};
#[cfg(feature = "http")]
pub use super::protection::TokenCheckFuture;
#[cfg(feature = "http")]
pub use super::protection::{TokenHandler, TokenResult, TokenStep};
pub use super::reply::{
    AnyResult, ForElicitation, ForPrompt, ForRequest, ForResource, ForRoots, ForSampling, ForTool,
    IntoOutcome, Outcome, ResultBody,
};
#[cfg(feature = "schemars")]
pub use super::schema::{Described, DescribedOutput};
pub use super::server_item::ItemDefinition;
pub use super::state::{StateTypes, States, TakesState, WithState};
pub use super::threading::{Step, Threading};
pub use mcp_sansio::Job;
