use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::jsonrpc::{AsJson, RawJson, RequestId, WriteJson, write_string};
use crate::peer::calls::{Call, Purpose, Timing};
use crate::peer::error::CommandError;
use crate::peer::event::{Event, Subscribed, Violation};
use crate::peer::handle::CallHandle;
use crate::peer::metadata::{SUBSCRIPTION_ID, text};
use crate::peer::method_name::MethodName;
use crate::peer::outbox::Channel;
use crate::peer::outgoing::CallOptions;
use crate::protocol::{AtRevision, Capability, Method, SubscriptionFilter};
use crate::{Era, Instant};

use super::Client;

/// A subscription to a legacy server, which has none: it sends list changes unasked, and updates
/// of resources after one request each.
#[derive(Debug)]
pub(super) struct Legacy {
    filter: SubscriptionFilter,
    uris: Vec<(String, Standing)>,
    waiting: usize,
    /// It stood in a session that is gone, and all that it had there stands in this one so far:
    /// there is nothing to tell.
    renewed: bool,
}

/// What a legacy server said to the subscription to one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing yet.
    Asked,
    /// Nothing yet, and what it will say was perhaps said in a session that is gone.
    AskedBefore,
    Honoured,
    Refused,
    /// Nothing in time, or nothing that can be read: it may stand all the same.
    Unknown,
}

impl Client {
    // MCP 2026-07-28 basic/patterns/subscriptions#opening-a-stream [SUBS-001] [SUBS-007] [SUBS-010]
    // MCP 2025-11-25 schema.json#SubscribeRequest [RSRC-004]
    pub(super) fn start_subscription(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        self.connection.check_open()?;
        let revision = self.session.as_ref().ok_or(CommandError::NotOpen)?.revision;
        if revision.era() == Era::Legacy {
            return self.subscribe_resources(filter, now);
        }
        let params = |out: &mut String| {
            out.push_str(r#"{"notifications":"#);
            AsJson(&AtRevision(filter, revision)).write_json(out)?;
            out.push('}');
            Ok(())
        };
        let forever = Timing::NEVER.timeout;
        let options = CallOptions::default().timeout(forever).timeout_hard(forever);
        let method = MethodName::Known(Method::SubscriptionsListen);
        self.start(&method, Purpose::Listen, &params, &options, now)
    }

    fn subscribe_resources(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        let limit = self.connection.config.limits.calls_in_flight_max;
        let wanted = filter.resource_subscriptions.as_deref().unwrap_or_default();
        if self.connection.calls.len() + wanted.len() >= limit {
            return Err(CommandError::TooManyCalls { limit });
        }
        let id = self.connection.calls.fresh_id();
        let key = self.connection.calls.insert(
            Call {
                id,
                method: None,
                purpose: Purpose::Waiting,
                channel: Channel::UNSOLICITED,
                timing: Timing::NEVER,
                paused: None,
                wants_progress: None,
                last_progress: None,
                repeat: None,
                task: None,
            },
            now,
        );
        self.connection.calls.park(key, now);
        let offered = self
            .session
            .as_ref()
            .is_some_and(|session| session.server.contains(Capability::ResourcesSubscribe));
        let uris: Vec<_> = wanted
            .iter()
            .map(|uri| (uri.clone(), if offered { Standing::Asked } else { Standing::Refused }))
            .collect();
        let waiting = if offered { uris.len() } else { 0 };
        let legacy = Legacy { filter: filter.clone(), uris, waiting, renewed: false };
        self.subscriptions.push((key, legacy));
        if waiting == 0 {
            self.subscribed(key);
            return Ok(CallHandle::new(key));
        }
        for (uri, index) in wanted.iter().zip(0..) {
            self.ask_for(key, index, uri, now);
        }
        Ok(CallHandle::new(key))
    }

    fn send_uri(
        &mut self,
        method: Method,
        purpose: Purpose,
        uri: &str,
        now: Instant,
    ) -> Result<CallHandle, CommandError> {
        let params = |out: &mut String| {
            out.push_str(r#"{"uri":"#);
            write_string(out, uri);
            out.push('}');
            Ok(())
        };
        self.start(&MethodName::Known(method), purpose, &params, &CallOptions::default(), now)
    }

    /// Subscribes to all resources once more, in a session that knows of none. What does not come to
    /// stand there is told with another [`Event::Subscribed`].
    pub(super) fn subscribe_again(&mut self, now: Instant) {
        let mut asked = Vec::new();
        for (key, legacy) in &mut self.subscriptions {
            // One that never stood is still to be told of.
            legacy.renewed = legacy.waiting == 0;
            for (index, (uri, standing)) in (0..).zip(&mut legacy.uris) {
                match standing {
                    Standing::Honoured => {
                        *standing = Standing::Asked;
                        legacy.waiting += 1;
                        asked.push((*key, index, uri.clone()));
                    }
                    Standing::Asked => *standing = Standing::AskedBefore,
                    _ => {}
                }
            }
        }
        for (subscription, index, uri) in asked {
            self.ask_for(subscription, index, &uri, now);
        }
    }

    fn ask_for(&mut self, subscription: Key, index: u32, uri: &str, now: Instant) {
        let purpose = Purpose::SubscribeResource { subscription, index };
        if self.send_uri(Method::ResourcesSubscribe, purpose, uri, now).is_err() {
            self.resource_subscribed(subscription, index, Standing::Refused, now);
        }
    }

    /// The server answered for one of the resources, or will not any more.
    pub(super) fn resource_subscribed(
        &mut self,
        subscription: Key,
        index: u32,
        answer: Standing,
        now: Instant,
    ) {
        let found = self.subscriptions.iter_mut().find(|(key, _)| *key == subscription);
        let Some((_, legacy)) = found else { return };
        let (uri, standing) = &mut legacy.uris[index as usize];
        if *standing == Standing::AskedBefore && answer == Standing::Honoured {
            // MCP 2025-11-25 basic/transports#session-management [SESS-009]: the session of now may
            // not know of it.
            *standing = Standing::Asked;
            let uri = uri.clone();
            return self.ask_for(subscription, index, &uri, now);
        }
        *standing = answer;
        legacy.renewed &= answer == Standing::Honoured;
        legacy.waiting -= 1;
        if legacy.waiting == 0 && !legacy.renewed {
            self.subscribed(subscription);
        }
    }

    /// All that a legacy server had to say to a subscription is said.
    fn subscribed(&mut self, key: Key) {
        let Some((_, legacy)) = self.subscriptions.iter().find(|(found, _)| *found == key) else {
            return;
        };
        let server = self.session.as_ref().map(|session| session.server).unwrap_or_default();
        let flag = |asked: Option<bool>, capability| {
            (asked == Some(true) && server.contains(capability)).then_some(true)
        };
        let filter = &legacy.filter;
        let mut honoured = SubscriptionFilter::new();
        honoured.tools_list_changed = flag(filter.tools_list_changed, Capability::ToolsListChanged);
        honoured.prompts_list_changed =
            flag(filter.prompts_list_changed, Capability::PromptsListChanged);
        honoured.resources_list_changed =
            flag(filter.resources_list_changed, Capability::ResourcesListChanged);
        let uris: Vec<String> = legacy
            .uris
            .iter()
            .filter(|(_, answer)| *answer == Standing::Honoured)
            .map(|(uri, _)| uri.clone())
            .collect();
        honoured.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        let subscription = CallHandle::new(key);
        let event = Event::Subscribed(Subscribed { subscription, honoured });
        self.connection.events.push_back(event);
    }

    /// Ends the subscriptions to resources that no other subscription needs.
    pub(super) fn unsubscribe_resources(&mut self, key: Key, now: Instant) {
        let Some(at) = self.subscriptions.iter().position(|(found, _)| *found == key) else {
            return;
        };
        let (_, legacy) = self.subscriptions.swap_remove(at);
        for (uri, answer) in legacy.uris {
            let shared = |other: &Legacy| other.uris.iter().any(|(needed, _)| *needed == uri);
            if answer == Standing::Refused
                || self.subscriptions.iter().any(|(_, other)| shared(other))
            {
                continue;
            }
            // Should the table of calls be full, the server goes on sending what nobody reads.
            let _started = self.send_uri(Method::ResourcesUnsubscribe, Purpose::Chore, &uri, now);
        }
    }

    /// The acknowledgement of a listen stream.
    // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-003] [SUBS-005]
    pub(super) fn acknowledged(&mut self, params: &RawJson<'_>) -> Option<Event<'static>> {
        const TOO_MANY: &str = "more subscriptions than the limit allows";
        let subscription = self.listen_stream(params)?;
        let filter = params.get("notifications")?;
        // Before it is read: each URI costs many times the bytes that its text has.
        let names: usize = filter.members().map(|member| member.value.element_count()).sum();
        if names > self.connection.config.limits.subscribed_resources_max.saturating_mul(2) {
            let method = Method::SubscriptionsAcknowledged;
            let violation = Violation::BadParameters { method, what: TOO_MANY };
            return Some(Event::Violation(violation));
        }
        let honoured = filter.decode().ok()?;
        Some(Event::Subscribed(Subscribed { subscription, honoured }))
    }

    /// The subscription that a notification belongs to.
    // MCP 2026-07-28 basic/transports/stdio#receiving-messages [STDIO-013]
    pub(super) fn subscription_of(
        &self,
        method: Method,
        params: &RawJson<'_>,
    ) -> Option<CallHandle> {
        let era = self.session.as_ref()?.revision.era();
        if era == Era::Modern {
            return self.listen_stream(params);
        }
        let uri = params.get("uri").and_then(|uri| text(&uri).map(String::from));
        let wants = |filter: &SubscriptionFilter| match method {
            Method::ToolsListChanged => filter.tools_list_changed == Some(true),
            Method::PromptsListChanged => filter.prompts_list_changed == Some(true),
            Method::ResourcesListChanged => filter.resources_list_changed == Some(true),
            Method::ResourcesUpdated => {
                let uris = filter.resource_subscriptions.as_deref().unwrap_or_default();
                uris.iter().any(|wanted| Some(wanted) == uri.as_ref())
            }
            _ => false,
        };
        let found = self.subscriptions.iter().find(|(_, legacy)| wants(&legacy.filter));
        found.map(|(key, _)| CallHandle::new(*key))
    }

    fn listen_stream(&self, params: &RawJson<'_>) -> Option<CallHandle> {
        let RequestId::Number(id) = params.get("_meta")?.get(SUBSCRIPTION_ID)?.decode().ok()?
        else {
            return None;
        };
        let key = self.connection.calls.by_id(id)?;
        let call = self.connection.calls.get(key)?;
        (call.purpose == Purpose::Listen).then_some(CallHandle::new(key))
    }
}
