//! A simulated thermometer on an analog input, whose value drifts.

use core::cell::Cell;
use core::time::Duration;

use mcp_sansio::Instant;

/// The interval between conversions.
const PERIOD: Duration = Duration::from_millis(100);

/// The thermometer.
pub(crate) struct Sensor {
    /// The latest 12-bit conversion.
    value: Cell<u16>,
    noise: Cell<u32>,
    due: Cell<Instant>,
}

impl Sensor {
    pub(crate) const fn new() -> Self {
        Self { value: Cell::new(1764), noise: Cell::new(1), due: Cell::new(Instant::ZERO) }
    }

    /// Advances the time. Each conversion changes the value by at most one step.
    pub(crate) fn advance(&self, now: Instant) {
        while self.due.get() <= now {
            self.due.set(self.due.get() + PERIOD);
            let noise = self.noise.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            self.noise.set(noise);
            let value = self.value.get() + (noise >> 30 & 1) as u16 * 2 - 1;
            self.value.set(value.clamp(1500, 2000));
        }
    }

    /// Returns the latest conversion, from 0 to 4095.
    pub(crate) fn value(&self) -> u16 {
        self.value.get()
    }
}

/// Converts a value to thousandths of a degree Celsius: an LM35 with 10 mV per degree and a gain of
/// 5.6, at 3 V for 12 bits.
pub(crate) fn millicelsius(value: u16) -> u32 {
    // 3,000,000 / 4096, reduced so that the product with 4095 fits into 32 bits.
    u32::from(value) * 375_000 / 512 / 56
}
