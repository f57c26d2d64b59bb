//! How a stream is split into reads.

/// Returns lengths from one to `limit`, determined by `seed`.
pub(super) fn random_lengths(seed: u8, limit: usize) -> impl FnMut() -> usize {
    let mut seed = u32::from(seed);
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as usize % limit + 1
    }
}
