//! Facts of a walk for each open block.

use std::ops::{Deref, DerefMut};

/// A fact for each block that a walk has entered and not left.
///
/// It dereferences to the fact of the innermost open block or, outside of all blocks, to a separate
/// fact.
///
/// ```
/// use anfora_ir::{Cursor, PerBlock, Source, Step, parse_module};
///
/// # let ops = std::sync::Arc::new(anfora_ir::OpRegistry::new());
/// let text = "def @main(%x: ()) { let %a = { let %b = (%x,); %b }; let %c = (%a, %a); %c }";
/// let module = parse_module(Source::new("text", text), ops).unwrap();
/// let body = &module.functions().next().unwrap().1.body;
///
/// // How many Lets each block has, inner blocks first.
/// let (mut lets, mut found): (PerBlock<usize>, _) = (PerBlock::default(), Vec::new());
/// let mut cursor = Cursor::new(body);
/// while let Some(step) = cursor.next(body) {
///     match step {
///         Step::EnterBlock(..) => lets.enter(),
///         Step::Let(_) => *lets += 1,
///         Step::ExitBlock(..) => found.push(lets.exit()),
///         _ => {}
///     }
/// }
/// assert_eq!(found, [1, 2]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PerBlock<T> {
    here: T,
    around: Vec<T>,
}

impl<T> PerBlock<T> {
    /// Enters a block with this fact.
    #[inline]
    pub fn enter_with(&mut self, fact: T) {
        self.around.push(std::mem::replace(&mut self.here, fact));
    }

    /// Returns the number of open blocks.
    #[inline]
    pub fn depth(&self) -> usize {
        self.around.len()
    }
}

impl<T: Default> PerBlock<T> {
    /// Enters a block with the default fact.
    #[inline]
    pub fn enter(&mut self) {
        self.enter_with(T::default());
    }

    /// Leaves the innermost open block, and returns its fact.
    #[inline]
    pub fn exit(&mut self) -> T {
        std::mem::replace(&mut self.here, self.around.pop().unwrap_or_default())
    }
}

impl<T> Deref for PerBlock<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.here
    }
}

impl<T> DerefMut for PerBlock<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.here
    }
}
