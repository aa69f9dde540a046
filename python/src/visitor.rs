//! Visitors written in Python, driven by the cursor.

use std::ops::ControlFlow;

use anfora::ir::{self, Body, Expr as Node, ExprId, OpId, VarId};
use anfora::visit::{self, Branch, Visit, Visitor, walk};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::AnforaError;
use crate::expr::{Binding, Expr};
use crate::function::Function;
use crate::module::Module;
use crate::owner::Home;
use crate::place;

/// The callbacks of visitors, and the names under which Python has them.
macro_rules! callbacks {
    ($($field:ident: $name:literal),+ $(,)?) => {
        /// The callbacks that a visitor overrides, as bound methods.
        struct Callbacks<'py> {
            $($field: Option<Bound<'py, PyAny>>,)+
        }

        impl<'py> Callbacks<'py> {
            fn of(object: &Bound<'py, PyAny>, base: &Bound<'py, PyAny>) -> PyResult<Callbacks<'py>> {
                Ok(Callbacks { $($field: overridden(object, base, $name)?,)+ })
            }
        }
    };
}

callbacks! {
    call: "visit_call_",
    tuple: "visit_tuple_",
    projection: "visit_tuple_getitem_",
    if_: "visit_if_",
    leave_if: "leave_if_",
    function: "visit_function_",
    leave_function: "leave_function_",
    binding: "visit_binding_",
    def: "visit_var_def_",
    var: "visit_var_",
    constant: "visit_constant_",
    global: "visit_global_var_",
    region: "visit_dataflow_block_",
    leave_region: "leave_dataflow_block_",
    branch: "visit_branch_",
}

/// Returns a method of an object, if the object or its class has one of its own: that of the base
/// class does nothing, and calling it would only take time.
pub(crate) fn overridden<'py>(
    object: &Bound<'py, PyAny>,
    base: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let inherited = base.getattr_opt(name)?;
    let own = object.get_type().getattr_opt(name)?;
    match (own, inherited) {
        (Some(own), Some(inherited)) if own.is(&inherited) => Ok(None),
        (None, _) => object.getattr_opt(name),
        (Some(_), _) => object.getattr(name).map(Some),
    }
}

/// One walk over one function.
struct Walk<'a, 'py> {
    py: Python<'py>,
    callbacks: &'a Callbacks<'py>,
    /// The operators whose calls are visited; `None` for all.
    only: Option<Vec<OpId>>,
    home: Home,
    skip: &'a Bound<'py, PyAny>,
    /// The variables whose values are being visited, innermost last.
    open: Vec<VarId>,
}

impl<'py> Walk<'_, 'py> {
    fn tell(&self, method: &Option<Bound<'py, PyAny>>, id: ExprId) -> Visit<PyErr> {
        let Some(method) = method else { return Visit::Continue };
        let expr = Expr::new(self.home.clone_ref(self.py), id);
        match method.call1((expr,)) {
            Ok(returned) if returned.is(self.skip) => Visit::Skip,
            Ok(_) => Visit::Continue,
            Err(error) => Visit::Stop(error),
        }
    }

    fn leave(&self, method: &Option<Bound<'py, PyAny>>, id: ExprId) -> ControlFlow<PyErr> {
        match self.tell(method, id) {
            Visit::Stop(error) => ControlFlow::Break(error),
            Visit::Continue | Visit::Skip => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Walk<'_, '_> {
    type Break = PyErr;

    fn visit_binding(&mut self, _: &Body, binding: visit::Binding) -> Visit<PyErr> {
        self.open.push(binding.var);
        let Some(method) = &self.callbacks.binding else { return Visit::Continue };
        let handle = Binding { home: self.home.clone_ref(self.py), id: binding.id };
        match method.call1((handle,)) {
            Ok(returned) if returned.is(self.skip) => Visit::Skip,
            Ok(_) => Visit::Continue,
            Err(error) => Visit::Stop(error),
        }
    }

    fn visit_expr(&mut self, body: &Body, id: ExprId) -> Visit<PyErr> {
        match body.expr(id) {
            Node::If { .. } => self.tell(&self.callbacks.if_, id),
            Node::Lambda { .. } => self.tell(&self.callbacks.function, id),
            _ => Visit::Continue,
        }
    }

    fn exit_expr(&mut self, body: &Body, id: ExprId) -> ControlFlow<PyErr> {
        match body.expr(id) {
            Node::CallOp { op, .. } => match &self.only {
                Some(only) if !only.contains(&op) => ControlFlow::Continue(()),
                _ => self.leave(&self.callbacks.call, id),
            },
            Node::Call { .. } if self.only.is_none() => self.leave(&self.callbacks.call, id),
            Node::Tuple(_) => self.leave(&self.callbacks.tuple, id),
            Node::Proj { .. } => self.leave(&self.callbacks.projection, id),
            Node::If { .. } => self.leave(&self.callbacks.leave_if, id),
            Node::Lambda { .. } => self.leave(&self.callbacks.leave_function, id),
            _ => ControlFlow::Continue(()),
        }
    }

    fn visit_def(&mut self, _: &Body, var: VarId) -> Visit<PyErr> {
        let told = self.tell(&self.callbacks.def, var.expr());
        // After an exception, the variable stays: it is the place of the exception.
        if !matches!(told, Visit::Stop(_)) && self.open.last() == Some(&var) {
            self.open.pop();
        }
        told
    }

    fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<PyErr> {
        self.tell(&self.callbacks.var, var.expr())
    }

    fn visit_leaf(&mut self, body: &Body, id: ExprId) -> Visit<PyErr> {
        match body.expr(id) {
            Node::Literal(_) => self.tell(&self.callbacks.constant, id),
            Node::Global(_) => self.tell(&self.callbacks.global, id),
            _ => Visit::Continue,
        }
    }

    fn enter_branch(&mut self, body: &Body, if_: ExprId, branch: Branch) -> Visit<PyErr> {
        let Node::If { then_block, else_block, .. } = body.expr(if_) else { return Visit::Continue };
        self.tell(&self.callbacks.branch, if branch == Branch::Then { then_block } else { else_block })
    }

    fn enter_region(&mut self, _: &Body, first: ExprId) -> Visit<PyErr> {
        self.tell(&self.callbacks.region, first)
    }

    fn exit_region(&mut self, _: &Body, last: ExprId) -> ControlFlow<PyErr> {
        self.leave(&self.callbacks.leave_region, last)
    }
}

/// Walks a function, or all functions of a module, and calls the methods of a visitor.
#[pyfunction]
#[pyo3(signature = (visitor: "typing.Any", target: "Function | Module | Expr", only: "collections.abc.Sequence[str] | None" = None) -> "None")]
pub(crate) fn _visit(visitor: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>, only: Option<Vec<String>>) -> PyResult<()> {
    let py = visitor.py();
    let base = py.import("anfora.visitor")?.getattr("ExprVisitor")?;
    let skip = py.import("anfora.visitor")?.getattr("SKIP")?;
    let callbacks = Callbacks::of(visitor, &base)?;
    let one = |function: &Function| {
        let home = function.home(py)?;
        function.read(|module, f| {
            over(py, &callbacks, &only, &skip, home, &module.cx, &f.body, None)
                .inspect_err(|error| place::note(error, Some(module.name(function.key)), None))
        })
    };
    if let Ok(function) = target.cast::<Function>() {
        return one(function.get());
    }
    if let Ok(expr) = target.cast::<Expr>() {
        let expr = expr.get();
        let home = expr.home.clone_ref(py);
        let done = expr.home.read(|cx, body| over(py, &callbacks, &only, &skip, home, cx, body, Some(expr.id)));
        return done.inspect_err(|error| place::note(error, expr.home.function_name().as_deref(), None));
    }
    let module: &Bound<'_, Module> = target.cast().map_err(|_| wrong_target(target))?;
    let keys: Vec<ir::FunctionKey> =
        module.get().read(|m| m.functions().filter(|(_, f)| f.is_definition()).map(|(key, _)| key).collect())?;
    keys.into_iter().try_for_each(|key| one(&Function::new(module.clone().unbind(), key)))
}

/// Returns the operators with these names.
///
/// # Errors
/// With a suggestion, if there is no operator of a name.
pub(crate) fn operators(cx: &ir::Context, names: &[String]) -> PyResult<Vec<OpId>> {
    let known = |name: &String| {
        cx.ops.find(name).ok_or_else(|| {
            let rows = cx.ops.registry().rows().map(|(_, row)| &*row.name);
            let help = ir::did_you_mean(name, rows).map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
            AnforaError::new_err(format!("unknown operator `{name}`{help}"))
        })
    };
    names.iter().map(known).collect()
}

fn wrong_target(target: &Bound<'_, PyAny>) -> PyErr {
    let name = target.get_type().qualname().map_or_else(|_| "something else".to_string(), |n| n.to_string());
    PyTypeError::new_err(format!("what is visited is a Function, a Module or an Expr, not {name}"))
}

#[allow(clippy::too_many_arguments)]
fn over<'py>(
    py: Python<'py>,
    callbacks: &Callbacks<'py>,
    only: &Option<Vec<String>>,
    skip: &Bound<'py, PyAny>,
    home: Home,
    cx: &ir::Context,
    body: &Body,
    start: Option<ExprId>,
) -> PyResult<()> {
    let only = only.as_ref().map(|names| operators(cx, names)).transpose()?;
    let mut visitor = Walk { py, callbacks, only, home, skip, open: Vec::new() };
    let done = match start {
        None => walk(body, &mut visitor),
        Some(start) => visit::walk_from(body, start, &mut visitor),
    };
    match done {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => {
            if let Some(at) = visitor.open.last().map(|var| var.expr()).or(start) {
                place::at(cx, body, at, &error);
            }
            Err(error)
        }
    }
}
