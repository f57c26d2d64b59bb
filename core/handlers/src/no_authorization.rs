//! The replacement for `authorization` without the feature `auth`.

use core::marker::PhantomData;
use core::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::http::{ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse};

use super::client::http::HttpClient;
use super::executor::PanicGuard;
use super::threading::Threading;

/// Connects the machine of a connection directly to the network.
#[derive(Debug)]
pub(super) struct AuthorizationState<K: Threading>(PhantomData<fn() -> K>);

impl<K: Threading> AuthorizationState<K> {
    pub(super) const DISABLED: Self = Self(PhantomData);

    pub(super) const fn is_on(&self) -> bool {
        false
    }

    pub(super) const fn token_number(&self) -> u64 {
        0
    }

    pub(super) const fn handle_response(
        &self,
        exchange: ExchangeId,
        _: &IncomingResponse<'_>,
        _: Instant,
    ) -> Option<ExchangeId> {
        Some(exchange)
    }

    pub(super) const fn handle_body(
        &self,
        exchange: ExchangeId,
        _: &[u8],
        _: Instant,
    ) -> Option<ExchangeId> {
        Some(exchange)
    }

    pub(super) const fn handle_body_end(
        &self,
        exchange: ExchangeId,
        _: Instant,
    ) -> Option<ExchangeId> {
        Some(exchange)
    }

    pub(super) const fn handle_exchange_failed(
        &self,
        exchange: ExchangeId,
        _: ExchangeFailure,
        _: Instant,
    ) -> Option<ExchangeId> {
        Some(exchange)
    }

    pub(super) const fn pump(&self, _: &mut HttpClient, _: Instant) -> bool {
        false
    }

    pub(super) const fn set_guard(&self, _: PanicGuard) {}

    pub(super) const fn poll(&self, _: &Context<'_>, _: Instant) {}

    pub(super) const fn handle_timeout(&self, _: Instant) {}

    pub(super) fn poll_transmit(&self, machine: &mut HttpClient) -> Option<ClientTransmit> {
        machine.poll_transmit()
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    pub(super) const fn is_drained(&self) -> bool {
        true
    }
}
