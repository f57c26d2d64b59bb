//! An object with arbitrary keys that keeps their order.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};

use super::Revision;
use super::wire::SerializeAt;

/// A map with string keys in insertion order. The order of a form's fields is their display order.
///
/// Lookup is a linear search, because such maps are short; reading a map takes `n log n`. If a key
/// is repeated, the last entry wins.
#[derive(Clone, PartialEq)]
pub struct Map<V>(Vec<(String, V)>);

impl<V> Map<V> {
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds or replaces an entry, and returns the previous value.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<V>) -> Option<V> {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => Some(core::mem::replace(known, value)),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// Adds or replaces an entry, and returns the map.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<V>) -> Self {
        self.insert(key, value);
        self
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let index = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(index).1)
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns whether the map has an entry for `key`.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the entries in order, with mutable values.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Returns the values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads an optional map whose keys must not be repeated.
pub(super) fn distinct<'de, D, V>(deserializer: D) -> Result<Option<Map<V>>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let entries = Option::<Entries<V>>::deserialize(deserializer)?;
    entries
        .map(|Entries(entries)| {
            let length = entries.len();
            let map = Map::from_iter(entries);
            match map.len() == length {
                true => Ok(map),
                false => Err(de::Error::custom("a key is repeated")),
            }
        })
        .transpose()
}

/// Returns the indices of the entries whose key is repeated later, from the keys and indices of all
/// entries.
// Not generic over the values, so that its code is not duplicated. Sorting avoids quadratic work
// that a peer could cause.
pub(super) fn superseded(mut keys: Vec<(&str, usize)>) -> Vec<usize> {
    keys.sort_unstable();
    let again = keys.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let mut places: Vec<usize> = again.map(|pair| pair[0].1).collect();
    places.sort_unstable();
    places
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(String, V)> =
            entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        if entries.len() < 2 {
            return Self(entries);
        }
        let superseded = superseded(entries.iter().map(|(key, _)| key.as_str()).zip(0..).collect());
        if !superseded.is_empty() {
            let mut index = 0;
            entries.retain(|_| {
                index += 1;
                superseded.binary_search(&(index - 1)).is_err()
            });
        }
        Self(entries)
    }
}

impl<K: Into<String>, W: Into<V>, V, const N: usize> From<[(K, W); N]> for Map<V> {
    fn from(entries: [(K, W); N]) -> Self {
        entries.into_iter().map(|(key, value)| (key, value.into())).collect()
    }
}

impl<'m, V> IntoIterator for &'m Map<V> {
    type Item = (&'m str, &'m V);
    type IntoIter =
        core::iter::Map<core::slice::Iter<'m, (String, V)>, fn(&'m (String, V)) -> Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = alloc::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Map<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Entries::deserialize(deserializer).map(|Entries(entries)| entries.into_iter().collect())
    }
}

/// The members of an object as they are written.
struct Entries<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for MapVisitor<V> {
            type Value = Entries<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Entries<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = access.next_entry::<String, V>()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

impl<V: SerializeAt> SerializeAt for Map<V> {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, &value.at(revision))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_the_last_repeated_key_wins() {
        let map: Map<i64> =
            serde_json::from_str(r#"{"z":1,"a":2,"z":3,"m":4,"a":5,"z":6}"#).unwrap();
        assert!(map.iter().eq([("m", &4), ("a", &5), ("z", &6)]));
        assert_eq!(map.to_json_at(Revision::LATEST).unwrap().as_str(), r#"{"m":4,"a":5,"z":6}"#);
    }

    #[test]
    fn a_map_is_read_like_those_of_the_standard_library() {
        let map: Map<String> = Map::from([("b", "1"), ("a", "2"), ("b", "3")]);
        assert!(map.keys().eq(["a", "b"]));
        assert!(map.values().eq(["2", "3"]));
        let mut read = Vec::new();
        for (key, value) in &map {
            read.push((key, value.as_str()));
        }
        assert_eq!(read, [("a", "2"), ("b", "3")]);
    }

    #[test]
    fn a_repeated_key_of_a_distinct_map_is_refused() {
        let read = |text| {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            distinct::<_, i64>(&mut deserializer).map(|map| map.map(|map| map.len()))
        };
        assert_eq!(read(r#"{"a":1,"b":1}"#).unwrap(), Some(2));
        assert_eq!(read("null").unwrap(), None);
        assert!(read(r#"{"a":1,"\u0061":1}"#).is_err());
    }

    #[test]
    fn insert_replaces_in_place_and_returns_the_old_value() {
        let mut map = Map::<i64>::new().with("a", 1).with("b", 2);
        assert_eq!(map.insert("a", 3), Some(1));
        assert!(map.iter().eq([("a", &3), ("b", &2)]));
        assert_eq!(map.remove("a"), Some(3));
        assert_eq!(map.remove("a"), None);
        assert_eq!(map.len(), 1);
    }
}
