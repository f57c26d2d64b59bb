use crate::allocator;

/// Measures how much the memory of a process grows.
#[derive(Debug)]
pub struct MemoryReport {
    resident: f64,
}

impl MemoryReport {
    /// Starts the measurement. No other report and no [`Meter`](crate::Meter) may run at the same
    /// time.
    #[must_use]
    pub fn start() -> Self {
        allocator::start();
        Self { resident: resident() }
    }

    /// Prints the growth in heap bytes and in resident bytes, for the measuring program.
    pub fn report(self) {
        let heap = allocator::held();
        println!("{heap} {}", resident() - self.resident);
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux reports the status");
    let (_, rest) = status.split_once("VmRSS:").expect("Linux reports VmRSS");
    let kibibytes = rest.split_whitespace().next().expect("a number");
    kibibytes.parse::<f64>().expect("a number") * 1024.0
}
