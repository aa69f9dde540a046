//! Copies of functions that one thread edits while others still read the original functions.

use crate::core::function::Function;
use crate::core::module::FunctionHead;

/// A fork that is no longer edited: see [`Function::end_fork`].
pub struct EndedFork {
    /// The fork; `None` if it equals the function that it was copied from.
    changed: Option<Box<Function>>,
    /// The greatest revision that the body of the fork had.
    last_revision: u64,
}

impl EndedFork {
    /// Returns the fork, if it differs from the function that it was copied from.
    pub fn changed(&mut self) -> Option<&mut Function> {
        self.changed.as_deref_mut()
    }
}

impl Function {
    /// Returns a copy that is to be edited in place of this function. The function must not be
    /// edited until the fork is joined or dropped. The copy has the journals and the stamps of the
    /// function, so cached analyses of either hold for the other, and an open edit of the module
    /// can be rolled back after the fork was joined. Linear in the body.
    ///
    /// ```
    /// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// # use std::sync::Arc;
    /// # let mut module = Module::new(Arc::new(OpRegistry::new()));
    /// # let unit = module.cx.types.unit();
    /// # let mut f = FunctionBuilder::new(&mut module, "f");
    /// # let x = f.param("x", unit);
    /// # let pair = f.tuple(&[x, x]);
    /// # let f = f.finish(pair).unwrap();
    /// module.begin_edit();
    /// let function = module.get(f).unwrap();
    /// let mut fork = function.fork();
    /// let x = fork.body.params()[0].expr();
    /// fork.body.set_root(x);
    /// assert_ne!(function.body.root(), x);
    /// let ended = function.end_fork(fork);
    /// let (function, _) = module.get_mut(f).unwrap();
    /// function.join(ended);
    /// assert_eq!(function.body.root(), x);
    /// module.rollback();
    /// assert_ne!(module.get(f).unwrap().body.root(), x);
    /// ```
    pub fn fork(&self) -> Function {
        let mut fork = self.clone();
        fork.body.continue_revisions_of(&self.body);
        fork
    }

    /// Ends the work on a fork of this function. If nothing was changed since the edit of the
    /// module began, the fork is dropped, with the nodes that were appended to it.
    pub fn end_fork(&self, fork: Function) -> EndedFork {
        let last_revision = fork.body.last_revision();
        let changed = fork.body.is_edited_in_module() || FunctionHead::of(&fork) != FunctionHead::of(self);
        EndedFork { changed: changed.then(|| Box::new(fork)), last_revision }
    }

    /// Replaces this function with an ended fork of it.
    pub fn join(&mut self, ended: EndedFork) {
        match ended.changed {
            Some(fork) => *self = *fork,
            // The stamps that the fork had must not be used again.
            None => self.body.skip_revisions(ended.last_revision),
        }
    }
}
