//! The cursor that marks where the next page of a list starts.

use alloc::format;
use alloc::string::String;

use super::item::ItemKind;
use super::list::Listing;

/// Writes the cursor of a page that ends with the entry `number`.
///
/// The cursor consists of the number, the hash of the entry's key, and a checksum of both and the
/// kind. The hashes have 8 hexadecimal digits each; the number has no leading zeros. A cursor stays
/// valid when the list is edited, and reveals nothing about the catalog except its number of
/// insertions.
// MCP 2026-07-28 server/utilities/pagination#error-handling [PAGE-007]: stable.
pub(super) fn write_cursor(kind: ItemKind, number: u64, key: &str) -> String {
    spelling(kind, number, hash(key.as_bytes(), BASIS))
}

fn spelling(kind: ItemKind, number: u64, key: u32) -> String {
    format!("{number:x}-{key:08x}{:08x}", checksum(kind, number, key))
}

/// Returns the number in a cursor of this list. Returns `None` for any other text: one that was not
/// issued here, belongs to another kind of list, or names an entry that has been replaced in this
/// list.
// A cursor contains no secret and authorizes nothing, so a checksum is enough to detect client
// errors.
pub(super) fn read_cursor(kind: ItemKind, cursor: &str, list: &dyn Listing) -> Option<u64> {
    let (digits, hashes) = cursor.split_once('-')?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    let key = u32::from_str_radix(hashes.get(..8)?, 16).ok()?;
    let entry = list.issued(number)?;
    let item = entry.is_none_or(|entry| hash(entry.as_bytes(), BASIS) == key);
    // The comparison of the text rules out alternative spellings.
    (item && spelling(kind, number, key) == cursor).then_some(number)
}

fn checksum(kind: ItemKind, number: u64, key: u32) -> u32 {
    let sum = hash(kind.member().as_bytes(), BASIS);
    hash(&key.to_le_bytes(), hash(&number.to_le_bytes(), sum))
}

const BASIS: u32 = 0x811c_9dc5;

/// FNV-1a: the same on every platform, because the pages of one list may come from several
/// machines.
fn hash(bytes: &[u8], start: u32) -> u32 {
    const PRIME: u32 = 0x0100_0193;
    bytes.iter().fold(start, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::list::List;
    use crate::protocol::{Prompt, Resource};

    fn prompts() -> List<Prompt> {
        let mut list = List::default();
        for n in 0..20 {
            list.add(Prompt::new(format!("p{n}"))).unwrap();
        }
        list
    }

    #[test]
    fn a_cursor_is_valid_after_its_entry_was_removed() {
        // Rule: [PAGE-007].
        let mut list = prompts();
        let cursor = write_cursor(ItemKind::Prompt, 17, "p17");
        assert_eq!(read_cursor(ItemKind::Prompt, &cursor, &list), Some(17));
        list.remove("p17");
        assert_eq!(read_cursor(ItemKind::Prompt, &cursor, &list), Some(17));
    }

    #[test]
    fn foreign_cursors_are_rejected() {
        // Rule: [PAGE-007].
        let list = prompts();
        let cursor = write_cursor(ItemKind::Prompt, 17, "p17");
        for at in 0..cursor.len() {
            let mut bytes = cursor.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(read_cursor(ItemKind::Prompt, &changed, &list), None, "{changed}");
            assert_eq!(read_cursor(ItemKind::Prompt, &cursor[..at], &list), None);
        }
        for garbage in ["", "-", "17", "é-é", "+11-0000000000000000", &cursor.to_uppercase()] {
            assert_eq!(read_cursor(ItemKind::Prompt, garbage, &list), None, "{garbage}");
        }
        assert_eq!(read_cursor(ItemKind::Prompt, &[&cursor, "0"].concat(), &list), None);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        // Rule: [PAGE-007].
        let cursor = write_cursor(ItemKind::Prompt, 17, "p17");
        let mut other = List::<Resource>::default();
        let mut shorter = List::<Prompt>::default();
        let mut renamed = List::<Prompt>::default();
        for n in 0..20 {
            other.add(Resource::new(format!("p{n}"), "r")).unwrap();
            renamed.add(Prompt::new(format!("q{n}"))).unwrap();
        }
        shorter.add(Prompt::new("p0")).unwrap();
        assert_eq!(read_cursor(ItemKind::Resource, &cursor, &other), None);
        assert_eq!(read_cursor(ItemKind::Prompt, &cursor, &shorter), None);
        assert_eq!(read_cursor(ItemKind::Prompt, &cursor, &renamed), None);
    }
}
