use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

use mcp_sansio::protocol::{Prompt, Resource, ResourceTemplate, Tool};

use super::{Connected, ServerConnection, Servers, ServersError};
use crate::client::{Client, ClientError};

/// The items of all connected servers, ordered by the names of the servers, and the servers
/// whose items are missing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedList<T> {
    /// The items.
    pub items: Vec<MergedItem<T>>,
    /// Why items are missing: one error for each server that is not connected, or whose list could
    /// not be read.
    pub errors: Vec<ServersError>,
}

/// An item of one of several servers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MergedItem<T> {
    /// The name of the server.
    pub server: Arc<str>,
    /// The item. Its `name` begins with the name of the server and the separator.
    pub item: T,
}

/// An item whose name can be changed.
trait Named {
    fn name_mut(&mut self) -> &mut String;
}

macro_rules! named {
    ($($item:ty),+) => { $(
        impl Named for $item {
            fn name_mut(&mut self) -> &mut String {
                &mut self.name
            }
        }
    )+ };
}

named!(Tool, Prompt, Resource, ResourceTemplate);

macro_rules! merged_lists {
    ($($(#[doc = $doc:literal])* $name:ident: $item:ty;)+) => {
        impl<C: ServerConnection> Servers<C> { $(
            $(#[doc = $doc])*
            ///
            /// Requests the lists of all servers at the same time, page by page. A server that does
            /// not offer such items contributes nothing.
            pub async fn $name(&self) -> MergedList<$item> {
                self.merge(|client| Box::pin(async move { client.$name().await })).await
            }
        )+ }
    };
}

merged_lists! {
    /// Lists the tools of all servers, under the names that [`call_tool`](Servers::call_tool) takes.
    all_tools: Tool;
    /// Lists the prompts of all servers, under the names that [`get_prompt`](Servers::get_prompt)
    /// takes.
    all_prompts: Prompt;
    /// Lists the resources of all servers. Their URIs are unchanged, and two servers may have the
    /// same one: read a resource from [its server](Servers::client).
    all_resources: Resource;
    /// Lists the resource templates of all servers. Their URI templates are unchanged.
    all_resource_templates: ResourceTemplate;
}

/// A list that is being read from one server.
type Listing<T> = Pin<Box<dyn Future<Output = Result<Vec<T>, ClientError>> + Send>>;

impl<C: ServerConnection> Servers<C> {
    async fn merge<T: Named>(&self, list: impl Fn(Client) -> Listing<T>) -> MergedList<T> {
        let (mut merged, mut listings) =
            (MergedList { items: Vec::new(), errors: Vec::new() }, Vec::new());
        for Connected { server, client } in self.connected() {
            match client {
                Ok(client) => listings.push((server, State::Pending(list(client)))),
                Err(error) => merged.errors.push(error),
            }
        }
        all(&mut listings).await;
        for (server, state) in listings {
            match state {
                State::Ready(Ok(items)) => {
                    merged.items.extend(items.into_iter().map(|mut item| {
                        let name = item.name_mut();
                        name.insert_str(0, &self.prefix(&server));
                        MergedItem { server: Arc::clone(&server), item }
                    }))
                }
                State::Ready(Err(error)) if error.missing_capability().is_some() => {}
                State::Ready(Err(error)) => {
                    let (server, error) = (String::from(&*server), Arc::new(error));
                    merged.errors.push(ServersError::List { server, error });
                }
                State::Pending(_) => {}
            }
        }
        merged
    }
}

/// The list of one server.
enum State<T> {
    Pending(Listing<T>),
    Ready(Result<Vec<T>, ClientError>),
}

/// Waits until all lists are read or failed. Polls each of them on each wake-up: servers are few.
async fn all<T>(listings: &mut [(Arc<str>, State<T>)]) {
    poll_fn(|cx| {
        let mut is_ready = true;
        for (_, state) in &mut *listings {
            if let State::Pending(listing) = state {
                match listing.as_mut().poll(cx) {
                    Poll::Ready(result) => *state = State::Ready(result),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
