use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio_sync::Mutex;

use super::Pending;

/// Ended calls for reuse, so that a later call allocates no state.
#[derive(Debug, Default)]
pub(crate) struct CallPool {
    calls: Mutex<Vec<Arc<Pending>>>,
}

/// How many calls are kept: rarely do more end before the next ones begin.
const POOL_MAX: usize = 8;

/// The most text capacity that a kept call retains, in bytes: enough for most calls.
pub(super) const POOL_TEXT_MAX: usize = 16 * 1024;

impl CallPool {
    /// Takes a call without other references.
    pub(super) fn take(&self) -> Arc<Pending> {
        let spare = self.calls.lock(Vec::pop);
        // The thread that put it there may still hold a reference.
        match spare.filter(|spare| Arc::strong_count(spare) == 1) {
            Some(spare) => spare,
            None => Arc::new(Pending::new()),
        }
    }

    /// Keeps a call if it has no other references.
    pub(super) fn put(&self, call: &mut Arc<Pending>) {
        let Some(pending) = Arc::get_mut(call) else { return };
        pending.clear();
        let kept = Arc::clone(call);
        let left = self.calls.lock(|calls| {
            if calls.len() < POOL_MAX {
                calls.push(kept);
                return None;
            }
            Some(kept)
        });
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use mcp_sansio::jsonrpc::RawJson;

    use super::*;
    use crate::pending::Abandoned;

    #[test]
    fn an_ended_call_is_reset_before_reuse() {
        let pool = CallPool::default();
        let mut first = pool.take();
        first.write(&RawJson::trusted(r#"{"a":1}"#)).unwrap();
        assert_eq!(first.begin().unwrap().1, r#"{"a":1}"#);
        first.end(Ok(RawJson::EMPTY_OBJECT));
        let address = Arc::as_ptr(&first);
        pool.put(&mut first);
        drop(first);
        let second = pool.take();
        assert_eq!(Arc::as_ptr(&second), address);
        assert_eq!(second.begin().unwrap().1, "");
        assert_eq!(second.abandon(false), Abandoned::UnderWay, "it has not ended");
    }

    #[test]
    fn a_call_with_other_references_is_not_pooled() {
        let pool = CallPool::default();
        let (mut first, second) = (pool.take(), pool.take());
        let held = Arc::clone(&first);
        pool.put(&mut first);
        assert!(pool.calls.lock(|calls| calls.is_empty()));
        drop(held);
        pool.put(&mut first);
        let third = pool.take();
        assert!(!Arc::ptr_eq(&first, &third) && !Arc::ptr_eq(&second, &third));
    }

    #[test]
    fn the_memory_of_a_long_text_is_not_kept() {
        let pool = CallPool::default();
        let mut call = pool.take();
        call.give_back(String::with_capacity(POOL_TEXT_MAX + 1));
        pool.put(&mut call);
        assert_eq!(call.begin().unwrap().1.capacity(), 0);
    }
}
