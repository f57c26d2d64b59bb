/// A runtime that a test may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// tokio, with one thread.
    Tokio,
    /// smol.
    Smol,
    /// async-std.
    AsyncStd,
}

impl Runtime {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tokio, Self::Smol, Self::AsyncStd];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            Self::Smol => "smol",
            Self::AsyncStd => "async-std",
        }
    }

    /// The one that is called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.name() == name)
    }
}
