//! Random programs with convolutions compute the same in all layouts, also after an export, which
//! brings them into the layout of ONNX again. All axes but the batch have one extent, so that types
//! show no mistake.

use anfora::interp::{Agreement, ArgumentGenerator, Interpreter, Outcome};
use anfora::ir::{Module, Source, parse_module, verify_module};
use anfora::manager::{Pass, PassContext, parse_pipeline};
use anfora::onnx::{ExportOptions, ImportOptions, export, import};
use proptest::prelude::*;

const IMAGE: &str = "Tensor[(1, 4, 4, 4), float32]";

/// A random program of one function: bindings of images, by the numbers of a list.
struct Images<'a> {
    numbers: std::slice::Iter<'a, u8>,
    text: String,
    /// The variables that hold images, in scope.
    images: Vec<String>,
    names: usize,
    depth: usize,
}

impl Images<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.numbers.next().map_or(0, |&number| number as usize % limit)
    }

    fn image(&mut self) -> String {
        let at = self.below(self.images.len());
        self.images[self.images.len() - 1 - at].clone()
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn bind(&mut self, value: &str) -> String {
        let name = self.fresh();
        self.text += &format!("let {name} = {value};\n");
        name
    }

    /// Adds a binding or a few, the last of an image.
    fn statement(&mut self) {
        let x = self.image();
        let image = match self.below(20) {
            0..4 => {
                let kernel = ["%w", "%k"][self.below(2)];
                let attrs = if kernel == "%w" { "" } else { ", padding=[1, 1, 1, 1]" };
                let attrs =
                    if self.below(4) == 0 { format!("{attrs}, data_layout=\"NHWC\"") } else { attrs.to_owned() };
                self.bind(&format!("nn.conv2d({x}, {kernel}{attrs})"))
            }
            4 => self.bind(&format!("nn.conv2d({x}, %w, %b)")),
            5 => self.bind(&format!("nn.relu({x})")),
            6 => {
                let y = self.image();
                self.bind(&format!("add({x}, {y})"))
            }
            7 => {
                let shape = ["(4,)", "(4, 1, 1)", "(4, 1)", "(4, 4)", "(1, 4, 1, 1)", "(4, 4, 4)"][self.below(6)];
                self.bind(&format!("multiply({x}, dense<Tensor[{shape}, float32]>[0.5])"))
            }
            8 => {
                let shift = ["%b", "%c", "%m"][self.below(3)];
                self.bind(&format!("add({x}, {shift})"))
            }
            9 => {
                let (y, axis) = (self.image(), self.below(4));
                let joined = self.bind(&format!("concat({x}, {y}, axis={axis})"));
                let parts = self.bind(&format!("split({joined}, axis={axis}, sections=2)"));
                let index = self.below(2);
                self.bind(&format!("{parts}.{index}"))
            }
            10 => {
                let axis = self.below(4);
                self.bind(&format!("nn.softmax({x}, axis={axis})"))
            }
            11 => {
                let axes = ["0, 2, 3, 1", "0, 3, 1, 2", "0, 1, 3, 2", "0, 3, 2, 1"][self.below(4)];
                self.bind(&format!("permute_dims({x}, axes=[{axes}])"))
            }
            12 => {
                let axis = 1 + self.below(3);
                let mean = self.bind(&format!("mean({x}, axis=[{axis}], keepdims=true)"));
                self.bind(&format!("subtract({x}, {mean})"))
            }
            13 => {
                let axis = 1 + self.below(3);
                let sum = self.bind(&format!("max({x}, axis=[{axis}])"));
                let back = self.bind(&format!("expand_dims({sum}, axis=[{axis}])"));
                self.bind(&format!("add({x}, {back})"))
            }
            14 => {
                let axis = 1 + self.below(3);
                self.bind(&format!(
                    "nn.batch_norm({x}, %b, %b, %b, dense<Tensor[(4,), float32]>[1, 2, 3, 4], axis={axis})"
                ))
            }
            15 => self.bind(&format!("nn.instance_norm({x}, %b, %b)")),
            16 => {
                let pooled = self.bind(&format!("nn.max_pool2d({x}, pool_size=[3, 3], padding=[1, 1, 1, 1])"));
                self.bind(&format!("tanh({pooled})"))
            }
            17 => self.pair(&x),
            _ if self.depth < 3 => self.branches(),
            _ => self.bind(&format!("tanh({x})")),
        };
        self.images.push(image);
    }

    fn pair(&mut self, x: &str) -> String {
        let y = self.image();
        let pair = self.bind(&format!("({x}, {y})"));
        let index = self.below(2);
        self.bind(&format!("{pair}.{index}"))
    }

    /// Adds an If of images, or of pairs of images.
    fn branches(&mut self) -> String {
        let (name, is_pair) = (self.fresh(), self.below(2) == 0);
        let condition = ["%p", "%q"][self.below(2)];
        self.text += &format!("let {name} = if ({condition}) {{\n");
        for branch in 0..2 {
            let outer = self.images.len();
            self.depth += 1;
            for _ in 0..self.below(4) {
                self.statement();
            }
            self.depth -= 1;
            let (x, y) = (self.image(), self.image());
            self.text += &if is_pair { format!("({x}, {y})\n") } else { format!("{x}\n") };
            self.images.truncate(outer);
            self.text += if branch == 0 { "} else {\n" } else { "};\n" };
        }
        if is_pair {
            let index = self.below(2);
            return self.bind(&format!("{name}.{index}"));
        }
        name
    }
}

/// Returns a program that the numbers describe.
fn program(numbers: &[u8]) -> Module {
    let mut images = Images {
        numbers: numbers.iter(),
        text: format!(
            "def @main(%x: {IMAGE}, %y: {IMAGE}, %w: Tensor[(4, 4, 1, 1), float32], %k: Tensor[(4, 4, 3, 3), float32], \
             %b: Tensor[(4,), float32], %c: Tensor[(4, 1, 1), float32], %m: Tensor[(4, 4), float32], %p: bool, %q: bool) {{\n"
        ),
        images: vec!["%x".to_owned(), "%y".to_owned()],
        names: 0,
        depth: 0,
    };
    while images.numbers.len() > 0 {
        images.statement();
    }
    let last: Vec<String> = images.images.iter().rev().take(3).cloned().collect();
    images.text += &format!("({})\n}}\n", last.join(", "));
    let source = Source::new("images", &images.text);
    parse_module(source, anfora::onnx::registry()).unwrap_or_else(|e| panic!("{}\n{}", e[0], images.text))
}

fn result(module: &Module, seed: u64) -> Outcome {
    let function = module.get(module.find("main").unwrap()).unwrap();
    let given = ArgumentGenerator::new(seed).arguments(&module.cx, function).unwrap();
    Interpreter::new(module).call("main", given.values, &given.list).unwrap_or_else(|e| panic!("{e}\n{module}"))
}

fn check_same(before: &Module, after: &Module, what: &str) -> Result<(), TestCaseError> {
    for seed in 0..4 {
        let difference = Agreement::Within(1e-3).first_difference(&result(before, seed), &result(after, seed));
        prop_assert!(difference.is_none(), "{what}: {difference:?}\n{before}\n{after}");
    }
    Ok(())
}

const PIPELINES: [&str; 5] = [
    "ConvertLayout",
    "ConvertLayout{desired=[NHWC:OHWI]}",
    "ConvertLayout{desired=[CWHN:HWIO]}",
    "ConvertLayout{desired=[NHWC:HWIO]},ConvertLayout{desired=[NCHW:OIHW]},SimplifyExpr",
    "ConvertToDataflow{min_size=1},ConvertLayout,FuseOps",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(anfora_testing::cases(60) as u32) })]

    #[test]
    fn convolutions_compute_the_same_in_all_layouts(numbers in prop::collection::vec(any::<u8>(), 4..60)) {
        let registry = anfora::passes::registry();
        let before = program(&numbers);
        for text in PIPELINES {
            let mut module = before.clone();
            let cx = PassContext::builder().registry(registry.clone()).opt_level(3).build().unwrap();
            let pipeline = parse_pipeline(&registry, text).unwrap();
            pipeline.apply(&mut module, &cx).unwrap_or_else(|e| panic!("{text}: {e}\n{before}"));
            prop_assert!(verify_module(&module).is_ok(), "{text}\n{before}\n{module}");
            check_same(&before, &module, text)?;
            let done = module.to_text();
            parse_pipeline(&registry, "ConvertLayout").unwrap().apply(&mut module, &cx).unwrap();
            if text == "ConvertLayout" {
                prop_assert_eq!(done, module.to_text(), "it is not idempotent on\n{}", before);
            }
        }
    }

    #[test]
    fn models_have_the_layout_of_onnx(numbers in prop::collection::vec(any::<u8>(), 4..40)) {
        let registry = anfora::passes::registry();
        let before = program(&numbers);
        let mut module = before.clone();
        parse_pipeline(&registry, "ConvertLayout").unwrap()
            .apply(&mut module, &PassContext::with_registry(registry.clone())).unwrap();
        let model = export(&module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
        let read = import(model.bytes.into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
        prop_assert!(read.kept.is_empty(), "{:?}\n{module}", read.kept);
        check_same(&before, &read.module, "the model")?;
    }
}
