//! Work grows in proportion to the program: reads and writes through arenas, pools and side tables, counted, a binding, on programs
//! of two sizes.

use anfora::ir::{Module, Source, work};
use anfora::manager::Pass;
use anfora::programs::Shape;

const SMALL: usize = 10_000;
const LARGE: usize = 100_000;

/// Counted work may grow by this factor a binding between the two sizes.
const GROWTH: f64 = 1.2;

type Operation = Box<dyn Fn(&mut Module)>;

fn operations() -> Vec<(String, Operation)> {
    let mut all: Vec<(String, Operation)> = vec![
        ("print".into(), Box::new(|m| drop(m.to_text()))),
        ("verify".into(), Box::new(|m| drop(anfora::ir::verify_module(m).expect("shapes are well-formed")))),
        ("clone".into(), Box::new(|m| drop(m.clone()))),
        ("hash".into(), Box::new(|m| assert_eq!(anfora::ir::module_hash(m), anfora::ir::module_hash(m)))),
        ("alpha-equal".into(), Box::new(|m| assert!(anfora::ir::alpha_equal(m, &m.clone())))),
        ("compact".into(), Box::new(|m| drop(m.compact().expect("no edit is open")))),
    ];
    for pass in anfora::passes::registry().passes() {
        let name = pass.name().to_string();
        all.push((
            name.clone(),
            Box::new(move |m| {
                let registry = anfora::passes::registry();
                let pipeline = anfora::manager::parse_pipeline(&registry, &name).expect("a registered pass");
                let context = anfora::manager::PassContext::builder()
                    .registry(registry)
                    .opt_level(3)
                    .build()
                    .expect("an empty context");
                if let Err(failure) = pipeline.apply(m, &context) {
                    panic!("{name}: {failure}");
                }
            }),
        ));
    }
    all
}

fn counted(f: impl FnOnce()) -> u64 {
    let before = work::count();
    f();
    work::count() - before
}

fn in_normal_form(shape: Shape, n: usize) -> Module {
    let mut module = shape.build(n, 1).expect("a shape builds");
    let registry = anfora::passes::registry();
    let pipeline = anfora::manager::parse_pipeline(&registry, "ToANormalForm").expect("a registered pass");
    let context = anfora::manager::PassContext::builder().registry(registry).build().expect("an empty context");
    pipeline.apply(&mut module, &context).expect("every shape has an A-normal form");
    module
}

#[test]
fn work_a_binding_does_not_grow_with_the_program() {
    let mut failures = Vec::new();
    // The random program of one size is another program than that of another size.
    for shape in Shape::all().filter(|s| s.name() != "random") {
        let (small, large) = (in_normal_form(shape, SMALL), in_normal_form(shape, LARGE));
        let mut check = |name: &str, a: u64, b: u64| {
            let growth = (b as f64 / LARGE as f64) / (a.max(1) as f64 / SMALL as f64);
            assert!(b > 0 || name == "clone", "{name} on {} does nothing that is counted", shape.name());
            if growth > GROWTH {
                failures.push(format!("{name} on {}: {growth:.2}x", shape.name()));
            }
        };
        for (name, operation) in operations() {
            let (mut a, mut b) = (small.clone(), large.clone());
            check(&name, counted(|| operation(&mut a)), counted(|| operation(&mut b)));
        }
        let parse = |text: String| {
            counted(|| {
                let parsed = anfora::ir::parse_module(Source::new("linear.anf", text), anfora::ops::standard());
                assert!(parsed.is_ok());
            })
        };
        check("parse", parse(small.to_text()), parse(large.to_text()));
    }
    assert!(failures.is_empty(), "work grows faster than the program:\n{}", failures.join("\n"));
}
