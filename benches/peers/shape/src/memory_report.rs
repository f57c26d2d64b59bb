use crate::allocator;

/// Measures what a process holds more than before.
#[derive(Debug)]
pub struct MemoryReport {
    resident: f64,
}

impl MemoryReport {
    /// Starts to measure. Neither another of these nor a [`Meter`](crate::Meter) runs at the time.
    #[must_use]
    pub fn start() -> Self {
        allocator::start();
        Self { resident: resident() }
    }

    /// Prints what was measured, for the program that compares: bytes of the heap, then bytes
    /// resident.
    pub fn report(self) {
        let heap = allocator::held();
        println!("{heap} {}", resident() - self.resident);
    }
}

/// What this process has in memory, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says so");
    let (_, rest) = status.split_once("VmRSS:").expect("Linux says so");
    let kibibytes = rest.split_whitespace().next().expect("a number");
    kibibytes.parse::<f64>().expect("a number") * 1024.0
}
