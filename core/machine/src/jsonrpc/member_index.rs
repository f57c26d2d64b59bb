use super::members::Member;
use super::raw::RawJson;
use super::scan::{STANDING_IS_KEPT, ScanError, Scanner};

/// Where the members of the parameters or the result of a message are, noted while the message is
/// checked: whoever reads them does not look for their ends again.
#[derive(Debug, Default)]
pub(crate) struct MemberIndex {
    places: [Place; Self::LENGTH],
    count: usize,
    /// All members are in it.
    whole: bool,
}

/// Where a member is in the text of its object, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    key: u32,
    key_length: u32,
    key_escaped: bool,
    value: u32,
    end: u32,
}

impl MemberIndex {
    /// The parameters of hardly any message have more.
    const LENGTH: usize = 6;

    /// A device has more time for a request than it has flash for the code that saves some of it.
    pub(super) const IS_KEPT: bool = STANDING_IS_KEPT;

    /// Goes past an object, whose brace is the next byte, and notes its members. See
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

    /// The members of `object`, which is the one that was noted; `None` if it was not.
    pub(crate) fn members<'a>(&self, object: &'a str) -> Option<impl Iterator<Item = Member<'a>>> {
        if !Self::IS_KEPT || !self.whole {
            return None;
        }
        Some(self.places.iter().take(self.count).filter_map(|place| {
            let (key, range) = (place.key as usize, place.value as usize..place.end as usize);
            Some(Member {
                key: object.get(key..key + place.key_length as usize)?,
                key_escaped: place.key_escaped,
                value: RawJson::trusted(object.get(range.clone())?),
                range,
            })
        }))
    }
}
