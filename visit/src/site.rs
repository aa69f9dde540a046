//! The place of a rewrite.

use anfora_ir::{Body, Editor, ExprId, LetFlags, LinkWatch, NameId, VarFlags, VarId};

use crate::chain::set_var_flags;
use crate::engine::Engine;
use crate::error::RewriteError;
use crate::mutator::Edits;

/// Where a [`Mutator`](crate::Mutator) is in the program, with the editor of the body.
///
/// ```
/// # use anfora_ir::{Editor, Expr, ExprId, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Mutator, Rewrite, RewriteError, Site, chain, mutate};
///
/// /// Names operands that are tuples: the heart of ToANormalForm, for tuples.
/// struct BindTuples;
///
/// impl Mutator for BindTuples {
///     type Error = RewriteError;
///     const EDITS: anfora_visit::Edits = anfora_visit::Edits::Scoped;
///
///     fn rewrite_expr(&mut self, site: &mut Site, id: ExprId) -> Result<Rewrite, RewriteError> {
///         match site.editor.body.expr(id) {
///             Expr::Tuple(_) => Ok(Rewrite::Replace(site.bind(None, id))),
///             _ => Ok(Rewrite::Keep),
///         }
///     }
/// }
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let inner = f.tuple(&[a, a]);
/// # let outer = f.tuple(&[inner, inner]);
/// # let key = f.finish(outer).unwrap();
/// // ((%a, %a), (%a, %a)), the inner tuple shared
/// let (function, cx) = module.get_mut(key).unwrap();
/// mutate(&mut Editor::new(cx, &mut function.body), &mut BindTuples)?;
/// // let %0 = (%a, %a); let %1 = (%0, %0); %1
/// assert_eq!(chain(&function.body, function.body.root()).count(), 2);
/// # Ok::<(), RewriteError>(())
/// ```
pub struct Site<'s, 'e> {
    /// The editor of the body.
    pub editor: &'s mut Editor<'e>,
    engine: &'s mut Engine,
    original: ExprId,
}

impl<'s, 'e> Site<'s, 'e> {
    #[inline(always)]
    pub(crate) fn new(editor: &'s mut Editor<'e>, engine: &'s mut Engine, original: ExprId) -> Site<'s, 'e> {
        Site { editor, engine, original }
    }

    /// The node, Let or start of a block that the walk came to, before it was rewritten. With [`Edits::Copied`] and [`Edits::Scoped`] a node still has the
    /// operands that it had.
    pub fn original(&self) -> ExprId {
        self.original
    }

    /// Binds a value to a new variable in the innermost open block, before the binding or tail that the walk is at, and returns the
    /// variable as an expression. In a dataflow region the binding is part of the region and the variable visible only in it.
    ///
    /// It is not walked. In [`Mutator::rewrite_expr`](crate::Mutator::rewrite_expr) of a node that may be shared, it belongs to
    /// [`Edits::Scoped`], since other blocks do not see the variable.
    pub fn bind(&mut self, name: Option<NameId>, value: ExprId) -> ExprId {
        let ty = self.editor.body.type_of(value);
        let flags = if self.engine.in_region() { VarFlags::DATAFLOW } else { VarFlags::PLAIN };
        let var = self.editor.var(name, flags, ty);
        self.push(var, value);
        var.expr()
    }

    /// Binds a value to a variable that was made before and is bound by nothing, like [`Site::bind`]. Outside a dataflow region the
    /// variable becomes plain.
    pub fn push(&mut self, var: VarId, value: ExprId) {
        self.engine.let_out(self.editor.body, value, Some(var));
        if !self.engine.in_region() {
            set_var_flags(self.editor.body, var, VarFlags::PLAIN);
        }
        let id = self.editor.let_(var, value, var.expr(), LetFlags::PLAIN);
        self.unwatched(|engine, body| engine.emit(body, id, LetFlags::PLAIN, var.expr()));
    }

    /// Moves all bindings of a block before the binding or tail that the walk is at, and returns the block's tail. In a dataflow region they
    /// become part of it. If the block hangs elsewhere in the walked part afterwards, the walk ends with
    /// [`RewriteError::SplicedTwice`].
    ///
    /// # Errors
    /// If the block is of the chain that it is to become part of.
    pub fn splice(&mut self, block: ExprId) -> Result<ExprId, RewriteError> {
        let cx = &*self.editor.cx;
        let watch = self.editor.body.watch_links(LinkWatch::default());
        let result = self.engine.splice(cx, self.editor.body, block);
        self.editor.body.end_watch(watch);
        result
    }

    /// Lets the engine overwrite links, as it does between callbacks.
    fn unwatched<T>(&mut self, edit: impl FnOnce(&mut Engine, &mut Body) -> T) -> T {
        let watch = self.editor.body.watch_links(LinkWatch::default());
        let result = edit(self.engine, self.editor.body);
        self.editor.body.end_watch(watch);
        result
    }

    /// From here to the end of the innermost open block, uses of `var` become `atom`: what is known of a condition in a branch, say. Needs
    /// [`Edits::Scoped`]. Used in [`Mutator::enter_block`](crate::Mutator::enter_block), it holds for that block.
    ///
    /// # Errors
    /// If it is not an atom, or its type is not one that the variable's accepts.
    ///
    /// # Panics
    /// Without [`Edits::Scoped`].
    pub fn assume(&mut self, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
        assert!(self.engine.edits == Edits::Scoped, "what is assumed in a block needs Edits::Scoped");
        self.engine.assume(self.editor, var, atom)
    }

    /// What the uses of a variable, or a node that was walked before, have become; the id itself if nothing else.
    pub fn resolve(&self, id: ExprId) -> ExprId {
        self.engine.resolve(id)
    }

    /// Whether the place is in a dataflow region of the innermost open block.
    pub fn in_region(&self) -> bool {
        self.engine.in_region()
    }

    /// How many blocks are open around the place, the walk's own included.
    pub fn depth(&self) -> usize {
        self.engine.depth()
    }
}

anfora_ir::brief_debug! { Site<'_, '_> { original, depth }; }
