//! Where one message ends and the next begins.

mod line;

pub use line::{FrameError, LineDecoder};
