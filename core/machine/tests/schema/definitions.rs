//! Which revisions have a definition, by name, and which definitions have no value of their own.

use mcp_sansio::protocol::{Revision, Revisions};

pub(crate) const ALL: Revisions = Revisions::ALL;
pub(crate) const LEGACY: Revisions = Revisions::LEGACY;
pub(crate) const SINCE_MARCH: Revisions = Revisions::since(Revision::V2025_03_26);
pub(crate) const SINCE_JUNE: Revisions = Revisions::since(Revision::V2025_06_18);
pub(crate) const SINCE_NOVEMBER: Revisions = Revisions::since(Revision::V2025_11_25);
pub(crate) const NOVEMBER: Revisions = Revisions::only(Revision::V2025_11_25);
pub(crate) const JULY: Revisions = Revisions::MODERN;

/// Definitions that no payload has: envelopes, unions, base types, and words that are checked
/// wherever they stand.
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
    // The answer of the request that the task stands for: any result.
    "GetTaskPayloadResult",
    // Judged as the `params` of the message that they belong to.
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
