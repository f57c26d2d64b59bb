//! A thermometer with a lamp, and the handlers of its tools and resources.

use mcp_sansio_fixed::{Call, Failure, Text};

use crate::stack;

/// The state of the device. The thermometer is simulated: its value drifts with each reading.
#[derive(Debug)]
pub struct Device {
    /// The latest conversion, from 0 to 4095.
    value: u16,
    noise: u32,
    lamp: bool,
}

impl Device {
    /// Creates a device with the lamp off.
    #[must_use]
    pub const fn new() -> Self {
        Self { value: 1764, noise: 1, lamp: false }
    }

    fn measure(&mut self) -> u16 {
        self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.value = (self.value + (self.noise >> 30 & 1) as u16 * 2 - 1).clamp(1500, 2000);
        self.value
    }
}

impl Default for Device {
    fn default() -> Self {
        Self::new()
    }
}

/// Access to the device in the service of an image.
impl AsMut<Device> for Device {
    fn as_mut(&mut self) -> &mut Device {
        self
    }
}

/// Converts a value to thousandths of a degree Celsius: an LM35 with 10 mV per degree and a gain of
/// 5.6, at 3 V for 12 bits.
fn millicelsius(value: u16) -> u32 {
    u32::from(value) * 375_000 / 512 / 56
}

/// The handler of `read_sensor`.
///
/// # Errors
///
/// Never.
pub fn read_sensor(
    service: &mut impl AsMut<Device>,
    _: &Call<'_>,
    out: &mut Text<'_, '_>,
) -> Result<(), Failure> {
    let value = service.as_mut().measure();
    out.push_str("{\"adc\":");
    out.push_integer(value.into());
    out.push_str(",\"millicelsius\":");
    out.push_integer(millicelsius(value).into());
    out.push_str("}");
    Ok(())
}

/// The handler of `switch_lamp`.
///
/// # Errors
///
/// The argument is missing.
pub fn switch_lamp(
    service: &mut impl AsMut<Device>,
    call: &Call<'_>,
    out: &mut Text<'_, '_>,
) -> Result<(), Failure> {
    let lamp = &mut service.as_mut().lamp;
    *lamp = call.boolean("on", "`on` must be true or false")?;
    out.push_str(if *lamp { "The lamp is on." } else { "The lamp is off." });
    Ok(())
}

/// The handler of `sensor://temperature`.
///
/// # Errors
///
/// Never.
pub fn temperature(
    service: &mut impl AsMut<Device>,
    out: &mut Text<'_, '_>,
) -> Result<(), Failure> {
    let tenths = millicelsius(service.as_mut().measure()) / 100;
    out.push_integer((tenths / 10).into());
    out.push_str(".");
    out.push_integer((tenths % 10).into());
    out.push_str(" °C");
    Ok(())
}

/// The handler of `device://memory`: the peak use of the stack, in bytes.
///
/// # Errors
///
/// Never.
pub fn memory<S>(_: &mut S, out: &mut Text<'_, '_>) -> Result<(), Failure> {
    out.push_str("{\"heap\":{\"peak\":0},\"stack\":{\"size\":");
    out.push_integer(stack::size() as i64);
    out.push_str(",\"peak\":");
    out.push_integer(stack::peak() as i64);
    out.push_str("}}");
    Ok(())
}

/// The same as [`memory`], as a tool.
///
/// # Errors
///
/// Never.
pub fn call_memory<S>(
    service: &mut S,
    _: &Call<'_>,
    out: &mut Text<'_, '_>,
) -> Result<(), Failure> {
    memory(service, out)
}
