//! Programs for passes in several tests, built by [`FunctionBuilder`].

use anfora_ir::{DType, FunctionBuilder, Literal, Module};
use anfora_ops::standard;

/// The kind of the bindings of a chain.
#[derive(Copy, Clone, Debug)]
pub(crate) enum ChainKind {
    /// Each binding uses the previous one.
    Live,
    /// No binding is used.
    Dead,
    /// All bindings are equal.
    Duplicate,
    /// Each binding adds a constant to the previous one; the first one is a constant.
    Constant,
}

/// Returns a chain of n bindings.
pub(crate) fn straight(n: usize, kind: ChainKind) -> Module {
    let mut module = Module::new(standard());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let ty = f.cx().types.static_tensor(DType::Float32, &[]);
    let x = f.param("x", ty);
    let one = f.literal(Literal::scalar(1f32));
    let mut head = match kind {
        ChainKind::Constant => one,
        _ => x,
    };
    for _ in 0..n {
        let operands = match kind {
            ChainKind::Live | ChainKind::Constant => [head, one],
            ChainKind::Dead | ChainKind::Duplicate => [x, one],
        };
        let value = f.call_op("add", &operands, &[]).expect("operands are float32");
        let var = f.bind("", value);
        if !matches!(kind, ChainKind::Dead) {
            head = var;
        }
    }
    f.finish(head).expect("the block is closed");
    module
}

/// The kind of the levels of a nest.
#[derive(Copy, Clone, Debug)]
pub(crate) enum NestKind {
    /// `if (c) { let a = add(x, x); let b = if … { … }; b } else { x }`
    If,
    /// The same, with a condition that is known.
    KnownIf,
    /// `let f = fn (y) { let a = add(y, x); let g = fn …; g(a) }`
    Lambda,
    /// `add(add(add(…)))`
    Call,
    /// `let v = { let v = { … }; add(v, v) }`
    Block,
}

/// Returns a nest of n levels.
pub(crate) fn nest(n: usize, kind: NestKind) -> Module {
    let mut module = Module::new(standard());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let ty = f.cx().types.static_tensor(DType::Float32, &[]);
    let bool_ty = f.cx().types.static_tensor(DType::Bool, &[]);
    let x = f.param("x", ty);
    let c = match kind {
        NestKind::KnownIf => f.literal(Literal::scalar(true)),
        _ => f.param("c", bool_ty),
    };
    let mut tail = x;
    match kind {
        NestKind::If | NestKind::KnownIf => {
            for _ in 0..n {
                f.open_block();
                let value = f.call_op("add", &[x, x], &[]).expect("operands are float32");
                f.bind("a", value);
            }
            for _ in 0..n {
                let block = f.close_block(tail).expect("as many were opened");
                let choice = f.if_(c, block, x).expect("both are float32");
                tail = f.bind("b", choice);
            }
        }
        NestKind::Lambda => {
            let mut arguments = vec![x];
            for _ in 0..n {
                let y = f.open_lambda(&[("y", ty)], None, &[])[0];
                let value = f.call_op("add", &[y, x], &[]).expect("operands are float32");
                arguments.push(f.bind("a", value));
            }
            tail = arguments.pop().expect("there is one a level");
            while let Some(argument) = arguments.pop() {
                let lambda = f.close_lambda(tail).expect("as many were opened");
                let g = f.bind("g", lambda);
                tail = f.call(g, &[argument]).expect("it takes a float32");
            }
        }
        NestKind::Call => {
            for _ in 0..n {
                tail = f.call_op("add", &[tail, x], &[]).expect("operands are float32");
            }
        }
        NestKind::Block => {
            for _ in 0..n {
                f.open_block();
            }
            for _ in 0..n {
                let block = f.close_block(tail).expect("as many were opened");
                let v = f.bind("v", block);
                tail = f.call_op("add", &[v, v], &[]).expect("operands are float32");
            }
        }
    }
    f.finish(tail).expect("the blocks are closed");
    module
}

/// Returns a program that adds the results of two equal nests of n Ifs.
pub(crate) fn two_nests(n: usize) -> Module {
    let mut module = Module::new(standard());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let ty = f.cx().types.static_tensor(DType::Float32, &[]);
    let bool_ty = f.cx().types.static_tensor(DType::Bool, &[]);
    let (x, c) = (f.param("x", ty), f.param("c", bool_ty));
    let mut results = Vec::new();
    for _ in 0..2 {
        let mut tail = x;
        let mut inner = Vec::new();
        for _ in 0..n {
            f.open_block();
            let value = f.call_op("add", &[inner.last().copied().unwrap_or(x), x], &[]).expect("operands are float32");
            inner.push(f.bind("a", value));
        }
        while let Some(a) = inner.pop() {
            let value = f.call_op("multiply", &[tail, a], &[]).expect("operands are float32");
            let value = f.bind("m", value);
            let block = f.close_block(value).expect("as many were opened");
            let choice = f.if_(c, block, x).expect("both are float32");
            tail = f.bind("b", choice);
        }
        results.push(tail);
    }
    let sum = f.call_op("add", &results, &[]).expect("operands are float32");
    f.finish(sum).expect("the blocks are closed");
    module
}
