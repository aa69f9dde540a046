//! Alpha-renaming copies of expressions and functions, with variables of their own.

use anfora_ir::{
    Diagnostic, Diagnostics, Editor, ExprId, FunctionKey, GlobalTarget, IntoDiagnostics, Module, Transplant,
};

use crate::error::name_for_error;
use crate::variables::free_variables;

/// The reason why an expression or function was not copied. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CopyError {
    /// A function was removed from the module, or both are the same one.
    #[error("a copy from one function to another needs two functions of the module")]
    NotTwoFunctions,
    /// The module already has a function with this name.
    #[error("`@{0}` is defined already")]
    Duplicate(String),
    /// The expression uses a variable that is bound outside of it and has no replacement.
    #[error("the variable %{0} is bound outside of what is copied, and is not replaced")]
    FreeVariable(String),
}

impl IntoDiagnostics for CopyError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

/// Copies an expression within its body and returns the copy. Every variable bound in the copy is a
/// new one of the same name, so that the program can contain the copy and the original; free
/// variables are shared. Nodes shared inside the expression are shared in the copy; only atoms are
/// shared with the original. Symbolic dimensions owned by a `fn` in it are renamed too.
///
/// A symbol that a `match_cast` outside any `fn` of the copy binds is not renamed, since the copy
/// may be meant to stay in its scope; use [`Transplant::symbols`] to rename symbols.
///
/// Takes time linear in the expression, constant stack, and a table up to the largest id in it. For
/// many small copies, use one [`Transplant`], which keeps its table from copy to copy. The original
/// is not edited.
///
/// ```
/// # use anfora_ir::{Editor, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{chain, copy_fresh};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// let mut editor = Editor::new(cx, &mut function.body);
/// let root = editor.body.root();
/// let copy = copy_fresh(&mut editor, root);
/// let old = chain(editor.body, root).next().unwrap();
/// let new = chain(editor.body, copy).next().unwrap();
/// assert_ne!(old.var, new.var);
/// assert_eq!(editor.body.var_name(old.var), editor.body.var_name(new.var));
/// assert_eq!(editor.body.tail(copy), new.var.expr());
/// ```
pub fn copy_fresh(editor: &mut Editor<'_>, id: ExprId) -> ExprId {
    Transplant::new().copy(editor, None, id)
}

/// Copies a whole function under another name to the end of the program: parameters, block, result
/// type, attributes, metadata and visibility. Variables and symbolic dimensions of the copy are its
/// own. If the function calls itself, the copy calls the original.
///
/// Takes time linear in the function and constant stack.
///
/// # Errors
/// If the function was removed, or the module already has a function with this name.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let x = f.param("x", unit);
/// # let pair = f.tuple(&[x, x]);
/// # let main = f.finish(pair).unwrap();
/// anfora_visit::copy_function(&mut module, main, "twin")?;
/// assert_eq!(
///     module.to_string(),
///     "def @main(%x: ()) -> ((), ()) {\n  (%x, %x)\n}\n\n\
///      def @twin(%x: ()) -> ((), ()) {\n  (%x, %x)\n}\n"
/// );
/// # Ok::<(), anfora_visit::CopyError>(())
/// ```
pub fn copy_function(module: &mut Module, from: FunctionKey, name: &str) -> Result<FunctionKey, CopyError> {
    if module.cx.find_global(name).is_some_and(|g| module.cx.globals.get(g).target != GlobalTarget::Missing) {
        return Err(CopyError::Duplicate(name.to_string()));
    }
    let Some((source, cx)) = module.get_mut(from) else { return Err(CopyError::NotTwoFunctions) };
    let copy = Transplant::between_functions().function(cx, source);
    module.add_named(name, copy).map_err(|_| CopyError::Duplicate(name.to_string()))
}

/// Copies an expression of one function of a module to the end of the arenas of another, and
/// returns the copy, which has no parent yet. The caller must give each free variable a replacement
/// by [`Transplant::replace`], and replace symbols that a parameter or `match_cast` outside of the
/// expression binds in [`Transplant::symbols`].
///
/// Takes time linear in the expression and constant stack.
///
/// # Errors
/// If a function was removed, both functions are the same, or a free variable has no replacement.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_ir::Transplant;
/// use anfora_visit::copy_between;
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "callee");
/// # let x = f.param("x", unit);
/// # let pair = f.tuple(&[x, x]);
/// # let callee = f.finish(pair).unwrap();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let y = f.param("y", unit);
/// # let main = f.finish(y).unwrap();
/// // @callee(%x) { (%x, %x) }, @main(%y) { %y }
/// let body = &module.get(callee).unwrap().body;
/// let (x, pair) = (body.params()[0].expr(), body.root());
/// let y = module.get(main).unwrap().body.params()[0].expr();
/// let mut transplant = Transplant::between_functions();
/// transplant.replace(x, y);
/// let copy = copy_between(&mut transplant, &mut module, callee, pair, main)?;
/// assert_eq!(module.get(main).unwrap().body.operands_of(copy), [y, y]);
/// # Ok::<(), anfora_visit::CopyError>(())
/// ```
pub fn copy_between(
    transplant: &mut Transplant<'_>,
    module: &mut Module,
    from: FunctionKey,
    id: ExprId,
    to: FunctionKey,
) -> Result<ExprId, CopyError> {
    let Some((source, target, cx)) = module.get_pair(from, to) else { return Err(CopyError::NotTwoFunctions) };
    let free = free_variables(&source.body, id);
    if let Some(&var) = free.iter().find(|var| transplant.copied(var.expr()).is_none()) {
        return Err(CopyError::FreeVariable(name_for_error(cx, &source.body, var)));
    }
    Ok(transplant.copy(&mut Editor::new(cx, &mut target.body), Some(&source.body), id))
}
