//! Functions by the names of what they handle.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_collections::Index;

/// Functions by name, in order of insertion.
pub(super) struct Functions<F> {
    entries: Vec<(String, F)>,
    index: Index,
}

// By hand, as what is derived is inlined, into each place that there is for functions.
impl<F: Clone> Clone for Functions<F> {
    #[inline(never)]
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: self.index.clone() }
    }
}

impl<F> Default for Functions<F> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: Index::default() }
    }
}

impl<F> Functions<F> {
    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn place(&self, name: &str) -> Option<usize> {
        let is_named = |place: u64| self.entries[place as usize].0 == name;
        self.index.find(name, &is_named).map(|place| place as usize)
    }

    pub(super) fn get(&self, name: &str) -> Option<&F> {
        self.place(name).map(|place| &self.entries[place].1)
    }

    /// Adds a function, or puts it in the place of the one with its name.
    pub(super) fn insert(&mut self, name: String, function: F) {
        match self.place(&name) {
            Some(place) => self.entries[place].1 = function,
            None => {
                self.index.insert(&name, self.entries.len() as u64);
                self.entries.push((name, function));
            }
        }
    }
}

impl<F> fmt::Debug for Functions<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn the_last_function_of_a_name_is_the_one() {
        let mut functions = Functions::default();
        assert!(functions.is_empty());
        for value in 0..100 {
            functions.insert(format!("name {value}"), value);
        }
        functions.insert("name 7".into(), 700);
        for value in 0..100 {
            let expected = if value == 7 { 700 } else { value };
            assert_eq!(functions.get(&format!("name {value}")), Some(&expected));
        }
        assert_eq!(functions.get("name"), None);
        assert!(format!("{functions:?}").starts_with(r#"{"name 0", "name 1", "#));
    }
}
