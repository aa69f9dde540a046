//! Builders of functions as Python sees them: parameters, bindings, blocks and the result.

use std::sync::Mutex;

use anfora::ir::{self, AttrsId, Body, Context, ExprId, Literal, OpId, TypeError, TypeId, Visibility};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::builder::FunctionBuilder;
use crate::errors::{self, VerifyError};
use crate::expr::Expr;
use crate::frames::{Maker, by_editor};
use crate::function::{Function, verify_edited};
use crate::making::{id_in, making_methods, operand};
use crate::module::Module;
use crate::owner::{Home, Owner};
use crate::types::{text_of, type_of_text};

impl Maker for ir::FunctionBuilder<'_> {
    by_editor!(builder => builder.editor());

    fn program(&mut self) -> (&Context, &Body) {
        let editor = self.editor();
        (editor.cx, editor.body)
    }

    fn bind(&mut self, name: Option<&str>, value: ExprId) -> ExprId {
        ir::FunctionBuilder::bind(self, name.unwrap_or_default(), value)
    }

    fn resolve(&self, id: ExprId) -> ExprId {
        id
    }
}

impl FunctionBuilder {
    fn home(slf: &Bound<'_, Self>) -> Home {
        Home { owner: Owner::Builder(slf.clone().unbind()), at: None, region: None }
    }

    /// Makes an expression by a maker.
    ///
    /// # Errors
    /// Those of the work.
    fn making(slf: &Bound<'_, Self>, make: impl FnOnce(&mut dyn Maker, &Home) -> PyResult<ExprId>) -> PyResult<Expr> {
        let home = FunctionBuilder::home(slf);
        let id = slf.get().continued(|builder| make(builder, &home))?;
        Ok(Expr::new(home, id))
    }
}

making_methods!(FunctionBuilder);

fn failed(py: Python<'_>, error: ir::BuildError) -> PyErr {
    errors::from_diagnostics(py, &py.get_type::<VerifyError>(), &ir::IntoDiagnostics::into_diagnostics(error))
}

#[pymethods]
impl FunctionBuilder {
    /// Begins a function of a module. It is in the module when it is finished.
    #[new]
    #[pyo3(signature = (module: "Module", name: "str" = "main", *, private: "bool" = false) -> "FunctionBuilder")]
    fn new(module: &Bound<'_, Module>, name: &str, private: bool) -> PyResult<FunctionBuilder> {
        let name = name.trim_start_matches('@');
        let unfinished = module.get().extend(|module| {
            let mut builder = ir::FunctionBuilder::new(module, name);
            if private {
                builder.visibility(Visibility::Private);
            }
            builder.set_aside()
        })?;
        Ok(FunctionBuilder { module: module.clone().unbind(), unfinished: Mutex::new(Some(unfinished)) })
    }

    /// Adds a parameter of a type: a `Type`, or its text.
    #[pyo3(signature = (name: "str", ty: "Type | str") -> "Expr")]
    fn param(slf: &Bound<'_, Self>, name: &str, ty: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let text = text_of(ty)?;
        let id = slf.get().continued(|builder| {
            let ty = type_of_text(builder.cx(), &text)?;
            Ok(builder.param(name, ty))
        })?;
        Ok(Expr::new(FunctionBuilder::home(slf), id))
    }

    /// States the type of the result: a `Type`, or its text.
    #[pyo3(signature = (ty: "Type | str") -> "None")]
    fn ret(&self, ty: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = text_of(ty)?;
        self.continued(|builder| {
            let ty = type_of_text(builder.cx(), &text)?;
            builder.result(ty);
            Ok(())
        })
    }

    /// Begins a dataflow region.
    #[pyo3(signature = () -> "None")]
    fn begin_dataflow(&self) -> PyResult<()> {
        self.continued(|builder| {
            builder.begin_dataflow();
            Ok(())
        })
    }

    /// Ends the dataflow region. Only the outputs are visible after it.
    #[pyo3(signature = (*outputs: "Expr") -> "None")]
    fn end_dataflow(slf: &Bound<'_, Self>, outputs: &Bound<'_, PyTuple>) -> PyResult<()> {
        let home = FunctionBuilder::home(slf);
        let ids =
            outputs.iter().map(|output| id_in(&home, output.cast::<Expr>()?.get())).collect::<PyResult<Vec<_>>>()?;
        slf.get().continued(|builder| {
            builder.end_dataflow(&ids);
            Ok(())
        })
    }

    /// Opens a block: a branch, or a block as a value.
    #[pyo3(signature = () -> "None")]
    fn open_block(&self) -> PyResult<()> {
        self.continued(|builder| {
            builder.open_block();
            Ok(())
        })
    }

    /// Closes the innermost block with its result, and returns the block.
    #[pyo3(signature = (result: "typing.Any") -> "Expr")]
    fn close_block(slf: &Bound<'_, Self>, result: &Bound<'_, PyAny>) -> PyResult<Expr> {
        let home = FunctionBuilder::home(slf);
        let id = slf.get().continued(|builder| {
            let result = operand(builder, &home, result, None)?;
            builder.close_block(result).map_err(|e| failed(slf.py(), e))
        })?;
        Ok(Expr::new(home, id))
    }

    /// Chooses between two closed blocks, binds the result, and returns the variable.
    #[pyo3(signature = (cond: "Expr", then_block: "Expr", else_block: "Expr", *, name: "str | None" = None) -> "Expr")]
    fn emit_if(
        slf: &Bound<'_, Self>,
        cond: &Bound<'_, Expr>,
        then_block: &Bound<'_, Expr>,
        else_block: &Bound<'_, Expr>,
        name: Option<&str>,
    ) -> PyResult<Expr> {
        let home = FunctionBuilder::home(slf);
        let part = |expr: &Bound<'_, Expr>| id_in(&home, expr.get());
        let (cond, then_block, else_block) = (part(cond)?, part(then_block)?, part(else_block)?);
        let id = slf.get().continued(|builder| {
            let value = builder.if_(cond, then_block, else_block).map_err(|e| failed(slf.py(), e))?;
            Ok(builder.bind(name.unwrap_or_default(), value))
        })?;
        Ok(Expr::new(home, id))
    }

    /// Opens the block of a function value with parameters, given as pairs of name and type, and
    /// returns the parameters.
    #[pyo3(signature = (*params: "tuple[str, Type | str]") -> "list[Expr]")]
    fn open_function<'py>(slf: &Bound<'py, Self>, params: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        let params = params
            .iter()
            .map(|pair| {
                let (name, ty): (String, Bound<'_, PyAny>) = pair.extract()?;
                Ok((name, text_of(&ty)?))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let home = FunctionBuilder::home(slf);
        let ids = slf.get().continued(|builder| {
            let types =
                params.iter().map(|(_, text)| type_of_text(builder.cx(), text)).collect::<PyResult<Vec<_>>>()?;
            let list: Vec<(&str, ir::TypeId)> = params.iter().map(|(n, _)| n.as_str()).zip(types).collect();
            Ok(builder.open_lambda(&list, None, &[]))
        })?;
        PyList::new(slf.py(), ids.into_iter().map(|id| Expr::new(home.clone_ref(slf.py()), id)))
    }

    /// Closes the block of a function value with its result, binds the function, and returns the
    /// variable.
    #[pyo3(signature = (result: "typing.Any", *, name: "str | None" = None) -> "Expr")]
    fn close_function(slf: &Bound<'_, Self>, result: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<Expr> {
        let home = FunctionBuilder::home(slf);
        let id = slf.get().continued(|builder| {
            let result = operand(builder, &home, result, None)?;
            let function = builder.close_lambda(result).map_err(|e| failed(slf.py(), e))?;
            Ok(builder.bind(name.unwrap_or_default(), function))
        })?;
        Ok(Expr::new(home, id))
    }

    /// Ends the function with its result and adds it to the module.
    #[pyo3(signature = (result: "typing.Any") -> "Function")]
    fn finish(slf: &Bound<'_, Self>, result: &Bound<'_, PyAny>) -> PyResult<Function> {
        let py = slf.py();
        let home = FunctionBuilder::home(slf);
        let result = slf.get().continued(|builder| operand(builder, &home, result, None))?;
        let module = slf.get().module.clone_ref(py);
        let key = slf.get().with(|unfinished| {
            let done = module.get().edit(py, |module| {
                let finished = ir::FunctionBuilder::resume(module, unfinished).finish(result);
                let key = finished.map_err(|e| Python::attach(|py| failed(py, e)))?;
                verify_edited(module, &[key])?;
                Ok(key)
            });
            (None, done)
        })?;
        Ok(Function::new(module, key))
    }

    fn __repr__(&self) -> &'static str {
        "<anfora.FunctionBuilder>"
    }
}
