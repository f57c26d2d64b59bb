use super::context::{Call, Context};

impl<A> Call<A> {
    /// Creates a call from arguments and a context, for a handler that calls another one. In a test,
    /// `mcp_sansio_test::call` has a context.
    #[must_use]
    pub const fn new(arguments: A, context: Context) -> Self {
        Self { arguments, context }
    }

    /// Returns the arguments, and the access to the request and its connection.
    #[must_use]
    pub fn into_parts(self) -> (A, Context) {
        (self.arguments, self.context)
    }
}
