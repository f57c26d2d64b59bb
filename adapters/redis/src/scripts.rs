//! The steps that have to be atomic, in Lua. Times are milliseconds of Redis's clock.

use redis::Script;

/// The id of the entry that ends a stream. No event has it or can follow it.
pub(crate) const END: &str = "18446744073709551615-0";

/// Appends an event unless the stream has it, a later one, or has ended, or its session has.
/// Returns whether it did. The session knows its streams, to remove them with it. The first command
/// that writes is the one that takes memory: after it, Redis would not refuse the others if it is
/// full.
///
/// Keys: stream, streams of the session, mark of its end. Arguments: id, message, retention,
/// maximum number of events, `1` for the last event, name of the stream.
const APPEND: &str = r"
if #redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', 1) > 0 then return 0 end
local is_new = redis.call('EXISTS', KEYS[1]) == 0
if is_new and redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], ARGV[1], 'm', ARGV[2])
if is_new then redis.call('SADD', KEYS[2], ARGV[6]) end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
if ARGV[5] == '1' then redis.call('XADD', KEYS[1], '18446744073709551615-0', 'l', '1') end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1";

/// Removes a stream from its session.
///
/// Keys: stream, streams of the session. Arguments: name of the stream.
const FORGET: &str = r"
redis.call('UNLINK', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[1])
return 1";

/// Removes a session and its streams, and marks its end for a while.
///
/// Keys: session, streams, mark of the end. Arguments: prefix of its streams' keys, duration.
const REMOVE: &str = r"
for _, stream in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  redis.call('UNLINK', ARGV[1] .. stream)
end
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[2])
return 1";

/// Removes the tasks of a requestor, and marks for a while that they have ended.
///
/// Keys: list, mark of the end. Arguments: prefix of its tasks' keys, duration.
const REMOVE_TASKS: &str = r"
for _, place in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('UNLINK', ARGV[1] .. string.sub(place, 18))
end
redis.call('UNLINK', KEYS[1])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[2])
return 1";

/// Extends a lease. Returns whether it did, the number of the contents, and the nodes with a lease;
/// or the version of an incompatible schema.
///
/// Keys: leases, contents, schema. Arguments: node, duration, `1` to join, contents, schema.
const HEARTBEAT: &str = r"
local schema = redis.call('GET', KEYS[3])
if not schema then
  redis.call('SET', KEYS[3], ARGV[5])
elseif string.match(schema, '^%d+') ~= string.match(ARGV[5], '^%d+') then
  return {-1, schema}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
redis.call('SET', KEYS[2], ARGV[4], 'NX')
local held = 0
if ARGV[3] == '1' or redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  redis.call('ZADD', KEYS[1], text(now + ARGV[2]), ARGV[1])
  held = 1
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - 10 * ARGV[2]))
local reply = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf')
table.insert(reply, 1, redis.call('GET', KEYS[2]))
table.insert(reply, 1, held)
return reply";

/// Removes a node whose lease has expired. Returns whether it is gone. A store that has lost its
/// contents does not know that.
///
/// Keys: leases, contents. Arguments: node, contents.
const DEPOSE: &str = r"
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if ends and tonumber(ends) >= now then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
return 1";

/// Sets fields of a session, which it creates if necessary, and adds a replica. Later ones get
/// higher numbers than those taken, and skip some if the replica is new. Returns 0 if the session
/// has ended.
///
/// Keys: session, mark of its end. Arguments: expiry, replica, node, number taken, count skipped,
/// then names and values of fields.
const PUT: &str = r"
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local taken = math.max(tonumber(ARGV[2]), tonumber(ARGV[4]))
if redis.call('HEXISTS', KEYS[1], 'o:' .. ARGV[2]) == 0 then taken = taken + tonumber(ARGV[5]) end
for i = 6, #ARGV, 2 do redis.call('HSET', KEYS[1], 'f:' .. ARGV[i], ARGV[i + 1]) end
redis.call('HSET', KEYS[1], 'o:' .. ARGV[2], ARGV[3])
local following = tonumber(redis.call('HGET', KEYS[1], 'next') or '1')
if following <= taken then redis.call('HSET', KEYS[1], 'next', taken + 1) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1";

/// Adds the next replica to a session. Returns its number, and all fields of the hash; nothing if
/// there is no such session.
///
/// Arguments: expiry, node.
const OPEN: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local replica = tonumber(redis.call('HGET', KEYS[1], 'next') or '1')
redis.call('HSET', KEYS[1], 'next', replica + 1, 'o:' .. replica, ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {replica, redis.call('HGETALL', KEYS[1])}";

/// Changes fields of a session. Returns whether it exists.
///
/// Arguments: expiry, then for each field: `+`, name, value, or `-`, name, nothing.
const SET: &str = r"
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for i = 2, #ARGV, 3 do
  if ARGV[i] == '+' then
    redis.call('HSET', KEYS[1], 'f:' .. ARGV[i + 1], ARGV[i + 2])
  else
    redis.call('HDEL', KEYS[1], 'f:' .. ARGV[i + 1])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1";

/// Puts a message into the mailbox of a node, or of all others. A node without a lease gets none.
/// Returns 0 if the mailbox of the receiver has no room for it.
///
/// Keys: leases. Arguments: prefix of mailbox keys, sender, receiver or nothing, message, maximum
/// number of messages, retention, caller, maximum bytes, those of the caller.
const SEND: &str = r"
local nodes
if ARGV[3] ~= '' then
  nodes = redis.call('ZSCORE', KEYS[1], ARGV[3]) and {ARGV[3]} or {}
else
  nodes = redis.call('ZRANGE', KEYS[1], 0, -1)
end
local size, taken = #ARGV[4], 1
for _, node in ipairs(nodes) do
  if node ~= ARGV[2] then
    local mailbox = ARGV[1] .. node
    local counts = mailbox .. ':bytes'
    local held = redis.call('HMGET', counts, 'total', ARGV[7])
    if redis.call('XLEN', mailbox) < tonumber(ARGV[5])
      and tonumber(held[1] or '0') + size <= tonumber(ARGV[8])
      and tonumber(held[2] or '0') + size <= tonumber(ARGV[9]) then
      redis.call('XADD', mailbox, '*', 'm', ARGV[4], 'c', ARGV[7])
      redis.call('HINCRBY', counts, 'total', size)
      redis.call('HINCRBY', counts, ARGV[7], size)
      redis.call('PEXPIRE', mailbox, ARGV[6])
      redis.call('PEXPIRE', counts, ARGV[6])
    elseif ARGV[3] ~= '' then
      taken = 0
    end
  end
end
return taken";

/// Removes messages that were read from a mailbox, and returns those after them: at least one if
/// there are some, and at most a number of bytes. They stay until they are named here in turn, because
/// the reply may be lost.
///
/// Keys: mailbox, its counts. Arguments: maximum bytes, maximum number, then the ids of the messages
/// that were read.
const TAKE: &str = r"
for i = 3, #ARGV do
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])) do
    local size, caller = #entry[2][2], entry[2][4] or ''
    redis.call('XDEL', KEYS[1], ARGV[i])
    redis.call('HINCRBY', KEYS[2], 'total', -size)
    if redis.call('HINCRBY', KEYS[2], caller, -size) <= 0 then redis.call('HDEL', KEYS[2], caller) end
  end
end
local reply, bytes, start = {}, 0, '-'
while #reply < tonumber(ARGV[2]) do
  local entry = redis.call('XRANGE', KEYS[1], start, '+', 'COUNT', 1)[1]
  if not entry then break end
  bytes = bytes + #entry[2][2]
  if #reply > 0 and bytes > tonumber(ARGV[1]) then break end
  reply[#reply + 1] = entry
  start = '(' .. entry[1]
end
if #reply == 0 then redis.call('UNLINK', KEYS[1], KEYS[2]) end
return reply";

/// Stores a task, unless it has ended, as its session may have, or belongs to another node: then it
/// returns 0. Returns -1 if the task does not exist and must not be created.
///
/// Keys: task, list, mark that its session has ended. Arguments: node, `1` if it has ended, task,
/// details, expiry or nothing, the name in the list or nothing.
const PUT_TASK: &str = r"
local before = redis.call('HMGET', KEYS[1], 'node', 'ended', 'place')
if before[1] then
  if before[2] == '1' or before[1] ~= ARGV[1] then return 0 end
elseif ARGV[5] == '' then
  return -1
elseif redis.call('EXISTS', KEYS[3]) == 1 then
  return 0
end
redis.call('HSET', KEYS[1], 'node', ARGV[1], 'ended', ARGV[2], 'task', ARGV[3], 'details', ARGV[4])
if ARGV[5] == '' then return 1 end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if ARGV[6] == '' or before[3] then return 1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%016.0f', number) end
local place = text(now + ARGV[5]) .. ':' .. ARGV[6]
redis.call('ZREMRANGEBYLEX', KEYS[2], '-', '(' .. text(now))
redis.call('ZADD', KEYS[2], 0, place)
redis.call('HSET', KEYS[1], 'place', place)
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[5]) then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
return 1";

/// Returns the place of a page's last task, or nothing at the end of the list, and the tasks of
/// the page. Tasks that do not exist leave the list.
///
/// Keys: list. Arguments: prefix of its tasks' keys, start, maximum number of tasks.
const LIST_TASKS: &str = r"
local places = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[2], '+', 'LIMIT', 0, ARGV[3] + 1)
local reply = {''}
if #places > tonumber(ARGV[3]) then
  table.remove(places)
  reply[1] = places[#places]
end
for _, place in ipairs(places) do
  local task = redis.call('HGET', ARGV[1] .. string.sub(place, 18), 'task')
  if task then
    reply[#reply + 1] = task
  else
    redis.call('ZREM', KEYS[1], place)
  end
end
return reply";

/// Sets the version of the schema unless it is set, and returns it.
///
/// Keys: schema. Arguments: version.
const SCHEMA: &str = r"
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])";

/// A script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Append,
    Forget,
    Remove,
    RemoveTasks,
    Heartbeat,
    Depose,
    Put,
    Open,
    Set,
    Send,
    Take,
    Schema,
    PutTask,
    ListTasks,
}

impl Step {
    const ALL: [(Self, &'static str); 14] = [
        (Self::Append, APPEND),
        (Self::Forget, FORGET),
        (Self::Remove, REMOVE),
        (Self::RemoveTasks, REMOVE_TASKS),
        (Self::Heartbeat, HEARTBEAT),
        (Self::Depose, DEPOSE),
        (Self::Put, PUT),
        (Self::Open, OPEN),
        (Self::Set, SET),
        (Self::Send, SEND),
        (Self::Take, TAKE),
        (Self::Schema, SCHEMA),
        (Self::PutTask, PUT_TASK),
        (Self::ListTasks, LIST_TASKS),
    ];
    pub(crate) const COUNT: usize = Self::ALL.len();
}

/// The scripts with their hashes.
#[derive(Debug)]
pub(crate) struct Scripts(Vec<(String, &'static str)>);

impl Scripts {
    pub(crate) fn new() -> Self {
        let hashed =
            |(_, code): &(Step, &'static str)| (Script::new(code).get_hash().to_owned(), *code);
        Self(Step::ALL.iter().map(hashed).collect())
    }

    pub(crate) fn code(&self, step: Step) -> &'static str {
        self.0[step as usize].1
    }

    pub(crate) fn hash(&self, step: Step) -> &str {
        &self.0[step as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_in_the_order_of_their_steps() {
        for (index, (step, _)) in Step::ALL.iter().enumerate() {
            assert_eq!(*step as usize, index);
        }
        assert!(APPEND.contains(END));
    }
}
