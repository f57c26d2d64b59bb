//! How subscriptions are opened, and opened again.

use alloc::sync::Arc;

use mcp_sansio::Instant;
use mcp_sansio::peer::{Applied, ClientCommand, ClientMachine, CommandError};
use mcp_sansio::protocol::SubscriptionFilter;

use super::client::Client;
use super::client_endpoint::ClientEndpoint;
use super::pending::{Pending, Subscription};
use super::threading::Threading;

impl Client {
    /// Subscribes to changes. Dropping the subscription ends it.
    #[must_use]
    pub fn subscribe(&self, filter: SubscriptionFilter) -> Subscription {
        Subscription::new(self.clone(), filter)
    }

    /// Like [`subscribe`](Self::subscribe), with header fields in the HTTP requests that open the
    /// subscription: the name of a tenant, a token of the user for whom it is made. The stream that
    /// all subscriptions of a legacy session share does not have them. Otherwise they are as for
    /// [calls](crate::ClientCall::header): on a byte stream the subscription fails.
    ///
    /// ```
    /// use mcp_sansio::http::{HeaderFields, InvalidHeader};
    /// use mcp_sansio::protocol::SubscriptionFilter;
    /// use mcp_sansio_handlers::{Client, Subscription};
    ///
    /// fn listen(client: &Client, tenant: &str) -> Result<Subscription, InvalidHeader> {
    ///     let fields = HeaderFields::new().field("X-Tenant", tenant)?;
    ///     let filter = SubscriptionFilter::new().tools_list_changed(true);
    ///     Ok(client.subscribe_with_headers(filter, fields))
    /// }
    /// ```
    #[must_use]
    pub fn subscribe_with_headers(
        &self,
        filter: SubscriptionFilter,
        fields: mcp_sansio::peer::HeaderFields,
    ) -> Subscription {
        Subscription::with_fields(self.clone(), filter, fields)
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    pub(super) fn subscribe(
        &mut self,
        pending: &Pending,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let fields = &pending.fields();
        let filter = filter.into();
        let command = if fields.is_empty() {
            ClientCommand::Subscribe(filter)
        } else {
            ClientCommand::SubscribeWithFields { filter, fields }
        };
        self.machine.apply(command, now)
    }

    /// Renews a subscription that its server has ended gracefully. Servers do so when the token of
    /// the subscription expires; the new request carries a new token.
    // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [SUBS-008]
    pub(super) fn subscribe_again(&mut self, pending: &Arc<Pending>, now: Instant) -> bool {
        let Some(filter) = pending.renewal(now) else { return false };
        let subscribed = self.subscribe(pending, &filter, now);
        let is_made = subscribed.is_ok();
        if is_made {
            self.started(subscribed, Arc::clone(pending));
        }
        is_made
    }
}
