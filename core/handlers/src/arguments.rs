//! Handlers that complete the arguments of prompts and resource templates, and all that this crate
//! knows of `completion/complete`: an example of how a method gets a typed handler.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::Method;
use mcp_sansio::catalog::{CatalogError, ItemKind, has_variable};
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::{
    CompleteParams, CompleteResult, Completion, Prompt, ResourceTemplate, ServerCapabilities,
};

use super::context::{Call, FromRequest, RequestParts};
use super::function::Handler;
use super::reply::{HandlerError, IntoOutcome, Outcome, ResultBody, fallible, outcomes};
use super::server::{MethodHandler, Server};
use super::server_item::{ServerItem, StateCheck};
use super::state::{StateTypes, take_state};
use super::threading::{ThreadSafe, Threading};

impl FromRequest<CompleteResult> for Call<CompleteParams> {
    // Inline, so that the decoder is compiled only for programs with completion.
    #[inline]
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        <Self as FromRequest<Json>>::from_request(received)
    }
}

fallible!(CompleteResult);
take_state!(CompleteResult);
outcomes! {
    CompleteResult, CompleteResult, |result| ResultBody::boxed(result);
    CompleteResult, Vec<String>, |values| {
        ResultBody::boxed(CompleteResult::new(Completion::new(values)))
    };
}

impl<K: Threading> Server<K> {
    /// Sets the handler that completes the arguments of prompts and templates that have no
    /// [handler of their own](ServerItem::complete). It takes `Call<CompleteParams>`.
    #[must_use]
    pub fn completion<M>(mut self, handler: impl Handler<K, CompleteResult, M>) -> Self {
        self.require(handler.states());
        self.functions().set_method(method_handler(handler.into_function()));
        self
    }
}

fn method_handler<K: Threading>(function: K::Function) -> MethodHandler<K> {
    let method = Method::CompletionComplete.as_str().into();
    MethodHandler { method, function, declare: Some(declare) }
}

// MCP 2025-03-26 server/utilities/completion#capabilities [CAP-005]
fn declare(capabilities: &mut ServerCapabilities) {
    capabilities.completions.get_or_insert_default();
}

impl<K: Threading> ServerItem<Prompt, K> {
    /// Sets the handler that completes an argument, in place of
    /// [`Server::completion`](super::Server::completion). It takes `Call<CompleteParams>`, and
    /// returns the values that match what the user has typed so far, best first.
    ///
    /// An argument that the prompt does not have is an error where the prompt is added. Set the
    /// arguments of a definition first.
    ///
    /// A connection offers completions if the server had a completion handler, or an item with one,
    /// when the connection opened.
    ///
    /// ```
    /// use mcp_sansio::protocol::CompleteParams;
    /// use mcp_sansio_handlers::{Call, Server, ServerItem};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Review { language: String }
    ///
    /// fn languages(call: Call<CompleteParams>) -> Vec<String> {
    ///     let known = ["Ruby", "Rust", "Zig"].into_iter();
    ///     known.filter(|it| it.starts_with(&call.arguments.argument.value)).map(Into::into).collect()
    /// }
    ///
    /// let review = ServerItem::prompt("review", "Asks for a review", |call: Call<Review>| {
    ///     format!("Review this {} code", call.arguments.language)
    /// });
    /// let server = Server::new("reviews", "1.0.0").add_item(review.complete("language", languages));
    /// # assert!(server.endpoint(42).is_ok());
    /// ```
    // MCP 2026-07-28 server/utilities/completion#requesting-completions [COMP-001]
    pub fn complete<M>(
        self,
        argument: impl Into<String>,
        handler: impl Handler<K, CompleteResult, M>,
    ) -> Self {
        let (argument, name) = (argument.into(), self.definition.name.clone());
        let exists = self.definition.arguments.iter().flatten().any(|it| it.name == argument);
        self.requires_argument(exists, ItemKind::Prompt, name, &argument)
            .completed(argument, handler)
    }
}

impl<K: Threading> ServerItem<ResourceTemplate, K> {
    /// Sets the handler that completes a variable of the template: see
    /// [`complete`](ServerItem::complete) of prompts.
    // MCP 2026-07-28 server/utilities/completion#requesting-completions [COMP-001]
    pub fn complete<M>(
        self,
        variable: impl Into<String>,
        handler: impl Handler<K, CompleteResult, M>,
    ) -> Self {
        let (variable, template) = (variable.into(), self.definition.uri_template.clone());
        let exists = has_variable(&template, &variable);
        let item = self.requires_argument(exists, ItemKind::ResourceTemplate, template, &variable);
        item.completed(variable, handler)
    }
}

impl<D, K: Threading> ServerItem<D, K> {
    fn completed<M>(
        mut self,
        argument: String,
        handler: impl Handler<K, CompleteResult, M>,
    ) -> Self {
        let states = handler.states();
        let added = ArgumentHandler { argument, function: handler.into_function(), states };
        let arguments = self.details().arguments.get_or_insert_default();
        Arc::make_mut(&mut arguments.0).push(added);
        self
    }
}

/// The handlers of an item's arguments, in the order of their registration. Clones share them.
pub(super) struct ArgumentHandlers<K: Threading>(Arc<Vec<ArgumentHandler<K>>>);

struct ArgumentHandler<K: Threading> {
    argument: String,
    function: K::Function,
    states: StateTypes,
}

impl<K: Threading> ArgumentHandlers<K> {
    /// Returns the handler of an argument: the last one that was registered.
    pub(super) fn find(&self, argument: &str) -> Option<&K::Function> {
        let found = self.0.iter().rev().find(|known| known.argument == argument);
        found.map(|known| &known.function)
    }

    /// Checks whether a server that is running has the states that the handlers take.
    pub(super) fn check(&self, states: &mut StateCheck<'_>) -> Result<(), CatalogError> {
        self.0.iter().try_for_each(|known| states.check(known.states))
    }

    /// Lets the server complete arguments, those without a handler to nothing.
    pub(super) fn declare(&self, server: &mut Server<K>) {
        if server.handlers.method(Method::CompletionComplete.as_str()).is_none() {
            let nothing = |_: Call<CompleteParams>| Vec::<String>::new();
            let nothing = Handler::<ThreadSafe, CompleteResult, _>::into_function(nothing);
            server.functions().set_method(method_handler(K::from_thread_safe(nothing)));
        }
        for known in &*self.0 {
            server.require(known.states);
        }
    }
}

impl ArgumentHandlers<ThreadSafe> {
    /// Converts the handlers of an item that was added at runtime.
    pub(super) fn into_kind<K: Threading>(self) -> ArgumentHandlers<K> {
        let converted = self.0.iter().map(|known| ArgumentHandler {
            argument: known.argument.clone(),
            function: K::from_thread_safe(known.function.clone()),
            states: known.states,
        });
        ArgumentHandlers(Arc::new(converted.collect()))
    }
}

impl<K: Threading> Default for ArgumentHandlers<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Threading> Clone for ArgumentHandlers<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Threading> Clone for ArgumentHandler<K> {
    fn clone(&self) -> Self {
        let (argument, function) = (self.argument.clone(), self.function.clone());
        Self { argument, function, states: self.states }
    }
}

impl<K: Threading> fmt::Debug for ArgumentHandlers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| &known.argument)).finish()
    }
}
