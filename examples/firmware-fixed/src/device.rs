//! A thermometer with a lamp, and the handlers of its tools and resources.

use mcp_sansio_fixed::{Call, Failure, Resource, Service, Text, Tool};

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

/// All there is: tools and resources, at all revisions.
impl Service for Device {
    const NAME: &'static str = "thermometer";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const INSTRUCTIONS: Option<&'static str> = Some("A thermometer with a lamp.");
    const TOOLS: &'static [Tool<Self>] = &[
        Tool::new("read_sensor", r#"{"type":"object"}"#, read_sensor)
            .title("Read the sensor")
            .description("Reads the thermometer.")
            .annotations(r#"{"readOnlyHint":true}"#),
        Tool::new(
            "switch_lamp",
            r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#,
            switch_lamp,
        )
        .title("Switch the lamp")
        .description("Switches the lamp."),
    ];
    const RESOURCES: &'static [Resource<Self>] = &[
        Resource::new("sensor://temperature", "temperature", temperature)
            .description("The temperature.")
            .mime_type("text/plain"),
        Resource::new("device://memory", "memory", memory)
            .description("The peak use of the stack.")
            .mime_type("application/json"),
    ];
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
fn temperature(service: &mut impl AsMut<Device>, out: &mut Text<'_, '_>) -> Result<(), Failure> {
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
fn memory<S>(_: &mut S, out: &mut Text<'_, '_>) -> Result<(), Failure> {
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
