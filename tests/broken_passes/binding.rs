//! BindParams, BindSymbols and AttachGlobalSymbol, with mistakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anfora::ir::{FunctionKey, Literal, Module, SymbolId, TypeId, signature_type};
use anfora::manager::{ModulePass, Pass, PassError};
use anfora::passes::{SymbolRef, bind_symbols};
use anfora::visit::{Link, substitute};

use super::Broken;
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "BindParams",
        mistake: "takes a parameter away and leaves the signature as it was",
        why: &[Why::IllFormed, Why::OtherResult],
        make: take_a_parameter,
    },
    Broken {
        of: "BindParams",
        mistake: "binds a parameter that nobody named",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || bind_the_last(Literal::scalar(true)),
    },
    Broken {
        of: "BindParams",
        mistake: "does not look at the type",
        why: &[Why::IllFormed, Why::Fails],
        make: || bind_the_last(Literal::scalar(1i8)),
    },
    Broken {
        of: "BindSymbols",
        mistake: "gives parameters their types and leaves the body and the signature as they were",
        why: &[Why::IllFormed],
        make: || first_symbol(retype_the_params),
    },
    Broken {
        of: "BindSymbols",
        mistake: "binds a symbol that nobody named",
        why: &[Why::OtherResult, Why::OtherEffects, Why::Fails],
        make: || first_symbol(bind_it),
    },
    Broken {
        of: "AttachGlobalSymbol",
        mistake: "makes names of what it counts from run to run",
        why: &[Why::NotDeterministic],
        make: || symbols(|_, count| format!("f{count}")),
    },
    Broken {
        of: "AttachGlobalSymbol",
        mistake: "adds to the names that are there",
        why: &[Why::NotIdempotent],
        make: || symbols(|old, _| format!("{old}_")),
    },
];

fn take_a_parameter() -> Arc<dyn Pass> {
    Arc::new(ModulePass::new("BindParams", 0, |module, _| {
        let main = module.find("main").expect("a program has a main");
        let (function, _) = module.get_mut(main).expect("it was just found");
        let mut params = function.body.params().to_vec();
        params.pop();
        function.body.set_params(params);
        Ok(())
    }))
}

/// Returns a pass that replaces the last parameter of `@main` by a constant, wherever it is used.
fn bind_the_last(literal: Literal) -> Arc<dyn Pass> {
    Arc::new(ModulePass::new("BindParams", 0, move |module, _| {
        let main = module.find("main").expect("a program has a main");
        let (function, cx) = module.get_mut(main).expect("it was just found");
        let mut editor = anfora::ir::Editor::new(cx, &mut function.body);
        let last = *editor.body.params().last().expect("@main has parameters");
        let literal = editor.literal(literal.clone());
        substitute(&mut editor, Link::Root, &[(last, literal)]).map_err(|e| PassError::new(e.to_string()))?;
        // The type of the literal may be more specific than that of the parameter.
        let types: Vec<TypeId> = function.body.params().iter().map(|p| function.body.ty(p.expr())).collect();
        let signature = signature_type(cx, &types, function.body.type_of(function.body.root()));
        let global = function.global().expect("a function of a module has a name");
        module.set_signature(global, signature);
        Ok(())
    }))
}

/// Returns a pass that edits the first function whose parameters name a symbol, given the first of
/// its symbols.
fn first_symbol(edit: fn(&mut Module, FunctionKey, SymbolId) -> Result<(), PassError>) -> Arc<dyn Pass> {
    Arc::new(ModulePass::new("BindSymbols", 0, move |module: &mut Module, _| {
        let types = &module.cx.types;
        let found = module.functions().filter(|(_, f)| f.is_definition()).find_map(|(key, function)| {
            let mut symbol = None;
            for param in function.body.params() {
                types.for_each_binding_symbol(function.body.ty(param.expr()), |s| symbol = symbol.or(Some(s)));
            }
            Some((key, symbol?))
        });
        found.map_or(Ok(()), |(key, symbol)| edit(module, key, symbol))
    }))
}

fn retype_the_params(module: &mut Module, key: FunctionKey, symbol: SymbolId) -> Result<(), PassError> {
    let (function, cx) = module.get_mut(key).expect("it was just found");
    let seven = cx.types.dims.constant(7);
    for i in 0..function.body.params().len() {
        let param = function.body.params()[i].expr();
        let ty = cx.types.substitute(function.body.ty(param), |s| (s == symbol).then_some(seven));
        function.body.set_type(param, ty);
    }
    Ok(())
}

/// Binds the symbol to an extent that no argument of a program has.
fn bind_it(module: &mut Module, key: FunctionKey, symbol: SymbolId) -> Result<(), PassError> {
    let name = module.name(key).to_string();
    bind_symbols(module, Some(&name), &[(SymbolRef::Symbol(symbol), 7)])?;
    Ok(())
}

/// Returns a pass that sets the global symbol of `@main` to the result of `name` for the old symbol
/// and a counter.
fn symbols(name: fn(&str, u64) -> String) -> Arc<dyn Pass> {
    let count = AtomicU64::new(0);
    Arc::new(ModulePass::new("AttachGlobalSymbol", 0, move |module: &mut Module, _| {
        for key in module.order().to_vec() {
            let own = module.name(key).to_string();
            let (function, cx) = module.get_mut(key).expect("it is in the order");
            let old = function.global_symbol(cx).map_or(own, |symbol| cx.names.get(symbol).to_string());
            let symbol = cx.str_attr(&name(&old, count.fetch_add(1, Ordering::Relaxed)));
            function.attrs = cx.with_attr(function.attrs, "global_symbol", Some(symbol));
        }
        Ok(())
    }))
}
