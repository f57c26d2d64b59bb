//! At which bytes the tests cut a stream.

/// The distance between two cuts: one byte in `.ci/run`; 7 by default, since a cut at each byte takes minutes.
pub(crate) fn cut_step() -> usize {
    let step = std::env::var("MCP_SIM_CUT_STEP");
    step.map_or(7, |step| step.parse().expect("MCP_SIM_CUT_STEP is a number"))
}
