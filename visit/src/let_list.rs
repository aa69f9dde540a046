//! Lists of bindings that become a block.

use anfora_ir::{Body, Editor, ExprId, NameId, RegionWriter, VarFlags, VarId};

use crate::chain::{join_region, set_var_flags};
use crate::error::{RewriteError, name_for_error};
use crate::link::{Binding, Link, chain};

/// Collects bindings in order and makes a block of them. Use it to build a chain from its first
/// binding to its tail.
///
/// Each binding is linked when it is added, in constant time. A list holds no borrow of the body,
/// so several lists (one for each open scope) can be filled at the same time. Between its calls,
/// every edit is legal except for edits of the Lets in the list.
///
/// ```
/// # use anfora_ir::{Editor, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::LetList;
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let f = FunctionBuilder::new(&mut module, "main");
/// # let key = { let mut f = f; let unit = f.tuple(&[]); f.finish(unit).unwrap() };
/// let (function, cx) = module.get_mut(key).unwrap();
/// let mut ed = Editor::new(cx, &mut function.body);
/// let mut list = LetList::new();
/// let one = ed.literal(Literal::scalar(1i32));
/// let pair = ed.tuple(&[one, one]);
/// let x = list.bind(&mut ed, None, pair);
/// let nested = ed.tuple(&[x, x]);
/// let y = list.bind(&mut ed, None, nested);
/// let block = list.finish(&mut ed, y);
/// assert_eq!(anfora_visit::chain(ed.body, block).count(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LetList {
    ends: Option<(ExprId, ExprId)>,
    len: usize,
    regions: RegionWriter,
}

impl LetList {
    /// Returns an empty list.
    pub fn new() -> LetList {
        LetList::default()
    }

    /// Returns the number of bindings.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the list has no bindings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Binds a value to a new variable of its type, and returns the variable as an expression. In a
    /// dataflow region, the variable is visible only in the region, unless it is one of the outputs
    /// given to [`LetList::end_region`].
    pub fn bind(&mut self, editor: &mut Editor<'_>, name: Option<NameId>, value: ExprId) -> ExprId {
        let ty = editor.body.type_of(value);
        let var = editor.var(name, self.regions.var_flags(), ty);
        self.push(editor, var, value);
        var.expr()
    }

    /// Binds a value to an existing variable that nothing binds yet. Outside a dataflow region, the
    /// variable becomes plain.
    pub fn push(&mut self, editor: &mut Editor<'_>, var: VarId, value: ExprId) {
        let flags = self.regions.next_flags();
        if !flags.is_dataflow() {
            set_var_flags(editor.body, var, VarFlags::PLAIN);
        }
        // The rest of the last Let is a placeholder (its own variable) until another Let is linked
        // or the list is finished.
        let id = editor.let_(var, value, var.expr(), flags);
        self.link(editor.body, id);
    }

    /// Moves an existing Let to the end of the list, and into the open region if there is one. Its
    /// previous rest is no longer linked from it.
    ///
    /// # Panics
    /// If `id` is not a Let.
    pub fn push_let(&mut self, body: &mut Body, id: ExprId) {
        self.regions.write(body, id);
        self.link(body, id);
    }

    fn link(&mut self, body: &mut Body, id: ExprId) {
        self.len += 1;
        self.ends = Some(match self.ends {
            Some((first, last)) => {
                body.set_let_body(last, id);
                (first, id)
            }
            None => (id, id),
        });
    }

    /// Moves all bindings of a block to the end of the list, and returns the block's tail. In an
    /// open region, the bindings become part of the region and their variables are visible only in
    /// it; otherwise the block's own regions stay. Afterwards the block must have no other parent.
    /// Takes time linear in its chain.
    ///
    /// # Errors
    /// If a binding of the block is in the list already. Nothing has been moved then.
    pub fn splice(&mut self, editor: &mut Editor<'_>, block: ExprId) -> Result<ExprId, RewriteError> {
        let body = &mut *editor.body;
        let Some(first) = Binding::of(body, block) else { return Ok(block) };
        // If a Let of the list is reached, the last one is reached too.
        let last_before = self.ends.map(|(_, last)| last);
        if let Some(twice) = chain(body, block).find(|at| Some(at.id) == last_before) {
            return Err(RewriteError::SplicedTwice { name: name_for_error(editor.cx, body, twice.var) });
        }
        self.link(body, first.id);
        let (last_spliced, len) = join_region(body, first, &mut self.regions);
        // `link` has counted the first binding.
        self.len += len - 1;
        if let Some((_, last)) = &mut self.ends {
            *last = last_spliced.id;
        }
        Ok(last_spliced.rest)
    }

    /// Begins a dataflow region. The bindings that follow are in it, until the next call of this
    /// function or of [`LetList::end_region`].
    pub fn begin_region(&mut self) {
        self.regions.begin();
    }

    /// Ends the dataflow region. The variables `outputs` are visible after it.
    pub fn end_region(&mut self, body: &mut Body, outputs: &[VarId]) {
        self.regions.end();
        for &var in outputs {
            set_var_flags(body, var, VarFlags::PLAIN);
        }
    }

    /// Returns the link that will hold the tail; `None` if there are no bindings.
    pub fn tail_link(&self) -> Option<Link> {
        self.ends.map(|(_, last)| Link::Rest(last))
    }

    /// Returns the block: the bindings, then `tail` (which may be another block). Without bindings,
    /// returns `tail` itself.
    pub fn finish(self, editor: &mut Editor<'_>, tail: ExprId) -> ExprId {
        match self.ends {
            Some((first, last)) => {
                editor.body.set_let_body(last, tail);
                first
            }
            None => tail,
        }
    }
}
