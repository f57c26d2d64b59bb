use std::time::Duration;

use mcp_sansio::http::{NodeId, StoreError, TaskKey, TaskPage, TaskRecord};
use redis::Value;

use crate::keys::digest;
use crate::link::Failure;
use crate::milliseconds;
use crate::reply::{items, number, text};
use crate::scripts::Step;
use crate::store::Inner;

/// Tasks.
impl Inner {
    /// Stores a task. Without `ttl`, only a task that exists.
    pub(crate) async fn put_task(
        &self,
        key: &TaskKey,
        record: &TaskRecord,
        ttl: Option<Duration>,
        listed: bool,
    ) -> Result<Result<(), StoreError>, Failure> {
        let put = self.link.run(Step::PutTask, |command| {
            command.arg(3).arg(self.keys.task(key)).arg(self.keys.list_with(key));
            command.arg(self.keys.ended_with(key));
            command.arg(record.node.to_string()).arg(if record.ended { "1" } else { "0" });
            command.arg(&record.task).arg(&record.details);
            command.arg(ttl.map(|ttl| milliseconds(ttl).to_string()).unwrap_or_default());
            command.arg(if listed { digest(&key.task) } else { String::new() });
        });
        Ok(match number(&put.await?) {
            Some(1) => Ok(()),
            Some(0) => Err(StoreError::Refused),
            _ => Err(StoreError::Missing),
        })
    }

    pub(crate) async fn read_task(
        &self,
        key: &TaskKey,
    ) -> Result<Result<TaskRecord, StoreError>, Failure> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys.task(key)).arg(&["node", "ended", "task", "details"]);
        let found = items(self.link.query(&command).await?);
        Ok(record(&found).ok_or(StoreError::Missing))
    }

    pub(crate) async fn list_tasks(
        &self,
        requestor: &str,
        cursor: Option<&str>,
        tasks_max: usize,
    ) -> Result<Result<TaskPage, StoreError>, Failure> {
        if cursor.is_some_and(|cursor| !is_cursor(cursor)) {
            return Ok(Err(StoreError::Missing));
        }
        let listed = self.link.run(Step::ListTasks, |command| {
            command.arg(1).arg(self.keys.tasks(requestor)).arg(self.keys.tasks_of(requestor));
            command.arg(cursor.map_or_else(|| "-".to_owned(), |cursor| format!("({cursor}")));
            command.arg(tasks_max);
        });
        let mut parts = items(listed.await?).into_iter();
        let next = parts.next().and_then(|next| text(&next).map(str::to_owned));
        let tasks = parts.filter_map(|task| text(&task).map(str::to_owned)).collect();
        Ok(Ok(TaskPage::new(tasks, next.filter(|next| !next.is_empty()))))
    }
}

fn record(values: &[Value]) -> Option<TaskRecord> {
    let [node, ended, task, details] = values else { return None };
    let node = NodeId::parse(text(node)?)?;
    Some(TaskRecord::new(node, text(ended)? == "1", text(task)?.into(), text(details)?.into()))
}

/// Returns whether a text has the form of a member in the list of tasks.
fn is_cursor(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split_once(':').is_some_and(|(expiry, task)| {
        expiry.len() == 16 && digits(expiry) && task.len() == 32 && digits(task)
    })
}
