//! Subscriptions: a request that stays open and delivers notifications; since 2026-07-28.

use alloc::string::String;
use alloc::vec::Vec;

use super::message::message;

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
