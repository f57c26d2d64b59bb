use core::marker::PhantomData;

use mcp_sansio::jsonrpc::{ErrorObject, Json};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::{Call, FromRequest, RequestParts};
use crate::reply::{ForRequest, HandlerError, IntoOutcome, Outcome, ResultBody};

/// Marks handlers of an extension's requests at a server, with parameters `P` and result `R`.
#[derive(Clone, Copy, Debug)]
pub struct ForExtension<P, R>(PhantomData<fn(P) -> R>);

/// Marks handlers of an extension's requests at a host, with parameters `P` and result `R`.
#[derive(Clone, Copy, Debug)]
pub struct ForHostExtension<P, R>(PhantomData<fn(P) -> R>);

// MCP 2026-07-28 extensions:SEP-2133#security-implications [EXT-016]: parameters of
// another type are refused.
impl<P: DeserializeOwned, R> FromRequest<ForExtension<P, R>> for Call<P> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        <Self as FromRequest<ForRequest>>::from_request(received)
    }
}

macro_rules! results {
    ($($of:ident),+) => { $(
        impl<P, R: Serialize> IntoOutcome<$of<P, R>> for R {
            fn into_outcome(self) -> Outcome {
                result(&self)
            }
        }

        impl<P, R: Serialize> IntoOutcome<$of<P, R>> for Result<R, HandlerError> {
            fn into_outcome(self) -> Outcome {
                self.map_or_else(HandlerError::into_outcome, |reply| result(&reply))
            }
        }
    )+ };
}

results!(ForExtension, ForHostExtension);

fn result<R: Serialize>(reply: &R) -> Outcome {
    match Json::from_serialize(reply) {
        Ok(json) if json.as_str().starts_with('{') => Outcome::Result(ResultBody::Other(json)),
        Ok(_) => Outcome::Error(ErrorObject::internal("the result is not an object")),
        Err(_) => Outcome::Error(ErrorObject::internal("the result cannot be serialized")),
    }
}
