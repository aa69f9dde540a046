//! The extension module `anfora._anfora`: the toolkit for Python. The package `anfora` around it
//! has the names that users import.
//!
//! Python holds handles. A [`Module`](module::Module) owns a program; a function, a binding or an
//! expression is the module with an id and the stamp of the body that the id belongs to, so a stale
//! handle is refused instead of naming another expression. No handle holds a lock while Python
//! runs: a module that is edited is taken out of its handle, and put back afterwards.

mod attributes;
mod author;
mod authored;
mod backend;
mod block;
mod builder;
mod cli;
mod context;
mod diff;
mod errors;
mod expr;
mod frames;
mod function;
mod held;
mod instrument;
mod literal;
mod making;
mod module;
mod mutator;
mod near_miss;
mod onnx;
mod owner;
mod pass;
mod pattern;
mod place;
mod registry;
mod running;
mod settings;
mod slim;
mod stream;
mod surgery;
mod types;
mod visitor;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The toolkit, compiled. Users import the modules of the package around it.
#[pyo3::pymodule]
mod _anfora {
    #[pymodule_export]
    use crate::backend::_run_codegen;
    #[pymodule_export]
    use crate::block::DataflowBlock;
    #[pymodule_export]
    use crate::builder::FunctionBuilder;
    #[pymodule_export]
    use crate::cli::_main;
    #[pymodule_export]
    use crate::context::PassContext;
    #[pymodule_export]
    use crate::diff::{_diff, FoundDifferences};
    #[pymodule_export]
    use crate::expr::{Binding, BindingIterator, Bindings, Expr};
    #[pymodule_export]
    use crate::function::Function;
    #[pymodule_export]
    use crate::instrument::{_builtin_instrument, Builtin};
    #[pymodule_export]
    use crate::literal::{_restore_literal, Literal};
    #[pymodule_export]
    use crate::module::Module;
    #[pymodule_export]
    use crate::module::methods::loads;
    #[pymodule_export]
    use crate::mutator::{_mutate, MutatorBase};
    #[pymodule_export]
    use crate::near_miss::NearMiss;
    #[pymodule_export]
    use crate::onnx::{_export_onnx, _import_onnx, _save_onnx, _split_onnx};
    #[pymodule_export]
    use crate::pass::{_bind_params, _make_pass, _parse_pipeline, _repeat, _sequential, Pass, PassInfo, PassOutcome};
    #[pymodule_export]
    use crate::pattern::{
        _find, _rewrite, Match, Pattern, Rule, RuleSet, any_, any_literal, any_of, call, capture, global_, literal,
        none_, op, op_in, rest, tuple_, tuple_getitem,
    };
    #[pymodule_export]
    use crate::registry::{_registered_passes, _registered_pipelines};
    #[pymodule_export]
    use crate::running::_run;
    #[pymodule_export]
    use crate::slim::_slim;
    #[pymodule_export]
    use crate::surgery::{_extract, _rename, _set_attributes, _set_shapes};
    #[pymodule_export]
    use crate::types::Type;
    #[pymodule_export]
    use crate::visitor::_visit;

    /// The version of the package.
    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
