//! Deep programs on a small stack.

use anfora_interp::{Interpreter, Outcome, Values};
use anfora_ir::{ExprId, FunctionBuilder, Literal, Module, Source, Type, parse_module};
use anfora_testing::{depth, on_small_stack};

fn levels() -> usize {
    depth(5_000)
}

/// Builds `@main`, a function of one int32.
fn build(module: &mut Module, tail: impl FnOnce(&mut FunctionBuilder<'_>, ExprId) -> ExprId) {
    let ty = module.cx.types.scalar(anfora_ir::DType::Int32);
    let mut f = FunctionBuilder::new(module, "main");
    let x = f.param("x", ty);
    let tail = tail(&mut f, x);
    f.finish(tail).unwrap();
}

fn run(module: &Module, input: i32) -> Outcome {
    Interpreter::new(module).run("main", &[Literal::scalar(input)]).unwrap()
}

fn number(outcome: &Outcome) -> i32 {
    outcome.tensor().and_then(|l| l.as_scalar()).unwrap()
}

fn module() -> Module {
    Module::new(anfora_ops::standard())
}

#[test]
fn chains_of_lets() {
    on_small_stack(|| {
        let mut m = module();
        build(&mut m, |f, mut v| {
            let one = f.literal(Literal::scalar(1i32));
            for _ in 0..levels() {
                let sum = f.call_op("add", &[v, one], &[]).unwrap();
                v = f.bind("", sum);
            }
            v
        });
        assert_eq!(number(&run(&m, 7)), 7 + levels() as i32);
    });
}

#[test]
fn nested_calls() {
    on_small_stack(|| {
        let mut m = module();
        build(&mut m, |f, mut v| {
            let one = f.literal(Literal::scalar(1i32));
            for _ in 0..levels() {
                v = f.call_op("add", &[v, one], &[]).unwrap();
            }
            v
        });
        assert_eq!(number(&run(&m, 7)), 7 + levels() as i32);
    });
}

#[test]
fn nested_branches() {
    on_small_stack(|| {
        let mut m = module();
        build(&mut m, |f, x| {
            let (zero, one) = (f.literal(Literal::scalar(0i32)), f.literal(Literal::scalar(1i32)));
            let holds = f.call_op("less", &[zero, x], &[]).unwrap();
            let holds = f.bind("holds", holds);
            let mut v = x;
            for _ in 0..levels() {
                f.open_block();
                let sum = f.call_op("add", &[v, one], &[]).unwrap();
                v = f.bind("", sum);
            }
            let mut block = v;
            for _ in 0..levels() {
                let inner = f.close_block(block).unwrap();
                block = f.if_(holds, inner, zero).unwrap();
            }
            block
        });
        assert_eq!(number(&run(&m, 7)), 7 + levels() as i32);
        assert_eq!(number(&run(&m, -7)), 0);
    });
}

#[test]
fn nested_blocks_as_values() {
    on_small_stack(|| {
        let mut m = module();
        build(&mut m, |f, x| {
            let one = f.literal(Literal::scalar(1i32));
            for _ in 0..levels() {
                f.open_block();
            }
            let mut v = x;
            for _ in 0..levels() {
                let sum = f.call_op("add", &[v, one], &[]).unwrap();
                let bound = f.bind("", sum);
                v = f.close_block(bound).unwrap();
                v = f.bind("", v);
            }
            v
        });
        assert_eq!(number(&run(&m, 7)), 7 + levels() as i32);
    });
}

/// Each `fn` defines the next and calls it. All use the parameter of the function, so look-ups go
/// through many levels.
#[test]
fn nested_closures() {
    on_small_stack(|| {
        let mut m = module();
        build(&mut m, |f, x| {
            let mut inner = Vec::new();
            for _ in 0..levels() {
                f.open_lambda(&[], None, &[]);
                let sum = f.call_op("add", &[x, x], &[]).unwrap();
                inner.push(f.bind("", sum));
            }
            let mut v = x;
            while let Some(own) = inner.pop() {
                let sum = f.call_op("subtract", &[own, v], &[]).unwrap();
                let tail = f.bind("", sum);
                let closure = f.close_lambda(tail).unwrap();
                let closure = f.bind("f", closure);
                let call = f.call(closure, &[]).unwrap();
                v = f.bind("", call);
            }
            v
        });
        assert_eq!(number(&run(&m, 7)), 7);
    });
}

#[test]
fn nested_tuples() {
    on_small_stack(|| {
        let mut m = module();
        // The time of each step grows with the depth of a type, so the value has type Any.
        let any = m.cx.types.any();
        let mut f = FunctionBuilder::new(&mut m, "main");
        let x = f.param("x", any);
        f.result(any);
        let mut v = x;
        for _ in 0..1000 {
            let t = f.tuple(&[v, x]);
            v = f.bind("", t);
        }
        f.finish(v).unwrap();
        let mut values = Values::new();
        let mut deep = values.tensor(Literal::scalar(1i32));
        for _ in 0..levels() {
            deep = values.tuple(&[deep, deep]);
        }
        let outcome = Interpreter::new(&m).call("main", values, &[deep]).unwrap();
        assert!(outcome.same(&outcome.clone()));
        assert_eq!(outcome.values.tensors(outcome.result, 3).len(), 3);
    });
}

#[test]
fn deep_recursion_and_long_loops() {
    on_small_stack(|| {
        let text = "def @main(%n: int32) -> int32 {
                        let %d = @deep(%n);
                        let %p = @pile(%n, %n);
                        add(%d, @loop(%n, %p))
                    }
                    def @deep(%n: int32) -> int32 {
                        if (less(%n, 1)) { 0 } else { let %r = @deep(subtract(%n, 1)); add(%r, 1) }
                    }
                    def @loop(%n: int32, %acc: int32) -> int32 {
                        if (less(%n, 1)) { %acc } else { @loop(subtract(%n, 1), add(%acc, 1)) }
                    }
                    def @pile(%n: int32, %list: Any) -> int32 {
                        if (less(%n, 1)) { 5 } else { @pile(subtract(%n, 1), (%list, %n)) }
                    }";
        let m = parse_module(Source::new("test", text), anfora_ops::standard()).unwrap();
        assert_eq!(number(&run(&m, levels() as i32)), 2 * levels() as i32 + 5);
    });
}

/// Functions, each of which is made from the previous one by giving its last parameter a value.
#[test]
fn closures_of_closures() {
    on_small_stack(|| {
        let text = "def @main(%n: int32) -> int32 { let %f = @wrap(%n, @last); %f() }
                    def @last() -> int32 { 3 }
                    def @call(%f: fn() -> int32) -> int32 { let %r = %f(); add(%r, 1) }
                    def @wrap(%n: int32, %f: fn() -> int32) -> fn() -> int32 {
                        if (less(%n, 1)) { %f } else { @wrap(subtract(%n, 1), make_closure(@call, %f)) }
                    }";
        let m = parse_module(Source::new("test", text), anfora_ops::standard()).unwrap();
        assert_eq!(number(&run(&m, levels() as i32)), 3 + levels() as i32);
    });
}

#[test]
fn deep_dimensions() {
    on_small_stack(|| {
        let mut m = module();
        let mut f = FunctionBuilder::new(&mut m, "main");
        let n = f.symbol("n");
        let dims = &mut f.cx().types.dims;
        let (mut deep, two) = (n, dims.constant(2));
        for _ in 0..levels() / 10 {
            deep = dims.op(anfora_ir::DimOp::Max, deep, two);
            deep = dims.add(deep, n);
        }
        let (x, result) = {
            let types = &mut f.cx().types;
            (types.tensor(anfora_ir::DType::Int8, &[n]), types.tensor(anfora_ir::DType::Int8, &[deep]))
        };
        f.param("x", x);
        let shape = f.cx().attr(anfora_ir::Attr::Shape(Box::new([deep])));
        let int8 = f.cx().attr(anfora_ir::Attr::DType(anfora_ir::DType::Int8));
        let zeros = f.call_op("zeros", &[], &[("shape", shape), ("dtype", int8)]).unwrap();
        f.finish(zeros).unwrap();
        assert!(matches!(m.cx.types.get(result), Type::Tensor(_)));
        let outcome = Interpreter::new(&m).run("main", &[Literal::splat(&[3], 1i8)]).unwrap();
        assert_eq!(outcome.tensor().unwrap().shape(), &[3 + 3 * levels() / 10]);
    });
}
