//! The sizes of the firmware examples.

use std::collections::BTreeMap;
use std::path::PathBuf;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};

use crate::toolchain::{self, Toolchain};
use crate::{Failure, files};

pub(crate) const TARGET: &str = "thumbv7m-none-eabi";

/// An image and its budgets, in bytes: the stack has the rest of the RAM, which is 64 KiB.
pub(crate) struct Image {
    name: &'static str,
    flash: u64,
    ram: u64,
}
pub(crate) const SERIAL: Image = Image { name: "firmware", flash: 175 * 1024, ram: 12 * 1024 };
pub(crate) const HTTP: Image = Image { name: "firmware-http", flash: 550 * 1024, ram: 38 * 1024 };

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

pub(crate) fn size(image: &Image) -> Result<(), Failure> {
    let (size, file) = build(image)?;
    size.print(image);
    println!("image: {}", file.display());
    size.check(image)
}

/// Returns the flash size of the firmware, in bytes.
pub(crate) fn flash() -> Result<u64, Failure> {
    build(&SERIAL).map(|(size, _)| size.flash)
}

/// Builds an image. Returns its size and the path of its file.
fn build(image: &Image) -> Result<(Size, PathBuf), Failure> {
    let toolchain = Toolchain::for_target(TARGET).ok_or_else(|| toolchain::missing(&[TARGET]))?;
    eprintln!("{TARGET}: with the toolchain: {toolchain:?}");
    let folder = files::root().join("examples").join(image.name);
    let built = folder.with_file_name("firmware").join("target");
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
    let file = built.join(TARGET).join("release").join(format!("mcp-sansio-{}", image.name));
    let size = Size::from_image(&std::fs::read(&file)?)
        .map_err(|error| Failure::Unable(format!("{}: {error}", file.display())))?;
    Ok((size, file))
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
            if section.file_range().is_some() {
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

    fn print(&self, image: &Image) {
        println!("the biggest symbols:");
        let mut symbols: Vec<_> = self.symbols.iter().collect();
        symbols.sort_by_key(|(_, size)| std::cmp::Reverse(**size));
        for (name, size) in symbols.into_iter().take(SHOWN) {
            println!("{size:>8}  {name:.100}");
        }
        println!("flash: {:>7} of {} bytes", self.flash, image.flash);
        println!("RAM:   {:>7} of {} bytes", self.ram, image.ram);
    }

    fn check(&self, image: &Image) -> Result<(), Failure> {
        let both = [("flash", self.flash, image.flash), ("RAM", self.ram, image.ram)];
        let beyond = both.into_iter().filter(|(_, taken, most)| taken > most);
        let texts =
            beyond.map(|(what, is, most)| format!("{} bytes of {what} too many", is - most));
        let beyond: Vec<_> = texts.collect();
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
        assert!(size(SERIAL.flash, SERIAL.ram).check(&SERIAL).is_ok());
        let failure = size(SERIAL.flash + 1, SERIAL.ram + 2).check(&SERIAL);
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
