//! Alpha-renaming copies: an expression once more, with variables of its own.

use anfora_ir::{
    Attr, AttrId, AttrsId, BlockKind, Body, Context, Cursor, Diagnostic, Diagnostics, Dim, DimId, Editor, Expr, ExprId,
    Function, FunctionKey, GlobalTarget, IntoDiagnostics, LambdaId, Module, SeenParts, Step, SubstitutedParts,
    SymbolId, TypeId, VarId,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::name_for_error;
use crate::memo::Memo;
use crate::variables::free_variables;

/// Why something was not copied from one function to another. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CopyError {
    /// A function was removed from the module, or both are the same one.
    #[error("a copy from one function to another wants two functions of the module")]
    NotTwoFunctions,
    /// The module has a function of that name.
    #[error("`@{0}` is defined already")]
    Duplicate(String),
    /// The expression uses a variable that is bound outside of it, and nothing was said of what
    /// that becomes.
    #[error("the variable %{0} is bound outside of what is copied, and is not replaced")]
    FreeVariable(String),
}

impl IntoDiagnostics for CopyError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

/// Copies an expression within its body. Every variable bound in the copy is a new one of the same
/// name, so that the copy can hang beside the original; what is free in it is shared. Sharing
/// inside the expression is kept; nothing but atoms is shared with the original. Symbolic
/// dimensions that a `fn` in it owns are renamed too.
///
/// A symbol that a `match_cast` outside any `fn` of the copy binds is not renamed, since the copy
/// may be meant to stay in its scope; [`Copier`] renames those that it is told.
///
/// Takes time linear in the expression, constant stack, and a table up to the largest id in it: for
/// many small copies, one [`Copier`] keeps its table from copy to copy. The original is not edited.
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
    Copier::new().copy(editor, None, id)
}

/// Copies a whole function under another name, to the end of the program: parameters, block, result
/// type, attributes, metadata and visibility. Variables and symbolic dimensions of the copy are its
/// own. Where the function calls itself, the copy calls the original.
///
/// Takes time linear in the function and constant stack.
///
/// # Errors
/// If the function was removed, or the module has a function of the name.
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
/// assert_eq!(module.to_string(), "def @main(%x: ()) -> ((), ()) {\n  (%x, %x)\n}\n\ndef @twin(%x: ()) -> ((), ()) {\n  (%x, %x)\n}\n");
/// # Ok::<(), anfora_visit::CopyError>(())
/// ```
pub fn copy_function(module: &mut Module, from: FunctionKey, name: &str) -> Result<FunctionKey, CopyError> {
    if module.cx.find_global(name).is_some_and(|g| module.cx.globals.get(g).target != GlobalTarget::Missing) {
        return Err(CopyError::Duplicate(name.to_string()));
    }
    let Some((source, cx)) = module.get_mut(from) else { return Err(CopyError::NotTwoFunctions) };
    let mut copier = Copier::between_functions();
    let mut copy = Function::new(&cx.types, cx.attrs.empty());
    let mut editor = Editor::new(cx, &mut copy.body);
    for &param in source.body.params() {
        let param = copier.copy_var(&mut editor, Some(&source.body), param.expr());
        if let Some(param) = editor.body.as_var(param) {
            editor.body.push_param(param);
        }
    }
    if source.is_definition() {
        let root = copier.copy(&mut editor, Some(&source.body), source.body.root());
        editor.body.set_root(root);
    }
    let ret = source.ret.map(|ty| copier.map_type(&mut editor, ty));
    let attrs = copier.map_attrs(&mut editor, source.attrs);
    (copy.ret, copy.attrs, copy.meta) = (ret, attrs, source.meta);
    (copy.visibility, copy.kind, copy.span) = (source.visibility, source.kind, source.span);
    module.add_named(name, copy).map_err(|_| CopyError::Duplicate(name.to_string()))
}

/// A copy in which variables and symbols that are free in the original stand for others: for
/// inlining, and for copying from one body to another.
///
/// ```
/// # use anfora_ir::{Editor, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::Copier;
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "callee");
/// # let x = f.param("x", unit);
/// # let pair = f.tuple(&[x, x]);
/// # f.finish(pair).unwrap();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let y = f.param("y", unit);
/// # let key = f.finish(y).unwrap();
/// # let callee = module.find("callee").unwrap();
/// let source = module.get(callee).unwrap().body.clone(); // %x -> (%x, %x)
/// let (function, cx) = module.get_mut(key).unwrap();
/// let mut editor = Editor::new(cx, &mut function.body);
/// let argument = editor.body.params()[0].expr();
/// let mut copier = Copier::new();
/// copier.replace_var(source.params()[0], argument);
/// let inlined = copier.copy(&mut editor, Some(&source), source.root());
/// assert_eq!(editor.body.operands_of(inlined), [argument, argument]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Copier {
    done: Memo<ExprId>,
    symbols: FxHashMap<SymbolId, DimId>,
    types: FxHashMap<TypeId, TypeId>,
    /// What parts of types became.
    parts: SubstitutedParts,
    /// The parts of types whose symbols were renamed, if they are renamed.
    renamed: SeenParts,
    unknown_symbols: UnknownSymbols,
}

/// What becomes of symbols that nothing was said of.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
enum UnknownSymbols {
    #[default]
    Share,
    Rename,
}

impl Copier {
    /// One that shares what is free.
    pub fn new() -> Copier {
        Copier::default()
    }

    /// One for copies from one function to another, in which symbolic dimensions become new ones of
    /// the same names, but for those that [`Copier::replace_symbol`] says otherwise of: a symbol
    /// belongs to one function.
    pub fn between_functions() -> Copier {
        Copier { unknown_symbols: UnknownSymbols::Rename, ..Copier::default() }
    }

    /// Copies an expression of one function of a module to the end of the arenas of another, and
    /// returns the copy there, which hangs nowhere yet. What is free in it has been given a
    /// replacement by [`Copier::replace_var`]; symbols that a parameter or `match_cast` outside of
    /// it binds, by [`Copier::replace_symbol`] (a new symbol that nothing binds is refused by the
    /// verifier). Made by [`Copier::between_functions`], the copier names all others anew.
    ///
    /// # Errors
    /// If a function was removed, they are the same, or a free variable has no replacement.
    ///
    /// ```
    /// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// # use std::sync::Arc;
    /// use anfora_visit::Copier;
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
    /// let (x, pair) = (body.params()[0], body.root());
    /// let y = module.get(main).unwrap().body.params()[0].expr();
    /// let mut copier = Copier::between_functions();
    /// copier.replace_var(x, y);
    /// let copy = copier.copy_between(&mut module, callee, pair, main)?;
    /// assert_eq!(module.get(main).unwrap().body.operands_of(copy), [y, y]);
    /// # Ok::<(), anfora_visit::CopyError>(())
    /// ```
    pub fn copy_between(
        &mut self,
        module: &mut Module,
        from: FunctionKey,
        id: ExprId,
        to: FunctionKey,
    ) -> Result<ExprId, CopyError> {
        let Some((source, target, cx)) = module.get_pair(from, to) else { return Err(CopyError::NotTwoFunctions) };
        let free = free_variables(&source.body, id);
        if let Some(&var) = free.iter().find(|var| self.done.get(var.expr()).is_none()) {
            return Err(CopyError::FreeVariable(name_for_error(cx, &source.body, var)));
        }
        Ok(self.copy(&mut Editor::new(cx, &mut target.body), Some(&source.body), id))
    }

    /// In copies, `var` becomes `by`, an expression of the body that is copied to; usually an atom.
    pub fn replace_var(&mut self, var: VarId, by: ExprId) {
        self.done.insert(var.expr(), by);
    }

    /// In copies, `symbol` becomes `by`.
    ///
    /// Cost: one loop.
    pub fn replace_symbol(&mut self, symbol: SymbolId, by: DimId) {
        self.symbols.insert(symbol, by);
        self.types.clear();
        self.parts = SubstitutedParts::default();
    }

    /// What a variable or node has become in the last copy.
    pub fn copied(&self, id: ExprId) -> Option<ExprId> {
        self.done.get(id)
    }

    /// Copies an expression of `source` (or, without one, of the editor's own body) to the end of
    /// the editor's body, and returns the copy. Types are those of the original with symbols
    /// replaced; where variables were replaced by others of more specific type, they can be refined
    /// by a [`Mutator`](crate::Mutator) run over the copy.
    pub fn copy(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, id: ExprId) -> ExprId {
        let mut cursor = Cursor::at(source.unwrap_or(editor.body), id);
        let mut results: Vec<ExprId> = Vec::new();
        // First and last Let of the copy of each open block.
        let mut blocks: Vec<Option<(ExprId, ExprId)>> = Vec::new();
        let mut lambdas: Vec<LambdaId> = Vec::new();
        while let Some(step) = cursor.next(source.unwrap_or(editor.body)) {
            let from = source.unwrap_or(editor.body);
            match step {
                Step::EnterBlock(_, kind) => {
                    blocks.push(None);
                    if let BlockKind::Lambda(id) = kind
                        && let Expr::Lambda { lambda, .. } = from.expr(id)
                    {
                        lambdas.push(self.copy_lambda(editor, source, lambda));
                    }
                }
                Step::Let(id) => {
                    // Before the value, which may be a recursive `fn`.
                    if let Expr::Let { var, .. } = from.expr(id) {
                        self.copy_var(editor, source, var.expr());
                    }
                }
                Step::Bound(id) => {
                    if let Expr::Let { var, flags, .. } = from.expr(id) {
                        let span = from.span(id);
                        let value = pop(&mut results);
                        let var = self.mapped(var.expr());
                        let Some(var) = editor.body.as_var(var) else { continue };
                        let unit = editor.cx.types.unit();
                        let copy = editor.body.push(Expr::Let { var, value, body: var.expr(), flags }, unit, span);
                        if let Some(ends) = blocks.last_mut() {
                            *ends = Some(match *ends {
                                Some((first, last)) => {
                                    editor.body.set_let_body(last, copy);
                                    (first, copy)
                                }
                                None => (copy, copy),
                            });
                        }
                    }
                }
                Step::Atom(id) => {
                    let atom = self.copy_atom(editor, source, id);
                    results.push(atom);
                }
                Step::Flat(id) => {
                    let inputs: SmallVec<[ExprId; 8]> = SmallVec::from_slice(from.inputs(id));
                    for operand in inputs {
                        let atom = self.copy_atom(editor, source, operand);
                        results.push(atom);
                    }
                    self.finish_node(editor, source, id, None, &mut results);
                }
                Step::Enter(_) => {}
                Step::Exit(id) => {
                    let lambda = match from.expr(id) {
                        Expr::Lambda { .. } => lambdas.pop(),
                        _ => None,
                    };
                    self.finish_node(editor, source, id, lambda, &mut results);
                }
                Step::Seen(id) => results.push(self.mapped(id)),
                Step::ExitBlock(..) => {
                    if let Some((first, last)) = blocks.pop().flatten() {
                        let tail = pop(&mut results);
                        editor.body.set_let_body(last, tail);
                        results.push(first);
                    }
                }
            }
        }
        pop(&mut results)
    }

    /// Makes the copy of a node whose operands' copies are on top of `results`, and puts it in
    /// their place.
    fn finish_node(
        &mut self,
        editor: &mut Editor<'_>,
        source: Option<&Body>,
        id: ExprId,
        lambda: Option<LambdaId>,
        results: &mut Vec<ExprId>,
    ) {
        let from = source.unwrap_or(editor.body);
        let (expr, ty, span, meta) = (from.expr(id), from.ty(id), from.span(id), from.meta(id));
        let new = match expr {
            Expr::CallOp { operands, op, attrs } => {
                let attrs = self.map_attrs(editor, attrs);
                let start = results.len() - operands.len();
                let operands = editor.body.push_operands(&results[start..]);
                results.truncate(start);
                Expr::CallOp { op, operands, attrs }
            }
            Expr::Call { operands, attrs } => {
                let attrs = self.map_attrs(editor, attrs);
                let start = results.len() - operands.len();
                let operands = editor.body.push_operands(&results[start..]);
                results.truncate(start);
                Expr::Call { operands, attrs }
            }
            Expr::Tuple(operands) => {
                let start = results.len() - operands.len();
                let operands = editor.body.push_operands(&results[start..]);
                results.truncate(start);
                Expr::Tuple(operands)
            }
            Expr::Proj { index, .. } => Expr::Proj { tuple: pop(results), index },
            Expr::If { .. } => {
                let else_block = pop(results);
                let then_block = pop(results);
                Expr::If { cond: pop(results), then_block, else_block }
            }
            Expr::Lambda { lambda: old, .. } => Expr::Lambda { lambda: lambda.unwrap_or(old), body: pop(results) },
            other => other,
        };
        let ty = self.map_type(editor, ty);
        let copy = editor.body.push(new, ty, span);
        if let Some(meta) = meta {
            editor.body.set_meta(copy, Some(meta));
        }
        self.done.insert(id, copy);
        results.push(copy);
    }

    fn mapped(&self, id: ExprId) -> ExprId {
        self.done.get(id).unwrap_or(id)
    }

    fn copy_atom(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, id: ExprId) -> ExprId {
        if let Some(done) = self.done.get(id) {
            return done;
        }
        let Some(source) = source else { return id };
        let copy = match source.expr(id) {
            Expr::Literal(l) => editor.literal_id(l),
            Expr::Global(g) => editor.global(g),
            Expr::Op(op) => editor.op_value(op),
            Expr::None => editor.none(),
            // A free variable that nothing was said of: the copy is of no use, and the verifier
            // says so.
            _ => self.copy_var(editor, Some(source), id),
        };
        self.done.insert(id, copy);
        copy
    }

    fn copy_var(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, id: ExprId) -> ExprId {
        let from = source.unwrap_or(editor.body);
        let (expr, ty, span, meta) = (from.expr(id), from.ty(id), from.span(id), from.meta(id));
        let ty = self.map_type(editor, ty);
        let copy = editor.body.push(expr, ty, span);
        if let Some(meta) = meta {
            editor.body.set_meta(copy, Some(meta));
        }
        self.done.insert(id, copy);
        copy
    }

    /// What a `fn` says besides its block, with parameters and symbols of its own.
    fn copy_lambda(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, lambda: LambdaId) -> LambdaId {
        let from = source.unwrap_or(editor.body);
        let data = from.lambda(lambda);
        let params: SmallVec<[VarId; 8]> = from.lambda_params(lambda).collect();
        let symbols: SmallVec<[SymbolId; 4]> = SmallVec::from_slice(from.lambda_symbols(lambda));
        let mut own = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            own.push(self.rename(editor.cx, symbol));
        }
        let params: SmallVec<[VarId; 8]> = params
            .into_iter()
            .filter_map(|p| {
                let copy = self.copy_var(editor, source, p.expr());
                editor.body.as_var(copy)
            })
            .collect();
        let ret = data.ret.map(|ty| self.map_type(editor, ty));
        let attrs = self.map_attrs(editor, data.attrs);
        let copy = editor.body.push_lambda(&params, ret, attrs);
        if !own.is_empty() {
            editor.body.set_lambda_symbols(copy, own);
        }
        copy
    }

    /// A type with symbols replaced as in copies.
    pub fn map_type(&mut self, editor: &mut Editor<'_>, ty: TypeId) -> TypeId {
        if self.keeps_symbols() || !editor.cx.types.is_symbolic(ty) {
            return ty;
        }
        if let Some(&done) = self.types.get(&ty) {
            return done;
        }
        if self.unknown_symbols == UnknownSymbols::Rename {
            let mut symbols: SmallVec<[SymbolId; 4]> = SmallVec::new();
            let types = &editor.cx.types;
            types.for_each_new_symbol(ty, &mut self.renamed, |dim| {
                if let Dim::Symbol(symbol) = *types.dims.get(dim) {
                    symbols.push(symbol);
                }
            });
            self.rename_unknown(editor.cx, &symbols);
        }
        let Copier { symbols, parts, .. } = self;
        let new = editor.cx.types.substitute_in(ty, parts, |s| symbols.get(&s).copied());
        self.types.insert(ty, new);
        new
    }

    fn keeps_symbols(&self) -> bool {
        self.symbols.is_empty() && self.unknown_symbols == UnknownSymbols::Share
    }

    /// From here on, a symbol becomes a new one of its name.
    fn rename(&mut self, cx: &mut Context, symbol: SymbolId) -> SymbolId {
        let dims = &mut cx.types.dims;
        let fresh = dims.new_symbol(dims.symbol_name(symbol));
        let dim = dims.symbol(fresh);
        // Types that were copied and name the symbol become others from here on. None does, if all
        // symbols in them were renamed and this one was not.
        let is_new = self.symbols.insert(symbol, dim).is_none();
        if !is_new || self.unknown_symbols == UnknownSymbols::Share {
            self.types.clear();
            self.parts = SubstitutedParts::default();
        }
        fresh
    }

    fn rename_unknown(&mut self, cx: &mut Context, symbols: &[SymbolId]) {
        for &symbol in symbols {
            if !self.symbols.contains_key(&symbol) {
                self.rename(cx, symbol);
            }
        }
    }

    /// Attributes with symbols replaced as in copies.
    pub fn map_attrs(&mut self, editor: &mut Editor<'_>, attrs: AttrsId) -> AttrsId {
        if self.keeps_symbols() || attrs == editor.cx.attrs.empty() {
            return attrs;
        }
        let mut list: SmallVec<[_; 8]> = SmallVec::from_slice(editor.cx.attrs.list(attrs));
        let mut changed = false;
        for (_, value) in &mut list {
            let new = self.map_attr(editor, *value);
            changed |= new != *value;
            *value = new;
        }
        if changed { editor.cx.attrs(&list) } else { attrs }
    }

    /// An attribute value with symbols replaced. Lists nest on an explicit stack.
    fn map_attr(&mut self, editor: &mut Editor<'_>, value: AttrId) -> AttrId {
        let mut done: FxHashMap<AttrId, AttrId> = FxHashMap::default();
        let mut stack = vec![value];
        while let Some(&top) = stack.last() {
            if done.contains_key(&top) {
                stack.pop();
                continue;
            }
            let new = match editor.cx.attrs.get(top).clone() {
                Attr::List(items) => {
                    let height = stack.len();
                    stack.extend(items.iter().filter(|i| !done.contains_key(i)));
                    if stack.len() > height {
                        continue;
                    }
                    Attr::List(items.iter().map(|i| done[i]).collect())
                }
                Attr::Shape(dims) => {
                    if self.unknown_symbols == UnknownSymbols::Rename {
                        let mut symbols: SmallVec<[SymbolId; 4]> = SmallVec::new();
                        let table = &editor.cx.types.dims;
                        for &dim in &dims {
                            table.for_each_symbol(dim, |leaf| {
                                if let Dim::Symbol(symbol) = *table.get(leaf) {
                                    symbols.push(symbol);
                                }
                            });
                        }
                        self.rename_unknown(editor.cx, &symbols);
                    }
                    let symbols = &self.symbols;
                    let table = &mut editor.cx.types.dims;
                    Attr::Shape(
                        dims.iter()
                            .map(|&d| {
                                table.substitute(d, |dims, leaf| match *dims.get(leaf) {
                                    Dim::Symbol(s) => symbols.get(&s).copied(),
                                    _ => None,
                                })
                            })
                            .collect(),
                    )
                }
                Attr::Type(ty) => Attr::Type(self.map_type(editor, ty)),
                other => other,
            };
            let new = editor.cx.attr(new);
            done.insert(top, new);
            stack.pop();
        }
        done[&value]
    }
}

fn pop(results: &mut Vec<ExprId>) -> ExprId {
    results.pop().expect("every operand, value and tail leaves its result on the stack")
}
