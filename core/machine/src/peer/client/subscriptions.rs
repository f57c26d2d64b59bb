use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::binding::TransportFailure;
use crate::gate::metadata::SUBSCRIPTION_ID;
use crate::jsonrpc::{AsJson, ErrorObject, RawJson, RequestId, WriteJson, write_string};
use crate::peer::calls::{Call, Calls, Purpose, Timing};
use crate::peer::connection::Flow;
use crate::peer::error::CommandError;
use crate::peer::event::{Event, Subscribed};
use crate::peer::handle::CallHandle;
use crate::peer::method_name::MethodName;
use crate::peer::outbox::Channel;
use crate::peer::outgoing::CallOptions;
use crate::protocol::{AtRevision, Capability, Method, SubscriptionFilter};
use crate::{Era, Instant};

use super::Client;

/// A subscription at a legacy server, which has no such concept: the server sends list changes
/// without a request, and resource updates after one request per resource.
#[derive(Debug)]
pub(super) struct Legacy {
    filter: SubscriptionFilter,
    uris: Vec<(String, UriState)>,
    waiting: usize,
    /// The first error with which the server refused a resource, with the start of its message.
    refusal: Option<ErrorObject<'static>>,
    /// Whether all resources were subscribed in a previous session and so far also in this one, so
    /// there is no change to report.
    renewed: bool,
    /// Whether the subscription was pending when the process of the server ended.
    unreported: bool,
}

/// State of the subscription to one resource at a legacy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UriState {
    /// The request is pending.
    Asked,
    /// The request is pending, and its response may belong to a previous session.
    AskedBefore,
    Honoured,
    Refused,
    /// The request timed out or its response was invalid: the subscription may exist.
    Unknown,
}

impl Legacy {
    /// Returns whether the server may send updates of a resource for this subscription.
    fn includes(&self, uri: &str) -> bool {
        self.uris.iter().any(|(wanted, state)| wanted == uri && *state != UriState::Refused)
    }
}

impl Legacy {
    /// Checks the subscription of the call `key`.
    pub(super) fn assert_consistent(&self, key: Key, calls: &Calls) {
        let call = calls.get(key).map(|call| call.purpose);
        assert_eq!(call, Some(Purpose::Waiting), "a subscription without its call");
        let is_asked = |state| matches!(state, UriState::Asked | UriState::AskedBefore);
        let asked = self.uris.iter().filter(|(_, state)| is_asked(*state)).count();
        assert_eq!(self.waiting, asked, "resources that were asked for");
        let is_own = |purpose| match purpose {
            Purpose::SubscribeResource { subscription, .. } => subscription == key,
            _ => false,
        };
        let requests = calls.iter().filter(|(_, call)| is_own(call.purpose)).count();
        assert_eq!(asked, requests, "requests for the resources of a subscription");
    }
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
            .map(|uri| (uri.clone(), if offered { UriState::Asked } else { UriState::Refused }))
            .collect();
        let waiting = if offered { uris.len() } else { 0 };
        let legacy = Legacy {
            filter: filter.clone(),
            uris,
            waiting,
            refusal: None,
            renewed: false,
            unreported: false,
        };
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
        // A new session may not have the capability of the last one.
        self.check_gate(method)?;
        let params = |out: &mut String| {
            out.push_str(r#"{"uri":"#);
            write_string(out, uri);
            out.push('}');
            Ok(())
        };
        self.start(&MethodName::Known(method), purpose, &params, &CallOptions::default(), now)
    }

    /// Subscribes to all resources again in a new session. If a subscription fails there, another
    /// [`Event::Subscribed`] reports it.
    pub(super) fn subscribe_again(&mut self, now: Instant) {
        let mut asked = Vec::new();
        for (key, legacy) in &mut self.subscriptions {
            // A subscription that was still pending has not been reported yet.
            legacy.renewed = legacy.waiting == 0 && !core::mem::take(&mut legacy.unreported);
            for (index, (uri, state)) in (0..).zip(&mut legacy.uris) {
                match state {
                    UriState::Honoured => {
                        *state = UriState::Asked;
                        legacy.waiting += 1;
                        asked.push((*key, index, uri.clone()));
                    }
                    UriState::Asked => *state = UriState::AskedBefore,
                    _ => {}
                }
            }
        }
        for (subscription, index, uri) in asked {
            self.ask_for(subscription, index, &uri, now);
        }
    }

    /// Forgets the requests for resources that are pending, because their server has ended: they
    /// are sent again.
    pub(super) fn forget_pending_subscriptions(&mut self) {
        for (_, legacy) in &mut self.subscriptions {
            legacy.unreported |= legacy.waiting > 0;
            legacy.waiting = 0;
            for (_, state) in &mut legacy.uris {
                if matches!(state, UriState::Asked | UriState::AskedBefore) {
                    *state = UriState::Honoured;
                }
            }
        }
    }

    fn ask_for(&mut self, subscription: Key, index: u32, uri: &str, now: Instant) {
        let purpose = Purpose::SubscribeResource { subscription, index };
        if self.send_uri(Method::ResourcesSubscribe, purpose, uri, now).is_err() {
            self.resource_subscribed(subscription, index, UriState::Refused, now);
        }
    }

    /// Handles the response to the subscription to one resource.
    pub(super) fn resource_answered(
        &mut self,
        (subscription, index): (Key, u32),
        outcome: Result<RawJson<'_>, ErrorObject<'_>>,
        now: Instant,
    ) {
        let Err(error) = outcome else {
            return self.resource_subscribed(subscription, index, UriState::Honoured, now);
        };
        let found = self.subscriptions.iter_mut().find(|(key, _)| *key == subscription);
        if let Some((_, legacy)) = found {
            // The error may be as long as a frame.
            legacy.refusal.get_or_insert_with(|| {
                let message = TransportFailure::excerpt(error.message.as_bytes());
                ErrorObject::new(error.code, message.map(String::from).unwrap_or_default())
            });
        }
        self.resource_subscribed(subscription, index, UriState::Refused, now);
    }

    /// Records the server's response for one resource, or the lack of one.
    pub(super) fn resource_subscribed(
        &mut self,
        subscription: Key,
        index: u32,
        answer: UriState,
        now: Instant,
    ) {
        let found = self.subscriptions.iter_mut().find(|(key, _)| *key == subscription);
        let Some((_, legacy)) = found else { return };
        let (uri, state) = &mut legacy.uris[index as usize];
        if *state == UriState::AskedBefore && answer == UriState::Honoured {
            // MCP 2025-11-25 basic/transports#session-management [SESS-009]: the current session
            // may not have the subscription.
            *state = UriState::Asked;
            let uri = uri.clone();
            return self.ask_for(subscription, index, &uri, now);
        }
        *state = answer;
        legacy.renewed &= answer == UriState::Honoured;
        legacy.waiting -= 1;
        if legacy.waiting == 0 && !legacy.renewed {
            self.subscribed(subscription);
        }
    }

    /// Reports a subscription once all resources have been answered.
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
            .filter(|(_, answer)| *answer == UriState::Honoured)
            .map(|(uri, _)| uri.clone())
            .collect();
        honoured.resource_subscriptions = (!uris.is_empty()).then_some(uris);
        let subscription = CallHandle::new(key);
        let refusal = legacy.refusal.clone();
        let event = Event::Subscribed(Subscribed { subscription, honoured, refusal });
        self.connection.events.push_back(event);
    }

    /// Unsubscribes from resources that no other subscription needs.
    pub(super) fn unsubscribe_resources(&mut self, key: Key, now: Instant) {
        let Some(at) = self.subscriptions.iter().position(|(found, _)| *found == key) else {
            return;
        };
        let (_, legacy) = self.subscriptions.remove(at);
        for (uri, answer) in legacy.uris {
            let is_shared = self.subscriptions.iter().any(|(_, other)| other.includes(&uri));
            if answer == UriState::Refused || is_shared {
                continue;
            }
            // If the table of calls is full, the server keeps sending updates, which are ignored.
            let _started = self.send_uri(Method::ResourcesUnsubscribe, Purpose::Chore, &uri, now);
        }
    }

    /// Handles the acknowledgement of a listen stream.
    // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-003] [SUBS-005]
    pub(super) fn acknowledged<'f>(&mut self, params: &RawJson<'_>) -> Flow<'f> {
        const METHOD: Method = Method::SubscriptionsAcknowledged;
        const TOO_MANY: &str = "more subscriptions than the limit allows";
        let Some(id) = self.subscription_id(params) else {
            return self.connection.bad_parameters(METHOD, "the subscription is missing");
        };
        // One that has ended meanwhile may still be acknowledged.
        let Some(subscription) = self.subscription_with(id) else { return Ok(None) };
        let Some(filter) = params.get("notifications") else {
            return self.connection.bad_parameters(METHOD, "the filter is missing");
        };
        // Checked before decoding, because each URI costs many times its text length.
        let names: usize = filter.members().map(|member| member.value.element_count()).sum();
        if names > self.connection.config.limits.subscribed_resources_max.saturating_mul(2) {
            return self.connection.bad_parameters(METHOD, TOO_MANY);
        }
        match filter.decode() {
            Ok(honoured) => {
                let subscribed = Subscribed { subscription, honoured, refusal: None };
                Ok(Some(Event::Subscribed(subscribed)))
            }
            Err(_) => self.connection.bad_parameters(METHOD, "the filter is invalid"),
        }
    }

    /// Returns the subscriptions that a notification belongs to.
    // MCP 2026-07-28 basic/transports/stdio#receiving-messages [STDIO-013]
    pub(super) fn subscriptions_of(
        &self,
        method: Method,
        params: &RawJson<'_>,
    ) -> Box<[CallHandle]> {
        let Some(session) = &self.session else { return Box::default() };
        if session.revision.era() == Era::Modern {
            return self.listen_stream(params).into_iter().collect();
        }
        if self.subscriptions.is_empty() {
            return Box::default();
        }
        // MCP 2025-11-25 schema.json#ResourceUpdatedNotification [RSRC-005]: one update for all subscriptions
        // of the session.
        let uri = params.get("uri");
        let uri = uri.as_ref().and_then(RawJson::to_text);
        let includes = |legacy: &Legacy| {
            let filter = &legacy.filter;
            match method {
                Method::ToolsListChanged => filter.tools_list_changed == Some(true),
                Method::PromptsListChanged => filter.prompts_list_changed == Some(true),
                Method::ResourcesListChanged => filter.resources_list_changed == Some(true),
                Method::ResourcesUpdated => uri.as_deref().is_some_and(|uri| legacy.includes(uri)),
                _ => false,
            }
        };
        let found = self.subscriptions.iter().filter(|(_, legacy)| includes(legacy));
        found.map(|(key, _)| CallHandle::new(*key)).collect()
    }

    fn listen_stream(&self, params: &RawJson<'_>) -> Option<CallHandle> {
        self.subscription_with(self.subscription_id(params)?)
    }

    /// Returns the id of the subscription on whose stream a notification arrives, or which it names.
    /// The stream is as certain: some servers name none, and some gateways give requests other ids.
    fn subscription_id(&self, params: &RawJson<'_>) -> Option<i64> {
        let named = || {
            let id: RequestId = params.get("_meta")?.get(SUBSCRIPTION_ID)?.decode().ok()?;
            id.own_number()
        };
        self.stream_of.or_else(named)
    }

    fn subscription_with(&self, id: i64) -> Option<CallHandle> {
        let key = self.connection.calls.by_id(id)?;
        let call = self.connection.calls.get(key)?;
        (call.purpose == Purpose::Listen).then_some(CallHandle::new(key))
    }
}
