/// What a client asks for, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A `ping`.
    Ping,
    /// A call of the tool `echo` with a text of so many bytes.
    Echo(usize),
}

impl Work {
    /// The text to send back.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Ping => String::new(),
            Self::Echo(length) => "x".repeat(length),
        }
    }
}

/// What a program of the comparison is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Make round trips between a client and a server in this process, and report what they took.
    Link {
        /// What a round trip is.
        work: Work,
        /// How many to make.
        rounds: u64,
    },
    /// Open so many clients and servers in this process, leave them alone, and report what they
    /// hold.
    Pairs(usize),
    /// Serve on the standard streams.
    Stdio,
    /// Serve HTTP at `/mcp` of this address.
    Http(String),
}

/// The command line of a program of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Which of the ways of its SDK to use.
    pub variant: String,
    /// What to do.
    pub task: Task,
}

impl Subject {
    /// What the command line says: `VARIANT link ping|LENGTH ROUNDS`, `VARIANT pairs COUNT`,
    /// `VARIANT stdio`, or `VARIANT http ADDRESS`.
    ///
    /// # Panics
    ///
    /// It says anything else: only the program that compares starts these.
    #[must_use]
    pub fn from_args() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (variant, task) = match *arguments {
            [variant, "link", work, rounds] => {
                let work = match work {
                    "ping" => Work::Ping,
                    length => Work::Echo(length.parse().expect("a length")),
                };
                (variant, Task::Link { work, rounds: rounds.parse().expect("a count") })
            }
            [variant, "pairs", count] => (variant, Task::Pairs(count.parse().expect("a count"))),
            [variant, "stdio"] => (variant, Task::Stdio),
            [variant, "http", address] => (variant, Task::Http(address.into())),
            _ => panic!("VARIANT link ping|LENGTH ROUNDS|pairs COUNT|stdio|http ADDRESS"),
        };
        Self { variant: variant.into(), task }
    }
}
