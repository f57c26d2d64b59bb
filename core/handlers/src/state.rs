//! Values that the handlers of a server share.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::any::{Any, TypeId, type_name};
use core::future::Future;
use core::ops::Deref;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::protocol::GetPromptResult;
use mcp_sansio::protocol::ReadResourceResult;

use super::context::{FromRequest, RequestParts};
use super::function::{Async, Blocking, Handler, HandlerInput, Plain};
use super::reply::{HandlerError, IntoOutcome};
use super::server::Server;
use super::threading::{Local, ThreadSafe, Threading};

/// A value that handlers share, as a parameter of a handler after its [`Call`](super::Call).
///
/// [`Server::state`](super::Server::state) registers the value, which all connections of the server
/// share. A handler takes up to three states, and a server whose handler takes a state that is not
/// registered has no [`endpoint`](super::Server::endpoint).
///
/// ```
/// use std::collections::BTreeMap;
///
/// use mcp_sansio_handlers::{Call, Server, State};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Word { word: String }
///
/// struct Dictionary(BTreeMap<String, String>);
///
/// async fn define(call: Call<Word>, dictionary: State<Dictionary>) -> String {
///     let meaning = dictionary.0.0.get(&call.arguments.word);
///     meaning.map_or_else(|| "No such word".into(), String::clone)
/// }
///
/// let server = Server::new("dictionary", "1.0.0")
///     .state(Dictionary(BTreeMap::new()))
///     .tool("define", "Defines a word", define);
/// # assert!(server.endpoint(42).is_ok());
/// ```
#[derive(Debug)]
pub struct State<S: ?Sized>(pub Arc<S>);

impl<S: ?Sized> Clone for State<S> {
    /// Shares the value.
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: ?Sized> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// The states of a server.
#[allow(unnameable_types, reason = "only this crate implements and uses it")]
pub trait StateMap {
    /// Returns the `Arc` with this type id.
    fn get(&self, id: TypeId) -> Option<&dyn Any>;
}

/// A state, and those that were registered before it. A program without states contains no code for
/// them.
pub(super) struct StateEntry<S: ?Sized, N> {
    pub(super) value: Arc<S>,
    pub(super) next: Option<N>,
}

impl<S: ?Sized + 'static, N: Deref<Target: StateMap>> StateMap for StateEntry<S, N> {
    fn get(&self, id: TypeId) -> Option<&dyn Any> {
        if id == TypeId::of::<Arc<S>>() { Some(&self.value) } else { self.next.as_ref()?.get(id) }
    }
}

type FindFunction = fn(Option<&dyn StateMap>) -> Result<(), &'static str>;

/// The types of the states that a handler takes.
#[derive(Clone, Copy)]
pub struct StateTypes(Option<FindFunction>);

impl StateTypes {
    /// No states.
    pub const NONE: Self = Self(None);

    /// Returns the types of these states.
    #[must_use]
    pub fn of<S: States>() -> Self {
        Self(Some(|states| S::find(states).map(drop)))
    }

    pub(super) const fn is_none(self) -> bool {
        self.0.is_none()
    }

    /// Checks that all of them are registered.
    pub(super) fn check(self, states: Option<&dyn StateMap>) -> Result<(), CatalogError> {
        let Some(find) = self.0 else { return Ok(()) };
        find(states).map_err(|state| CatalogError::MissingState { state })
    }
}

mcp_sansio::partial_debug! { impl Debug for StateTypes { .. } }

/// The states that a handler takes, as a tuple of [`State`]s.
pub trait States: sealed::FindStates {}

fn find_state<S: ?Sized + 'static>(
    states: Option<&dyn StateMap>,
) -> Result<State<S>, &'static str> {
    let found = states.and_then(|states| states.get(TypeId::of::<Arc<S>>()));
    let found = found.and_then(|found| found.downcast_ref::<Arc<S>>());
    found.map(|value| State(Arc::clone(value))).ok_or_else(type_name::<S>)
}

/// The kinds of handlers that can take states: those of servers.
pub trait TakesState: sealed::Sealed {}

impl<Of: TakesState, C: FromRequest<Of>, S: States> FromRequest<Of> for (C, S) {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        // Registration has checked that the server has them.
        let states = S::find(received.states).map_err(HandlerError::failed)?;
        Ok((C::from_request(received)?, states))
    }
}

// A function that `M` marks and that takes the states `S` too.
impl<M: HandlerInput, S> HandlerInput for (M, S) {
    type In = M::In;
    type Out = M::Out;
}

pub(super) mod sealed {
    #[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
    pub trait Sealed {}

    #[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
    pub trait FindStates: Sized {
        /// Finds the states, or the name of the first missing type.
        fn find(states: Option<&dyn super::StateMap>) -> Result<Self, &'static str>;
    }
}

/// Lets handlers of these kinds take states.
macro_rules! take_state {
    ($($of:ident)+) => { $(
        impl $crate::state::TakesState for $of {}
        impl $crate::state::sealed::Sealed for $of {}
    )+ };
}
pub(super) use take_state;

take_state!(CallToolResult GetPromptResult ReadResourceResult Json);

/// Implements handlers of this kind that also take states, as functions of one pair.
macro_rules! handler_with_states {
    (
        $kind:ident, $marker:ident, $out:ty, ($($state:ident $name:ident),+),
        where [$($bounds:tt)+], |$function:ident| $($paired:tt)+
    ) => {
        #[diagnostic::do_not_recommend]
        impl<F, In, R, Of, $($state),+>
            Handler<$kind, Of, ($marker<In, $out>, ($(State<$state>,)+))> for F
        where
            $($bounds)+,
            In: FromRequest<Of>,
            (In, ($(State<$state>,)+)): FromRequest<Of>,
            $($state: ?Sized + 'static),+
        {
            fn into_function(self) -> <$kind as Threading>::Function {
                let $function = self;
                Handler::<$kind, Of, $marker<(In, ($(State<$state>,)+)), $out>>::into_function(
                    $($paired)+,
                )
            }

            fn states(&self) -> StateTypes {
                StateTypes::of::<($(State<$state>,)+)>()
            }
        }
    };
}

/// Implements all kinds of handlers with these states.
macro_rules! with_states {
    ($($state:ident $name:ident),+) => {
        impl<$($state: ?Sized + 'static),+> States for ($(State<$state>,)+) {}

        impl<$($state: ?Sized + 'static),+> sealed::FindStates for ($(State<$state>,)+) {
            fn find(states: Option<&dyn StateMap>) -> Result<Self, &'static str> {
                Ok(($(find_state::<$state>(states)?,)+))
            }
        }

        handler_with_states!(
            ThreadSafe, Plain, R, ($($state $name),+),
            where [
                F: Fn(In, $(State<$state>),+) -> R + Send + Sync + 'static,
                R: IntoOutcome<Of>
            ],
            |function| move |(input, ($($name,)+)): (In, ($(State<$state>,)+))| {
                function(input, $($name),+)
            }
        );
        handler_with_states!(
            ThreadSafe, Async, R::Output, ($($state $name),+),
            where [
                F: FnOnce(In, $(State<$state>),+) -> R + Clone + Send + Sync + 'static,
                R: Future<Output: IntoOutcome<Of>> + Send + 'static
            ],
            |function| move |(input, ($($name,)+)): (In, ($(State<$state>,)+))| {
                function(input, $($name),+)
            }
        );
        handler_with_states!(
            Local, Plain, R, ($($state $name),+),
            where [F: Fn(In, $(State<$state>),+) -> R + 'static, R: IntoOutcome<Of>],
            |function| move |(input, ($($name,)+)): (In, ($(State<$state>,)+))| {
                function(input, $($name),+)
            }
        );
        handler_with_states!(
            Local, Async, R, ($($state $name),+),
            where [
                F: AsyncFn(In, $(State<$state>),+) -> R + 'static,
                In: 'static,
                R: IntoOutcome<Of>
            ],
            |function| async move |(input, ($($name,)+)): (In, ($(State<$state>,)+))| {
                function(input, $($name),+).await
            }
        );

        #[diagnostic::do_not_recommend]
        impl<F, In, R, Of, $($state),+>
            Handler<ThreadSafe, Of, (Blocking<fn(In) -> R>, ($(State<$state>,)+))>
            for Blocking<F>
        where
            F: Fn(In, $(State<$state>),+) -> R + Send + Sync + 'static,
            In: FromRequest<Of> + Send + 'static,
            (In, ($(State<$state>,)+)): FromRequest<Of>,
            R: IntoOutcome<Of>,
            $($state: ?Sized + Send + Sync + 'static),+
        {
            fn into_function(self) -> <ThreadSafe as Threading>::Function {
                let function = self.0;
                let paired = move |(input, ($($name,)+)): (In, ($(State<$state>,)+))| {
                    function(input, $($name),+)
                };
                Handler::<ThreadSafe, Of, Blocking<fn(_) -> R>>::into_function(Blocking(paired))
            }

            fn states(&self) -> StateTypes {
                StateTypes::of::<($(State<$state>,)+)>()
            }
        }
    };
}

with_states!(A a);
with_states!(A a, B b);
with_states!(A a, B b, C c);

impl Server {
    /// Registers a value that handlers of this server share: those that take a
    /// [`State<S>`](super::State). It replaces an earlier value of the same type.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use mcp_sansio_handlers::{Call, NoArguments, Server, State};
    ///
    /// struct Visits(AtomicU32);
    ///
    /// async fn visit(_: Call<NoArguments>, visits: State<Visits>) -> String {
    ///     let visits = visits.0.0.fetch_add(1, Ordering::Relaxed) + 1;
    ///     format!("Visit {visits}")
    /// }
    ///
    /// let server = Server::new("museum", "1.0.0").tool("visit", "Counts visits", visit);
    /// let error = server.endpoint(42).unwrap_err();
    /// assert!(error.to_string().contains("Visits"));
    /// let server = server.state(Visits(AtomicU32::new(0)));
    /// assert!(server.endpoint(42).is_ok());
    /// ```
    #[must_use]
    pub fn state<S: Send + Sync + 'static>(self, value: S) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Like [`state`](Self::state), with a value that the application shares, or a trait object:
    /// handlers of `State<dyn Store>` take an `Arc<dyn Store>`.
    #[must_use]
    pub fn shared_state<S: ?Sized + Send + Sync + 'static>(mut self, value: Arc<S>) -> Self {
        let functions = self.functions();
        functions.states = Some(Arc::new(StateEntry { value, next: functions.states.take() }));
        self.meet();
        self
    }
}

impl Server<Local> {
    /// Registers a value that handlers of this server share: those that take a
    /// [`State<S>`](super::State). It replaces an earlier value of the same type.
    #[must_use]
    pub fn state<S: 'static>(self, value: S) -> Self {
        self.shared_state(Arc::new(value))
    }

    /// Like [`state`](Self::state), with a value that the application shares, or a trait object:
    /// handlers of `State<dyn Store>` take an `Arc<dyn Store>`.
    #[must_use]
    pub fn shared_state<S: ?Sized + 'static>(mut self, value: Arc<S>) -> Self {
        let functions = self.functions();
        functions.states = Some(Rc::new(StateEntry { value, next: functions.states.take() }));
        self.meet();
        self
    }
}

impl<K: Threading> Server<K> {
    /// Forgets the handlers whose states are registered now.
    fn meet(&mut self) {
        let states = self.handlers.state_map();
        self.unmet.retain(|unmet| unmet.check(states).is_err());
        if let Some(CatalogError::MissingState { .. }) = self.problem {
            self.problem = self.unmet.first().and_then(|unmet| unmet.check(states).err());
        }
    }
}
