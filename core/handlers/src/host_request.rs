use alloc::string::ToString;

use mcp_sansio::Revision;
use mcp_sansio::protocol::{CreateMessageParams, ElicitParams};
use serde::de::DeserializeOwned;

use super::context::{FromRequest, RequestParts, invalid_params};
use super::reply::{ForElicitation, ForRoots, ForSampling, HandlerError};

/// A request to a host, with its revision.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostRequest<P> {
    /// The parameters of the request.
    pub params: P,
    /// The revision that governs the request.
    pub revision: Revision,
}

impl<P: DeserializeOwned> HostRequest<P> {
    fn decode(received: &RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let params = received.params.decode().map_err(|error| invalid_params(&error))?;
        Ok(Self { params, revision: received.revision })
    }
}

impl FromRequest<ForElicitation> for HostRequest<ElicitParams> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        Self::decode(&received)
    }
}

impl FromRequest<ForSampling> for HostRequest<CreateMessageParams> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let question = Self::decode(&received)?;
        let matching = question.params.check_tool_results();
        // MCP 2025-11-25 client/sampling#error-handling [SAMP-011]
        matching.map_err(|error| HandlerError::invalid_params(error.to_string()))?;
        Ok(question)
    }
}

impl FromRequest<ForRoots> for HostRequest<()> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        Ok(Self { params: (), revision: received.revision })
    }
}
