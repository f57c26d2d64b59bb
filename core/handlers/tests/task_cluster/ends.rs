//! The ends of tasks, as all clients have seen them.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::http::NodeId;

/// The error of a task whose node has failed.
const NODE_FAILED: &str = "the server that ran this task has failed; its outcome is unknown";

/// The process that runs a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) node: usize,
    pub(crate) life: u32,
    pub(crate) id: Option<NodeId>,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) status: String,
    /// The text of its result or error, if it was read.
    pub(crate) text: Option<String>,
}

impl End {
    pub(crate) fn is_node_failure(&self) -> bool {
        self.status == "failed" && self.text.as_deref().is_none_or(|text| text == NODE_FAILED)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ends {
    seen: BTreeMap<String, End>,
    /// Tasks whose end was not stored, or was lost with the store. Their node tells this end as
    /// long as it does not reach the store, and others that the task is unfinished or has failed.
    pub(crate) lost: BTreeSet<String>,
    /// Tasks that may still run, although their clients have seen an end that was lost.
    pub(crate) unended: BTreeSet<String>,
    /// Tasks that another node has ended, because their node has not extended its lease.
    pub(crate) declared: BTreeSet<String>,
    /// How many have ended otherwise.
    pub(crate) again: u32,
}

impl Ends {
    /// Notes the end of a task that a client has seen.
    pub(crate) fn see(&mut self, task: &str, end: End) {
        let Some(before) = self.seen.get_mut(task) else {
            self.seen.insert(task.into(), end);
            return;
        };
        let same = before.status == end.status
            && (before.text.is_none() || end.text.is_none() || before.text == end.text);
        if same {
            before.text = before.text.take().or(end.text);
            return;
        }
        assert!(self.lost.contains(task), "{task} has ended as {before:?} and as {end:?}");
        self.again += 1;
        *before = end;
    }

    /// From now on all nodes must agree.
    pub(crate) fn settle(&mut self) {
        self.unended = core::mem::take(&mut self.lost);
        self.seen.clear();
    }

    pub(crate) fn of(&self, task: &str) -> Option<&End> {
        self.seen.get(task)
    }

    /// Checks a task that has not ended in the view of a client.
    pub(crate) fn see_unfinished(&mut self, task: &str) {
        let end = self.seen.remove(task);
        assert!(end.is_none() || self.lost.contains(task), "{task} has ended as {end:?}");
    }
}
