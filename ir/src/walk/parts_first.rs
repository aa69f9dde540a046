//! Walks that visit parts before the entries that consist of them.

/// Entries to be processed, each after its parts, with an explicit stack.
///
/// Takes time linear in the processed entries and their parts, if each entry is marked as done
/// once.
#[derive(Clone, Debug)]
pub(crate) struct PartsFirst<K> {
    stack: Vec<K>,
}

impl<K> Default for PartsFirst<K> {
    fn default() -> PartsFirst<K> {
        PartsFirst { stack: Vec::new() }
    }
}

impl<K: Copy> PartsFirst<K> {
    /// Returns a walk to `root`.
    pub(crate) fn to(root: K) -> PartsFirst<K> {
        PartsFirst { stack: vec![root] }
    }

    /// Adds an entry to be processed next.
    pub(crate) fn add(&mut self, root: K) {
        self.stack.push(root);
    }

    /// Returns an entry that is not done but whose parts are all done. The caller must process it
    /// and mark it as done. `push_parts` pushes the parts of an entry; the last one is processed
    /// first.
    #[inline]
    pub(crate) fn next(
        &mut self,
        is_done: impl Fn(K) -> bool,
        mut push_parts: impl FnMut(K, &mut Vec<K>),
    ) -> Option<K> {
        while let Some(&top) = self.stack.last() {
            if is_done(top) {
                self.stack.pop();
                continue;
            }
            let height = self.stack.len();
            push_parts(top, &mut self.stack);
            let mut kept = height;
            for i in height..self.stack.len() {
                if !is_done(self.stack[i]) {
                    self.stack[kept] = self.stack[i];
                    kept += 1;
                }
            }
            self.stack.truncate(kept);
            if kept == height {
                self.stack.pop();
                return Some(top);
            }
        }
        None
    }
}
