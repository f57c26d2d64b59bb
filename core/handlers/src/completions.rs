//! Handlers that complete one argument of an item.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::protocol::CompleteParams;

use super::context::Call;
use super::function::Handler;
use super::reply::ForCompletion;
use super::server::Server;
use super::state::StateTypes;
use super::threading::{Local, ThreadSafe, Threading};

/// The completions of an item's arguments.
#[allow(unnameable_types, reason = "only this crate implements and uses it")]
pub trait ArgumentCompletions<K: Threading> {
    /// Returns the handler of an argument.
    fn find(&self, argument: &str) -> Option<&K::Function>;

    /// Visits the handlers in the order of their registration.
    fn for_each(&self, visit: &mut dyn FnMut(&str, &K::Function, StateTypes));

    /// Declares to clients that the server completes arguments. Those without a handler complete to
    /// nothing.
    fn declare(&self, server: &mut Server<K>);

    /// Converts the handlers for a local server. A method, so that only programs with completions
    /// contain it.
    fn to_local(&self) -> <Local as Threading>::Completions;
}

/// The handler of an argument, and those that were registered before it. A program without such
/// handlers contains no code for them.
#[allow(unnameable_types, reason = "only this crate creates it")]
pub struct CompletionEntry<K: Threading> {
    argument: String,
    function: K::Function,
    states: StateTypes,
    next: Option<K::Completions>,
}

impl<K: Threading> CompletionEntry<K> {
    /// Adds the handler of an argument to those of `next`.
    pub(super) fn add<M>(
        argument: String,
        handler: impl Handler<K, ForCompletion, M>,
        next: Option<K::Completions>,
    ) -> K::Completions {
        let states = handler.states();
        K::completions(Self { argument, function: handler.into_function(), states, next })
    }
}

impl<K: Threading> ArgumentCompletions<K> for CompletionEntry<K> {
    fn find(&self, argument: &str) -> Option<&K::Function> {
        if argument == self.argument {
            return Some(&self.function);
        }
        self.next.as_ref()?.find(argument)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&str, &K::Function, StateTypes)) {
        if let Some(next) = &self.next {
            next.for_each(visit);
        }
        visit(&self.argument, &self.function, self.states);
    }

    fn declare(&self, server: &mut Server<K>) {
        server.declare_completions();
        server.functions().completion.get_or_insert_with(|| {
            let nothing = |_: Call<CompleteParams>| Vec::<String>::new();
            K::from_thread_safe(Handler::<ThreadSafe, ForCompletion, _>::into_function(nothing))
        });
        self.for_each(&mut |_, _, states| server.require(states));
    }

    fn to_local(&self) -> <Local as Threading>::Completions {
        Rc::new(CompletionEntry::<Local> {
            argument: self.argument.clone(),
            function: K::to_local(&self.function),
            states: self.states,
            next: self.next.as_ref().map(|next| next.to_local()),
        })
    }
}

impl<K: Threading> fmt::Debug for CompletionEntry<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionEntry").field("argument", &self.argument).finish_non_exhaustive()
    }
}
