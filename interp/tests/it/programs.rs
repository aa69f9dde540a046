//! Programs of every construct of the language, and their results.

use anfora_interp::{EvalError, EvalErrorKind, Interpreter, Limits, Outcome, Values};
use anfora_ir::{Literal, Module, Source, parse_module};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.to_string()).collect::<Vec<_>>().join("\n"));
    })
}

fn try_run(text: &str, inputs: &[Literal]) -> Result<Outcome, EvalError> {
    Interpreter::new(&parse(text)).seed(1).run("main", inputs)
}

/// Checks the result of `@main` as text, followed by the trace.
#[track_caller]
fn check(text: &str, inputs: &[Literal], expected: &str) {
    let outcome = try_run(text, inputs).unwrap_or_else(|e| panic!("{e}"));
    let mut lines = vec![outcome.values.text(outcome.result, 1000)];
    for e in &outcome.trace {
        let operands: Vec<String> = e.operands.iter().map(|&o| outcome.values.text(o, 1000)).collect();
        lines.push(format!("{} {:?} {}", e.op, e.text, operands.join(" ")));
    }
    assert_eq!(lines.join("\n"), expected);
}

#[track_caller]
fn check_error(text: &str, inputs: &[Literal], expected: &str) {
    match try_run(text, inputs) {
        Ok(outcome) => panic!("it came to {}", outcome.values.text(outcome.result, 1000)),
        Err(e) => assert_eq!(e.to_string(), expected),
    }
}

fn i(value: i32) -> Literal {
    Literal::scalar(value)
}

#[test]
fn chains_tuples_and_projections() {
    check(
        "def @main(%x: int32) {
             let %a = add(%x, 1);
             let %t = (%a, (%x, 7), ());
             let %u = %t.1;
             (%u.0, %t.0, %t)
         }",
        &[i(3)],
        "(Tensor[(), int32][3], Tensor[(), int32][4], (Tensor[(), int32][4], (Tensor[(), int32][3], Tensor[(), int32][7]), ()))",
    );
}

#[test]
fn elements_past_the_largest_i64_are_computed_with() {
    check(
        "def @main() {
             let %a = dense<Tensor[(3,), uint64]>[9223372036854775807, 18446744073709551615, 3];
             add(%a, dense<Tensor[(3,), uint64]>[1, 0, 4])
         }",
        &[],
        "Tensor[(3,), uint64][9223372036854775808, 18446744073709551615, 7]",
    );
}

#[test]
fn branches_and_blocks_as_values() {
    let text = "def @main(%x: int32) {
                    let %y = { let %z = multiply(%x, %x); add(%z, 1) };
                    let %c = less(%y, 10);
                    let %r = if (%c) { let %n = negative(%y); %n } else { if (equal(%y, 10)) { 0 } else { %y } };
                    subtract(%r, %x)
                }";
    check(text, &[i(2)], "Tensor[(), int32][-7]");
    check(text, &[i(3)], "Tensor[(), int32][-3]");
    check(text, &[i(4)], "Tensor[(), int32][13]");
}

#[test]
fn closures_see_their_surroundings() {
    check(
        "def @main(%x: int32) {
             let %add = fn (%a: int32) { fn (%b: int32) { add(add(%a, %b), %x) } };
             let %one = %add(1);
             let %two = %add(2);
             (%one(10), %two(20), (%add(3))(30))
         }",
        &[i(100)],
        "(Tensor[(), int32][111], Tensor[(), int32][122], Tensor[(), int32][133])",
    );
}

#[test]
fn recursion_of_functions_and_closures() {
    check(
        "def @main(%n: int32) -> int32 {
             let %step = 3;
             let %sum = fn (%k: int32) -> int32 {
                 if (less_equal(%k, 0)) { 0 } else {
                     let %rest = %sum(subtract(%k, 1));
                     add(%rest, multiply(%k, %step))
                 }
             };
             add(%sum(%n), @fib(%n))
         }
         def private @fib(%n: int32) -> int32 {
             if (less(%n, 2)) { %n } else { add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) }
         }",
        &[i(10)],
        "Tensor[(), int32][220]",
    );
}

#[test]
fn each_activation_has_variables_of_its_own() {
    check(
        "def @main(%n: int32) -> (int32, int32) {
             let %make = fn (%k: int32) { let %v = multiply(%k, 10); fn () { add(%v, %k) } };
             let %f = %make(1);
             let %g = %make(2);
             (%f(), %g())
         }",
        &[i(0)],
        "(Tensor[(), int32][11], Tensor[(), int32][22])",
    );
}

#[test]
fn functions_are_values() {
    check(
        "def @main(%x: int32) {
             let %c = less(%x, 0);
             let %f = if (%c) { @double } else { fn (%a: int32) { negative(%a) } };
             let %twice = fn (%g: fn(int32) -> int32, %a: int32) { %g(%g(%a)) };
             let %p = make_closure(@sub, %x);
             (%twice(@double, %x), %f(%x), %twice(%p, 100), %f)
         }
         def @double(%a: int32) { add(%a, %a) }
         def @sub(%a: int32, %b: int32) { subtract(%a, %b) }",
        &[i(5)],
        "(Tensor[(), int32][20], Tensor[(), int32][-5], Tensor[(), int32][90], fn)",
    );
}

#[test]
fn shared_nodes_run_once() {
    check(
        "def @main(%x: int32) {
             %s = multiply(%x, %x);
             %t = add(%s, %s);
             let %f = fn () { add(%t, 1) };
             (subtract(%t, %s), %f(), if (less(%s, 0)) { %t } else { %s })
         }",
        &[i(5)],
        "(Tensor[(), int32][25], Tensor[(), int32][51], Tensor[(), int32][25])",
    );
    // If shared nodes were evaluated again at each use, this would take 2^64 steps.
    let mut text = String::from("def @main(%x: int32) { %v0 = add(%x, %x);");
    for n in 1..64 {
        text += &format!("%v{n} = subtract(%v{}, %v{});", n - 1, n - 1);
    }
    text += "%v63 }";
    check(&text, &[i(5)], "Tensor[(), int32][0]");
}

#[test]
fn effects_are_traced_in_order() {
    check(
        "def @main(%x: int32) {
             let %u = print(%x, (1, %x), format=\"x\");
             let %a = assert(less(%x, 10), message=\"small\");
             let %f = fn (%y: int32) { let %p = print(%y); %y };
             add(%f(1), %f(2))
         }",
        &[i(3)],
        "Tensor[(), int32][3]\n\
         print \"x\" Tensor[(), int32][3] (Tensor[(), int32][1], Tensor[(), int32][3])\n\
         assert \"small\" Tensor[(), bool][true]\n\
         print \"\" Tensor[(), int32][1]\n\
         print \"\" Tensor[(), int32][2]",
    );
    check_error(
        "def @main(%x: int32) { let %ok = 1; let %bad = assert(less(%x, 10), message=\"too large\"); %ok }",
        &[i(30)],
        "assertion failed: too large (in @main, at %bad)",
    );
}

#[test]
fn random_numbers_depend_on_the_seed_alone() {
    let module = parse(
        "def @main() {
             let %a = random.uniform(shape=shape(3), low=2.0, high=3.0);
             let %b = random.uniform(shape=shape(3), low=2.0, high=3.0);
             let %c = random.normal(shape=shape(2, 2), dtype=float16);
             (%a, %b, %c)
         }",
    );
    let a = Interpreter::new(&module).seed(1).run("main", &[]).unwrap();
    let b = Interpreter::new(&module).seed(1).run("main", &[]).unwrap();
    let c = Interpreter::new(&module).seed(2).run("main", &[]).unwrap();
    assert!(a.same(&b) && !a.same(&c));
    let fields = a.values.as_tuple(a.result).unwrap();
    assert!(!a.values.same(fields[0], &a.values, fields[1]));
    let texts: Vec<&str> = a.trace.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(texts, ["float32[3]", "float32[3]", "float16[2, 2]"]);
}

#[test]
fn symbolic_dimensions_are_bound_and_checked() {
    let text = "def @main(%x: Tensor[(n, m), float32], %y: Tensor[(n,), float32]) {
                    let %z = zeros(shape=shape(m, n + 1));
                    let %r = matmul(%x, %z);
                    (%r, @tail(%y))
                }
                def @tail(%v: Tensor[(k,), float32]) { ones(shape=shape(k * 2), dtype=int8) }";
    let (x, y) = (Literal::splat(&[2, 3], 1f32), Literal::splat(&[2], 1f32));
    check(text, &[x.clone(), y], "(Tensor[(2, 3), float32][0], Tensor[(4,), int8][1])");
    check_error(
        text,
        &[x.clone(), Literal::splat(&[3], 1f32)],
        "argument 1 is Tensor[(3,), float32], but Tensor[(n,), float32] with n = 2 is expected (in @main)",
    );
    check_error(
        text,
        &[x.clone(), Literal::splat(&[2], 1i32)],
        "argument 1 is Tensor[(2,), int32], but Tensor[(n,), float32] with n = 2 is expected (in @main)",
    );
    check_error(text, &[x], "the function takes 2 arguments, not 1 (in @main)");
}

#[test]
fn unknown_extents_are_found_out() {
    let text = "def @main(%x: Tensor[?, float32], %s: Tensor[(2,), int64]) {
                    let %r = reshape(%x, %s);
                    let %m = match_cast(%r, to=Tensor[(n, 3), float32]);
                    let %z = zeros(shape=shape(n));
                    let %w = concat(%m, %m, axis=1);
                    (%w, %z)
                }";
    let shape = |a, b| Literal::from_elements(&[2], &[a, b]).unwrap();
    let x = Literal::splat(&[6], 1f32);
    check(text, &[x.clone(), shape(-1, 3i64)], "(Tensor[(2, 6), float32][1], Tensor[(2,), float32][0])");
    check_error(
        text,
        &[x.clone(), shape(3, 2)],
        "the value is Tensor[(3, 2), float32], not Tensor[(n, 3), float32] with n = 3 (in @main, at %m)",
    );
    check_error(
        text,
        &[x, shape(4, 3)],
        "`reshape` fails: a tensor of shape (6,) does not fit shape (4, 3) (in @main, at %r)",
    );
}

#[test]
fn results_are_as_large_as_their_elements_say() {
    let text = "def @main(%x: Tensor[(?, ?), int32]) -> Tensor[(?, ?), int32] {
        let %i = nonzero(%x);
        let %rows = take(%i, 0i64);
        let %u = unique(%rows);
        let %c = compress(%x, dense<Tensor[(2,), bool]>[true, false], axis=1);
        take(%c, %u.0)
    }";
    let x = Literal::from_elements(&[3, 2], &[0i32, 0, 5, 6, 7, 0]).unwrap();
    check(text, &[x], "Tensor[(2, 1), int32][5, 7]");
}

#[test]
fn symbols_of_closures_belong_to_their_calls() {
    check(
        "def @main(%x: Tensor[(n,), float32]) {
             let %f = fn (%a: Tensor[(m,), float32]) { ones(shape=shape(m + n), dtype=bool) };
             let %g = fn (%a: Tensor[(k,), float32]) { %f(concat(%a, %a)) };
             (%f(%x), %g(%x), %f(%x))
         }",
        &[Literal::splat(&[3], 1f32)],
        "(Tensor[(6,), bool][true], Tensor[(9,), bool][true], Tensor[(6,), bool][true])",
    );
}

#[test]
fn optional_operands_and_results_of_several_tensors() {
    check(
        "def @main(%x: Tensor[(1, 1, 2, 2), float32]) {
             let %w = dense<Tensor[(1, 1, 1, 1), float32]>[3];
             let %c = nn.conv2d(%x, %w, none);
             let %d = nn.dropout(%c);
             let %s = split(%d.0, sections=2, axis=3);
             let %one = split(%x, sections=1);
             (%s.1, %d.1, %one.0)
         }",
        &[Literal::from_elements(&[1, 1, 2, 2], &[1f32, 2., 3., 4.]).unwrap()],
        "(Tensor[(1, 1, 2, 1), float32][6, 12], Tensor[(1, 1, 2, 2), bool][true], Tensor[(1, 1, 2, 2), float32][1, 2, 3, 4])",
    );
}

#[test]
fn failures_name_their_place() {
    check_error(
        "def @main(%x: int32) { let %a = @inner(%x); %a }
         def @inner(%x: int32) { let %b = 1; let %c = divide(%b, %x); %c }",
        &[i(0)],
        "`divide` fails: integer division by zero (in @inner, at %c)",
    );
    check_error("declare @outside(%x: int32) -> int32; def @main(%x: int32) { let %a = @outside(%x); %a }", &[i(0)], {
        "`@outside` is declared, not defined: it cannot be interpreted (in @main, at %a)"
    });
    let module = parse("def @main() { 1 }");
    let error = |name: &str| Interpreter::new(&module).run(name, &[]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error("absent"), "there is no function `@absent`");
}

#[test]
fn limits() {
    let module = parse(
        "def @main(%n: int32) -> int32 { @main(add(%n, 1)) }
         def @grow(%n: int32) -> int32 { let %r = @grow(add(%n, 1)); add(%r, 1) }
         def @big(%x: Tensor[(1024,), float32]) {
             let %s = dense<Tensor[(2,), int64]>[1000000, 1024];
             let %b = broadcast_to(%x, %s);
             sum(%b)
         }
         def @list(%l: Any) -> Any { @list((%l, %l)) }",
    );
    let limits = Limits { steps: 100_000, bytes: 1 << 20, ..Limits::default() };
    let run = |limits, name: &str, input| {
        Interpreter::new(&module).limits(limits).run(name, &[input]).map(|_| ()).unwrap_err().kind
    };
    // A loop takes steps but no memory.
    assert_eq!(run(limits, "main", i(0)), EvalErrorKind::Steps(100_000));
    let many = Limits { steps: u64::MAX, ..limits };
    assert_eq!(run(many, "grow", i(0)), EvalErrorKind::Memory(1 << 20));
    assert_eq!(run(many, "list", i(0)), EvalErrorKind::Memory(1 << 20));
    let x = anfora_interp::random_tensor(anfora_ir::DType::Float32, &[1024], 1).unwrap();
    assert_eq!(run(many, "big", x), EvalErrorKind::Memory(1 << 20));
    // A kernel on a splat may take no memory but practically endless time. It does not start.
    let module = parse(
        "def @product() {
             let %row = zeros(shape=shape(1, 1099511627776));
             let %column = zeros(shape=shape(1099511627776, 1));
             nn.gemm(%row, %column)
         }
         def @total(%n: int32, %x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
             if (less(%n, 1)) { %x } else { @total(subtract(%n, 1), matmul(%x, %x)) }
         }",
    );
    let error = Interpreter::new(&module).run("product", &[]).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the operators of the program take more than 274877906944 steps (in @product)");
    // The steps of all calls count together: 64 for each product, and 2 for the integers.
    let x = anfora_interp::random_tensor(anfora_ir::DType::Float32, &[4, 4], 1).unwrap();
    let total = |work| Interpreter::new(&module).limits(Limits { work, ..many }).run("total", &[i(10), x.clone()]);
    assert!(total(1000).is_ok());
    assert_eq!(total(640).map(|_| ()).unwrap_err().kind, EvalErrorKind::Work(640));
}

#[test]
fn garbage_is_collected() {
    // Each iteration makes a tensor of 4 KiB, a closure and a tuple, and drops those of the
    // previous iteration.
    let module = parse(
        "def @main(%n: int32, %x: Tensor[(1024,), float32]) -> Tensor[(1024,), float32] {
             let %f = fn (%t: Tensor[(1024,), float32]) { add(%t, %x) };
             let %pair = (%f(%x), %f);
             let %y = multiply(%pair.0, 0.5f);
             if (less(%n, 1)) { %y } else { @main(subtract(%n, 1), %y) }
         }",
    );
    let x = anfora_interp::random_tensor(anfora_ir::DType::Float32, &[1024], 1).unwrap();
    let limits = Limits { steps: u64::MAX, bytes: 256 << 10, ..Limits::default() };
    let outcome = Interpreter::new(&module).limits(limits).run("main", &[i(3000), x.clone()]).unwrap();
    assert_eq!(outcome.tensor(), Some(&x));
}

#[test]
fn values_go_in_and_come_out() {
    let module = parse("def @main(%p: (int32, (Tensor[(n,), int8], Any))) { (%p.1.1, %p.0, 5) }");
    let mut values = Values::new();
    let (a, b) = (values.tensor(i(1)), values.tensor(Literal::splat(&[2], 3i8)));
    let inner = values.tuple(&[b, a]);
    let p = values.tuple(&[a, inner]);
    let outcome = Interpreter::new(&module).call("main", values.clone(), &[p]).unwrap();
    let text = outcome.values.text(outcome.result, 100);
    assert_eq!(text, "(Tensor[(), int32][1], Tensor[(), int32][1], Tensor[(), int32][5])");
    assert_eq!(outcome.values.tensors(outcome.result, 2).len(), 2);
    let error = Interpreter::new(&module).call("main", values, &[inner]).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 0 is a tuple of 2, but (Tensor[(), int32], (Tensor[(n,), int8], Any)) is expected (in @main)"
    );
}

#[test]
fn a_shared_node_with_blocks_in_it_runs_in_a_closure_and_outside() {
    // The shared node is walked first in the closure, where its variables would have other slots
    // than outside.
    check(
        "def @main(%x: float32) {
            %s = add(if (less(%x, 1f)) { let %t = tanh(%x); let %u = add(%t, 1f); multiply(%u, %t) } else { %x }, %x);
            let %a = add(%x, 1f);
            let %f = fn (%y: float32) { let %b = multiply(%y, %s); let %c = add(%b, %a); %c };
            let %r = %f(%x);
            let %q = add(%r, %s);
            let %again = %f(%r);
            (%q, add(%a, %s), %again, %r)
        }",
    );
    // A closure inside of the shared node, called in both places.
    check(
        "def @main(%x: float32) {
            %s = add({ let %g = fn (%z: float32) { let %w = add(%z, %x); %w }; %g(%x) }, %x);
            let %a = add(%x, 1f);
            let %f = fn (%y: float32) { let %b = multiply(%y, %s); add(%b, %a) };
            let %r = %f(%s);
            let %again = %f(%r);
            (add(%r, add(%a, %s)), %again)
        }",
    );

    /// Compares the program with a program in which each use of the shared node is a copy of its
    /// text, so that nothing is shared.
    fn check(text: &str) {
        let (binding, rest) = text.split_once("%s = ").expect("the shared node");
        let (value, rest) = rest.split_once(";\n            let %a").expect("the end of the shared node");
        let copied = format!("{binding}let %a{}", rest.replace("%s", &format!("({value})")));
        let run = |text: &str| {
            let module = parse(text);
            let x = Literal::scalar(0.25f32);
            Interpreter::new(&module).run("main", &[x]).unwrap_or_else(|e| panic!("{e}\n{module}"))
        };
        assert!(run(text).same(&run(&copied)), "{text}\n{copied}");
    }
}
