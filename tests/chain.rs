//! The benchmark program is the one that every compared system gets, and passes reduce it as its
//! specification predicts.

use anfora::ir::{Counts, Editor, Expr, ExprId, Module, work};
use anfora::manager::{Pass, PassContext, parse_pipeline};
use anfora::visit::pattern::{PatternOptions, RuleSet, rewrite_rules};
use anfora::visit::{Binding, chain, rules};
use anfora_testing::programs::Shape;

fn program(n: usize) -> Module {
    let shape: Shape = "chain".parse().expect("a shape");
    shape.build(n, 0).expect("the chain is well-typed")
}

/// Returns the program in the neutral form of its specification: a line `OP LHS RHS` per binding,
/// with `%K` for binding K, `x`, and `cJ` for constant J.
fn neutral(module: &Module) -> String {
    let body = &module.get(module.find("main").expect("a main")).expect("it is defined").body;
    let mut text = String::new();
    let mut numbers = std::collections::HashMap::<ExprId, usize>::new();
    for (i, Binding { var, value, .. }) in chain(body, body.root()).enumerate() {
        let Expr::CallOp { op, .. } = body.expr(value) else { panic!("binding {i} is no call of an operator") };
        let op = match module.cx.ops.get(op).name.as_ref() {
            "add" => "add",
            "multiply" => "mul",
            "subtract" => "sub",
            other => panic!("binding {i} calls `{other}`"),
        };
        text.push_str(op);
        for &operand in body.operands_of(value) {
            let operand = match (body.as_literal(operand), numbers.get(&operand)) {
                (Some(l), _) => {
                    let element = module.cx.literals.get(l).as_splat().expect("constants are splats");
                    let value = f32::from_le_bytes(element.try_into().expect("of float32"));
                    format!(" c{}", (value * 2048.0 + 1023.0) / 2.0)
                }
                (None, Some(k)) => format!(" %{k}"),
                (None, None) => " x".to_string(),
            };
            text.push_str(&operand);
        }
        text.push('\n');
        numbers.insert(var.expr(), i);
    }
    let tail = numbers[&body.tail(body.root())];
    text.push_str(&format!("ret %{tail}\n"));
    text
}

/// Returns the 64-bit FNV-1a hash of a text.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[test]
fn the_chain_is_the_one_that_is_specified() {
    // Digests of the output of the specification's own generator.
    assert_eq!(digest(&neutral(&program(1_000))), 0xafaf_150c_c53d_5f89);
    assert_eq!(digest(&neutral(&program(100_000))), 0x8759_5e30_5b95_44de);
}

/// The numbers of bindings of the program. Those above 100,000, or above `ANFORA_BINDINGS`, are
/// left out.
const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Checks the number of bindings that a pipeline leaves of the program of each size.
#[track_caller]
fn leaves(pipeline: &str, predicted: [usize; 4]) {
    let registry = anfora::passes::registry();
    let passes = parse_pipeline(&registry, pipeline).expect("registered passes");
    let context = PassContext::with_registry(registry.clone());
    let most = std::env::var("ANFORA_BINDINGS").map_or(100_000, |n| n.parse().expect("ANFORA_BINDINGS is a number"));
    for (n, expected) in SIZES.into_iter().zip(predicted).filter(|&(n, _)| n <= most) {
        let mut module = program(n);
        assert_eq!(Counts::of_module(&module).bindings, n);
        passes.apply(&mut module, &context).expect("the passes succeed");
        assert_eq!(Counts::of_module(&module).bindings, expected, "{pipeline} on {n}");
    }
}

#[test]
fn dead_code_is_what_is_predicted() {
    leaves("DeadCodeElimination", [808, 7_963, 79_802, 798_911]);
}

#[test]
fn folding_leaves_what_is_predicted() {
    leaves("FoldConstant,DeadCodeElimination", [704, 6_969, 69_878, 699_013]);
}

#[test]
fn folding_and_merging_leave_what_is_predicted() {
    leaves("FoldConstant,EliminateCommonSubexpr,DeadCodeElimination", [476, 4_956, 49_835, 499_491]);
}

#[test]
fn a_second_run_changes_nothing() {
    let registry = anfora::passes::registry();
    let context = PassContext::with_registry(registry.clone());
    let passes = "FoldConstant,EliminateCommonSubexpr,CanonicalizeBindings,DeadCodeElimination";
    let passes = parse_pipeline(&registry, passes).expect("registered passes");
    let mut module = program(10_000);
    assert!(passes.apply(&mut module, &context).expect("the passes succeed").is_changed());
    assert!(!passes.apply(&mut module, &context).expect("the passes succeed").is_changed());
}

/// Returns the number of accesses of a search for matches of rules in the program, which has none.
fn counted(rules: &RuleSet) -> u64 {
    let mut module = program(10_000);
    let key = module.find("main").expect("a main");
    let (function, cx) = module.get_mut(key).expect("it is defined");
    let before = work::count();
    let outcome = rewrite_rules(&mut Editor::new(cx, &mut function.body), rules, &PatternOptions::default());
    assert_eq!(outcome.expect("the rules are right").rewrites, 0);
    work::count() - before
}

#[test]
fn sixty_more_rules_cost_at_most_half_as_much_again_as_one() {
    // The program has the operators of this rule, so a search takes place.
    let one = || rules!["multiply(%x, %y)" => "%x", if |_| false];
    // All rules begin with the operators that the program consists of.
    let mut sixty = one();
    for op in ["add", "multiply", "subtract"] {
        for number in 0..5 {
            sixty = sixty
                .rule(&format!("{op}(%x, {number}f64)"), "%x")
                .rule(&format!("{op}(%x, tanh(%y))"), "%x")
                .rule(&format!("{op}(exp(%x), {number}i8)"), "%x")
                .rule(&format!("{op}(negative(%x), {op}(%y, {number}f64))"), "%x");
        }
    }
    assert_eq!(sixty.names().len(), 61);
    let (few, many) = (counted(&one()), counted(&sixty));
    assert!(few > 10_000, "accesses are counted: {few}");
    assert!(2 * many <= 3 * few, "{many} accesses for 61 rules, {few} for one");
}
