use alloc::boxed::Box;
use alloc::string::String;

use mcp_sansio_sync::Arc;

use crate::Caller;

/// The conditions of an [`Audience`](super::Audience).
///
/// A trait object, so that a program without conditions contains no code for them.
pub(super) type Conditions = Arc<dyn Condition>;

/// A condition, and those that were added before it.
pub(super) trait Condition: Send + Sync {
    /// Returns whether all conditions hold for a caller.
    fn holds(&self, caller: &Caller) -> bool;

    /// Calls `see` with the name of each condition, and whether it holds for `caller`, if there is
    /// one.
    fn for_each(&self, caller: Option<&Caller>, see: &mut dyn FnMut(&str, bool));
}

struct Named<F> {
    name: String,
    holds: F,
    before: Option<Conditions>,
}

/// Adds a condition to others.
pub(super) fn and(
    before: Option<Conditions>,
    name: String,
    holds: impl Fn(&Caller) -> bool + Send + Sync + 'static,
) -> Conditions {
    let condition: Box<dyn Condition> = Box::new(Named { name, holds, before });
    condition.into()
}

impl<F: Fn(&Caller) -> bool + Send + Sync> Condition for Named<F> {
    fn holds(&self, caller: &Caller) -> bool {
        self.before.as_ref().is_none_or(|before| before.holds(caller)) && (self.holds)(caller)
    }

    fn for_each(&self, caller: Option<&Caller>, see: &mut dyn FnMut(&str, bool)) {
        if let Some(before) = &self.before {
            before.for_each(caller, see);
        }
        see(&self.name, caller.is_some_and(|caller| (self.holds)(caller)));
    }
}
