//! Subscriptions: a request that stays open and delivers notifications; since 2026-07-28.

use alloc::string::String;
use alloc::vec::Vec;

use super::Revision;
use super::message::message;
use super::meta::Meta;
use super::wire::NotExpressible;
use crate::jsonrpc::RequestId;

message! {
    /// The notifications of a subscription, as the client requests and the server confirms them.
    // MCP 2026-07-28 basic/patterns/subscriptions#notification-filter [SUBS-001]
    #[derive(Default)]
    pub struct SubscriptionFilter {
        required {}
        defaulted {}
        optional {
            /// Changes of the tool list.
            tools_list_changed: bool = "toolsListChanged" in ALL;
            /// Changes of the prompt list.
            prompts_list_changed: bool = "promptsListChanged" in ALL;
            /// Changes of the resource list.
            resources_list_changed: bool = "resourcesListChanged" in ALL;
            /// Changes of these resources.
            resource_subscriptions: Vec<String> = "resourceSubscriptions" in ALL;
            /// Status changes of these tasks; requires the extension
            /// `io.modelcontextprotocol/tasks`.
            // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]
            task_ids: Vec<String> = "taskIds" in ALL;
        }
    }
}

message! {
    /// The parameters of `subscriptions/listen` and of `notifications/subscriptions/acknowledged`,
    /// which confirms it; since 2026-07-28.
    // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-004]
    pub struct ListenParams {
        required {
            /// The requested notifications, or the confirmed ones, without those that are not
            /// supported.
            notifications: SubscriptionFilter = "notifications" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata, in the confirmation with the id of the subscription.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `subscriptions/listen`, which ends the subscription; since 2026-07-28.
    // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [SUBS-008]
    #[derive(Default)]
    pub struct ListenResult {
        check names_its_subscription;
        tag "resultType" = "complete" in MODERN;
        required {}
        defaulted {}
        optional {
            /// Metadata, with the id of the subscription.
            meta: Meta = "_meta" in ALL;
        }
    }
}

impl ListenResult {
    /// Ends the subscription that the request with this id opened.
    #[must_use]
    pub fn for_subscription(id: &RequestId) -> Self {
        let id = crate::jsonrpc::Json::from_serialize(id).expect("an id is JSON");
        Self::new().meta(Meta::from_iter([(Meta::SUBSCRIPTION_ID.into(), id)]))
    }
}

// MCP 2026-07-28 basic/patterns/subscriptions#receiving-notifications [SUBS-006]: the id is
// required.
fn names_its_subscription(result: &ListenResult, revision: Revision) -> Result<(), NotExpressible> {
    let named = |meta: &Meta| meta.get(Meta::SUBSCRIPTION_ID).is_some();
    if result.meta.as_ref().is_some_and(named) {
        Ok(())
    } else {
        Err(NotExpressible::new("the end of a subscription without its id", revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SerializeAt;

    #[test]
    fn a_listen_result_contains_the_subscription_id() {
        // Rule: [SUBS-006] [SUBS-008].
        assert!(ListenResult::new().to_json_at(Revision::LATEST).is_err());
        assert_eq!(
            ListenResult::for_subscription(&7.into())
                .to_json_at(Revision::LATEST)
                .unwrap()
                .as_str(),
            r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#
        );
    }
}
