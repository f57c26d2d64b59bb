use super::scan::{PREFIX_IS_CACHED, ScanError, Scanner};
use super::written::{Entry, JsonText, Written};

/// Positions of the members in a message's parameters or result, recorded while the message is
/// validated, so that readers need not scan for the ends of the values again.
#[derive(Debug, Default)]
pub(crate) struct MemberIndex {
    places: [Place; Self::LENGTH],
    count: usize,
    /// Whether the index holds all members.
    whole: bool,
}

/// Position of a member in the text of its object, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    key: u32,
    key_length: u32,
    key_escaped: bool,
    value: u32,
    end: u32,
}

impl MemberIndex {
    /// Maximum number of indexed members; few messages have more parameters.
    const LENGTH: usize = 6;

    /// Devices skip the index: they have time to scan again, but little flash for the code.
    pub(super) const IS_KEPT: bool = PREFIX_IS_CACHED;

    /// Scans an object, whose brace is the next byte, and records its members. See
    /// [`Scanner::object`].
    pub(super) fn fill(
        &mut self,
        scanner: &mut Scanner<'_>,
        depth: usize,
        known: &str,
    ) -> Result<(), ScanError> {
        let start = scanner.at();
        let (mut count, places) = (0, &mut self.places);
        scanner.object(depth, known, |key, written, value| {
            if let Some(place) = places.get_mut(count) {
                *place = Place {
                    key: (key - start) as u32,
                    key_length: written.text.len() as u32,
                    key_escaped: written.escaped,
                    value: (value.start - start) as u32,
                    end: (value.end - start) as u32,
                };
            }
            count += 1;
        })?;
        let fits = u32::try_from(scanner.at() - start).is_ok();
        (self.count, self.whole) = (count, count <= Self::LENGTH && fits);
        Ok(())
    }

    /// Returns the members of `object` if it is the object that was indexed.
    pub(crate) fn members<'a>(&self, object: &'a str) -> Option<impl Iterator<Item = Entry<'a>>> {
        if !Self::IS_KEPT || !self.whole {
            return None;
        }
        Some(self.places.iter().take(self.count).filter_map(|place| {
            let (key, range) = (place.key as usize, place.value as usize..place.end as usize);
            let text = object.get(key..key + place.key_length as usize)?;
            Some(Entry {
                key: Written { text, escaped: place.key_escaped },
                value: JsonText::trusted(object.get(range.clone())?),
                range,
            })
        }))
    }
}
