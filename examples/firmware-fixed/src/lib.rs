//! What both images share: the offers, the loop, and the measured stack.

#![no_std]

mod device;
mod register;
mod serve;
mod stack;

pub use device::{Device, call_memory, memory, read_sensor, switch_lamp, temperature};
pub use register::Register;
pub use serve::{Port, serve};
