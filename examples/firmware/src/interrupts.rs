//! The interrupt vectors of the chip.

unsafe extern "C" {
    /// See [`fault`](crate::fault).
    fn DefaultHandler();
}

/// The number of interrupts that the chip has.
const COUNT: usize = 44;

/// Without this table, `cortex-m-rt` would reserve flash for as many interrupts as a Cortex-M3 can
/// have: 240.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [unsafe extern "C" fn(); COUNT] = [DefaultHandler; COUNT];
