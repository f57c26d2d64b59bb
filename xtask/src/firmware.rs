//! The size of the firmware example.

use std::collections::BTreeMap;
use std::path::PathBuf;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};

use crate::toolchain::{self, Toolchain};
use crate::{Failure, files};

pub(crate) const TARGET: &str = "thumbv7m-none-eabi";
const NAME: &str = "mcp-sansio-firmware";

/// Code, constants, and initial values of variables, in bytes. The chip has 256 KiB.
const FLASH_MAX: u64 = 175 * 1024;
/// Variables and the heap, in bytes. The chip has 64 KiB, the rest of which is the stack's.
const RAM_MAX: u64 = 12 * 1024;

/// The number of largest symbols shown.
const SHOWN: usize = 20;

/// The size of an image, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Size {
    flash: u64,
    ram: u64,
    /// Sizes of functions and constants, by name.
    symbols: BTreeMap<String, u64>,
}

pub(crate) fn size() -> Result<(), Failure> {
    let (size, image) = build()?;
    size.print();
    println!("image: {}", image.display());
    size.check()
}

/// Returns the flash size of the firmware, in bytes.
pub(crate) fn flash() -> Result<u64, Failure> {
    build().map(|(size, _)| size.flash)
}

/// Builds the firmware. Returns its size and the path of the image.
fn build() -> Result<(Size, PathBuf), Failure> {
    let toolchain = Toolchain::for_target(TARGET).ok_or_else(|| toolchain::missing(&[TARGET]))?;
    eprintln!("{TARGET}: with the toolchain: {toolchain:?}");
    let folder = files::root().join("examples/firmware");
    let built = folder.join("target");
    let mut command = toolchain.cargo();
    // The distribution names the linker differently.
    if matches!(toolchain, Toolchain::Distribution) {
        command.env("CARGO_TARGET_THUMBV7M_NONE_EABI_LINKER", "ld.lld");
    }
    command.current_dir(&folder).args(["build", "--quiet", "--release", "--target", TARGET]);
    command.arg("--target-dir").arg(&built);
    if !command.status()?.success() {
        return Err(Failure::Failed("the firmware does not build".into()));
    }
    let image = built.join(TARGET).join("release").join(NAME);
    let size = Size::from_image(&std::fs::read(&image)?)
        .map_err(|error| Failure::Unable(format!("{}: {error}", image.display())))?;
    Ok((size, image))
}

impl Size {
    fn from_image(image: &[u8]) -> Result<Self, object::Error> {
        let file = object::File::parse(image)?;
        let mut size = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if !sh_flags.contains(object::elf::SHF_ALLOC) {
                continue;
            }
            let is_kept = section.file_range().is_some();
            if is_kept {
                size.flash += section.size();
            }
            if sh_flags.contains(object::elf::SHF_WRITE) {
                size.ram += section.size();
            }
        }
        for symbol in file.symbols().filter(|symbol| symbol.size() > 0) {
            let name = rustc_demangle::demangle(symbol.name().unwrap_or("?"));
            *size.symbols.entry(format!("{name:#}")).or_default() += symbol.size();
        }
        Ok(size)
    }

    fn print(&self) {
        println!("the biggest symbols:");
        let mut symbols: Vec<_> = self.symbols.iter().collect();
        symbols.sort_by_key(|(_, size)| std::cmp::Reverse(**size));
        for (name, size) in symbols.into_iter().take(SHOWN) {
            let name: String = name.chars().take(100).collect();
            println!("{size:>8}  {name}");
        }
        println!("flash: {:>7} of {FLASH_MAX} bytes", self.flash);
        println!("RAM:   {:>7} of {RAM_MAX} bytes", self.ram);
    }

    fn check(&self) -> Result<(), Failure> {
        let mut beyond = Vec::new();
        if self.flash > FLASH_MAX {
            beyond.push(format!("{} bytes of flash too many", self.flash - FLASH_MAX));
        }
        if self.ram > RAM_MAX {
            beyond.push(format!("{} bytes of RAM too many", self.ram - RAM_MAX));
        }
        if beyond.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("the firmware exceeds its budget: {}", beyond.join(" and "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_beyond_the_budget_fails() {
        let size = |flash, ram| Size { flash, ram, symbols: BTreeMap::new() };
        assert!(size(FLASH_MAX, RAM_MAX).check().is_ok());
        let failure = size(FLASH_MAX + 1, RAM_MAX + 2).check();
        let Err(Failure::Failed(text)) = failure else { panic!("{failure:?}") };
        assert_eq!(
            text,
            "the firmware exceeds its budget: 1 bytes of flash too many and 2 bytes of RAM too many"
        );
    }

    #[test]
    fn an_invalid_image_is_rejected() {
        assert!(Size::from_image(b"text").is_err());
    }
}
