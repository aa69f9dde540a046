//! Tests of call graphs against their definition.

use anfora_ir::{Components, FunctionKey, Module};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::CallGraph;
use proptest::prelude::*;

use crate::programs;
use crate::programs::parse;

fn names(module: &Module, keys: impl Iterator<Item = FunctionKey>) -> String {
    keys.map(|k| module.name(k)).collect::<Vec<_>>().join(" ")
}

#[test]
fn functions_that_are_called_or_named_otherwise() {
    let module = parse(
        "declare @external(%x: float32) -> float32;
        def @leaf(%x: float32) -> float32 { negative(%x) }
        def @other(%x: float32) -> float32 { @external(%x) }
        def @attr(%x: float32) -> float32 { %x }
        def @inner(%x: float32) -> float32 { %x }
        def @main(%x: float32, note = [@attr, fn(%p: float32) -> float32 { @inner(%p) }]) -> float32 {
            let %value = @leaf;
            let %f = fn(%p: float32) -> float32 { @other(%p) };
            let %y = @leaf(@leaf(%x));
            let %z = %f(%y);
            %z
        }",
    );
    let graph = CallGraph::of(&module);
    let key = |name| module.find(name).unwrap();
    assert_eq!(names(&module, graph.callees(key("other"))), "external");
    assert_eq!(names(&module, graph.callees(key("leaf"))), "");
    assert_eq!(names(&module, graph.callees(key("main"))), "attr inner leaf other");
    assert_eq!(names(&module, graph.callers(key("leaf"))), "main");
    assert_eq!(names(&module, graph.callees_first()), "external leaf other attr inner main");
    assert_eq!(names(&module, graph.reachable([key("other")]).into_iter()), "external other");
    assert!(!graph.is_recursive(key("main")));
}

#[test]
fn a_name_of_what_is_not_there_resolves_to_nothing() {
    let mut module = parse(
        "def @main(%x: float32) -> float32 { let %a = @gone(%x); %a }
        def @gone(%x: float32) -> float32 { %x }",
    );
    let gone = module.find("gone").unwrap();
    module.remove(&[gone]);
    let graph = CallGraph::of(&module);
    assert_eq!(graph.callees(module.find("main").unwrap()).count(), 0);
    assert_eq!((graph.callers(gone).count(), graph.component(gone), graph.is_recursive(gone)), (0, None, false));
    assert!(graph.reachable([gone]).is_empty());
}

#[test]
fn only_what_can_be_reached_in_a_body_counts() {
    let mut module = parse(
        "def @f(%x: float32) -> float32 { %x }
        def @main(%x: float32) -> float32 { let %a = @f(%x); %x }",
    );
    let main = module.find("main").unwrap();
    let (function, _) = module.get_mut(main).unwrap();
    let x = function.body.params()[0].expr();
    function.body.set_root(x);
    assert_eq!(CallGraph::of(&module).callees(main).count(), 0);
}

#[test]
fn cycles_are_components() {
    let module = parse(
        "def @a(%x: float32) -> float32 { @b(%x) }
        def @b(%x: float32) -> float32 { add(@c(%x), @d(%x)) }
        def @c(%x: float32) -> float32 { @b(%x) }
        def @d(%x: float32) -> float32 { @d(%x) }",
    );
    let graph = CallGraph::of(&module);
    let components: Vec<String> = graph.components().map(|c| names(&module, c)).collect();
    assert_eq!(components, ["d", "b c", "a"]);
    let recursive = module.order().iter().copied().filter(|&k| graph.is_recursive(k));
    assert_eq!(names(&module, recursive), "b c d");
    assert_eq!(names(&module, graph.callees_first().rev()), "a c b d");
}

/// Returns a module of `n` functions with the given calls.
fn module(n: usize, calls: &[(u8, u8)]) -> Module {
    let mut text = String::new();
    for i in 0..n {
        text += &format!("def @f{i}(%x: float32) -> float32 {{ ");
        for (j, _) in calls.iter().filter(|c| c.0 as usize % n == i).map(|c| (c.1 as usize % n, ())) {
            text += &format!("let %x = @f{j}(%x); ");
        }
        text += "%x }\n";
    }
    parse(&text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn components_are_what_can_reach_each_other(n in 1usize..20, calls in prop::collection::vec(any::<(u8, u8)>(), 0..40)) {
        let module = module(n, &calls);
        let graph = CallGraph::of(&module);
        let keys = module.order();
        let mut reaches = vec![vec![false; n]; n];
        for &(i, j) in &calls {
            reaches[i as usize % n][j as usize % n] = true;
        }
        for (i, row) in reaches.iter().enumerate() {
            let mut callees: Vec<_> = graph.callees(keys[i]).map(|k| keys.iter().position(|&o| o == k).unwrap()).collect();
            callees.sort_unstable();
            prop_assert_eq!(callees, (0..n).filter(|&j| row[j]).collect::<Vec<_>>());
            let callers: Vec<_> = graph.callers(keys[i]).collect();
            prop_assert_eq!(callers, (0..n).filter(|&j| reaches[j][i]).map(|j| keys[j]).collect::<Vec<_>>());
        }
        for k in 0..n {
            for i in 0..n {
                for j in 0..n {
                    reaches[i][j] |= reaches[i][k] && reaches[k][j];
                }
            }
        }
        let mut seen = 0;
        for (number, component) in graph.components().enumerate() {
            seen += component.len();
            for key in component {
                prop_assert_eq!(graph.component(key), Some(number));
            }
        }
        prop_assert_eq!(seen, n);
        for i in 0..n {
            prop_assert_eq!(graph.is_recursive(keys[i]), reaches[i][i]);
            let reached: Vec<_> = (0..n).filter(|&j| i == j || reaches[i][j]).map(|j| keys[j]).collect();
            prop_assert_eq!(graph.reachable([keys[i]]), reached);
            for j in 0..n {
                let (a, b) = (graph.component(keys[i]), graph.component(keys[j]));
                prop_assert_eq!(a == b, i == j || reaches[i][j] && reaches[j][i]);
                prop_assert!(!reaches[i][j] || a >= b);
            }
        }
    }
}

#[test]
fn long_chains_and_cycles_of_calls_on_a_small_stack() {
    let n = depth(5_000) as u32;
    on_small_stack(move || {
        let next: Vec<u32> = (1..=n).collect();
        let chain = Components::of(n as usize, |v| if v + 1 < n { &next[v as usize..][..1] } else { &[] });
        assert_eq!((chain.len(), chain.component(0)), (n as usize, n as usize - 1));
        let next: Vec<u32> = (1..=n).map(|v| v % n).collect();
        let cycle = Components::of(n as usize, |v| &next[v as usize..][..1]);
        assert!(cycle.len() == 1 && cycle.is_cyclic(n / 2));
    });
    on_small_stack(|| {
        let n = 20_000;
        let calls: String =
            (0..n).map(|i| format!("def @f{i}(%x: float32) -> float32 {{ @f{}(%x) }}\n", (i + 1) % n)).collect();
        let module = parse(&calls);
        let graph = CallGraph::of(&module);
        assert_eq!(graph.components().len(), 1);
        assert_eq!(graph.reachable([module.order()[7]]).len(), n);
    });
}

#[test]
fn deep_bodies() {
    let n = depth(5_000);
    for shape in programs::SHAPES {
        on_small_stack(move || {
            let mut module = programs::deep(shape, n);
            let mut f = anfora_ir::FunctionBuilder::new(&mut module, "other");
            let float = f.cx().types.scalar(anfora_ir::DType::Float32);
            let x = f.param("x", float);
            f.finish(x).unwrap();
            let main = module.order()[0];
            let global = module.cx.global("other");
            let (function, cx) = module.get_mut(main).unwrap();
            let ty = cx.globals.get(global).signature.unwrap();
            let other = function.body.global(global, ty);
            // Replaces the operand of the innermost `negative`.
            let call = anfora_visit::program_order(&function.body, function.body.root())
                .find(|&id| function.body.operands_of(id).len() == 1);
            let list = function.body.expr(call.unwrap()).operand_list().unwrap();
            function.body.set_operand(list, 0, other);
            let graph = CallGraph::of(&module);
            assert_eq!(graph.callees(main).collect::<Vec<_>>(), [module.order()[1]], "{shape:?}");
        });
    }
}
