//! Where one message ends and the next begins.

mod buffer;
mod line;

pub use line::{FrameError, LineDecoder};
