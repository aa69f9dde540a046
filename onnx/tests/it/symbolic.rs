//! Symbolic dimensions: a model runs at any size, with the same result as the model of that fixed
//! size.

use anfora_interp::{EvalError, Interpreter};
use anfora_ir::{Literal, Module};
use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute};
use anfora_onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};

use crate::models::{
    FLOAT, again, graph, initializer, ints, model, node, node_types, operators, read, symbolic_type, typed,
};

/// A graph on `x` and other inputs, which are given with their dimensions. Its output is `y`.
struct Symbolic {
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
    inputs: Vec<(&'static str, Vec<&'static str>)>,
    output: Vec<&'static str>,
}

impl Symbolic {
    fn model(&self, extent: impl Fn(&str) -> String) -> ModelProto {
        let info = |name: &str, dims: &[&str]| {
            let dims: Vec<String> = dims.iter().map(|&d| extent(d)).collect();
            let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
            typed(name, symbolic_type(FLOAT, &dims))
        };
        let inputs = self.inputs.iter().map(|(name, dims)| info(name, dims)).collect();
        let g = graph("g", self.nodes.clone(), inputs, vec![info("y", &self.output)]);
        model(13, GraphProto { initializer: self.initializers.clone(), ..g })
    }

    /// Runs the model with its symbolic dimensions and with the given numbers in their place.
    /// Asserts that the results are equal and returns the result.
    fn agrees(&self, sizes: &[(&str, usize)]) -> Literal {
        let number = |d: &str| sizes.iter().find(|s| s.0 == d).map_or_else(|| d.to_string(), |s| s.1.to_string());
        let symbolic = read(&self.model(str::to_string));
        let fixed = read(&self.model(number));
        let inputs: Vec<Literal> = self
            .inputs
            .iter()
            .map(|(_, dims)| filled(&dims.iter().map(|d| number(d).parse().unwrap()).collect::<Vec<_>>()))
            .collect();
        let expected = run(&fixed, &inputs).unwrap_or_else(|e| panic!("{e}\n{fixed}"));
        assert_eq!(run(&symbolic, &inputs).unwrap_or_else(|e| panic!("{e}\n{symbolic}")), expected);
        expected
    }
}

fn run(module: &Module, inputs: &[Literal]) -> Result<Literal, EvalError> {
    Interpreter::new(module).run("main", inputs).map(|outcome| outcome.tensor().expect("one output").clone())
}

/// Returns a tensor of varied small numbers.
fn filled(shape: &[usize]) -> Literal {
    let n: usize = shape.iter().product();
    let elements: Vec<f32> = (0..n).map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0).collect();
    Literal::from_elements(shape, &elements).expect("one element an extent")
}

fn weights(name: &str, shape: &[usize]) -> TensorProto {
    initializer(name, &filled(shape))
}

fn mlp() -> Symbolic {
    Symbolic {
        nodes: vec![
            node("Gemm", &["x", "w", "b"], &["a"], vec![float_attribute("alpha", 0.5)]),
            node("Relu", &["a"], &["r"], vec![]),
            node("MatMul", &["r", "v"], &["s"], vec![]),
            node("Softmax", &["s"], &["y"], vec![int_attribute("axis", 1)]),
        ],
        initializers: vec![weights("w", &[6, 10]), weights("b", &[10]), weights("v", &[10, 4])],
        inputs: vec![("x", vec!["N", "6"])],
        output: vec!["N", "4"],
    }
}

fn conv() -> Symbolic {
    let pads = || ints_attribute("pads", &[1, 1, 1, 1]);
    Symbolic {
        nodes: vec![
            node("Conv", &["x", "k"], &["c"], vec![pads(), ints_attribute("strides", &[2, 2])]),
            node("Relu", &["c"], &["r"], vec![]),
            node("MaxPool", &["r"], &["p"], vec![ints_attribute("kernel_shape", &[2, 2]), pads()]),
            node("Conv", &["p", "l"], &["y"], vec![]),
        ],
        initializers: vec![weights("k", &[4, 3, 3, 3]), weights("l", &[2, 4, 1, 1])],
        inputs: vec![("x", vec!["N", "3", "H", "W"])],
        output: vec!["N", "2", "h", "w"],
    }
}

/// Returns attention over heads. Its shape is computed from that of the input.
fn attention() -> Symbolic {
    let permuted = |x: &str, y: &str, perm: &[i64]| node("Transpose", &[x], &[y], vec![ints_attribute("perm", perm)]);
    let first = |from: &str, to: &str, index: &str| node("Gather", &[from, index], &[to], vec![]);
    let along_0 = || vec![int_attribute("axis", 0)];
    Symbolic {
        nodes: vec![
            node("Shape", &["x"], &["shape"], vec![]),
            first("shape", "n", "zero"),
            first("shape", "t", "one"),
            node("Concat", &["n", "t", "heads", "size"], &["split"], along_0()),
            node("Concat", &["n", "t", "width"], &["joined"], along_0()),
            node("MatMul", &["x", "w"], &["q"], vec![]),
            node("Reshape", &["q", "split"], &["q4"], vec![]),
            node("Reshape", &["x", "split"], &["k4"], vec![]),
            permuted("q4", "qt", &[0, 2, 1, 3]),
            permuted("k4", "kt", &[0, 2, 3, 1]),
            node("MatMul", &["qt", "kt"], &["scores"], vec![]),
            node("Softmax", &["scores"], &["weights"], vec![int_attribute("axis", -1)]),
            node("MatMul", &["weights", "qt"], &["o"], vec![]),
            permuted("o", "ot", &[0, 2, 1, 3]),
            node("Reshape", &["ot", "joined"], &["y"], vec![]),
        ],
        initializers: vec![
            initializer("zero", &ints(&[0])),
            initializer("one", &ints(&[1])),
            initializer("heads", &ints(&[2])),
            initializer("size", &ints(&[4])),
            initializer("width", &ints(&[8])),
            weights("w", &[8, 8]),
        ],
        inputs: vec![("x", vec!["batch", "seq", "8"])],
        output: vec!["batch", "seq", "8"],
    }
}

#[test]
fn models_run_at_any_size() {
    for n in [0, 1, 7] {
        assert_eq!(mlp().agrees(&[("N", n)]).shape(), [n, 4]);
    }
    for (n, h, w) in [(1, 8usize, 8usize), (2, 9, 13), (3, 1, 2)] {
        let sizes = [("N", n), ("H", h), ("W", w), ("h", h.div_ceil(2) + 1), ("w", w.div_ceil(2) + 1)];
        assert_eq!(conv().agrees(&sizes).shape()[..2], [n, 2]);
    }
    for (n, t) in [(1, 1), (1, 6), (3, 5)] {
        assert_eq!(attention().agrees(&[("batch", n), ("seq", t)]).shape(), [n, t, 8]);
    }
}

#[test]
fn types_say_what_arithmetic_gives() {
    let text = read(&mlp().model(str::to_string)).to_string();
    assert!(text.contains("(%x: Tensor[(N, 6), float32]) -> Tensor[(N, 4), float32]"), "{text}");
    for symbolic in [mlp(), conv(), attention()] {
        let m = symbolic.model(str::to_string);
        let module = read(&m);
        assert!(operators(&module).iter().all(|op| !op.starts_with("onnx.")), "{module}");
        let back = again(&m);
        assert_eq!(node_types(&back), node_types(&m));
        let (back, g) = (back.graph.unwrap(), m.graph.unwrap());
        assert_eq!((back.input, back.output), (g.input, g.output));
    }
}

#[test]
fn inputs_that_contradict_each_other_are_refused() {
    let sum = Symbolic {
        nodes: vec![node("Add", &["x", "z"], &["y"], vec![])],
        initializers: vec![],
        inputs: vec![("x", vec!["n", "2"]), ("z", vec!["n", "2"])],
        output: vec!["n", "2"],
    };
    sum.agrees(&[("n", 3)]);
    let module = read(&sum.model(str::to_string));
    // Without the names, these could be broadcast.
    let error = run(&module, &[filled(&[3, 2]), filled(&[1, 2])]).expect_err("n is 3, and 1").to_string();
    assert!(error.contains("argument 1"), "{error}");
    assert!(run(&module, &[filled(&[3, 3]), filled(&[3, 3])]).is_err());
    assert!(run(&module, &[filled(&[3]), filled(&[3, 2])]).is_err());
}

/// Returns the inferred type of a model's result, whatever type the model states.
fn found_type(of: &Symbolic) -> String {
    let module = read(&of.model(str::to_string));
    let (_, main) = module.functions().find(|(_, f)| f.is_definition()).expect("the model has a graph");
    module.cx.type_text(main.body.type_of(main.body.root()))
}

#[test]
fn a_shape_that_is_computed_from_symbols_has_them() {
    assert_eq!(
        found_type(&Symbolic { output: vec!["?", "?", "?"], ..attention() }),
        "Tensor[(batch, seq, 8), float32]"
    );
    let along_0 = || vec![int_attribute("axis", 0)];
    let shape = |nodes: Vec<NodeProto>| Symbolic {
        nodes: [
            vec![
                node("Shape", &["x"], &["shape"], vec![]),
                node("Gather", &["shape", "zero"], &["n"], vec![]),
                node("Gather", &["shape", "one"], &["t"], vec![]),
            ],
            nodes,
        ]
        .concat(),
        initializers: vec![
            initializer("zero", &ints(&[0])),
            initializer("one", &ints(&[1])),
            initializer("two", &ints(&[2])),
            initializer("rest", &ints(&[-1])),
        ],
        inputs: vec![("x", vec!["batch", "seq", "8"])],
        output: vec!["?", "?", "?"],
    };
    let halves = shape(vec![
        node("Mul", &["t", "two"], &["twice"], vec![]),
        node("Concat", &["n", "twice", "rest"], &["to"], along_0()),
        node("Reshape", &["x", "to"], &["y"], vec![]),
    ]);
    assert_eq!(found_type(&halves), "Tensor[(batch, 2 * seq, 4), float32]");
}
