//! Things that the command line refers to by name.

use rustc_hash::FxHashMap;

/// A map from names to things. Of several things with the same name, it keeps the first.
pub(crate) struct ByName<'a, T>(FxHashMap<Name<'a>, T>);

impl<'a, T> ByName<'a, T> {
    /// Adds `thing` under `name`. If the name is taken, changes nothing and returns the thing that
    /// has it.
    pub(crate) fn insert(&mut self, name: &'a str, thing: T) -> Option<&T> {
        use std::collections::hash_map::Entry;

        match self.0.entry(Name(name)) {
            Entry::Occupied(there) => Some(there.into_mut()),
            Entry::Vacant(free) => {
                free.insert(thing);
                None
            }
        }
    }

    /// Returns the thing with the given name.
    pub(crate) fn get(&self, name: &'a str) -> Option<&T> {
        self.0.get(&Name(name))
    }
}

impl<T> Default for ByName<'_, T> {
    fn default() -> Self {
        ByName(FxHashMap::default())
    }
}

impl<'a, T> FromIterator<(&'a str, T)> for ByName<'a, T> {
    fn from_iter<I: IntoIterator<Item = (&'a str, T)>>(things: I) -> Self {
        let mut by_name = ByName::default();
        for (name, thing) in things {
            by_name.insert(name, thing);
        }
        by_name
    }
}

/// A name that is looked up. Tests count the comparisons of two names.
#[derive(Eq)]
struct Name<'a>(&'a str);

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        comparisons::count();
        self.0 == other.0
    }
}

impl std::hash::Hash for Name<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// A count of the comparisons of names on the current thread.
#[cfg(test)]
pub(crate) mod comparisons {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts one comparison.
    pub(super) fn count() {
        COUNT.set(COUNT.get() + 1);
    }

    /// Returns the number of comparisons so far.
    pub(crate) fn counted() -> usize {
        COUNT.get()
    }
}
