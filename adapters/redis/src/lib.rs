//! Shares the sessions, streams and tasks of servers on HTTP between nodes, through Redis or
//! Valkey.
//!
//! [`RedisStore`] is a [`SharedStore`](mcp_sansio_async::http_server::SharedStore): give it to
//! `HttpService::with_shared_store` of the adapter for your runtime, on every node. It needs Redis
//! 6.2 or Valkey 7.2, and the policy `noeviction`. All keys expire except three small ones, so that
//! nodes that have crashed leave nothing behind. [The
//! guide](https://github.com/mcp-sansio/mcp-sansio/blob/main/docs/guide/cluster.md) describes a
//! deployment.
//!
//! # Keys
//!
//! The schema is version 1.2. Nodes of the same major version share their keys: an older one
//! ignores and keeps the fields that it does not know. With another major version,
//! [`RedisStore::connect`] returns [`RedisStoreError::Schema`], and a node that finds one after a
//! restart of Redis does not join.
//!
//! | Key | Type | Content | Expires |
//! | --- | --- | --- | --- |
//! | `mcp:{nodes}:schema` | string | the version | never |
//! | `mcp:{nodes}:contents` | string | a number that identifies the contents: it is gone if Redis was emptied | never |
//! | `mcp:{nodes}:leases` | sorted set | nodes, by the ends of their leases in milliseconds | never; a member after 10 leases |
//! | `mcp:{nodes}:mailbox:NODE` | stream | `m`: a message for a node, until it is read; `c`: the caller whose request has caused it, as a hash | [`RedisOptions::mailbox_retention`] |
//! | `mcp:{nodes}:mailbox:NODE:bytes` | hash | the bytes of these messages: `total`, and those of each caller | [`RedisOptions::mailbox_retention`] |
//! | `mcp:{SESSION}:session` | hash | `next`: the number of the next replica; `o:N`: the node of replica N; `f:NAME`: a field | with the session |
//! | `mcp:{SESSION}:streams` | set | `STREAM:PRINCIPAL` of each stream, which are removed with the session | [`RedisOptions::retention`] |
//! | `mcp:{SESSION}:ended` | string | the session has ended: nothing of it is stored any more | four times [`SharedOptions::lease`](mcp_sansio::http::SharedOptions) |
//! | `mcp:{SESSION}:events:STREAM:PRINCIPAL` | stream | `m`: the event, whose number is its id less one; the greatest id ends the stream | [`RedisOptions::retention`] |
//! | `mcp:{PROOF}:proof` | string | a proof of possession (DPoP) was used | when it is too old to be used |
//! | `mcp:{OWNER}:task:TASK` | hash | `node`; `ended`: `1` if the status is final; `task`: the result of `tasks/get`; `details`: JSON; `place`: its member of the list | with the task |
//! | `mcp:{REQUESTOR}:tasks` | sorted set | the tasks of a 2025-11-25 requestor, as `EXPIRY:TASK`, all with the score 0 | with the last task |
//! | `mcp:{REQUESTOR}:ended` | string | the session with these tasks has ended | as that of the session |
//!
//! `SESSION`, `PRINCIPAL`, `PROOF`, `REQUESTOR` and `TASK` are hashes. `OWNER` is `REQUESTOR`, or
//! `TASK` if every client that knows the id may use the task. Events and tasks themselves are
//! stored as they are sent.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "tokio", feature = "smol")))]
compile_error!("select a runtime: the feature `tokio` or `smol`");

mod keys;
mod link;
mod nodes;
mod reply;
mod scripts;
mod sessions;
mod store;
mod tasks;
#[cfg(test)]
mod tests;

pub use redis;
pub use store::{RedisOptions, RedisStoreError, StoreCounters};
pub use store::{RedisStore, StoreMonitor};

/// The version of the schema.
const SCHEMA: &str = "1.2";

/// Returns a duration in whole milliseconds, at least one.
fn milliseconds(time: std::time::Duration) -> u64 {
    // A time that Redis can add to its own.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, i64::MAX as u64 / 4)
}
