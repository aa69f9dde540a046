//! No shape of program overflows the stack: every operation, on every shape, on a thread with a 64 KiB stack.
//!
//! The ordinary run goes 100,000 deep; `ANFORA_DEEP=1000000` sets another depth. Types and attributes nest 100,000 deep at the most, since each level of a
//! nested type is a type of its own, which the text has to name.

use std::collections::BTreeMap;
use std::fmt::Write;

use anfora::ir::{Module, Purity, Source, Type, TypeId};
use anfora::manager::Pass;
use anfora::programs::Shape;

const STACK: usize = 64 * 1024;

fn depth() -> usize {
    match std::env::var("ANFORA_DEEP") {
        Ok(text) => text.parse().expect("ANFORA_DEEP is a number"),
        Err(_) => 100_000,
    }
}

/// Runs `work` on a thread with a small stack; an overflow ends the process.
fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread starts");
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// How deep a shape is taken. Types of a nested tuple nest as deep as it does.
fn size_of(shape: Shape) -> usize {
    if shape.name() == "nested-tuple" { depth().min(100_000) } else { depth() }
}

fn build(shape: Shape) -> Module {
    shape.build(size_of(shape), 1).expect("a shape builds")
}

fn verify(module: &Module, after: &str) {
    if let Err(errors) = anfora::ir::verify_module(module) {
        panic!("{after}: {}", errors[0]);
    }
}

/// Each shape through everything that is not a pass, on the small stack.
fn every_operation(shape: Shape) {
    on_small_stack(move || {
        let module = build(shape);
        verify(&module, "built");
        let text = module.to_text();
        let parsed = anfora::ir::parse_module(Source::new("deep.anf", text.clone()), anfora::ops::standard());
        let parsed = match parsed {
            Ok(m) => m,
            Err(errors) => panic!("{}: {}", shape.name(), errors[0]),
        };
        verify(&parsed, "parsed");
        assert!(parsed.to_text() == text, "{}: printing what was parsed gives another text", shape.name());
        assert!(anfora::ir::alpha_equal(&module, &parsed), "{}: parsing gives another program", shape.name());
        assert!(anfora::ir::first_difference(&module, &parsed).is_none());
        assert_eq!(anfora::ir::module_hash(&module), anfora::ir::module_hash(&parsed));
        let mut clone = parsed.clone();
        assert!(clone.compact().is_ok());
        verify(&clone, "compacted");
        assert!(clone.to_text() == text, "{}: compaction changes the text", shape.name());
        let purity = Purity::of_module(&module);
        let main = module.cx.find_global("main").expect("every shape has a main");
        assert_eq!(purity.global_is_pure(main), !text.contains("print("), "{}", shape.name());
        let mut nodes = 0usize;
        let body = &module.functions().last().expect("main").1.body;
        let mut cursor = anfora::ir::Cursor::new(body);
        while cursor.next(body).is_some() {
            nodes += 1;
        }
        assert!(nodes >= size_of(shape));
        drop(module);
        drop(parsed);
        drop(clone);
    });
}

/// Each shape through each registered pass.
fn every_pass(shape: Shape) {
    let names: Vec<String> = anfora::passes::registry().passes().iter().map(|p| p.name().to_string()).collect();
    for name in names {
        on_small_stack(move || {
            let mut module = build(shape);
            let registry = anfora::passes::registry();
            let needs_anf = name != "ToANormalForm";
            let pipeline = if needs_anf { format!("ToANormalForm,{name}") } else { name.clone() };
            let pipeline = anfora::manager::parse_pipeline(&registry, &pipeline).expect("a registered pass");
            let context = anfora::manager::PassContext::builder()
                .registry(registry)
                .opt_level(3)
                .build()
                .expect("an empty context is valid");
            if let Err(failure) = pipeline.apply(&mut module, &context) {
                panic!("{name} on {}: {failure}", shape.name());
            }
            verify(&module, &name);
        });
    }
}

macro_rules! shapes {
    ($($test:ident $pass_test:ident $shape:literal;)*) => {
        $(
            #[test]
            fn $test() {
                every_operation($shape.parse().expect("a shape"));
            }
            #[test]
            fn $pass_test() {
                every_pass($shape.parse().expect("a shape"));
            }
        )*

        #[test]
        fn every_shape_is_tested() {
            let tested = [$($shape),*];
            for shape in Shape::all() {
                assert!(tested.contains(&shape.name()), "{} is not tested", shape.name());
            }
        }
    };
}

shapes! {
    chain chain_passes "chain";
    dead dead_passes "dead";
    dup dup_passes "dup";
    constant constant_passes "const";
    diamond diamond_passes "diamond";
    skip skip_passes "skip";
    nested_if nested_if_passes "nested-if";
    nested_fn nested_fn_passes "nested-fn";
    nested_call nested_call_passes "nested-call";
    nested_tuple nested_tuple_passes "nested-tuple";
    let_in_value let_in_value_passes "let-in-value";
    if_in_value if_in_value_passes "if-in-value";
    siblings siblings_passes "siblings";
    random random_passes "random";
}

#[test]
fn nested_types_and_attributes() {
    on_small_stack(|| {
        let n = depth().min(100_000);
        let mut text = String::from("def @main(%x: ");
        text.push_str(&"(".repeat(n));
        text.push_str("Tensor[(), int32]");
        text.push_str(&",)".repeat(n));
        text.push_str(", note=");
        text.push_str(&"[".repeat(n));
        text.push('1');
        text.push_str(&"]".repeat(n));
        writeln!(text, ") {{ %x }}").expect("writing to a string succeeds");
        let source = Source::new("types.anf", text);
        let module = match anfora::ir::parse_module(source, anfora::ops::standard()) {
            Ok(m) => m,
            Err(errors) => panic!("{}", errors[0]),
        };
        let printed = module.to_text();
        let again = anfora::ir::parse_module(Source::new("again.anf", printed.clone()), anfora::ops::standard());
        let again = match again {
            Ok(m) => m,
            Err(errors) => panic!("{}", errors[0]),
        };
        assert!(again.to_text() == printed);
        assert!(anfora::ir::alpha_equal(&module, &again));
        let body = &module.functions().next().expect("main").1.body;
        let mut depths: BTreeMap<usize, TypeId> = BTreeMap::new();
        let mut ty = body.ty(body.params()[0].expr());
        while let Type::Tuple(fields) = module.cx.types.get(ty) {
            depths.insert(depths.len(), ty);
            ty = fields[0];
        }
        assert_eq!(depths.len(), n);
    });
}
