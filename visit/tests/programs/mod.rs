//! A few operators, and programs of every shape over them, for the tests of this crate.

#![allow(dead_code)]

use std::sync::Arc;

use anfora_ir::{
    Arity, Body, DType, Editor, Expr, ExprId, FunctionBuilder, FunctionKey, FusionPattern, Literal, Module, OpDef,
    OpRegistry, Source, TypeRule, VarId, parse_module, verify_module,
};
use anfora_testing::programs::{Random, Vocabulary};
use anfora_visit::{Link, program_order};
use proptest::prelude::Strategy;

fn row(name: &'static str, operands: usize, infer: TypeRule) -> OpDef {
    OpDef::new(name, "For tests.", Arity::exactly(operands), infer).fusion(FusionPattern::ElemWise)
}

/// Returns a registry in which `add`, `multiply` and `negative` have the type of their first
/// operand, and `less` is a boolean.
pub(crate) fn registry() -> Arc<OpRegistry> {
    let mut registry = OpRegistry::new();
    for (name, operands) in [("add", 2), ("multiply", 2), ("negative", 1)] {
        registry.register(row(name, operands, |call| Ok(call.ty(0)))).unwrap();
    }
    registry.register(row("less", 2, |call| Ok(call.cx.types.scalar(DType::Bool)))).unwrap();
    Arc::new(registry)
}

/// Returns the module of a text.
pub(crate) fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), registry())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

/// Returns the key of the first function.
pub(crate) fn first(module: &Module) -> FunctionKey {
    module.order()[0]
}

/// Returns the body of the first function.
pub(crate) fn body(module: &Module) -> &Body {
    &module.get(first(module)).unwrap().body
}

/// Returns the links of a node, in the order in which their targets are evaluated.
pub(crate) fn links_of(body: &Body, id: ExprId) -> Vec<Link> {
    match body.expr(id) {
        Expr::Let { .. } => vec![Link::Value(id), Link::Rest(id)],
        Expr::If { .. } => vec![Link::Cond(id), Link::Then(id), Link::Else(id)],
        Expr::Lambda { .. } => vec![Link::Lambda(id)],
        Expr::Proj { .. } => vec![Link::Operand(id, 0)],
        _ => (0..body.operands_of(id).len() as u32).map(|i| Link::Operand(id, i)).collect(),
    }
}

/// Returns all links of a body with their targets, starting with the body's own.
pub(crate) fn all_links(body: &Body) -> Vec<(Link, ExprId)> {
    let nodes = program_order(body, body.root());
    let links = std::iter::once(Link::Root).chain(nodes.flat_map(|id| links_of(body, id)));
    links.map(|link| (link, link.target(body))).collect()
}

/// Edits the first function of a text, and returns the text of the module, or "unchanged" if
/// nothing was written.
pub(crate) fn edited(text: &str, edit: impl FnOnce(&mut Editor<'_>)) -> String {
    let mut module = parse(text);
    if !self::edit(&mut module, edit) {
        return "unchanged\n".to_string();
    }
    if let Err(errors) = verify_module(&module) {
        panic!("{errors:?}\n{module}");
    }
    // The type of a scalar can be written in two ways.
    module.to_string().replace("Tensor[(), float32]", "float32").replace("Tensor[(), bool]", "bool")
}

/// Returns the variable with a printed name; the last one if there are several.
pub(crate) fn var(editor: &Editor<'_>, name: &str) -> VarId {
    let body = &editor.body;
    (0..body.len())
        .rev()
        .filter_map(|i| body.as_var(anfora_ir::EntityId::from_index(i)))
        .find(|&v| body.var_name(v).is_some_and(|n| editor.cx.names.get(n) == name))
        .unwrap_or_else(|| panic!("no variable %{name}"))
}

/// Returns random programs of every construct.
pub(crate) fn random() -> impl Strategy<Value = Random> {
    Random::strategy(Vocabulary::Arithmetic, 0..60)
}

/// A shape of program.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// `let %a = add(%x, %x); let %a = add(%a, %x); …` in a dataflow region.
    Chain,
    /// An If in the first branch of an If in the first branch …
    NestedIf,
    /// A `fn` that binds a `fn` that binds …
    NestedFn,
    /// `negative(negative(…))`
    NestedCall,
    /// A Let in the value of a Let in the value …
    LetInValue,
    /// An If in the value of a Let in the first branch …
    IfInValue,
    /// `((%x, %x), …)`; each tuple is twice a field of the next.
    Diamonds,
}

/// Every shape.
pub(crate) const SHAPES: [Shape; 7] = [
    Shape::Chain,
    Shape::NestedIf,
    Shape::NestedFn,
    Shape::NestedCall,
    Shape::LetInValue,
    Shape::IfInValue,
    Shape::Diamonds,
];

/// Returns `@main(%x: float32, %c: bool)` of a shape, of length or depth `n`. The innermost
/// expression is `negative(%x)`.
pub(crate) fn deep(shape: Shape, n: usize) -> Module {
    let mut module = Module::new(registry());
    let float = module.cx.types.scalar(DType::Float32);
    let flag = module.cx.types.scalar(DType::Bool);
    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", float);
    let c = f.param("c", flag);
    let innermost = |f: &mut FunctionBuilder<'_>| f.call_op("negative", &[x], &[]).unwrap();
    let tail = match shape {
        Shape::Chain => {
            f.begin_dataflow();
            let mut last = innermost(&mut f);
            last = f.bind("a", last);
            for _ in 0..n {
                let sum = f.call_op("add", &[last, x], &[]).unwrap();
                last = f.bind("a", sum);
            }
            f.end_dataflow(&[last]);
            last
        }
        Shape::NestedIf | Shape::IfInValue => {
            for _ in 0..n {
                f.open_block();
            }
            let mut at = innermost(&mut f);
            for _ in 0..n {
                let then_block = f.close_block(at).unwrap();
                at = f.if_(c, then_block, x).unwrap();
                if shape == Shape::IfInValue {
                    at = f.bind("v", at);
                }
            }
            at
        }
        Shape::NestedFn => {
            for _ in 0..n {
                f.open_lambda(&[("p", float)], Some(float), &[]);
            }
            let mut at = innermost(&mut f);
            for _ in 0..n {
                let function = f.close_lambda(at).unwrap();
                let function = f.bind("f", function);
                at = f.call(function, &[x]).unwrap();
            }
            at
        }
        Shape::NestedCall => {
            let mut at = innermost(&mut f);
            for _ in 0..n {
                at = f.call_op("negative", &[at], &[]).unwrap();
            }
            at
        }
        Shape::LetInValue => {
            for _ in 0..n {
                f.open_block();
            }
            let mut at = innermost(&mut f);
            at = f.bind("v", at);
            for _ in 0..n {
                let block = f.close_block(at).unwrap();
                at = f.bind("v", block);
            }
            at
        }
        Shape::Diamonds => {
            let mut at = innermost(&mut f);
            for _ in 0..n {
                at = f.call_op("add", &[at, at], &[]).unwrap();
            }
            at
        }
    };
    f.finish(tail).unwrap();
    module
}

/// Returns a scalar literal, as an atom.
pub(crate) fn float(editor: &mut Editor<'_>, value: f32) -> ExprId {
    editor.literal(Literal::scalar(value))
}

/// Edits the body of the first function with a journal. Returns true if anything was written.
pub(crate) fn edit(module: &mut Module, edit: impl FnOnce(&mut Editor<'_>)) -> bool {
    let key = first(module);
    let (function, cx) = module.get_mut(key).unwrap();
    function.body.begin_journal();
    edit(&mut Editor::new(cx, &mut function.body));
    function.body.commit_journal()
}
