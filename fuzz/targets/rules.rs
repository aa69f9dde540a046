//! Rules in text, one on each line: `left => right`. Rules without mistakes are applied to a
//! program, which stays well-formed.

#![no_main]

use std::sync::{Arc, LazyLock};

use anfora::ir::{Editor, Module, OpRegistry, Source, parse_module, verify_module};
use anfora::visit::pattern::{PatternOptions, RuleSet, rewrite_rules};
use libfuzzer_sys::fuzz_target;

const PROGRAM: &str = r#"
def @main(%x: Tensor[(2, 3), float32], %n: Tensor[(n, 2), float32], %i: Tensor[(2, 3), int32], %c: bool) -> Any {
  let %one = multiply(%x, 1f);
  let %sum = add(%one, dense<Tensor[(2, 3), float32]>[0]);
  let %twice = add(%sum, %sum);
  let %pair = (%twice, %i);
  let %first = %pair.0;
  let %back = permute_dims(permute_dims(%first, axes=[1, 0]), axes=[1, 0]);
  dataflow {
    let %total = sum(negative(%back), axis=[1], keepdims=true);
    let %whole = add(multiply(%i, 2), multiply(%i, 3));
    output(%total, %whole);
  }
  let %f = fn (%v: Tensor[(2, 3), float32]) { exp(log(%v)) };
  let %b = if (%c) { let %t = tanh(%back); %f(%t) } else { clip(%back, none, none) };
  let %m = matmul(%n, %b);
  let %r = reshape(%m, shape_of(%m));
  (%total, %whole, %b, %r, @helper(%whole))
}
def private @helper(%i: Tensor[(2, 3), int32]) -> Tensor[(2, 3), int32] { maximum(%i, subtract(%i, %i)) }
"#;

static REGISTRY: LazyLock<Arc<OpRegistry>> = LazyLock::new(anfora::ops::standard);
static MODULE: LazyLock<Module> = LazyLock::new(|| {
    parse_module(Source::new("program", PROGRAM), REGISTRY.clone()).unwrap_or_else(|errors| panic!("{}", errors[0]))
});

fuzz_target!(|text: &str| {
    let mut rules = RuleSet::new();
    for line in text.lines().take(16) {
        let (left, right) = line.split_once("=>").unwrap_or((line, "%x"));
        rules = rules.rule(left.trim(), right.trim());
    }
    let mut module = MODULE.clone();
    for name in ["main", "helper"] {
        let Some(key) = module.find(name) else { continue };
        let Some((function, tables)) = module.get_mut(key) else { continue };
        let mut editor = Editor::new(tables, &mut function.body);
        match rewrite_rules(&mut editor, &rules, &PatternOptions::default()) {
            Ok(_) => {}
            Err(error) => {
                let _ = error.to_string();
                return;
            }
        }
    }
    if let Err(errors) = verify_module(&module) {
        panic!("{}\n{module}", errors[0]);
    }
});
