//! Handles of expressions and bindings.

use std::sync::atomic::{AtomicUsize, Ordering};

use anfora::ir::{Body, Context, Expr as Node, ExprId};
use anfora::visit;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::slice::PySliceIndices;
use pyo3::types::{PyDict, PyList, PySlice, PyString};

use crate::attributes;
use crate::literal::Literal;
use crate::owner::{Home, Owner};
use crate::types::Type;

/// An expression: a variable, a constant, a call, a tuple, a branch or a block.
///
/// It is a handle: the function, an id, and the state of the function. When the function has
/// changed, using the handle is a `StaleError`.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct Expr {
    pub(crate) home: Home,
    pub(crate) id: ExprId,
}

impl Expr {
    pub(crate) fn new(home: Home, id: ExprId) -> Expr {
        Expr { home, id }
    }

    fn beside(&self, py: Python<'_>, id: ExprId) -> Expr {
        Expr::new(self.home.clone_ref(py), id)
    }

    fn all(&self, py: Python<'_>, ids: &[ExprId]) -> Vec<Expr> {
        ids.iter().map(|&id| self.beside(py, id)).collect()
    }

    fn read<T>(&self, read: impl FnOnce(&Context, &Body, Node) -> PyResult<T>) -> PyResult<T> {
        self.home.read(|cx, body| read(cx, body, body.expr(self.id)))
    }

    fn part(&self, py: Python<'_>, part: impl FnOnce(Node) -> Option<ExprId>) -> PyResult<Option<Expr>> {
        self.read(|_, _, node| Ok(part(node).map(|id| self.beside(py, id))))
    }
}

/// Returns the name of a kind of expression.
fn kind_of(node: Node) -> &'static str {
    match node {
        Node::Var { .. } => "var",
        Node::Literal(_) => "literal",
        Node::Global(_) => "global",
        Node::Op(_) => "op",
        Node::None => "none",
        Node::CallOp { .. } | Node::Call { .. } => "call",
        Node::Tuple(_) => "tuple",
        Node::Proj { .. } => "tuple_getitem",
        Node::Let { .. } => "block",
        Node::If { .. } => "if",
        Node::Lambda { .. } => "function",
    }
}

/// Returns a short text of an operand.
fn operand_text(cx: &Context, body: &Body, id: ExprId) -> String {
    match body.expr(id) {
        Node::Var { name: Some(name), .. } => format!("%{}", cx.names.get(name)),
        Node::Var { name: None, .. } => format!("%_{}", anfora::ir::EntityId::index(id)),
        Node::Global(global) => format!("@{}", cx.global_name(global)),
        Node::Op(op) => cx.ops.get(op).name.to_string(),
        Node::None => "none".to_string(),
        Node::Literal(id) => {
            let literal = cx.literals.get(id);
            let shape: Vec<String> = literal.shape().iter().map(usize::to_string).collect();
            format!("{}[{}]", literal.dtype(), shape.join(", "))
        }
        node => format!("<{}>", kind_of(node)),
    }
}

/// Returns a short text of an expression: its operator and its operands.
pub(crate) fn text_of(cx: &Context, body: &Body, id: ExprId) -> String {
    let list = |ids: &[ExprId]| {
        let shown: Vec<String> = ids.iter().take(16).map(|&id| operand_text(cx, body, id)).collect();
        let more = if ids.len() > 16 { ", ..." } else { "" };
        format!("({}{more})", shown.join(", "))
    };
    match body.expr(id) {
        Node::CallOp { op, operands, .. } => format!("{}{}", cx.ops.get(op).name, list(body.operands(operands))),
        Node::Call { operands, .. } => match body.operands(operands) {
            [function, arguments @ ..] => format!("{}{}", operand_text(cx, body, *function), list(arguments)),
            [] => "()".to_string(),
        },
        Node::Tuple(fields) => list(body.operands(fields)),
        Node::Proj { tuple, index } => format!("{}.{index}", operand_text(cx, body, tuple)),
        Node::If { cond, .. } => format!("if ({}) {{ ... }} else {{ ... }}", operand_text(cx, body, cond)),
        Node::Lambda { lambda, .. } => {
            let params: Vec<ExprId> = body.lambda_params(lambda).map(|v| v.expr()).collect();
            format!("fn{} {{ ... }}", list(&params))
        }
        Node::Let { .. } => "{ ... }".to_string(),
        _ => operand_text(cx, body, id),
    }
}

#[pymethods]
impl Expr {
    /// The kind: `"var"`, `"literal"`, `"global"`, `"op"`, `"none"`, `"call"`, `"tuple"`,
    /// `"tuple_getitem"`, `"block"`, `"if"` or `"function"`.
    #[getter]
    fn kind(&self) -> PyResult<&'static str> {
        self.read(|_, _, node| Ok(kind_of(node)))
    }

    /// The name of a variable, a global or an operator; `None` for others, and for a variable
    /// without a name.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.read(|cx, _, node| {
            let name = match node {
                Node::Var { name, .. } => name.map(|n| cx.names.get(n)),
                Node::Global(global) => Some(cx.global_name(global)),
                Node::Op(op) => Some(&*cx.ops.get(op).name),
                _ => None,
            };
            Ok(name.map(|n| PyString::new(py, n)))
        })
    }

    /// The callee: the name of an operator, or the function as an expression; `None` for what
    /// is no call.
    #[getter]
    fn op<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read(|cx, body, node| match node {
            Node::CallOp { op, .. } => Ok(Some(PyString::new(py, &cx.ops.get(op).name).into_any())),
            Node::Call { operands, .. } if !operands.is_empty() => {
                Ok(Some(Bound::new(py, self.beside(py, body.operand(operands, 0)))?.into_any()))
            }
            _ => Ok(None),
        })
    }

    /// The arguments of a call, the fields of a tuple, or the tuple of a projection.
    #[getter]
    fn args(&self, py: Python<'_>) -> PyResult<Vec<Expr>> {
        self.read(|_, body, node| {
            Ok(match node {
                Node::CallOp { operands, .. } | Node::Tuple(operands) => self.all(py, body.operands(operands)),
                Node::Call { operands, .. } => self.all(py, body.operands(operands).get(1..).unwrap_or_default()),
                Node::Proj { tuple, .. } => self.all(py, &[tuple]),
                _ => Vec::new(),
            })
        })
    }

    /// The attributes of a call, with the defaults of the operator.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.read(|cx, body, node| match node {
            Node::CallOp { op, attrs, .. } => attributes::dict_of_call(py, &self.home.owner, cx, op, attrs),
            Node::Call { attrs, .. } => attributes::dict(py, &self.home.owner, cx, attrs),
            Node::Lambda { lambda, .. } => attributes::dict(py, &self.home.owner, cx, body.lambda(lambda).attrs),
            _ => Ok(PyDict::new(py)),
        })
    }

    /// The type of the value.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<Type> {
        self.read(|_, body, _| Ok(Type::new(self.home.owner.clone_ref(py), body.type_of(self.id))))
    }

    /// The constant; `None` for any other expression.
    #[getter]
    fn literal(&self) -> PyResult<Option<Literal>> {
        self.read(|cx, _, node| match node {
            Node::Literal(id) => Ok(Some(Literal::of(cx.literals.get(id).clone(), None))),
            _ => Ok(None),
        })
    }

    /// The index of a projection; `None` for any other expression.
    #[getter]
    fn index(&self) -> PyResult<Option<u32>> {
        self.read(|_, _, node| match node {
            Node::Proj { index, .. } => Ok(Some(index)),
            _ => Ok(None),
        })
    }

    /// The condition of an `if`.
    #[getter]
    fn cond(&self, py: Python<'_>) -> PyResult<Option<Expr>> {
        self.part(py, |node| if let Node::If { cond, .. } = node { Some(cond) } else { None })
    }

    /// The block of an `if` for a true condition.
    #[getter]
    fn then_block(&self, py: Python<'_>) -> PyResult<Option<Expr>> {
        self.part(py, |node| if let Node::If { then_block, .. } = node { Some(then_block) } else { None })
    }

    /// The block of an `if` for a false condition.
    #[getter]
    fn else_block(&self, py: Python<'_>) -> PyResult<Option<Expr>> {
        self.part(py, |node| if let Node::If { else_block, .. } = node { Some(else_block) } else { None })
    }

    /// The parameters of a function value.
    #[getter]
    fn params(&self, py: Python<'_>) -> PyResult<Vec<Expr>> {
        self.read(|_, body, node| {
            Ok(match node {
                Node::Lambda { lambda, .. } => {
                    body.lambda_params(lambda).map(|var| self.beside(py, var.expr())).collect()
                }
                _ => Vec::new(),
            })
        })
    }

    /// The block of a function value.
    #[getter]
    fn body(&self, py: Python<'_>) -> PyResult<Option<Expr>> {
        self.part(py, |node| if let Node::Lambda { body, .. } = node { Some(body) } else { None })
    }

    /// The bindings of a block, in order, without those of the blocks in it.
    #[getter]
    fn bindings(&self, py: Python<'_>) -> PyResult<Vec<Binding>> {
        self.read(|_, body, _| {
            let chain = visit::chain(body, self.id);
            Ok(chain.map(|b| Binding { home: self.home.clone_ref(py), id: b.id }).collect())
        })
    }

    /// The result of a block. Any other expression is its own result.
    #[getter]
    fn result(&self, py: Python<'_>) -> PyResult<Expr> {
        self.read(|_, body, _| Ok(self.beside(py, body.tail(self.id))))
    }

    /// True for a variable that is visible only in its dataflow region.
    #[getter]
    fn is_dataflow(&self) -> PyResult<bool> {
        self.read(|_, _, node| Ok(matches!(node, Node::Var { flags, .. } if flags.is_dataflow())))
    }

    /// The place of the expression in the text of the module; `None` without a text.
    #[getter]
    fn loc<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let span = self.read(|_, body, _| Ok(body.span(self.id)))?;
        location(py, &self.home, span)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Expr>().is_ok_and(|other| self.id == other.get().id && self.home.is(&other.get().home))
    }

    fn __hash__(&self) -> u64 {
        anfora::ir::EntityId::index(self.id) as u64
    }

    fn __str__(&self) -> PyResult<String> {
        self.read(|cx, body, _| Ok(text_of(cx, body, self.id)))
    }

    fn __repr__(&self) -> String {
        self.__str__().map_or_else(|_| "<anfora.Expr (stale)>".to_string(), |text| format!("<anfora.Expr {text}>"))
    }
}

/// Returns the place of a byte in the text of a module.
fn location<'py>(py: Python<'py>, home: &Home, span: Option<u32>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Some(start), Owner::Module(module)) = (span, &home.owner) else { return Ok(None) };
    let Some((file, line, column)) = module.get().place_in_text(start as usize)? else { return Ok(None) };
    Ok(Some(py.import("anfora._errors")?.getattr("Location")?.call1((file, line, column))?))
}

/// A binding: a variable and its value. It reads like its value: `b.op` is `b.value.op`.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct Binding {
    pub(crate) home: Home,
    pub(crate) id: ExprId,
}

impl Binding {
    fn part(&self, py: Python<'_>, part: impl FnOnce(visit::Binding) -> ExprId) -> PyResult<Expr> {
        let id =
            self.home.read(|_, body| visit::Binding::of(body, self.id).map(part).ok_or_else(crate::owner::changed))?;
        Ok(Expr::new(self.home.clone_ref(py), id))
    }
}

#[pymethods]
impl Binding {
    /// The variable.
    #[getter]
    fn var(&self, py: Python<'_>) -> PyResult<Expr> {
        self.part(py, |b| b.var.expr())
    }

    /// The value.
    #[getter]
    fn value(&self, py: Python<'_>) -> PyResult<Expr> {
        self.part(py, |b| b.value)
    }

    /// The name of the variable, if it has one.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.var(py)?.name(py)
    }

    /// The callee of the value: see `Expr.op`.
    #[getter]
    fn op<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.value(py)?.op(py)
    }

    /// The operands of the value: see `Expr.args`.
    #[getter]
    fn args(&self, py: Python<'_>) -> PyResult<Vec<Expr>> {
        self.value(py)?.args(py)
    }

    /// The attributes of the value: see `Expr.attrs`.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.value(py)?.attrs(py)
    }

    /// The type of the variable.
    #[getter]
    fn r#type(&self, py: Python<'_>) -> PyResult<Type> {
        self.var(py)?.r#type(py)
    }

    /// The place of the binding in the text of the module; `None` without a text.
    #[getter]
    fn loc<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let span = self.home.read(|_, body| {
            let binding = visit::Binding::of(body, self.id).ok_or_else(crate::owner::changed)?;
            Ok(body.span(self.id).or_else(|| body.span(binding.value)))
        })?;
        location(py, &self.home, span)
    }

    /// True if the binding is in a dataflow region.
    #[getter]
    fn is_dataflow(&self) -> PyResult<bool> {
        self.home.read(|_, body| Ok(matches!(body.expr(self.id), Node::Let { flags, .. } if flags.is_dataflow())))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Binding>().is_ok_and(|other| self.id == other.get().id && self.home.is(&other.get().home))
    }

    fn __hash__(&self) -> u64 {
        anfora::ir::EntityId::index(self.id) as u64
    }

    fn __str__(&self) -> PyResult<String> {
        self.home.read(|cx, body| {
            let binding = visit::Binding::of(body, self.id).ok_or_else(crate::owner::changed)?;
            let ty = cx.type_text(body.type_of(binding.var.expr()));
            Ok(format!("let {}: {ty} = {}", text_of(cx, body, binding.var.expr()), text_of(cx, body, binding.value)))
        })
    }

    fn __repr__(&self) -> String {
        self.__str__().map_or_else(|_| "<anfora.Binding (stale)>".to_string(), |t| format!("<anfora.Binding {t}>"))
    }
}

/// Goes through the bindings of a function.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct BindingIterator {
    all: Py<Bindings>,
    next: AtomicUsize,
}

#[pymethods]
impl BindingIterator {
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __next__(&self, py: Python<'_>) -> Option<Binding> {
        let all = self.all.get();
        let id = *all.ids.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        Some(Binding { home: all.home.clone_ref(py), id })
    }
}

/// The bindings of a function in program order, with those of the blocks in it.
#[pyclass(frozen, sequence, module = "anfora")]
pub(crate) struct Bindings {
    pub(crate) home: Home,
    pub(crate) ids: Vec<ExprId>,
}

#[pymethods]
impl Bindings {
    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.ids.len();
        let binding = |id: ExprId| Bound::new(py, Binding { home: self.home.clone_ref(py), id });
        if let Ok(slice) = index.cast::<PySlice>() {
            let PySliceIndices { start, step, slicelength, .. } = slice.indices(isize::try_from(len)?)?;
            let at = (0..slicelength).filter_map(|i| usize::try_from(start + isize::try_from(i).ok()? * step).ok());
            let list = at.filter_map(|i| self.ids.get(i)).map(|&id| binding(id)).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, list)?.into_any());
        }
        let index: isize = index.extract()?;
        let i = if index < 0 { index.checked_add_unsigned(len) } else { Some(index) };
        let id = i.and_then(|i| usize::try_from(i).ok()).and_then(|i| self.ids.get(i));
        let id = *id.ok_or_else(|| PyIndexError::new_err(format!("there are {len} bindings")))?;
        Ok(binding(id)?.into_any())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> BindingIterator {
        BindingIterator { all: slf.clone().unbind(), next: AtomicUsize::new(0) }
    }

    fn __repr__(&self) -> String {
        format!("<{} bindings>", self.ids.len())
    }
}
