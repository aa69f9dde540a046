//! Dataflow regions, as passes in Python are given them.

use anfora::ir::{Editor, Expr as Node, ExprId, VarId};
use anfora::visit;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::AnforaError;
use crate::expr::{Bindings, Expr};
use crate::frames;
use crate::function::Function;
use crate::owner::Home;

/// A dataflow region: its bindings, what it uses from outside, and what is used outside of it.
///
/// It can be used while the pass that was given it runs.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct DataflowBlock {
    number: u64,
    outputs: Vec<VarId>,
}

impl DataflowBlock {
    pub(crate) fn new(number: u64, outputs: Vec<VarId>) -> DataflowBlock {
        DataflowBlock { number, outputs }
    }

    fn home(&self) -> PyResult<Home> {
        let stamp = frames::read_program(self.number, |_, body| body.stamp())?;
        Ok(Home { region: Some(stamp), ..Home::lent(self.number) })
    }

    fn all(&self, py: Python<'_>, ids: Vec<ExprId>) -> PyResult<Vec<Expr>> {
        let home = self.home()?;
        Ok(ids.into_iter().map(|id| Expr::new(home.clone_ref(py), id)).collect())
    }
}

#[pymethods]
impl DataflowBlock {
    /// The bindings of the region in program order, with those of the blocks in it.
    #[getter]
    fn bindings(&self) -> PyResult<Bindings> {
        let ids = frames::read_program(self.number, |_, body| {
            let order = visit::program_order(body, body.root());
            order.filter(|&id| matches!(body.expr(id), Node::Let { .. })).collect()
        })?;
        Ok(Bindings { home: self.home()?, ids })
    }

    /// The variables that the region uses and does not bind.
    #[getter]
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<Expr>> {
        let ids = frames::read_program(self.number, |_, body| body.params().iter().map(|v| v.expr()).collect())?;
        self.all(py, ids)
    }

    /// The variables that are used outside of the region.
    #[getter]
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<Expr>> {
        self.all(py, self.outputs.iter().map(|v| v.expr()).collect())
    }

    fn __repr__(&self) -> &'static str {
        "<anfora.DataflowBlock>"
    }
}

/// Edits what a walk was started on: a function, or a region. An edit that fails leaves it as it
/// was.
///
/// # Errors
/// Those of the edit, and `TypeError` for any other value.
pub(crate) fn edit_target<T: Send>(
    target: &Bound<'_, PyAny>,
    edit: impl FnOnce(&mut Editor<'_>) -> PyResult<T> + Send,
) -> PyResult<T> {
    let py = target.py();
    if let Ok(function) = target.cast::<Function>() {
        return function.get().edit(py, edit);
    }
    let Ok(block) = target.cast::<DataflowBlock>() else {
        let name = target.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!(
            "what is rewritten is a Function, a Module or a DataflowBlock, not {name}"
        )));
    };
    frames::with_maker(block.get().number, |maker| {
        let Some(mut editor) = maker.editor() else {
            return Err(AnforaError::new_err("a region can be edited only by its pass"));
        };
        let mark = editor.cx.rewrites.mark();
        editor.body.begin_journal();
        let done = edit(&mut editor);
        match &done {
            Ok(_) => _ = editor.body.commit_journal(),
            Err(_) => {
                editor.body.rollback_journal();
                editor.cx.rewrites.undo_since(mark);
            }
        }
        done
    })?
}
