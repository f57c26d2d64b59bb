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
