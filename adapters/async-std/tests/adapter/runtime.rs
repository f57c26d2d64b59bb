//! The executors that run tasks.

use std::pin::Pin;
use std::sync::mpsc::channel;
use std::time::Duration;

use mcp_sansio_async::Runtime;
use mcp_sansio_async_std::runtime::AsyncRuntime;

type Task<T> = Pin<Box<dyn Future<Output = T>>>;

#[test]
fn a_panicking_task_ends_only_itself() {
    for block_on in [smol::block_on, async_std::task::block_on] as [fn(Task<()>); 2] {
        let (sender, receiver) = channel();
        block_on(Box::pin(async move {
            for number in [0, 7] {
                let sender = sender.clone();
                AsyncRuntime::current().spawn(async move {
                    assert_eq!(number, 7, "for the test");
                    sender.send(number).unwrap();
                });
            }
        }));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(7));
    }
}

#[test]
fn tasks_are_spawned_where_the_task_is_that_spawns_them() {
    let current = async || format!("{:?}", AsyncRuntime::current());
    assert_eq!(smol::block_on(current()), "AsyncRuntime(Smol)");
    assert_eq!(async_std::task::block_on(current()), "AsyncRuntime(AsyncStd)");
}
