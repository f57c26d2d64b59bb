use mcp_sansio::peer::{MessageMiddleware, MiddlewareMessage, NotificationAction};

/// A function around notifications as middleware.
pub(crate) struct NotificationFunction<F>(pub(crate) F);

impl<F> MessageMiddleware for NotificationFunction<F>
where
    F: Fn(&MiddlewareMessage<'_>) -> NotificationAction + Send + Sync,
{
    fn notification(&self, message: &MiddlewareMessage<'_>) -> NotificationAction {
        (self.0)(message)
    }
}
