/// The request of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A `ping`.
    Ping,
    /// A call of the tool `echo` with a text of this many bytes.
    Echo(usize),
}

impl Work {
    /// Returns the text to echo.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Ping => String::new(),
            Self::Echo(length) => "x".repeat(length),
        }
    }
}

/// The task of a program in the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Run round trips between a client and a server in this process, and report their cost.
    Link {
        /// The request of each round trip.
        work: Work,
        /// The number of round trips.
        rounds: u64,
    },
    /// Open this many clients and servers in this process, leave them idle, and report their
    /// memory.
    Pairs(usize),
    /// Serve on standard input and output.
    Stdio,
    /// Serve HTTP at `/mcp`.
    Http {
        /// The address to listen on.
        address: String,
        /// The URL of the Redis that stores sessions and events, for the programs that use one.
        redis: Option<String>,
    },
}

/// The command line of a program in the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The variant of the SDK to use.
    pub variant: String,
    /// The task to run.
    pub task: Task,
}

impl Subject {
    /// Parses the command line: `VARIANT link ping|LENGTH ROUNDS`, `VARIANT pairs COUNT`, `VARIANT
    /// stdio`, or `VARIANT http ADDRESS [REDIS]`.
    ///
    /// # Panics
    ///
    /// Panics for any other command line. Only the measuring program starts these programs.
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
            [variant, "http", address, ref redis @ ..] => {
                let redis = redis.first().map(|&url| url.into());
                (variant, Task::Http { address: address.into(), redis })
            }
            _ => panic!(
                "usage: VARIANT link ping|LENGTH ROUNDS|pairs COUNT|stdio|http ADDRESS [REDIS]"
            ),
        };
        Self { variant: variant.into(), task }
    }
}
