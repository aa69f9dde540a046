//! Builds functions from the first parameter to the tail, inferring types along the way.

use crate::core::body::{Body, Span};
use crate::core::context::{Context, GlobalTarget};
use crate::core::entity::{AttrId, AttrsId, DimId, ExprId, FunctionKey, LambdaId, SymbolId, TypeId};
use crate::core::expr::{Expr, VarFlags, VarId};
use crate::core::function::{Function, Visibility};
use crate::core::module::Module;
use crate::edit::editor::Editor;
use crate::edit::region_writer::RegionWriter;
use crate::ops::op::TypeError;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::tables::dim::Dim;
use crate::tables::literal::Literal;

/// Builds one function of a module.
///
/// Bindings go to the innermost open block. Blocks are opened and closed explicitly, so a program
/// may nest as deep as memory allows.
pub struct FunctionBuilder<'m> {
    module: &'m mut Module,
    function: Function,
    name: String,
    blocks: Vec<OpenBlock>,
}

/// An unfinished function that is set aside while other functions of its module are built: see
/// [`FunctionBuilder::set_aside`].
pub struct UnfinishedFunction {
    function: Function,
    name: String,
    blocks: Vec<OpenBlock>,
}

impl UnfinishedFunction {
    /// Returns the body as built so far.
    ///
    /// Cost: one node.
    pub fn body(&self) -> &Body {
        &self.function.body
    }
}

struct OpenBlock {
    first: Option<ExprId>,
    last: Option<ExprId>,
    regions: RegionWriter,
    lambda: Option<(LambdaId, Vec<SymbolId>)>,
}

impl OpenBlock {
    fn new() -> OpenBlock {
        OpenBlock { first: None, last: None, regions: RegionWriter::default(), lambda: None }
    }
}

/// The reason why a function could not be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// An expression has no type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// The module has a function of that name.
    #[error("`@{0}` is defined already")]
    Duplicate(String),
    /// A block was closed that is not open, or was left open.
    #[error("blocks are not closed in the order in which they were opened")]
    Unbalanced,
    /// The program would be larger than its builder allows.
    #[error("a program of size {size} is too large; the largest size is {largest}")]
    TooLarge {
        /// The requested size.
        size: usize,
        /// The largest size.
        largest: usize,
    },
}

impl<'m> FunctionBuilder<'m> {
    /// Begins a public function.
    pub fn new(module: &'m mut Module, name: &str) -> FunctionBuilder<'m> {
        let function = Function::new(&module.cx.types, module.cx.attrs.empty());
        FunctionBuilder { module, function, name: name.to_string(), blocks: vec![OpenBlock::new()] }
    }

    /// Sets the function aside, so that other functions of the module, which it may call, can be
    /// built first.
    ///
    /// Cost: one node.
    pub fn set_aside(self) -> UnfinishedFunction {
        UnfinishedFunction { function: self.function, name: self.name, blocks: self.blocks }
    }

    /// Continues a function of the same module that was set aside.
    ///
    /// Cost: one node.
    pub fn resume(module: &'m mut Module, unfinished: UnfinishedFunction) -> FunctionBuilder<'m> {
        let UnfinishedFunction { function, name, blocks } = unfinished;
        FunctionBuilder { module, function, name, blocks }
    }

    /// Returns the tables of the module.
    ///
    /// Cost: one node.
    pub fn cx(&mut self) -> &mut Context {
        &mut self.module.cx
    }

    /// Returns the body as built so far.
    ///
    /// Cost: one node.
    pub fn body(&mut self) -> &mut Body {
        &mut self.function.body
    }

    /// Returns an editor, for expressions that the builder has no shorthand for.
    ///
    /// Cost: one node.
    pub fn editor(&mut self) -> Editor<'_> {
        Editor::new(&mut self.module.cx, &mut self.function.body)
    }

    /// Sets the visibility of the function.
    ///
    /// Cost: one node.
    pub fn visibility(&mut self, visibility: Visibility) {
        self.function.visibility = visibility;
    }

    /// States the result type, and thereby the signature, from here on. A recursive function must
    /// do so before it calls itself.
    ///
    /// Cost: one node.
    pub fn result(&mut self, ty: TypeId) {
        self.function.ret = Some(ty);
        let signature = self.function.signature(&mut self.module.cx, ty);
        let global = self.module.cx.global(&self.name);
        // Another function may have the name; then this one cannot be finished.
        if self.module.cx.globals.get(global).target == GlobalTarget::Missing {
            self.module.set_signature(global, signature);
        }
    }

    /// Sets an attribute of the function.
    pub fn attr(&mut self, name: &str, value: AttrId) {
        self.function.attrs = self.module.cx.with_attr(self.function.attrs, name, Some(value));
    }

    /// Makes a symbolic dimension of this function.
    ///
    /// Cost: linear in the text.
    pub fn symbol(&mut self, name: &str) -> DimId {
        let name = self.module.cx.names.intern(name);
        let dims = &mut self.module.cx.types.dims;
        let s = dims.new_symbol(name);
        dims.symbol(s)
    }

    /// Makes a parameter of the function and returns it. An empty name leaves it unnamed.
    pub fn param(&mut self, name: &str, ty: TypeId) -> ExprId {
        let var = self.new_var(name, VarFlags::PLAIN, ty);
        self.function.body.push_param(var);
        var.expr()
    }

    fn new_var(&mut self, name: &str, flags: VarFlags, ty: TypeId) -> VarId {
        let name = (!name.is_empty()).then(|| self.module.cx.names.intern(name));
        self.function.body.push_var(name, flags, ty, None)
    }

    // ---- Expressions ----

    /// Returns the node of a constant.
    ///
    /// Cost: one node.
    pub fn literal(&mut self, literal: Literal) -> ExprId {
        self.editor().literal(literal)
    }

    /// Returns the node of a global function, by name.
    ///
    /// Cost: one node.
    pub fn global(&mut self, name: &str) -> ExprId {
        let g = self.module.cx.global(name);
        self.editor().global(g)
    }

    /// Appends a call of an operator and returns it.
    ///
    /// # Errors
    /// If there is no such operator, or operands or attributes do not fit it.
    pub fn call_op(&mut self, op: &str, operands: &[ExprId], attrs: &[(&str, AttrId)]) -> Result<ExprId, BuildError> {
        let op = self.module.cx.ops.resolve(op)?;
        let attrs = self.module.cx.named_attrs(attrs);
        Ok(self.editor().call_op(op, operands, attrs)?)
    }

    /// Appends a call of a function value and returns it.
    ///
    /// # Errors
    /// If `function` is not a function, or the arguments do not fit.
    pub fn call(&mut self, function: ExprId, arguments: &[ExprId]) -> Result<ExprId, BuildError> {
        let attrs = self.module.cx.attrs.empty();
        Ok(self.editor().call(function, arguments, attrs)?)
    }

    /// Appends a tuple and returns it.
    pub fn tuple(&mut self, fields: &[ExprId]) -> ExprId {
        self.editor().tuple(fields)
    }

    /// Appends a projection of a field of a tuple and returns it.
    ///
    /// # Errors
    /// If `tuple` is not a tuple, or has no such field.
    pub fn proj(&mut self, tuple: ExprId, index: u32) -> Result<ExprId, BuildError> {
        Ok(self.editor().proj(tuple, index)?)
    }

    /// Appends an If over two blocks that were closed by [`FunctionBuilder::close_block`], and
    /// returns it.
    ///
    /// # Errors
    /// If the condition is not a rank-0 bool tensor, or the blocks' types have no common type.
    pub fn if_(&mut self, cond: ExprId, then_block: ExprId, else_block: ExprId) -> Result<ExprId, BuildError> {
        Ok(self.editor().if_(cond, then_block, else_block)?)
    }

    // ---- Bindings ----

    /// Binds a value to a new variable in the innermost open block, and returns the variable. An
    /// empty name leaves it unnamed.
    pub fn bind(&mut self, name: &str, value: ExprId) -> ExprId {
        let ty = self.function.body.type_of(value);
        let var = self.declare_var(name, ty);
        self.bind_var(var, value, None);
        var.expr()
    }

    /// Binds a value to a variable that was declared before, as a recursive `fn` needs.
    ///
    /// Cost: one node.
    pub fn bind_var(&mut self, var: VarId, value: ExprId, span: Span) {
        let unit = self.module.cx.types.unit();
        let block = self.blocks.last_mut().expect("the function's own block is open until it is finished");
        let flags = block.regions.next_flags();
        let body = &mut self.function.body;
        // Until the block continues or is closed, the body of the new Let is a placeholder: its own
        // variable.
        let link = body.push(Expr::Let { var, value, body: var.expr(), flags }, unit, span);
        match block.last.replace(link) {
            Some(last) => body.set_let_body(last, link),
            None => block.first = Some(link),
        }
    }

    /// Makes a variable for [`FunctionBuilder::bind_var`].
    ///
    /// Cost: one node.
    pub fn declare_var(&mut self, name: &str, ty: TypeId) -> VarId {
        let flags = self.open().regions.var_flags();
        self.new_var(name, flags, ty)
    }

    /// Begins a dataflow region in the innermost open block.
    ///
    /// Cost: one node.
    pub fn begin_dataflow(&mut self) {
        self.open().regions.begin();
    }

    /// Ends the dataflow region; `outputs` are the variables that are visible after it.
    pub fn end_dataflow(&mut self, outputs: &[ExprId]) {
        self.open().regions.end();
        for &o in outputs {
            if let Some(var) = self.function.body.as_var(o) {
                self.function.body.set_var_flags(var, VarFlags::PLAIN);
            }
        }
    }

    fn open(&mut self) -> &mut OpenBlock {
        self.blocks.last_mut().expect("the function's own block is open until it is finished")
    }

    // ---- Blocks ----

    /// Opens a block: a branch, or a block as a value.
    ///
    /// Cost: one node.
    pub fn open_block(&mut self) {
        self.blocks.push(OpenBlock::new());
    }

    /// Closes the innermost block with its tail, and returns the block.
    ///
    /// # Errors
    /// If that block is the function's own, or that of a `fn`.
    pub fn close_block(&mut self, tail: ExprId) -> Result<ExprId, BuildError> {
        if self.blocks.len() < 2 || self.open().lambda.is_some() {
            return Err(BuildError::Unbalanced);
        }
        Ok(self.pop_block(tail))
    }

    fn pop_block(&mut self, tail: ExprId) -> ExprId {
        let block = self.blocks.pop().expect("the callers look before");
        match (block.first, block.last) {
            (Some(first), Some(last)) => {
                self.function.body.set_let_body(last, tail);
                first
            }
            _ => tail,
        }
    }

    /// Opens the block of a `fn` with parameters of these names and types, and returns the
    /// parameters. `own` are the symbols that the `fn` binds.
    pub fn open_lambda(&mut self, params: &[(&str, TypeId)], ret: Option<TypeId>, own: &[DimId]) -> Vec<ExprId> {
        let vars: Vec<VarId> = params.iter().map(|&(n, t)| self.new_var(n, VarFlags::PLAIN, t)).collect();
        let attrs = self.module.cx.attrs.empty();
        let lambda = self.function.body.push_lambda(&vars, ret, attrs);
        let symbols = own
            .iter()
            .filter_map(|&d| match *self.module.cx.types.dims.get(d) {
                Dim::Symbol(s) => Some(s),
                _ => None,
            })
            .collect();
        let mut block = OpenBlock::new();
        block.lambda = Some((lambda, symbols));
        self.blocks.push(block);
        vars.into_iter().map(VarId::expr).collect()
    }

    /// Closes the block of a `fn` with its tail, and returns the `fn`.
    ///
    /// # Errors
    /// If the innermost block is not that of a `fn`.
    pub fn close_lambda(&mut self, tail: ExprId) -> Result<ExprId, BuildError> {
        let Some((lambda, symbols)) = self.open().lambda.take() else { return Err(BuildError::Unbalanced) };
        let block = self.pop_block(tail);
        self.function.body.set_lambda_symbols(lambda, symbols);
        Ok(self.editor().lambda(lambda, block))
    }

    /// Closes the function with its tail, and adds it to the module.
    ///
    /// # Errors
    /// If a block is open, the module has a function of the name, or the type of the tail does not
    /// fit the stated result.
    pub fn finish(mut self, tail: ExprId) -> Result<FunctionKey, BuildError> {
        if self.blocks.len() != 1 {
            return Err(BuildError::Unbalanced);
        }
        let root = self.pop_block(tail);
        let mut function = self.function;
        function.body.set_root(root);
        function.body.shrink();
        let found = function.body.type_of(root);
        if let Some(stated) = function.ret
            && !self.module.cx.types.accepts(stated, found)
        {
            let (stated, found) = (self.module.cx.type_text(stated), self.module.cx.type_text(found));
            return Err(TypeError::new(format!("the function returns {found}, but {stated} is stated")).into());
        }
        self.module.add_named(&self.name, function).map_err(|_| BuildError::Duplicate(self.name))
    }

    /// Returns the list of attributes for an operator, from names and values.
    ///
    /// Cost: one loop.
    pub fn named_attrs(&mut self, attrs: &[(&str, AttrId)]) -> AttrsId {
        self.module.cx.named_attrs(attrs)
    }
}

impl IntoDiagnostics for BuildError {
    fn into_diagnostics(self) -> Diagnostics {
        match self {
            BuildError::Type(error) => error.into_diagnostics(),
            BuildError::Duplicate(_) | BuildError::Unbalanced | BuildError::TooLarge { .. } => {
                Diagnostic::from_error(&self).into()
            }
        }
    }
}
