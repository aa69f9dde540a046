//! The entry points that give parts of a program to backends.

use std::sync::Arc;

use anfora::manager::{Pass, PassRegistry, parse_pipeline};
use anfora::passes::{Backend, register_backends};
use anfora_ir::Module;

use super::visiting::verified;
use super::{Done, Kind, NORMAL_FORM, Row, pass_context};

pub(super) const ROWS: &[Row] = &[Row { name: "backends", covers: &[], kind: Kind::Module(backends) }];

/// Gives most operators of a program to one of two backends.
fn backends(mut module: Module) -> Done {
    let backend = |name: &str, patterns: &str| {
        Backend::new(name, |function| Ok(format!("code_of_{}", function.name))).patterns(patterns)
    };
    let mut registry = PassRegistry::new();
    anfora::passes::register(&mut registry).map_err(|e| e.to_string())?;
    let first = backend("first", "a=add(%x, %y),n=negative(%x),e=exp(%x)");
    let second = backend("second", "m=multiply(%x, %y),t=tanh(%x),s=subtract(%x, %y)");
    register_backends(&mut registry, vec![first, second]).map_err(|e| e.to_string())?;
    let pipeline = parse_pipeline(&registry, &format!("{NORMAL_FORM},byoc")).map_err(|e| e.to_string())?;
    pipeline.apply(&mut module, &pass_context(Arc::new(registry))?).map_err(|e| e.to_string())?;
    verified(&module)
}
