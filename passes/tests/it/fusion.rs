//! Tests of FuseOps on random dataflow graphs: results stay the same bit for bit, a second run
//! changes nothing, and InlineFunctions restores the program.

use std::fmt::Write as _;
use std::sync::Arc;

use anfora_interp::{Interpreter, Outcome};
use anfora_ir::{Literal, Module, Source, first_difference, parse_module, verify_module};
use anfora_manager::{PassContext, parse_pipeline, run_pass};
use anfora_passes::{FusionLimits, fuse_ops, registry};
use fastrand::Rng;

const PROGRAMS: u64 = 1000;

/// The type of a variable.
#[derive(Copy, Clone, PartialEq)]
enum Type {
    /// `(4, 4)`
    Square,
    /// `(4,)`
    Row,
    /// Two of `(2, 4)`
    Halves,
    /// `(2, 4)`
    Half,
    /// `(4, 4)` and `(4,)`
    Pair,
}

/// Generates regions of operators of all patterns, one after the other and in branches.
struct Generator {
    random: Rng,
    text: String,
    /// The visible variables with their types.
    visible: Vec<(String, Type)>,
    count: usize,
}

impl Generator {
    fn pick(&mut self, ty: Type) -> Option<String> {
        let all: Vec<usize> = (0..self.visible.len()).filter(|&i| self.visible[i].1 == ty).collect();
        // Usually a late variable, so that the graph has chains, skips and joins.
        let back = self.random.usize(..all.len().clamp(1, 4));
        let far = self.random.usize(..5) == 0;
        let i = match far {
            true => *all.get(self.random.usize(..all.len().max(1)))?,
            false => *all.get(all.len().checked_sub(back + 1)?)?,
        };
        Some(self.visible[i].0.clone())
    }

    /// Returns a value of some type, made of visible variables.
    fn value(&mut self) -> Option<(String, Type)> {
        let s = self.pick(Type::Square)?;
        let t = self.pick(Type::Square)?;
        let r = self.pick(Type::Row)?;
        Some(match self.random.usize(..22) {
            0 => (format!("exp({s})"), Type::Square),
            1 => (format!("negative({s})"), Type::Square),
            2 | 3 => (format!("add({s}, {t})"), Type::Square),
            4 => (format!("multiply({s}, {r})"), Type::Square),
            5 => (format!("add({r}, {})", self.pick(Type::Row)?), Type::Row),
            6 => (format!("tanh({r})"), Type::Row),
            7 => (format!("sum({s}, axis=[{}])", self.random.usize(..2)), Type::Row),
            8 => (format!("matmul({s}, {t})"), Type::Square),
            9 => (format!("matmul({s}, {r})"), Type::Row),
            10 => (format!("permute_dims({s})"), Type::Square),
            11 => (format!("split({s}, sections=2)"), Type::Halves),
            12 => (format!("{}.{}", self.pick(Type::Halves)?, self.random.usize(..2)), Type::Half),
            13 => (format!("concat({}, {})", self.pick(Type::Half)?, self.pick(Type::Half)?), Type::Square),
            14 => (format!("exp({})", self.pick(Type::Half)?), Type::Half),
            15 => (format!("({s}, {r})"), Type::Pair),
            16 => (format!("{}.0", self.pick(Type::Pair)?), Type::Square),
            17 => (format!("{}.1", self.pick(Type::Pair)?), Type::Row),
            18 => (format!("add({s}, dense<Tensor[(4, 4), float32]>[{}])", self.numbers(16)), Type::Square),
            19 => (format!("nn.softmax({s})"), Type::Square),
            20 => (s, Type::Square),
            _ => (format!("match_cast({s}, to=Tensor[(4, 4), float32])"), Type::Square),
        })
    }

    fn numbers(&mut self, n: usize) -> String {
        (0..n).map(|_| format!("{}", self.random.usize(..3))).collect::<Vec<_>>().join(", ")
    }

    /// Writes a region. Its outputs are visible afterwards.
    fn region(&mut self, indent: &str) {
        let before = self.visible.len();
        writeln!(self.text, "{indent}dataflow {{").unwrap();
        for _ in 0..2 + self.random.usize(..16) {
            let Some((value, ty)) = self.value() else { continue };
            self.count += 1;
            let name = format!("%v{}", self.count);
            writeln!(self.text, "{indent}  let {name} = {value};").unwrap();
            self.visible.push((name, ty));
        }
        let inside = self.visible.split_off(before);
        let last = inside.len().saturating_sub(1);
        let outputs: Vec<(String, Type)> = inside
            .into_iter()
            .enumerate()
            .filter(|(i, _)| *i == last || self.random.usize(..8) == 0)
            .map(|p| p.1)
            .collect();
        let names: Vec<&str> = outputs.iter().map(|(n, _)| n.as_str()).collect();
        writeln!(self.text, "{indent}  output({})\n{indent}}}", names.join(", ")).unwrap();
        self.visible.extend(outputs);
    }

    fn program(seed: u64) -> String {
        let mut g = Generator { random: Rng::with_seed(seed), text: String::new(), visible: Vec::new(), count: 0 };
        g.text.push_str("def @main(%x: Tensor[(4, 4), float32], %r: Tensor[(4,), float32], %flag: bool) {\n");
        g.visible = vec![("%x".to_string(), Type::Square), ("%r".to_string(), Type::Row)];
        for _ in 0..1 + g.random.usize(..3) {
            if g.random.usize(..3) > 0 {
                g.region("  ");
                continue;
            }
            g.count += 1;
            let name = format!("%b{}", g.count);
            writeln!(g.text, "  let {name} = if (%flag) {{").unwrap();
            for branch in 0..2 {
                let before = g.visible.len();
                g.region("    ");
                let tail = g.pick(Type::Square).unwrap();
                writeln!(g.text, "    {tail}").unwrap();
                g.text.push_str(if branch == 0 { "  } else {\n" } else { "  };\n" });
                g.visible.truncate(before);
            }
            g.visible.push((name, Type::Square));
        }
        let all: Vec<&str> = g.visible.iter().map(|(n, _)| n.as_str()).collect();
        writeln!(g.text, "  ({})\n}}", all.join(", ")).unwrap();
        g.text
    }
}

fn parse(text: &str) -> Module {
    parse_module(Source::new("input", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn run(module: &Module, flag: bool) -> Outcome {
    let x: Vec<f32> = (0..16).map(|i| (i as f32 - 7.0) / 5.0).collect();
    let arguments = [
        Literal::from_elements(&[4, 4], &x).unwrap(),
        Literal::from_elements(&[4], &x[3..7]).unwrap(),
        Literal::scalar(flag),
    ];
    Interpreter::new(module).run("main", &arguments).unwrap_or_else(|e| panic!("{e}\n{module}"))
}

fn apply(module: &mut Module, pipeline: &str) -> bool {
    let registry = registry();
    let pipeline = parse_pipeline(&registry, pipeline).unwrap();
    let cx = PassContext::builder().registry(Arc::clone(&registry)).opt_level(3).build().unwrap();
    run_pass(&pipeline, module, &cx).unwrap_or_else(|e| panic!("{e}\n{module}")).is_changed()
}

#[test]
fn random_regions() {
    let mut fused = 0;
    for seed in 0..PROGRAMS {
        let text = Generator::program(seed);
        let before = parse(&text);
        let mut module = before.clone();
        let limits = FusionLimits {
            max_depth: [256, 256, 5, 3][seed as usize % 4],
            max_function_args: [0, 0, 0, 3, 2][seed as usize % 5],
        };
        let done = fuse_ops(&mut module, limits);
        fused += done.groups;
        verify_module(&module).unwrap_or_else(|e| panic!("{e:?}\n{text}\n{module}"));
        for flag in [false, true] {
            assert!(run(&module, flag).same(&run(&before, flag)), "{text}\n{module}");
        }
        let mut again = module.clone();
        assert_eq!(fuse_ops(&mut again, limits).groups, 0, "{text}\n{module}\n{again}");
        assert_eq!(again.to_string(), module.to_string());
        let mut twin = parse(&text);
        fuse_ops(&mut twin, limits);
        assert_eq!(twin.to_string(), module.to_string(), "{text}");
        for (key, f) in module.functions().filter(|(_, f)| f.is_primitive(&module.cx)) {
            assert!(limits.max_function_args == 0 || f.body.params().len() <= limits.max_function_args as usize);
            let bindings = anfora_visit::chain(&f.body, f.body.root()).count();
            assert!((2..=limits.max_depth as usize).contains(&bindings), "@{} has {bindings}", module.name(key));
        }
        // The order of independent bindings may have changed.
        let mut inlined = module;
        apply(&mut inlined, "InlineFunctions,ToGraphNormalForm");
        let mut graph = before;
        apply(&mut graph, "ToGraphNormalForm");
        if let Some(difference) = first_difference(&graph, &inlined) {
            panic!("{difference:?}\n{text}\n{graph}\n{inlined}");
        }
    }
    assert!(fused > PROGRAMS as usize);
}
