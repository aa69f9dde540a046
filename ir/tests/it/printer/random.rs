//! Random programs with opaque calls and metadata, in A-normal form and in graph form.

use std::sync::Arc;

use anfora_ir::{Editor, EntityId, Expr, ExprId, Module, OpRegistry, Source, first_difference, parse_module};
use anfora_testing::programs::{Random, Vocabulary};
use fastrand::Rng;
use proptest::prelude::*;

fn operators() -> Arc<OpRegistry> {
    let mut operators = OpRegistry::clone(&anfora_ops::standard());
    operators.declare_opaque("onnx").unwrap();
    Arc::new(operators)
}

/// Builds the program, makes some of its calls opaque, and adds metadata to some bindings and
/// calls.
fn decorated(random: &Random) -> Module {
    let mut module = random.build(operators()).unwrap();
    let mut draw = Rng::with_seed(random.seed);
    let main = module.find("main").unwrap();
    let (function, cx) = module.get_mut(main).unwrap();
    let one = cx.int_attr(1);
    let (note, none) = (cx.named_attrs(&[("note", one)]), cx.attrs.empty());
    let opaque = cx.ops.resolve("onnx.Foo").unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    for id in (0..editor.body.len()).map(ExprId::from_index) {
        match editor.body.expr(id) {
            Expr::Let { var, value, body, flags } => {
                if matches!(editor.body.expr(value), Expr::CallOp { .. }) && draw.usize(..8) == 0 {
                    let (operands, ty) = (editor.body.operands_of(value).to_vec(), editor.body.type_of(value));
                    let call = editor.call_opaque(opaque, &operands, none, ty);
                    editor.body.set_expr(id, Expr::Let { var, value: call, body, flags });
                }
                if draw.usize(..8) == 0 {
                    editor.body.set_meta(var.expr(), Some(note));
                }
            }
            Expr::CallOp { .. } if draw.usize(..8) == 0 => editor.body.set_meta(id, Some(note)),
            _ => {}
        }
    }
    module
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_reads_back_as_itself(random in Random::strategy(Vocabulary::Arithmetic, 0..120)) {
        let module = decorated(&random);
        let text = module.to_text();
        let parsed = parse_module(Source::new("printed.anf", text.clone()), operators());
        let parsed = parsed.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
        prop_assert_eq!(parsed.to_text(), &*text);
        if let Some(difference) = first_difference(&module, &parsed) {
            prop_assert!(false, "{}\n{}", difference, text);
        }
    }
}
