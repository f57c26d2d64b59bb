//! The revisions that have each definition, and the definitions without values of their own.

use mcp_sansio::{Revision, Revisions};

pub(crate) const ALL: Revisions = Revisions::ALL;
pub(crate) const LEGACY: Revisions = Revisions::LEGACY;
pub(crate) const SINCE_MARCH: Revisions = Revisions::since(Revision::V2025_03_26);
pub(crate) const SINCE_JUNE: Revisions = Revisions::since(Revision::V2025_06_18);
pub(crate) const SINCE_NOVEMBER: Revisions = Revisions::since(Revision::V2025_11_25);
pub(crate) const NOVEMBER: Revisions = Revisions::only(Revision::V2025_11_25);
pub(crate) const JULY: Revisions = Revisions::MODERN;

/// Definitions without a payload of their own: envelopes, unions, base types, and strings that are
/// checked as parts of others.
pub(crate) const ELSEWHERE: &[&str] = &[
    "Annotated",
    "BaseMetadata",
    "CacheableResult",
    "CallToolResultResponse",
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "CompleteResultResponse",
    "Cursor",
    "DiscoverResultResponse",
    "Error",
    "GetPromptResultResponse",
    "HeaderMismatchError",
    "Icons",
    "InputResponseRequestParams",
    "InternalError",
    "InvalidParamsError",
    "InvalidRequestError",
    "JSONArray",
    "JSONObject",
    "JSONRPCBatchRequest",
    "JSONRPCBatchResponse",
    "JSONRPCError",
    "JSONRPCErrorResponse",
    "JSONRPCMessage",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "JSONRPCResultResponse",
    "JSONValue",
    "ListPromptsResultResponse",
    "ListResourceTemplatesResultResponse",
    "ListResourcesResultResponse",
    "ListToolsResultResponse",
    "MethodNotFoundError",
    "Notification",
    "NotificationMetaObject",
    "NotificationParams",
    "PaginatedRequest",
    "PaginatedRequestParams",
    "PaginatedResult",
    "ParseError",
    "ReadResourceResultResponse",
    "Request",
    "RequestId",
    "RequestMetaObject",
    "RequestParams",
    "ResourceContents",
    "ResourceRequestParams",
    "ResultMetaObject",
    "ResultType",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
    "SubscriptionsListenResultMetaObject",
    "SubscriptionsListenResultResponse",
    "TaskAugmentedRequestParams",
    // The response to the request that the task stands for: any result.
    "GetTaskPayloadResult",
    // Checked as the `params` of their message.
    "CallToolRequestParams",
    "CancelledNotificationParams",
    "CompleteRequestParams",
    "CreateMessageRequestParams",
    "ElicitRequestParams",
    "GetPromptRequestParams",
    "InitializeRequestParams",
    "LoggingMessageNotificationParams",
    "ProgressNotificationParams",
    "ReadResourceRequestParams",
    "SetLevelRequestParams",
    "SubscribeRequestParams",
    "SubscriptionsAcknowledgedNotificationParams",
    "SubscriptionsListenRequestParams",
    "TaskStatusNotificationParams",
    "UnsubscribeRequestParams",
    "ResourceUpdatedNotificationParams",
];
