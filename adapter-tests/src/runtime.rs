use std::future::Future;
use std::pin::Pin;

/// A runtime under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// tokio with a single thread.
    Tokio,
    /// smol.
    Smol,
    /// async-std.
    AsyncStd,
}

impl Runtime {
    /// All runtimes.
    pub const ALL: [Self; 3] = [Self::Tokio, Self::Smol, Self::AsyncStd];

    /// Returns the name of the runtime.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            Self::Smol => "smol",
            Self::AsyncStd => "async-std",
        }
    }

    /// Returns the runtime called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.name() == name)
    }
}

// In a box, so that no test compiles the runtime again.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Runs a future on smol, and waits for it.
pub fn block_on_smol<'a, T>(future: impl Future<Output = T> + 'a) -> T {
    smol::block_on(Box::pin(future) as Boxed<'a, T>)
}

/// Runs a future on async-std, and waits for it.
pub fn block_on_async_std<'a, T>(future: impl Future<Output = T> + 'a) -> T {
    async_std::task::block_on(Box::pin(future) as Boxed<'a, T>)
}
