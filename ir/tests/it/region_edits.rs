//! Edits of dataflow regions. `passes/tests/it/dataflow_blocks.rs` has the cases of passes.

use anfora_ir::{Diagnostics, Expr, Module, Source, edit_regions, parse_module, verify_module};

use crate::tiny::registry;

const TWO: &str = "def @main(%x: float32) {
  dataflow {
    let %a = negative(%x);
    let %b = negative(%a);
    output(%b)
  }
  let %c = negative(%b);
  dataflow {
    let %d = negative(%c);
    output(%d)
  }
  %d
}
";

fn parsed() -> Module {
    parse_module(Source::new("text", TWO), registry()).unwrap()
}

/// Edits the regions of @main, with the names of the outputs.
fn edited(
    module: &mut Module,
    mut edit: impl FnMut(&mut anfora_ir::Function, Vec<String>) -> Result<(), Diagnostics>,
) -> Result<(), Diagnostics> {
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    edit_regions(cx, function, |cx, region, outputs| {
        let names = outputs.iter().filter_map(|var| region.body.binding_name(cx, var.expr()));
        let names = names.map(str::to_string).collect();
        edit(region, names)
    })
}

#[test]
fn regions_come_in_order_and_stay_if_nothing_is_edited() {
    let mut module = parsed();
    let before = module.to_string();
    let mut seen = Vec::new();
    edited(&mut module, |region, outputs| {
        seen.push((region.body.params().len(), outputs));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [(1, vec!["b".to_string()]), (1, vec!["d".to_string()])]);
    assert_eq!(module.to_string(), before);
}

#[test]
fn an_edited_region_is_replaced() {
    let mut module = parsed();
    edited(&mut module, |region, outputs| {
        if outputs == ["b"] {
            // The first Let goes, and the second one uses its operand.
            let body = &mut region.body;
            let Expr::Let { body: rest, .. } = body.expr(body.root()) else { panic!("a Let") };
            let Expr::Let { value, .. } = body.expr(rest) else { panic!("a Let") };
            let operands = body.expr(value).operand_list().unwrap();
            body.set_operand(operands, 0, body.params()[0].expr());
            body.set_root(rest);
        }
        Ok(())
    })
    .unwrap();
    verify_module(&module).unwrap();
    let text = module.to_string();
    assert!(text.contains("let %b = negative(%x);") && !text.contains("%a"), "{text}");
}

#[test]
fn an_output_that_is_not_bound_is_an_error_with_the_place_of_the_region() {
    let mut module = parsed();
    let errors = edited(&mut module, |region, _| {
        let tail = region.body.tail(region.body.root());
        region.body.set_root(tail);
        Ok(())
    });
    let errors = errors.unwrap_err().into_vec();
    assert_eq!(errors[0].message, "the dataflow region that begins at %a does not bind its output %b any more");
    assert_eq!(errors[0].binding.as_deref(), Some("a"));
}
