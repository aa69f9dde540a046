//! Tests of FuseOps on random dataflow graphs: results stay the same bit for bit, a second run
//! changes nothing, and InlineFunctions restores the program.

use std::sync::Arc;

use anfora_interp::{Interpreter, Outcome};
use anfora_ir::{Literal, Module, first_difference, verify_module};
use anfora_manager::{PassContext, parse_pipeline, run_pass};
use anfora_passes::{FusionLimits, fuse_ops, registry};
use anfora_testing::programs::{Random, Vocabulary};

fn run(module: &Module, flag: bool) -> Outcome {
    let x: Vec<f32> = (0..20).map(|i| (i as f32 - 7.0) / 5.0).collect();
    let arguments = [
        Literal::from_elements(&[4, 4], &x[..16]).unwrap(),
        Literal::from_elements(&[4], &x[3..7]).unwrap(),
        Literal::from_elements(&[5, 4], &x).unwrap(),
        Literal::from_elements(&[3, 4], &x[5..17]).unwrap(),
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
    let programs = anfora_testing::cases(250);
    for seed in 0..programs as u64 {
        let random = Random { vocabulary: Vocabulary::Regions, size: 12 + seed as usize % 50, seed };
        let before = random.module();
        let mut module = before.clone();
        let limits = FusionLimits {
            max_depth: [256, 256, 5, 3][seed as usize % 4],
            max_function_args: [0, 0, 0, 3, 2][seed as usize % 5],
        };
        let done = fuse_ops(&mut module, limits);
        fused += done.groups;
        verify_module(&module).unwrap_or_else(|e| panic!("{e:?}\n{before}\n{module}"));
        for flag in [false, true] {
            assert!(run(&module, flag).same(&run(&before, flag)), "{before}\n{module}");
        }
        let mut again = module.clone();
        assert_eq!(fuse_ops(&mut again, limits).groups, 0, "{before}\n{module}\n{again}");
        assert_eq!(again.to_string(), module.to_string());
        let mut twin = random.module();
        fuse_ops(&mut twin, limits);
        assert_eq!(twin.to_string(), module.to_string(), "{before}");
        for (key, f) in module.functions().filter(|(_, f)| f.is_primitive(&module.cx)) {
            assert!(limits.max_function_args == 0 || f.body.params().len() <= limits.max_function_args as usize);
            let bindings = anfora_visit::chain(&f.body, f.body.root()).count();
            assert!((2..=limits.max_depth as usize).contains(&bindings), "@{} has {bindings}", module.name(key));
        }
        // The order of independent bindings may have changed.
        let mut inlined = module;
        apply(&mut inlined, "InlineFunctions,ToGraphNormalForm");
        let mut graph = before.clone();
        apply(&mut graph, "ToGraphNormalForm");
        if let Some(difference) = first_difference(&graph, &inlined) {
            panic!("{difference:?}\n{before}\n{graph}\n{inlined}");
        }
    }
    assert!(fused > programs, "only {fused} groups");
}
