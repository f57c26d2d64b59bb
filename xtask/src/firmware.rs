//! The sizes of the firmware examples.

use std::collections::BTreeMap;
use std::path::PathBuf;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags};

use crate::toolchain::{self, Toolchain};
use crate::{Failure, files};

pub(crate) const TARGET: &str = "thumbv7m-none-eabi";

/// An image: its example, its target and its name. Then the most that it may need, in bytes: code, constants
/// and initial values of variables; and variables and the heap. The rest of the RAM is the stack's.
struct Image(&'static str, &'static str, &'static str, u64, u64);

const SERIAL: Image = Image("firmware", TARGET, "mcp-sansio-firmware", 174 * 1024, 11_072);
const HTTP: Image = Image("firmware-http", TARGET, "mcp-sansio-firmware-http", 496_640, 39_936);
/// Without an allocator: tools of two revisions, then tools and resources of all revisions.
const TOOLS: Image = Image("firmware-fixed", TARGET, "lm3s6965", 41 * 1024, 2304);
const MICROBIT: Image = Image("firmware-fixed", "thumbv6m-none-eabi", "microbit", 42 * 1024, 2304);
const VIRT: Image =
    Image("firmware-fixed", "riscv32imac-unknown-none-elf", "virt", 48 * 1024, 2304);

/// The size of an image, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Size {
    flash: u64,
    ram: u64,
    /// Sizes of functions and constants, by name.
    symbols: BTreeMap<String, u64>,
}

/// Prints the sizes of the images of an example.
pub(crate) fn size(example: &str) -> Result<(), Failure> {
    for image in [SERIAL, HTTP, TOOLS, MICROBIT, VIRT].iter().filter(|it| it.0 == example) {
        let (size, path) = build(image)?;
        size.print(image);
        println!("image: {}", path.display());
        size.check(image)?;
    }
    Ok(())
}

/// Returns the flash size of the firmware, in bytes.
pub(crate) fn flash() -> Result<u64, Failure> {
    build(&SERIAL).map(|(size, _)| size.flash)
}

/// Builds the image. Returns its size and its path.
fn build(&Image(example, target, name, ..): &Image) -> Result<(Size, PathBuf), Failure> {
    let toolchain = Toolchain::for_target(target).ok_or_else(|| toolchain::missing(&[target]))?;
    let folder = files::root().join("examples").join(example);
    let built = folder.with_file_name("firmware").join("target");
    let mut command = toolchain.cargo();
    // The distribution names the linker differently.
    if matches!(toolchain, Toolchain::Distribution) {
        let target = target.to_uppercase().replace('-', "_");
        command.env(format!("CARGO_TARGET_{target}_LINKER"), "ld.lld");
    }
    command.current_dir(&folder).args(["build", "--quiet", "--release", "--target", target]);
    command.args(["--bin", name, "--target-dir"]).arg(&built);
    if !command.status()?.success() {
        return Err(Failure::Failed(format!("{name} does not build")));
    }
    let path = built.join(target).join("release").join(name);
    let size = Size::from_image(&std::fs::read(&path)?)
        .map_err(|error| Failure::Unable(format!("{}: {error}", path.display())))?;
    Ok((size, path))
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
        for (name, size) in symbols.into_iter().take(20) {
            println!("{size:>8}  {name:.100}");
        }
        println!("flash: {:>7} of {} bytes", self.flash, image.3);
        println!("RAM:   {:>7} of {} bytes", self.ram, image.4);
    }

    fn check(&self, Image(example, _, name, flash, ram): &Image) -> Result<(), Failure> {
        let allocates = *example == TOOLS.0 && self.symbols.keys().any(|it| it.contains("alloc::"));
        if self.flash <= *flash && self.ram <= *ram && !allocates {
            return Ok(());
        }
        let what = if allocates { "contains an allocator" } else { "exceeds its budget" };
        Err(Failure::Failed(format!("{name} {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_beyond_the_budget_fails() {
        let Image(_, _, _, flash, ram) = TOOLS;
        for (flash, ram, symbol, fails) in [
            (flash, ram, "core::fmt::write", false),
            (flash + 1, ram, "", true),
            (flash, ram + 1, "", true),
            (flash, ram, "<alloc::vec::Vec<u8>>::grow", true),
        ] {
            let size = Size { flash, ram, symbols: BTreeMap::from([(symbol.into(), 1)]) };
            assert_eq!(size.check(&TOOLS).is_err(), fails, "{size:?}");
        }
    }

    #[test]
    fn an_invalid_image_is_rejected() {
        assert!(Size::from_image(b"text").is_err());
    }
}
