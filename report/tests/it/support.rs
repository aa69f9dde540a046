//! Modules and passes for the tests.

use anfora_ir::{DType, FunctionBuilder, Module};
use anfora_manager::{FunctionPass, ModulePass};

/// Returns a module of three functions, each with three bindings.
pub(crate) fn module() -> Module {
    module_of(&["f", "g", "h"])
}

/// Returns a module of functions with these names, each with three bindings.
pub(crate) fn module_of(names: &[&str]) -> Module {
    let mut module = Module::new(anfora_ops::standard());
    for name in names {
        add_function(&mut module, name);
    }
    module
}

/// Adds a function with three bindings.
pub(crate) fn add_function(module: &mut Module, name: &str) {
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    let mut f = FunctionBuilder::new(module, name);
    let x = f.param("x", ty);
    let call = f.call_op("add", &[x, x], &[]).unwrap();
    let a = f.bind("a", call);
    let call = f.call_op("negative", &[a], &[]).unwrap();
    let b = f.bind("b", call);
    let call = f.call_op("add", &[b, a], &[]).unwrap();
    let c = f.bind("c", call);
    f.finish(c).unwrap();
}

/// Makes a pass that changes nothing.
pub(crate) fn idle(name: &str, level: u8) -> ModulePass {
    ModulePass::new(name, level, |_, _| Ok(()))
}

/// Makes a pass that changes each function the first time, and reports no rewrite.
pub(crate) fn once() -> FunctionPass {
    FunctionPass::new("Once", 0, |edit, _, _| {
        let size = edit.cx.int_attr(1);
        edit.function.attrs = edit.cx.with_attr(edit.function.attrs, "seen", Some(size));
        Ok(())
    })
}
