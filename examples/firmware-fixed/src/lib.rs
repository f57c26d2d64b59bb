//! What the images share: the offers, the loop, and the measured stack.

#![no_std]

mod device;
mod register;
mod serve;
mod stack;

pub use device::{Device, call_memory, read_sensor, switch_lamp};
pub use register::Register;
pub use serve::{Port, serve};
pub use stack::PAINT;
