//! How a stream is cut into reads.

/// Lengths from one up to `limit`, the same ones for the same `seed`.
pub(super) fn random_lengths(seed: u8, limit: usize) -> impl FnMut() -> usize {
    let mut seed = u32::from(seed);
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as usize % limit + 1
    }
}
