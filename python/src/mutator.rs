//! Mutators written in Python, driven by the engine of [`anfora::visit::mutate`].

use std::sync::atomic::{AtomicU64, Ordering};

use anfora::ir::{Editor, Expr as Node, ExprId};
use anfora::visit::{Edits, Mutator, Rewrite, RewriteError, Site, mutate};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::block::edit_target;
use crate::errors::{self, VerifyError};
use crate::expr::Expr;
use crate::frames::{self, Maker};
use crate::function::edit_all;
use crate::making::{making_methods, operand};
use crate::module::Module;
use crate::owner::Home;
use crate::place;
use crate::visitor::{operators, overridden};

/// Rewrites functions: the methods of a subclass return what takes the place of an expression.
#[pyclass(frozen, subclass, module = "anfora.visitor", name = "MutatorBase")]
pub(crate) struct MutatorBase {
    /// The number under which the place of the running walk is lent.
    number: AtomicU64,
}

impl MutatorBase {
    fn making(slf: &Bound<'_, Self>, make: impl FnOnce(&mut dyn Maker, &Home) -> PyResult<ExprId>) -> PyResult<Expr> {
        let number = slf.get().number.load(Ordering::Relaxed);
        let home = Home::lent(number);
        let id = frames::with_maker(number, |maker| make(maker, &home))??;
        Ok(Expr::new(home, id))
    }
}

making_methods!(MutatorBase);

/// The exception of a callback, or an error of the walk.
struct Stopped(PyErr);

impl From<RewriteError> for Stopped {
    fn from(error: RewriteError) -> Stopped {
        Stopped(Python::attach(|py| {
            let found = anfora::ir::IntoDiagnostics::into_diagnostics(error);
            errors::from_diagnostics(py, &py.get_type::<VerifyError>(), &found)
        }))
    }
}

/// The methods that a mutator overrides.
struct Methods {
    call: Option<Py<PyAny>>,
    tuple: Option<Py<PyAny>>,
    projection: Option<Py<PyAny>>,
    if_: Option<Py<PyAny>>,
    function: Option<Py<PyAny>>,
}

impl Methods {
    fn of(mutator: &Bound<'_, PyAny>) -> PyResult<Methods> {
        let base = mutator.py().import("anfora.visitor")?.getattr("ExprMutator")?;
        let method = |name: &str| Ok::<_, PyErr>(overridden(mutator, &base, name)?.map(Bound::unbind));
        Ok(Methods {
            call: method("visit_call_")?,
            tuple: method("visit_tuple_")?,
            projection: method("visit_tuple_getitem_")?,
            if_: method("visit_if_")?,
            function: method("visit_function_")?,
        })
    }
}

struct Rewriting<'a> {
    methods: &'a Methods,
    only: Option<Vec<anfora::ir::OpId>>,
    number: u64,
}

impl Mutator for Rewriting<'_> {
    type Error = Stopped;
    const EDITS: Edits = Edits::Scoped;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, Stopped> {
        let method = match site.editor.body.expr(id) {
            Node::CallOp { op, .. } if self.only.as_ref().is_some_and(|only| !only.contains(&op)) => &None,
            Node::Call { .. } if self.only.is_some() => &None,
            Node::CallOp { .. } | Node::Call { .. } => &self.methods.call,
            Node::Tuple(_) => &self.methods.tuple,
            Node::Proj { .. } => &self.methods.projection,
            Node::If { .. } => &self.methods.if_,
            Node::Lambda { .. } => &self.methods.function,
            _ => &None,
        };
        let Some(method) = method else { return Ok(Rewrite::Keep) };
        let home = Home::lent(self.number);
        Python::attach(|py| {
            let handle = Expr::new(home.clone_ref(py), id);
            let returned = frames::lend_maker(self.number, site, || method.call1(py, (handle,)))?;
            let returned = returned.into_bound(py);
            if returned.is_none() {
                return Ok(Rewrite::Keep);
            }
            let by = operand(site, &home, &returned, None)?;
            Ok(if by == id { Rewrite::Keep } else { Rewrite::Replace(by) })
        })
        .map_err(Stopped)
    }
}

#[pymethods]
impl MutatorBase {
    #[new]
    #[pyo3(signature = (*args: "typing.Any", **kwargs: "typing.Any") -> "MutatorBase")]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> MutatorBase {
        let _ = (args, kwargs);
        MutatorBase { number: AtomicU64::new(u64::MAX) }
    }
}

/// Rewrites a function, a dataflow region, or all functions of a module, by the methods of a
/// mutator.
#[pyfunction]
#[pyo3(signature = (mutator: "MutatorBase", target: "Function | Module | DataflowBlock", only: "collections.abc.Sequence[str] | None" = None) -> "None")]
pub(crate) fn _mutate(
    mutator: &Bound<'_, MutatorBase>,
    target: &Bound<'_, PyAny>,
    only: Option<Vec<String>>,
) -> PyResult<()> {
    let methods = Methods::of(mutator.as_any())?;
    let current = &mutator.get().number;
    let outer = current.load(Ordering::Relaxed);
    let rewrite = |editor: &mut Editor<'_>| {
        let only = only.as_ref().map(|names| operators(editor.cx, names)).transpose()?;
        // A number for each function: a handle of one is none of the next.
        let number = frames::new_number();
        current.store(number, Ordering::Relaxed);
        editor.body.note_stop(None);
        mutate(editor, &mut Rewriting { methods: &methods, only, number })
            .map_err(|Stopped(error)| place::at_stop(editor.cx, editor.body, error))
    };
    let done = match target.cast::<Module>() {
        Ok(module) => edit_all(module, rewrite).map(drop),
        Err(_) => edit_target(target, rewrite),
    };
    current.store(outer, Ordering::Relaxed);
    done
}
