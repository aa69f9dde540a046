//! Moving bindings outwards, and what is refused.

use anfora_ir::{
    Body, DType, Editor, EntityId, Expr, ExprId, FunctionBuilder, IdSet, Module, Purity, Source, VarId, parse_module,
    verify_module,
};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{Binding, HoistError, Hoister, Link, bound_variables, chain, hoist, splice_value, unlink_let};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::programs;
use crate::programs::{body, deep, first, var};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

fn verified(module: &Module) {
    if let Err(errors) = verify_module(module) {
        panic!("{errors:?}\n{module}");
    }
}

/// Moves variables of the first function; the text afterwards, or what was refused, where nothing is edited.
fn moved(
    text: &str,
    edit: impl FnOnce(&mut Hoister, &mut Editor<'_>) -> Result<(), HoistError>,
) -> Result<String, HoistError> {
    let mut module = parse(text);
    let purity = Purity::of_module(&module);
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    function.body.begin_journal();
    let mut editor = Editor::new(cx, &mut function.body);
    let mut hoister = Hoister::new(editor.cx, editor.body, &purity);
    let result = edit(&mut hoister, &mut editor);
    assert_eq!(function.body.is_edited(), result.is_ok());
    result?;
    verified(&module);
    Ok(module.to_string())
}

fn out(text: &str, name: &str) -> Result<String, HoistError> {
    moved(text, |hoister, editor| hoister.hoist(editor, var(editor, name)))
}

fn check(text: &str, name: &str, expected: Expect) {
    expected.assert_eq(&out(text, name).unwrap());
}

const X: &str = "%x: Tensor[(8,), float32], %c: bool";

#[test]
fn out_of_a_branch_with_what_it_needs() {
    check(
        &format!(
            "def @main({X}) {{
                let %before = exp(%x);
                let %r = if (%c) {{
                    dataflow {{ let %a = exp(%before); let %b = tanh(%x); let %d = add(%a, %b); output(%d) }}
                    let %e = multiply(%d, %x);
                    %e
                }} else {{ %x }};
                %r
            }}"
        ),
        "d",
        expect![[r#"
            def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
              let %before = exp(%x);
              let %a = exp(%before);
              let %b = tanh(%x);
              let %d = add(%a, %b);
              let %r = if (%c) {
                let %e = multiply(%d, %x);
                %e
              } else { %x };
              %r
            }
        "#]],
    );
    // In front of a tail, and out of the second branch.
    check(
        &format!(
            "def @main({X}) {{ let %a = exp(%x); if (%c) {{ %x }} else {{ let %b = exp(%a); let %d = exp(%b); %d }} }}"
        ),
        "d",
        expect![[r#"
            def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
              let %a = exp(%x);
              let %b = exp(%a);
              let %d = exp(%b);
              if (%c) { %x } else { %d }
            }
        "#]],
    );
}

#[test]
fn out_of_a_fn() {
    check(
        &format!(
            "def @main({X}) {{
                let %f = fn(%y: Tensor[(8,), float32]) {{
                    let %a = exp(%x);
                    let %g = fn(%z: Tensor[(8,), float32]) {{ add(%z, %a) }};
                    let %b = %g(%y);
                    %b
                }};
                let %r = %f(%x);
                %r
            }}"
        ),
        "g",
        expect![[r#"
            def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
              let %a = exp(%x);
              let %g = fn (%z: Tensor[(8,), float32]) { add(%z, %a) };
              let %f = fn (%y: Tensor[(8,), float32]) {
                let %b = %g(%y);
                %b
              };
              let %r = %f(%x);
              %r
            }
        "#]],
    );
}

#[test]
fn into_and_out_of_regions() {
    let text = format!(
        "def @main({X}) {{
            dataflow {{
                let %f = {{ let %a = exp(%x); let %b = exp(%a); %b }};
                let %g = tanh(%f);
                output(%g)
            }}
            %g
        }}"
    );
    check(
        &text,
        "b",
        expect![[r#"
        def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
          dataflow {
            let %a = exp(%x);
            let %b = exp(%a);
            let %f = %b;
            let %g = tanh(%f);
            output(%g);
          }
          %g
        }
    "#]],
    );
    let both = moved(&text, |hoister, editor| {
        hoister.hoist(editor, var(editor, "b"))?;
        hoister.hoist_from_region(editor, var(editor, "b"))
    });
    expect![[r#"
        def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
          let %a = exp(%x);
          let %b = exp(%a);
          dataflow {
            let %f = %b;
            let %g = tanh(%f);
            output(%g);
          }
          %g
        }
    "#]]
    .assert_eq(&both.unwrap());
    // All of a region; the next one begins where it did.
    let text = format!(
        "def @main({X}) {{
            dataflow {{ let %a = exp(%x); let %b = exp(%a); output(%b) }}
            dataflow {{ let %d = exp(%b); output(%d) }}
            %d
        }}"
    );
    let all = moved(&text, |hoister, editor| hoister.hoist_from_region(editor, var(editor, "b")));
    expect![[r#"
        def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
          let %a = exp(%x);
          let %b = exp(%a);
          dataflow {
            let %d = exp(%b);
            output(%d);
          }
          %d
        }
    "#]]
    .assert_eq(&all.unwrap());
    let none = moved(&text, |hoister, editor| {
        hoister.hoist_from_region(editor, var(editor, "a"))?;
        hoister.hoist_from_region(editor, var(editor, "b"))?;
        hoister.hoist_from_region(editor, var(editor, "d"))
    });
    assert!(!none.unwrap().contains("dataflow"));
}

#[test]
fn what_may_fail_leaves_only_where_it_is_always_evaluated() {
    let ints = "%i: Tensor[(8,), int32], %c: bool";
    let branch = format!(
        "def @main({ints}) {{ let %r = if (%c) {{ let %q = floor_divide(%i, %i); let %a = add(%q, %i); %a }} else {{ %i }}; %r }}"
    );
    assert_eq!(out(&branch, "a"), Err(HoistError::MayFail("q".to_string())));
    let value = format!("def @main({ints}) {{ let %r = {{ let %q = floor_divide(%i, %i); %q }}; %r }}");
    check(
        &value,
        "q",
        expect![[r#"
        def @main(%i: Tensor[(8,), int32], %c: Tensor[(), bool]) -> Tensor[(8,), int32] {
          let %q = floor_divide(%i, %i);
          let %r = %q;
          %r
        }
    "#]],
    );
    let call = format!(
        "def @main({ints}) {{ let %f = fn() {{ %i }}; let %r = if (%c) {{ let %q = %f(); %q }} else {{ %i }}; %r }}"
    );
    assert_eq!(out(&call, "q"), Err(HoistError::MayFail("q".to_string())));
    let within = format!(
        "def @main({ints}) {{
            let %r = if (%c) {{ let %n = if (%c) {{ let %q = floor_divide(%i, %i); %q }} else {{ %i }}; %n }} else {{ %i }};
            %r
        }}"
    );
    assert_eq!(out(&within, "n"), Err(HoistError::MayFail("n".to_string())));
}

#[test]
fn axes_that_are_not_known_may_be_out_of_range() {
    let branch = |sum: &str| {
        format!(
            "def @main(%x: Tensor[(4, 8), float32], %axes: Tensor[(2,), int64], %c: bool) {{
                let %r = if (%c) {{ let %s = {sum}; %s }} else {{ 0f }};
                %r
            }}"
        )
    };
    assert_eq!(out(&branch("sum(%x, %axes)"), "s"), Err(HoistError::MayFail("s".to_string())));
    for known in ["sum(%x)", "sum(%x, none)", "sum(%x, dense<Tensor[(2,), int64]>[0, 1])"] {
        let text = out(&branch(known), "s").unwrap();
        assert!(text.find("let %s") < text.find("let %r"), "{text}");
    }
}

#[test]
fn what_is_refused() {
    let name = |n: &str| n.to_string();
    let text = format!(
        "def @main({X}) {{ let %r = if (%c) {{ let %p = print(%x); let %a = (%p, %x); %a.1 }} else {{ %x }}; %r }}"
    );
    assert_eq!(out(&text, "a"), Err(HoistError::Impure(name("p"))));
    assert_eq!(out(&text, "r"), Err(HoistError::Outermost(name("r"))));
    assert_eq!(out(&text, "x"), Err(HoistError::NotBound(name("x"))));
    let region = moved(&text, |hoister, editor| hoister.hoist_from_region(editor, var(editor, "a")));
    assert_eq!(region, Err(HoistError::NotInRegion(name("a"))));

    let text =
        format!("def @main({X}) {{ let %f = fn(%y: Tensor[(8,), float32]) {{ let %a = exp(%y); %a }}; %f(%x) }}");
    assert_eq!(out(&text, "a"), Err(HoistError::NotVisible { binding: name("a"), needs: name("y") }));
    let text = "def @main(%x: float32) {
        let %f = fn(%y: float32) -> float32 { let %g = fn(%z: float32) -> float32 { %f(%z) }; %g(%y) };
        %f(%x)
    }";
    assert_eq!(out(text, "g"), Err(HoistError::NotVisible { binding: name("g"), needs: name("f") }));

    let text = "def @main(%x: Tensor[(4,), float32]) {
        let %f = fn(%y: Tensor[(k,), float32]) { let %z = zeros(shape=shape(k), dtype=float32); add(%z, %y) };
        %f(%x)
    }";
    assert_eq!(out(text, "z"), Err(HoistError::Symbol(name("z"))));

    let text = format!("def @main({X}) {{ let %r = ({{ let %a = exp(%x); %a }}, %x); %r }}");
    assert_eq!(out(&text, "a"), Err(HoistError::NotANormalForm(name("a"))));

    // An `if` in a `fn` is not evaluated in the region that the `fn` is in.
    let text = format!(
        "def @main({X}) {{
            dataflow {{
                let %f = fn() {{ let %i = if (%c) {{ %x }} else {{ %x }}; %i }};
                let %g = %f();
                output(%g)
            }}
            %g
        }}"
    );
    assert_eq!(out(&text, "i"), Err(HoistError::ControlFlow(name("i"))));
}

#[test]
fn a_symbol_goes_with_the_cast_that_binds_it() {
    let text = "def @main(%x: Tensor[?, float32]) {
        let %r = {
            let %m = match_cast(%x, to=Tensor[(q,), float32]);
            let %z = zeros(shape=shape(q), dtype=float32);
            let %s = add(%m, %z);
            %s
        };
        %r
    }";
    check(
        text,
        "z",
        expect![[r#"
        def @main(%x: Tensor[?, float32]) {
          let %m = match_cast(%x, to=Tensor[(q,), float32]);
          let %z = zeros(shape=shape(q));
          let %r = {
            let %s = add(%m, %z);
            %s
          };
          %r
        }
    "#]],
    );
}

#[test]
fn a_value_is_spliced_into_its_chain() {
    let mut module =
        parse(&format!("def @main({X}) {{ let %r = {{ let %a = exp(%x); exp(%a) }}; let %s = exp(%r); %s }}"));
    let key = first(&module);
    let body = &mut module.get_mut(key).unwrap().0.body;
    let link = splice_value(body, Link::Root);
    assert_eq!(splice_value(body, link), link);
    verified(&module);
    expect![[r#"
        def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) -> Tensor[(8,), float32] {
          let %a = exp(%x);
          let %r = exp(%a);
          let %s = exp(%r);
          %s
        }
    "#]]
    .assert_eq(&module.to_string());
}

#[test]
fn what_was_edited_in_between_is_refused_and_left_alone() {
    let text = format!(
        "def @main({X}) {{
            let %o = exp(%x);
            let %p = exp(%x);
            let %r = if (%c) {{
                let %a = exp(%x);
                let %b = tanh(%x);
                let %d = exp(%x);
                let %e = tanh(%d);
                %e
            }} else {{ %x }};
            let %s = {{ let %t = exp(%x); %t }};
            let %q = if (%c) {{ let %u = exp(%x); %u }} else {{ %x }};
            %q
        }}"
    );
    type Edit = fn(&mut Body, &dyn Fn(&str) -> Binding);
    let take_out: [(&str, &str, Edit); 8] = [
        // The one directly before, two before, and the one directly after.
        ("b", "directly before", |body, _| {
            unlink_let(body, Link::Then(first_if(body)));
        }),
        ("d", "two before", |body, _| {
            unlink_let(body, Link::Then(first_if(body)));
            unlink_let(body, Link::Then(first_if(body)));
        }),
        ("a", "directly after", |body, of| take_out_after(body, of("a"))),
        // Itself, what it needs, and what it would go in front of, or what is before that.
        ("e", "itself", |body, of| take_out_after(body, of("d"))),
        ("e", "what it needs", |body, of| take_out_after(body, of("b"))),
        ("a", "the goal", |body, of| take_out_after(body, of("p"))),
        ("a", "before the goal", |body, of| take_out_after(body, of("o"))),
        ("u", "the block", |body, of| Link::Value(of("q").id).set(body, body.params()[0].expr())),
    ];
    for (name, what, edit) in take_out {
        let mut module = parse(&text);
        let purity = Purity::of_module(&module);
        let key = first(&module);
        let (function, cx) = module.get_mut(key).unwrap();
        let mut editor = Editor::new(cx, &mut function.body);
        let vars: Vec<(String, Binding)> = (0..editor.body.len())
            .filter_map(|i| Binding::of(editor.body, EntityId::from_index(i)))
            .map(|b| (editor.cx.names.get(editor.body.var_name(b.var).unwrap()).to_string(), b))
            .collect();
        let of = |name: &str| vars.iter().find(|(n, _)| n == name).unwrap().1;
        let mut hoister = Hoister::new(editor.cx, editor.body, &purity);
        edit(editor.body, &of);
        editor.body.begin_journal();
        assert_eq!(hoister.hoist(&mut editor, of(name).var), Err(HoistError::Moved), "{name}: {what}");
        assert!(!editor.body.is_edited(), "{name}: {what}");
        // What has nothing to do with it goes.
        if !what.ends_with("the goal") {
            assert_eq!(hoister.hoist(&mut editor, of("t").var), Ok(()), "{name}: {what}");
        }
    }
}

fn take_out_after(body: &mut Body, before: Binding) {
    unlink_let(body, Link::Rest(before.id));
}

/// The If of the first Let that has one.
fn first_if(body: &Body) -> ExprId {
    let is_if = |id: &ExprId| matches!(body.expr(*id), Expr::If { .. });
    chain(body, body.root()).map(|b| b.value).find(is_if).unwrap()
}

#[test]
fn a_hoister_ends_with_the_generation_of_its_body() {
    let text = format!("def @main({X}) {{ let %r = if (%c) {{ let %a = exp(%x); %a }} else {{ %x }}; %r }}");
    let mut module = parse(&text);
    let purity = Purity::of_module(&module);
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    let mut hoister = Hoister::new(cx, &function.body, &purity);
    let same = function.body.clone();
    function.body.replace(same);
    let mut editor = Editor::new(cx, &mut function.body);
    let a = var(&editor, "a");
    assert_eq!(hoister.hoist(&mut editor, a), Err(HoistError::Moved));
    assert_eq!(hoister.hoist_from_region(&mut editor, a), Err(HoistError::Moved));
    assert_eq!(hoist(&mut editor, &purity, a), Ok(()));
}

/// A `fn` with a chain of bindings, each of which needs the one before it and one that may leave. The first is one of the parameter.
fn long_fn(n: usize) -> Module {
    let mut text = format!("def @main({X}) {{ let %f = fn (%y: Tensor[(8,), float32]) {{ let %v0 = exp(%y);\n");
    for i in 1..n {
        text += &format!("let %w{i} = exp(%x); let %v{i} = add(%w{i}, %v{});\n", i - 1);
    }
    text += &format!("%v{} }}; let %r = %f(%x); %r }}", n - 1);
    parse(&text)
}

#[test]
fn refusals_of_a_long_chain_are_linear() {
    let n = 100_000;
    for backwards in [false, true] {
        let mut module = long_fn(n);
        let purity = Purity::of_module(&module);
        let key = first(&module);
        let (function, cx) = module.get_mut(key).unwrap();
        let mut vars = bound_variables(&function.body, function.body.root());
        if backwards {
            vars.reverse();
        }
        let mut editor = Editor::new(cx, &mut function.body);
        let mut hoister = Hoister::new(editor.cx, editor.body, &purity);
        // Those that may leave do, in between: it makes no difference to what is known of the others.
        let (mut moved, mut refused) = (0, 0);
        for &var in &vars {
            match hoister.hoist(&mut editor, var) {
                Ok(()) => moved += 1,
                Err(HoistError::NotVisible { binding, needs }) => {
                    assert_eq!((binding.as_str(), needs.as_str()), ("v0", "y"));
                    refused += 1;
                }
                Err(HoistError::Outermost(_) | HoistError::NotBound(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((moved, refused), (n - 1, n));
        verified(&module);
    }
}

#[test]
fn what_comes_into_a_block_is_taken_into_account() {
    let text = format!(
        "def @main({X}) {{
            dataflow {{
                let %f = fn (%y: Tensor[(8,), float32]) {{
                    let %j = if (%c) {{ %y }} else {{ %x }};
                    let %g = fn (%z: Tensor[(8,), float32]) {{
                        let %i = if (%c) {{ %x }} else {{ %x }};
                        add(%i, %z)
                    }};
                    let %k = (%g, %x);
                    let %l = (%k, %y);
                    %l
                }};
                output(%f)
            }}
            %f
        }}"
    );
    // While the `if` is in the inner `fn`, that may go to the region; when it is beside it, it may not.
    let mut answers = Vec::new();
    moved(&text, |hoister, editor| {
        let mut ask = |hoister: &mut Hoister, editor: &mut Editor<'_>, name: &str| {
            answers.push(hoister.hoist(editor, var(editor, name)).map_err(|e| e.to_string()));
        };
        for name in ["j", "l", "i", "i", "k", "g"] {
            ask(hoister, editor, name);
        }
        hoister.hoist_from_region(editor, var(editor, "f"))?;
        for name in ["l", "i", "k"] {
            ask(hoister, editor, name);
        }
        Ok(())
    })
    .unwrap();
    let control = |name: &str| Err(HoistError::ControlFlow(name.to_string()).to_string());
    let uses = |b: &str| Err(HoistError::NotVisible { binding: b.to_string(), needs: "y".to_string() }.to_string());
    let before = [control("j"), uses("l"), Ok(()), control("i"), control("i"), control("i")];
    assert_eq!(answers[..6], before);
    assert_eq!(answers[6..], [uses("l"), Ok(()), Ok(())]);
}

#[test]
fn control_flow_does_not_come_out_of_a_fn_into_a_block_in_a_region() {
    let text = format!(
        "def @main({X}) {{
            dataflow {{
                let %r = {{
                    let %g = fn (%y: Tensor[(8,), float32]) {{
                        let %i = if (%c) {{ %x }} else {{ %x }};
                        add(%i, %y)
                    }};
                    %g
                }};
                output(%r)
            }}
            %r
        }}"
    );
    assert_eq!(out(&text, "i"), Err(HoistError::ControlFlow("i".to_string())));
    let outside = moved(&text, |hoister, editor| {
        hoister.hoist_from_region(editor, var(editor, "r"))?;
        hoister.hoist(editor, var(editor, "i"))
    });
    assert!(outside.unwrap().contains("let %r = {\n    let %i = if"));
}

/// Every variable of a body, as often as it goes.
fn hoist_all(module: &mut Module) {
    let purity = Purity::of_module(module);
    let key = first(module);
    let (function, cx) = module.get_mut(key).unwrap();
    let vars: Vec<VarId> = bound_variables(&function.body, function.body.root());
    let mut editor = Editor::new(cx, &mut function.body);
    let mut hoister = Hoister::new(editor.cx, editor.body, &purity);
    for &var in &vars {
        while hoister.hoist(&mut editor, var).is_ok() {}
        let _ = hoister.hoist_from_region(&mut editor, var);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_binding_of_random_programs(choices in programs::random::choices()) {
        let mut module = programs::random::program(&choices);
        let bindings = |module: &Module| bound_variables(body(module), body(module).root()).len();
        let before = bindings(&module);
        hoist_all(&mut module);
        verified(&module);
        prop_assert_eq!(bindings(&module), before);
    }

    /// What was found out before some moves holds after them.
    #[test]
    fn a_kept_hoister_moves_nothing_that_a_new_one_does_not(choices in programs::random::choices()) {
        let mut module = programs::random::program(&choices);
        let purity = Purity::of_module(&module);
        let key = first(&module);
        let (function, cx) = module.get_mut(key).unwrap();
        let vars: Vec<VarId> = bound_variables(&function.body, function.body.root());
        let mut kept = Hoister::new(cx, &function.body, &purity);
        let mut is_edited = false;
        for &var in vars.iter().rev().chain(&vars).chain(&vars) {
            let mut copy = function.body.clone();
            let mut editor = Editor::new(cx, &mut copy);
            let mut new = Hoister::new(editor.cx, editor.body, &purity);
            let from_block = new.hoist(&mut editor, var);
            let mut copy = function.body.clone();
            let mut editor = Editor::new(cx, &mut copy);
            let from_region = Hoister::new(editor.cx, editor.body, &purity).hoist_from_region(&mut editor, var);
            let mut editor = Editor::new(cx, &mut function.body);
            // Once something was moved, the one that is kept may be more careful, but no less.
            let answer = kept.hoist(&mut editor, var);
            let is_same = answer.is_ok() == from_block.is_ok();
            prop_assert!(is_same || is_edited && answer.is_err(), "{:?} {:?}", answer, from_block);
            is_edited |= answer.is_ok();
            if answer.is_err() {
                let answer = kept.hoist_from_region(&mut editor, var);
                prop_assert_eq!(answer.is_ok(), from_region.is_ok());
                is_edited |= answer.is_ok();
            }
        }
        verified(&module);
    }
}

#[test]
fn many_blocks_outwards_on_a_small_stack() {
    on_small_stack(|| {
        let n = depth(100_000);
        let mut module = Module::new(programs::registry());
        let float = module.cx.types.scalar(DType::Float32);
        let flag = module.cx.types.scalar(DType::Bool);
        let mut f = FunctionBuilder::new(&mut module, "main");
        let (x, c) = (f.param("x", float), f.param("c", flag));
        for _ in 0..n {
            f.open_block();
        }
        let inner = f.call_op("negative", &[x], &[]).unwrap();
        let inner = f.bind("inner", inner);
        let mut at: ExprId = inner;
        for _ in 0..n {
            let block = f.close_block(at).unwrap();
            at = f.if_(c, block, x).unwrap();
            at = f.bind("v", at);
        }
        let key = f.finish(at).unwrap();
        let purity = Purity::of_module(&module);
        let (function, cx) = module.get_mut(key).unwrap();
        let var = function.body.as_var(inner).unwrap();
        let mut editor = Editor::new(cx, &mut function.body);
        let mut hoister = Hoister::new(editor.cx, editor.body, &purity);
        let mut moves = 0;
        while hoister.hoist(&mut editor, var).is_ok() {
            moves += 1;
        }
        assert_eq!(moves, n);
        verified(&module);
    });
    for shape in programs::SHAPES {
        on_small_stack(move || {
            let mut module = deep(shape, 100_000);
            let purity = Purity::of_module(&module);
            let key = first(&module);
            let (function, cx) = module.get_mut(key).unwrap();
            let vars = bound_variables(&function.body, function.body.root());
            let mut editor = Editor::new(cx, &mut function.body);
            let mut tried = IdSet::<ExprId>::with_capacity(0);
            // The first and the last: the outermost and the innermost of a nest.
            for var in vars.first().into_iter().chain(vars.last()) {
                tried.insert(var.expr());
                let _ = hoist(&mut editor, &purity, *var);
            }
            verified(&module);
        });
    }
}
