//! Parts before what is made of them.

/// What is to be worked out, each after its parts, from an explicit stack.
///
/// Takes time linear in what is worked out and its parts, if what is done is noted once.
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

    /// Lets something be worked out next.
    pub(crate) fn add(&mut self, root: K) {
        self.stack.push(root);
    }

    /// Returns something that is not done and all parts of which are: the caller works it out and
    /// notes that it is done. `push_parts` pushes its parts, of which the last comes first.
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
