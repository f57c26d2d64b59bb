use mcp_sansio::peer::RequestHandle;

use super::TaskTable;

impl TaskTable {
    /// Checks that the tables match each other. `is_pending` says whether a request waits for its
    /// response.
    pub(super) fn assert_tables_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool) {
        let count = self.entries.len();
        let indexes = [self.names.len(), self.requests.len(), self.deadlines.len()];
        assert_eq!(indexes, [count; 3], "names, requests and deadlines of tasks");
        assert_eq!(self.requestors.task_count(), count, "tasks of the requestors");
        let mut waiting = 0;
        for (key, entry) in self.entries.iter() {
            assert_eq!(self.names.get(&entry.task.task_id), Some(&key), "the name of a task");
            assert_eq!(self.requests.get(&entry.request.handle), Some(&key), "the call of a task");
            assert!(self.deadlines.get(key.slot).is_some(), "a task that never expires");
            for request in &entry.waiting {
                let known = self.waiting.get(&request.handle);
                assert_eq!(known, Some(&key), "a request that waits for a task");
            }
            let asked = entry.asked.is_none_or(|asked| self.waiting.contains_key(&asked));
            assert!(asked, "input requests of a request that does not wait");
            waiting += entry.waiting.len();
        }
        assert_eq!(self.waiting.len(), waiting, "requests that wait for tasks that are gone");
        for request in self.waiting.keys().chain(&self.task_requests) {
            assert!(is_pending(*request), "a request that has ended: {request:?}");
        }
        let bytes: usize = self.entries.iter().map(|(_, entry)| entry.bytes()).sum();
        assert!(self.bytes >= bytes, "bytes of the tasks");
    }
}
