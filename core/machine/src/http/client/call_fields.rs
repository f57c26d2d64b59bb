use alloc::vec::Vec;

use crate::binding::{Field, HeaderFields};
use crate::peer::CallHandle;

/// The header fields of single calls, by the slot of their handle. No larger than the table of
/// calls, whose size is limited.
#[derive(Debug, Default)]
pub(super) struct CallFields(Vec<Option<(CallHandle, HeaderFields)>>);

impl CallFields {
    pub(super) fn insert(&mut self, call: CallHandle, fields: &HeaderFields) {
        let slot = call.slot() as usize;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some((call, fields.clone()));
    }

    pub(super) fn get(&self, call: CallHandle) -> Option<&HeaderFields> {
        let (known, fields) = self.0.get(call.slot() as usize)?.as_ref()?;
        (*known == call).then_some(fields)
    }

    /// Forgets the fields of a call that has ended.
    pub(super) fn remove(&mut self, call: CallHandle) {
        if let Some(entry) = self.0.get_mut(call.slot() as usize)
            && entry.as_ref().is_some_and(|(known, _)| *known == call)
        {
            *entry = None;
        }
    }

    /// Checks that each entry belongs to a call in progress.
    pub(super) fn assert_consistent(&self, is_pending: impl Fn(CallHandle) -> bool) {
        let all = self.0.iter().flatten();
        assert!(all.map(|(call, _)| *call).all(is_pending), "fields of a call that has ended");
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl HeaderFields {
    /// Returns the fields that `others` does not replace.
    pub(super) fn without(&self, others: Option<&Self>) -> impl Iterator<Item = Field> {
        let fields = self.0.iter();
        fields.filter(move |(name, _)| others.is_none_or(|it| !it.contains(name))).cloned()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}
