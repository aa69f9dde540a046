//! The analyses of `visit` and `ir` are plain functions, and their results are kept from one pass
//! to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anfora::ir::{Body, Module, Purity, Source, parse_module};
use anfora::manager::{Analyses, Declare, FunctionPass, ModulePass, Pass, PassContext, PassError, Sequential};
use anfora::visit::{Blocks, CallGraph, DefUse, Liveness, PostDominators};

const TEXT: &str = "
def @twice(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
  let %y = add(%x, %x);
  %y
}

def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
  let %a = @twice(%x);
  let %b = negative(%a);
  %b
}
";

fn module() -> Module {
    parse_module(Source::new("test.anf", TEXT), anfora::ops::standard()).expect("it is well-formed")
}

fn right(it_is: bool) -> Result<(), PassError> {
    if it_is { Ok(()) } else { Err("what was kept is not what is found".into()) }
}

#[test]
fn analyses_of_bodies_and_of_the_module_are_kept() {
    let ask = FunctionPass::new("ask", 0, |func, _, cx| {
        let analyses = cx.analyses();
        let body = &func.function.body;
        right(*analyses.get(func, Liveness::of) == Liveness::of(body))?;
        right(*analyses.get(func, Blocks::of) == Blocks::of(body))?;
        right(*analyses.get(func, PostDominators::of) == PostDominators::of(body))?;
        right(analyses.get(func, DefUse::new).use_count(body.root()) == DefUse::new(body).use_count(body.root()))?;
        right(Arc::ptr_eq(&analyses.get(func, Liveness::of), &analyses.get(func, Liveness::of)))
    });
    let ask_module = ModulePass::new("ask_module", 0, |module, cx| {
        let graph = cx.analyses().of_module(module, CallGraph::of);
        right(*graph == CallGraph::of(module) && graph.callees_first().count() == 2)?;
        right(*cx.analyses().of_module(module, Purity::of_module) == Purity::of_module(module))
    });
    let registry = anfora::passes::registry();
    let passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(ask),
        Arc::new(ask_module),
        registry.make("ToGraphNormalForm").expect("it is registered"),
        registry.make("ToANormalForm").expect("it is registered"),
    ];
    let twice: Vec<Arc<dyn Pass>> = passes.iter().chain(&passes).cloned().collect();
    let cx = PassContext::with_registry(registry);
    Sequential::new(twice).expect("it does not nest").apply(&mut module(), &cx).expect("all is right");
}

/// The pass between the two requests changes only attributes of functions, and no call.
#[test]
fn a_pass_may_preserve_the_call_graph() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let ask: Arc<dyn Pass> = Arc::new(ModulePass::new("ask", 0, move |module, cx| {
        let counted = Arc::clone(&counted);
        cx.analyses().of_module(module, move |module: &Module| {
            counted.fetch_add(1, Ordering::SeqCst);
            CallGraph::of(module)
        });
        Ok(())
    }));
    let note = FunctionPass::new("note", 0, |func, _, _| {
        let value = func.cx.int_attr(1);
        func.function.meta = func.cx.with_attr(func.function.meta, "noted", Some(value));
        Ok(())
    });
    let note: Arc<dyn Pass> = Arc::new(note.preserving::<CallGraph>());
    let passes = Sequential::new(vec![ask.clone(), note, ask]).expect("it does not nest");
    passes.apply(&mut module(), &PassContext::new()).expect("the call graph is the same");
    // Builds with debug assertions compute the call graph again, to check that it is the same.
    assert_eq!(runs.load(Ordering::SeqCst), 1 + usize::from(cfg!(debug_assertions)));
}

#[test]
fn results_serve_outside_of_passes_too() {
    let module = module();
    let analyses = Analyses::new();
    let key = module.find("main").expect("it is there");
    let nodes = |body: &Body| body.len();
    let found = analyses.of_function(&module, key, nodes).expect("it is there");
    assert_eq!(*found, module.get(key).expect("it is there").body.len());
}
