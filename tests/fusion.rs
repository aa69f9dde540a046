//! FuseOps together with ONNX: fused programs that are written as ONNX and read again have the same
//! functions, which compute the same. Also the work of fusing when operands are repeated.

use std::fmt::Write as _;

use anfora::ir::{Literal, Module, Source, first_difference, parse_module, verify_module, work};
use anfora::manager::{PassContext, parse_pipeline, run_pass};
use anfora::onnx::{ExportOptions, ImportOptions, export, import};
use anfora::passes::{FusionLimits, fuse_ops, registry};
use fastrand::Rng;

const PROGRAMS: u64 = 400;

/// The type of a variable, which is a tensor of float32.
#[derive(Copy, Clone, PartialEq)]
enum Type {
    /// `(4, 4)`
    Square,
    /// `(4,)`
    Row,
    /// `(2, 4)`
    Half,
    /// `(5, 4)`
    Tall,
    /// `(n, 4)`
    Sized,
}
use Type::{Half, Row, Sized, Square, Tall};

/// A generator of regions of operators that ONNX has, one region after the other.
struct Generator {
    random: Rng,
    text: String,
    /// The visible variables, with their types.
    visible: Vec<(String, Type)>,
    count: usize,
}

impl Generator {
    /// Returns one of the last few variables of a type. A half exists only after a square was
    /// split.
    fn pick(&mut self, ty: Type) -> Option<String> {
        let all: Vec<&String> = self.visible.iter().filter(|v| v.1 == ty).map(|v| &v.0).collect();
        let back = self.random.usize(..all.len().clamp(1, 4));
        Some(all.get(all.len().checked_sub(back + 1)?)?.to_string())
    }

    fn bind(&mut self, value: &str, ty: Type) {
        self.count += 1;
        let name = format!("%v{}", self.count);
        writeln!(self.text, "    let {name} = {value};").unwrap();
        self.visible.push((name, ty));
    }

    fn literal(&mut self, shape: &str, elements: usize) -> String {
        let elements: Vec<String> = (0..elements).map(|i| format!("{}", i + self.random.usize(..3))).collect();
        format!("dense<Tensor[{shape}, float32]>[{}]", elements.join(", "))
    }

    fn binding(&mut self) -> Option<()> {
        let any = [Square, Square, Row, Half, Tall, Sized][self.random.usize(..6)];
        let (a, b) = (self.pick(any)?, self.pick(any)?);
        let (s, r) = (self.pick(Square)?, self.pick(Row)?);
        match self.random.usize(..16) {
            0 => self.bind(&format!("exp({a})"), any),
            1 => self.bind(&format!("negative({a})"), any),
            2 => self.bind(&format!("tanh({a})"), any),
            3 | 4 => self.bind(&format!("add({a}, {b})"), any),
            5 if any != Row => self.bind(&format!("multiply({a}, {r})"), any),
            5 | 6 => self.bind(&format!("subtract({a}, 2f)"), any),
            7 => {
                let value = format!("add({s}, {})", self.literal("(4,)", 4));
                self.bind(&value, Square);
            }
            8 => {
                let value = format!("multiply({}, {})", self.pick(Tall)?, self.literal("(5, 4)", 20));
                self.bind(&value, Tall);
            }
            9 => {
                let value = format!("sum({s}, axis=[{}])", self.random.usize(..2));
                self.bind(&value, Row);
            }
            10 => self.bind(&format!("matmul({a}, {s})"), any),
            11 => self.bind(&format!("permute_dims({s}, axes=[1, 0])"), Square),
            12 if any != Row => self.bind(&format!("nn.softmax({a})"), any),
            12 | 13 => {
                self.count += 1;
                let halves = format!("%v{}", self.count);
                writeln!(self.text, "    let {halves} = split({s}, sections=2);").unwrap();
                self.bind(&format!("{halves}.0"), Half);
                self.bind(&format!("{halves}.1"), Half);
            }
            14 => {
                let value = format!("concat({}, {}, axis=0)", self.pick(Half)?, self.pick(Half)?);
                self.bind(&value, Square);
            }
            _ => self.bind(&format!("nn.relu({a})"), any),
        }
        Some(())
    }

    fn region(&mut self) {
        let before = self.visible.len();
        self.text.push_str("  dataflow {\n");
        let wanted = self.count + 2 + self.random.usize(..20);
        while self.count < wanted {
            let _ = self.binding();
        }
        let inside = self.visible.split_off(before);
        let last = inside.len() - 1;
        let outputs = inside.into_iter().enumerate().filter(|(i, _)| *i == last || self.random.usize(..8) == 0);
        let outputs: Vec<(String, Type)> = outputs.map(|p| p.1).collect();
        let names: Vec<&str> = outputs.iter().map(|(n, _)| n.as_str()).collect();
        writeln!(self.text, "  output({})\n  }}", names.join(", ")).unwrap();
        self.visible.extend(outputs);
    }

    fn program(seed: u64) -> String {
        let params = [("%s", Square), ("%r", Row), ("%t", Tall), ("%n", Sized)];
        let mut g = Generator {
            random: Rng::with_seed(seed),
            text: "def @main(%s: Tensor[(4, 4), float32], %r: Tensor[(4,), float32], %t: Tensor[(5, 4), float32], \
                   %n: Tensor[(n, 4), float32]) {\n"
                .to_string(),
            visible: params.map(|(name, ty)| (name.to_string(), ty)).to_vec(),
            count: 0,
        };
        for _ in 0..2 + g.random.usize(..2) {
            g.region();
        }
        let results: Vec<&str> = g.visible[params.len()..].iter().map(|(n, _)| n.as_str()).collect();
        writeln!(g.text, "  ({})\n}}", results.join(", ")).unwrap();
        g.text
    }
}

fn results(module: &Module) -> anfora::interp::Outcome {
    let floats = |shape: &[usize]| {
        let elements: Vec<f32> = (0..shape.iter().product()).map(|i| (i as f32 - 7.0) / 5.0).collect();
        Literal::from_elements(shape, &elements).expect("as many as the shape has")
    };
    let arguments = [floats(&[4, 4]), floats(&[4]), floats(&[5, 4]), floats(&[3, 4])];
    anfora::interp::Interpreter::new(module).run("main", &arguments).unwrap_or_else(|e| panic!("{e}\n{module}"))
}

/// Returns the module without regions, which ONNX does not have, without unused projections, and
/// without an order of bindings.
fn comparable(module: &Module) -> Module {
    let mut module = module.clone();
    let none = module.cx.attrs.empty();
    module.set_attrs(none);
    let registry = registry();
    let pipeline =
        parse_pipeline(&registry, "ToNonDataflow,DeadCodeElimination,ToGraphNormalForm").expect("a pipeline");
    let context = PassContext::builder().registry(registry).opt_level(3).build().expect("an empty context");
    run_pass(&pipeline, &mut module, &context).unwrap_or_else(|e| panic!("{e}\n{module}"));
    module
}

#[test]
fn fused_programs_come_back() {
    let mut functions = 0;
    for seed in 0..PROGRAMS {
        let text = Generator::program(seed);
        let mut module = parse_module(Source::new("input", text.as_str()), anfora::onnx::registry())
            .unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
        let max_depth = [256, 8, 3][seed as usize % 3];
        fuse_ops(&mut module, FusionLimits { max_depth, max_function_args: 0 });
        let written = export(&module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
        let back = import(written.bytes.into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
        let back = back.module;
        verify_module(&back).unwrap_or_else(|e| panic!("{}\n{module}\n{back}", e[0]));
        if let Some(difference) = first_difference(&comparable(&module), &comparable(&back)) {
            panic!("seed {seed}: {difference}\n{module}\ncame back as\n{back}");
        }
        assert!(results(&module).same(&results(&back)), "seed {seed}:\n{module}\n{back}");
        functions += back.functions().filter(|(_, f)| f.is_primitive(&back.cx)).count();
    }
    assert!(functions > PROGRAMS as usize, "only {functions} functions were made");
}

/// Returns a program of `size` values that two joins have as operands. One of the joins is joined
/// with itself `size` times.
fn repeated(size: usize) -> Module {
    let mut text = "def @main(%x: Tensor[(1,), float32]) {\n  dataflow {\n".to_string();
    (0..size).for_each(|i| writeln!(text, "    let %v{i} = exp(%x);").unwrap());
    let all: Vec<String> = (0..size).map(|i| format!("%v{i}")).collect();
    let (all, again) = (all.join(", "), "%b, ".repeat(size));
    writeln!(text, "    let %a = concat({all});\n    let %b = concat({all});").unwrap();
    writeln!(text, "    let %s = sum(%a, keepdims=true);\n    let %r = concat({again}%s);").unwrap();
    text.push_str("    output(%r)\n  }\n  %r\n}\n");
    parse_module(Source::new("input", text.as_str()), anfora::ops::standard()).unwrap_or_else(|e| panic!("{}", e[0]))
}

#[test]
fn an_operand_that_is_repeated_is_looked_at_once() {
    let counted = |size: usize| {
        let mut module = repeated(size);
        let before = work::count();
        fuse_ops(&mut module, FusionLimits::default());
        (work::count() - before) as f64 / size as f64
    };
    let (small, large) = (counted(1000), counted(8000));
    assert!(large <= 1.2 * small, "{small} accesses a binding for 1,000, {large} for 8,000");
}
