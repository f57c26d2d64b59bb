use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use mcp_sansio_collections::{Index, KeyedHash};

use crate::catalog::{Changes, check_uri};
use crate::gate::metadata::SUBSCRIPTION_ID;
use crate::jsonrpc::{
    AsJson, ErrorObject, RawJson, RequestId, WriteJson, resolved, to_shared_json, write_id,
    write_string,
};
use crate::peer::connection::Flow;
use crate::peer::outbox::{Channel, Lane};
use crate::peer::queue::Tag;
use crate::peer::requests::{InFlight, RequestOwner};
use crate::protocol::{
    AtRevision, Capabilities, Capability, Method, SubscriptionFilter, TaskStatusParams,
};
use crate::{Era, Revision};

use super::Server;
use super::receive::Incoming;
use super::result_body::Body;

/// The URIs that a session is subscribed to. Its client chooses them, so their hash is keyed.
// The tables of hashes and of texts are those of other types: a `HashSet` of texts would take a
// kilobyte of a device image.
#[derive(Debug)]
pub(super) struct SubscribedUris {
    pub(super) uris: Vec<String>,
    /// Their positions in `uris`.
    positions: Index,
    hasher: KeyedHash,
}

impl SubscribedUris {
    pub(super) fn with_hasher(hasher: KeyedHash) -> Self {
        Self { uris: Vec::new(), positions: Index::default(), hasher }
    }

    pub(super) const fn len(&self) -> usize {
        self.uris.len()
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        // Most sessions have none, and each change is looked up in every session.
        if self.uris.is_empty() {
            return false;
        }
        let is_it = |position| is_at(position, &self.uris, uri);
        self.positions.find_hashed(self.hasher.hash_one(uri), &is_it).is_some()
    }

    pub(super) fn insert(&mut self, uri: String) {
        if !self.contains(&uri) {
            self.positions
                .insert_hashed(self.hasher.hash_one(uri.as_str()), self.uris.len() as u64);
            self.uris.push(uri);
        }
    }

    pub(super) fn remove(&mut self, uri: &str) {
        let is_it = |position| is_at(position, &self.uris, uri);
        let found = self.positions.remove_hashed(self.hasher.hash_one(uri), &is_it);
        let Some(position) = found.and_then(|position| usize::try_from(position).ok()) else {
            return;
        };
        self.uris.swap_remove(position);
        if let Some(moved) = self.uris.get(position) {
            let (hash, last) = (self.hasher.hash_one(moved.as_str()), self.uris.len() as u64);
            self.positions.remove_hashed(hash, &|known| known == last);
            self.positions.insert_hashed(hash, position as u64);
        }
    }
}

fn is_at(position: u64, uris: &[String], uri: &str) -> bool {
    let position = usize::try_from(position).ok();
    position.and_then(|position| uris.get(position)).is_some_and(|it| it == uri)
}

impl Server {
    // MCP 2025-11-25 schema.json#ResourceUpdatedNotification [RSRC-005]
    // MCP 2026-07-28 server/resources#subscriptions [RSRC-007]
    pub(super) fn tell_resource(&mut self, uri: &str) {
        if !self.config.catalog.allows_updates(uri, &self.caller) {
            return;
        }
        if self.is_behind() {
            return self.defer_resource_update(uri);
        }
        let params = |out: &mut String| {
            out.push_str(r#"{"uri":"#);
            write_string(out, uri);
            out.push('}');
            Ok(())
        };
        let subscribed = self.session.as_ref().is_some_and(|session| session.is_subscribed(uri));
        if subscribed && self.connection.closed.is_none() {
            let written = self.notify_session(
                Method::ResourcesUpdated,
                Channel::UNSOLICITED,
                Tag::NONE,
                &params,
            );
            debug_assert!(written.is_ok(), "a string is JSON");
        }
        let wanted = |filter: &SubscriptionFilter, _| {
            filter.resource_subscriptions.iter().flatten().any(|wanted| wanted == uri)
        };
        self.notify_listeners(Method::ResourcesUpdated, &params, &wanted);
    }

    // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]
    pub(super) fn tell_task(&mut self, status: &TaskStatusParams) {
        if self.is_behind() {
            return;
        }
        let Ok(params) = to_shared_json(&AsJson(&AtRevision(status, Revision::LATEST))) else {
            return;
        };
        let task = &status.detailed.task.task_id;
        let open = status.detailed.input_requests.as_ref();
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005]
        let wanted = |filter: &SubscriptionFilter, declared: Capabilities| {
            filter.task_ids.iter().flatten().any(|id| id == task)
                && open.and_then(|them| them.missing(declared, Revision::LATEST)).is_none()
        };
        self.notify_listeners(Method::Tasks, &params, &wanted);
    }

    /// Returns whether a client listens to a task.
    #[cfg(feature = "http")]
    pub(crate) fn listens_to_task(&self, task: &str) -> bool {
        let listens = |entry: &InFlight| match &entry.owner {
            RequestOwner::Listening(filter) => {
                filter.task_ids.iter().flatten().any(|id| id == task)
            }
            _ => false,
        };
        self.connection.requests.find_from(0, listens).is_some()
    }

    // MCP 2025-11-25 server/tools#list-changed-notification [TOOL-005],
    // MCP 2025-11-25 server/prompts#list-changed-notification [PRMT-010],
    // MCP 2025-11-25 server/resources#list-changed-notification [RSRC-006]
    // MCP 2026-07-28 basic/index#statelessness [LIFE-013]: each listener with the id of its
    // subscription.
    // MCP 2026-07-28 server/tools#list-changed-notification [TOOL-006],
    // MCP 2026-07-28 server/prompts#list-changed-notification [PRMT-011],
    // MCP 2026-07-28 basic/patterns/subscriptions#notification-filter [SUBS-002],
    // MCP 2026-07-28 schema.json#ResourceListChangedNotification [RSRC-008]
    pub(super) fn tell_lists(&mut self, changes: Changes) {
        self.config.modern =
            self.config.identity.declared_set(&self.config.catalog, Revision::LATEST);
        if self.is_behind() {
            return self.defer_list_changes(changes);
        }
        type Wanted = fn(&SubscriptionFilter, Capabilities) -> bool;
        let lists: [(bool, Method, Wanted); 3] = [
            (changes.tools, Method::ToolsListChanged, |f, _| f.tools_list_changed == Some(true)),
            (changes.prompts, Method::PromptsListChanged, |f, _| {
                f.prompts_list_changed == Some(true)
            }),
            (changes.resources, Method::ResourcesListChanged, |f, _| {
                f.resources_list_changed == Some(true)
            }),
        ];
        for (_, method, wanted) in lists.into_iter().filter(|(changed, ..)| *changed) {
            let initialized = self.session.as_ref().is_some_and(|session| session.initialized);
            if initialized && self.connection.closed.is_none() {
                let written =
                    self.notify_session(method, Channel::UNSOLICITED, Tag::NONE, &super::NO_PARAMS);
                debug_assert!(written.is_ok(), "an empty object is JSON");
            }
            self.notify_listeners(method, &super::NO_PARAMS, &wanted);
        }
    }

    /// Sends a notification on every listen stream that subscribed to it.
    // MCP 2026-07-28 basic/patterns/subscriptions#receiving-notifications [SUBS-006],
    // MCP 2026-07-28 basic/index#_meta [META-012]
    fn notify_listeners(
        &mut self,
        method: Method,
        params: &dyn WriteJson,
        wanted: &dyn Fn(&SubscriptionFilter, Capabilities) -> bool,
    ) {
        if self.connection.closed.is_some() {
            return;
        }
        let mut slot = 0;
        while let Some(key) = self.connection.requests.find_from(
            slot,
            |entry| matches!(&entry.owner, RequestOwner::Listening(filter) if wanted(filter, entry.capabilities)),
        ) {
            slot = key.slot + 1;
            let Some(entry) = self.connection.requests.get(key) else { continue };
            let (id, channel) = (entry.id.clone(), entry.reply.channel);
            let tag = self.connection.tag(&id);
            let on_stream = OnStream { id: &id, params };
            let written = self.write_notification(method, channel, tag, &on_stream);
            debug_assert!(written.is_ok(), "the parameters are JSON");
        }
    }

    /// Opens a listen stream. Its response is sent when it ends.
    // MCP 2026-07-28 basic/patterns/subscriptions#opening-a-stream [SUBS-001] [SUBS-007]
    pub(super) fn listen<'f>(&mut self, incoming: Incoming<'_, 'f>) -> Flow<'f> {
        // A filter of nothing may be written as an empty list.
        let is_filter = |filter: &RawJson<'_>| filter.is_object() || filter.view().is_empty_array();
        let filter = incoming.params.get("notifications").filter(is_filter);
        // Checked before decoding, because each URI costs many times its text length.
        if let Some(what) = filter.as_ref().and_then(|filter| self.overfull(filter)) {
            self.answer_error(&incoming.id, &ErrorObject::internal(what), incoming.reply);
            return Ok(None);
        }
        let asked = match filter.map(|filter| filter.decode::<SubscriptionFilter>()) {
            Some(Ok(asked)) => asked,
            invalid => {
                let what = "`notifications` must be a subscription filter, an object";
                let error = ErrorObject::invalid_params(match invalid {
                    Some(Err(error)) => format!("{what}: {error}"),
                    _ => what.into(),
                });
                self.answer_error(&incoming.id, &error, incoming.reply);
                return self.connection.bad_parameters(
                    Method::SubscriptionsListen,
                    "the subscription filter is missing or invalid",
                );
            }
        };
        // MCP 2026-07-28 ext-tasks:tasks#protocol-errors [TASK-036]
        let tasks = Capability::TasksExtension;
        if asked.task_ids.is_some()
            && self.config.modern.contains(tasks)
            && !incoming.client.contains(tasks)
        {
            self.answer_refusal(&incoming.id, &tasks.missing(), incoming.reply);
            return self
                .connection
                .bad_parameters(Method::SubscriptionsListen, "tasks without the extension");
        }
        let length_max = self.connection.config.limits.uri_length_max;
        let too_long = |names: &Option<Vec<String>>| {
            names.as_ref().is_some_and(|names| names.iter().any(|name| name.len() > length_max))
        };
        let too_much = if too_long(&asked.resource_subscriptions) {
            Some("a resource URI is too long")
        } else if too_long(&asked.task_ids) {
            Some("a task id is too long")
        } else {
            None
        };
        if let Some(what) = too_much {
            self.answer_error(&incoming.id, &ErrorObject::internal(what), incoming.reply);
            return Ok(None);
        }
        let honoured = self.honour(asked);
        let acknowledgement = to_shared_json(&AsJson(&AtRevision(&honoured, incoming.revision)));
        let id = incoming.id.clone();
        // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-003] [SUBS-004]
        if let Ok(filter) = acknowledgement {
            let params = |out: &mut String| {
                out.push_str(r#"{"notifications":"#);
                filter.write_json(out)?;
                out.push('}');
                Ok(())
            };
            let on_stream = OnStream { id: &id, params: &params };
            let tag = self.connection.tag(&id);
            let written = self.write_notification(
                Method::SubscriptionsAcknowledged,
                incoming.reply.channel,
                tag,
                &on_stream,
            );
            debug_assert!(written.is_ok(), "a filter is JSON");
        }
        self.connection.requests.insert(InFlight {
            id,
            method: Some(Method::SubscriptionsListen),
            revision: incoming.revision,
            capabilities: incoming.client,
            progress: None,
            log_level: None,
            reply: incoming.reply,
            owner: RequestOwner::Listening(Box::new(honoured)),
            rounds: 0,
            tool: None,
            restricted: false,
        });
        Ok(None)
    }

    /// Returns the limit that one more listen stream with this filter would exceed, if any.
    fn overfull(&self, filter: &RawJson<'_>) -> Option<&'static str> {
        let open = self.connection.requests.listening();
        let limits = &self.connection.config.limits;
        let (mut uris, mut tasks) = (0, 0);
        for member in filter.members() {
            match &*member.name() {
                "resourceSubscriptions" => uris += member.value.element_count(),
                "taskIds" => tasks += member.value.element_count(),
                _ => {}
            }
        }
        if open.streams >= limits.listen_streams_max {
            Some("too many listen streams are open")
        } else if open.resources.saturating_add(uris) > limits.subscribed_resources_max {
            Some("too many resources in subscriptions")
        } else if open.tasks.saturating_add(tasks) > limits.subscribed_resources_max {
            Some("too many tasks in subscriptions")
        } else {
            None
        }
    }

    /// Returns the part of a filter that the server's capabilities cover.
    fn honour(&self, asked: SubscriptionFilter) -> SubscriptionFilter {
        let has = |capability| self.config.modern.contains(capability);
        let mut honoured = SubscriptionFilter::default();
        let flag = |asked: Option<bool>, capability| {
            (asked == Some(true) && has(capability)).then_some(true)
        };
        honoured.tools_list_changed = flag(asked.tools_list_changed, Capability::ToolsListChanged);
        honoured.prompts_list_changed =
            flag(asked.prompts_list_changed, Capability::PromptsListChanged);
        honoured.resources_list_changed =
            flag(asked.resources_list_changed, Capability::ResourcesListChanged);
        let uris = asked.resource_subscriptions.filter(|_| has(Capability::ResourcesSubscribe));
        honoured.resource_subscriptions = uris.map(|uris| self.valid_uris(uris));
        honoured.task_ids = asked.task_ids.filter(|_| has(Capability::TasksExtension));
        honoured
    }

    /// Returns the valid URIs, each once.
    // MCP 2026-07-28 server/resources#security-considerations [RSRC-014]
    fn valid_uris(&self, uris: Vec<String>) -> Vec<String> {
        let mut valid = SubscribedUris::with_hasher(self.connection.requests.hasher());
        uris.into_iter().filter(|uri| check_uri(uri).is_ok()).for_each(|uri| valid.insert(uri));
        valid.uris
    }

    /// Handles `resources/subscribe` and `resources/unsubscribe` in a legacy session.
    // MCP 2025-11-25 schema.json#SubscribeRequest [RSRC-004]
    pub(super) fn change_subscription(&mut self, method: Method, incoming: &Incoming<'_, '_>) {
        let uri = incoming.metadata.uri.map(|uri| resolved(uri).into_owned());
        let limits = &self.connection.config.limits;
        let (subscribed_max, length_max) = (limits.subscribed_resources_max, limits.uri_length_max);
        let outcome = match (uri, &mut self.session) {
            (Some(uri), Some(session)) => {
                if method == Method::ResourcesUnsubscribe {
                    session.subscribed.remove(&uri);
                    Ok(())
                } else if uri.len() > length_max {
                    Err(ErrorObject::invalid_params("the URI is too long"))
                } else if session.subscribed.len() >= subscribed_max
                    && !session.subscribed.contains(&uri)
                {
                    Err(ErrorObject::internal("too many subscriptions"))
                } else if !self.config.catalog.manages(method) {
                    session.subscribed.insert(uri);
                    Ok(())
                } else {
                    self.config
                        .catalog
                        .resolve(
                            Method::ResourcesRead,
                            Some(&uri),
                            &incoming.params,
                            incoming.revision,
                            &self.caller,
                        )
                        .map(|_| {
                            session.subscribed.insert(uri);
                        })
                }
            }
            _ => Err(ErrorObject::invalid_params("`uri` must be a string")),
        };
        match outcome {
            Ok(()) => self.answer_empty(Lane::Bulk, method, &incoming.id, incoming.reply),
            Err(error) => self.answer_error(&incoming.id, &error, incoming.reply),
        }
    }

    /// Ends all listen streams with a response, so that clients see that the end was intended.
    // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [SUBS-008]
    // MCP 2026-07-28 basic/patterns/cancellation#behavior-requirements [CANC-019] [CANC-020]
    pub(super) fn end_listening(&mut self) {
        let mut slot = 0;
        while let Some(key) = self
            .connection
            .requests
            .find_from(slot, |entry| matches!(entry.owner, RequestOwner::Listening(_)))
        {
            slot = key.slot + 1;
            let Some(entry) = self.connection.requests.remove(key) else { return };
            debug_assert_eq!(entry.revision.era(), Era::Modern, "a legacy session has no streams");
            let id = entry.id;
            // Sent in the bulk lane, after the queued notifications of the stream.
            let reason = "the server ends the stream";
            if !self.connection.binding.cancels_by_closing() {
                let write = |out: &mut String| write_id(out, &id);
                let channel = entry.reply.channel;
                self.connection.write_cancelled(Lane::Bulk, channel, (write, None), reason);
            }
            let result = |out: &mut String| {
                write_subscription_meta(out, &id);
                out.push('}');
                Ok(())
            };
            let method = Some(Method::SubscriptionsListen);
            let answered =
                self.finish_answer(&id, method, entry.revision, entry.reply, Body::new(&result));
            debug_assert!(answered.is_ok(), "an id is JSON");
        }
    }
}

/// Parameters of a notification on a listen stream, with the stream's id in `_meta`.
struct OnStream<'a> {
    id: &'a RequestId,
    params: &'a dyn WriteJson,
}

impl WriteJson for OnStream<'_> {
    fn write_json(&self, out: &mut String) -> Result<(), crate::jsonrpc::WriteError> {
        write_subscription_meta(out, self.id);
        crate::jsonrpc::close_object_with(out, self.params)
    }
}

/// Writes the start of an object, including the `_meta` with the id of a listen stream.
fn write_subscription_meta(out: &mut String, id: &RequestId) {
    out.push_str(r#"{"_meta":{""#);
    out.push_str(SUBSCRIPTION_ID);
    out.push_str(r#"":"#);
    write_id(out, id);
    out.push('}');
}
