//! Text is read and printed on several threads as on one.

use std::fmt::Write as _;
use std::sync::Arc;

use anfora_ir::{
    Annotations, Diagnostics, Module, OpRegistry, PrintLiterals, PrintOptions, Source, parse_module, parse_module_on,
    print_module, write_module_on,
};

/// The number of functions of a text, which is read in several chunks.
const FUNCTIONS: usize = 20 * 97;

/// Returns a text of functions with types, symbols, constants, attributes, operators, metadata and
/// functions of their own, and of functions that they share.
fn text(functions: usize) -> String {
    let mut text = String::from("#![origin=\"test\"]\n\ntype !t0 = (Tensor[(2, 3), float32], int64);\n\n");
    for i in 0..functions {
        let (extent, next) = (i % 97 + 1, (i + 5 * 97) % functions);
        let visibility = ["", "private "][i % 2];
        write!(
            text,
            "#[note=\"n{}\"]\ndef {visibility}@f{i}(%x{i}: Tensor[(n, {extent}), float32], %t: !t0) -> Any {{
  let %a = add(%x{i}, {i}.5f);
  let %g = fn (%y: float32) -> float32 {{
    let %b{} = multiply(%y, {}f);
    %b{}
  }};
  let %c = op \"vendor.custom{}\"(%a, scale={}, of=@f{});
  let %d = @f{next}(%x{i}, %t);
  (%c, %d, %g, %t.0)
}}

",
            i % 131,
            i % 400,
            i % 37,
            i % 400,
            i % 59,
            i % 71,
            i % 89,
        )
        .expect("a string takes all text");
    }
    text
}

/// Returns the standard operators, and opaque ones.
fn registry() -> Arc<OpRegistry> {
    let mut registry = OpRegistry::new();
    anfora_ops::register(&mut registry).expect("they are distinct");
    registry.declare_opaque("vendor").expect("it has no operators");
    Arc::new(registry)
}

fn read(threads: usize, text: &str) -> Result<Module, Diagnostics> {
    parse_module_on(threads, Source::new("test", text), registry())
}

/// Checks that several threads read a text as one does. Returns the result.
#[track_caller]
fn check(text: &str) -> Result<Module, Diagnostics> {
    let one = parse_module(Source::new("test", text), registry());
    for threads in [2, 5] {
        match (&one, &read(threads, text)) {
            (Ok(one), Ok(several)) => {
                assert_eq!(one.to_text(), several.to_text());
                let counts = |m: &Module| (m.cx.names.len(), m.cx.types.len(), m.cx.attrs.len(), m.cx.literals.len());
                assert_eq!(counts(one), counts(several));
            }
            (Err(one), Err(several)) => assert_eq!(one.to_string(), several.to_string()),
            (one, several) => panic!("{:?} and {:?}", one.is_ok(), several.is_ok()),
        }
    }
    one
}

#[test]
fn functions_are_read_on_several_threads() {
    let text = text(FUNCTIONS);
    let module = check(&text).expect("the text is right");
    assert_eq!(module.order().len(), FUNCTIONS);
    // Without the empty lines between functions, and with lines that end in another way.
    check(&text.replace("}\n\n", "}\n")).expect("the text is right");
    check(&text.replace('\n', "\r\n")).expect("the text is right");
}

#[test]
fn what_a_chunk_cannot_hold_is_read_on_one_thread() {
    let text = text(FUNCTIONS);
    let in_the_middle = |part: &str| {
        let at = text[text.len() / 2..].find("\n}\n").expect("a function ends there") + text.len() / 2 + 3;
        format!("{}{part}{}", &text[..at], &text[at..])
    };
    for (part, message) in [
        ("type !t1 = int64;\ndef @late(%x: !t1) { %x }\n", None),
        ("/* a comment\n}\n\n}\n over several functions\n}\n */", None),
        ("def @block() {\n  if (true) {\n 1\n}\n else { 2\n}\n}\n", None),
        ("#[key=1]\n", None),
        ("def @f7() { 1 }\n", Some("@f7")),
        ("def @wrong() { add(1 }\n", Some("expected")),
        ("def @wrong() { @gone() }\n", Some("unknown global `@gone`")),
        ("type !t0 = int64;\n", Some("!t0")),
        ("}\n", Some("an item")),
        ("/* a comment that does not end\n}\n", Some("comment")),
        ("def @open() {\n", Some("belongs to a binding")),
        ("def @string() { op \"a\n}\n\"() }\n", Some("string")),
    ] {
        match (check(&in_the_middle(part)), message) {
            (Ok(_), None) => {}
            (Err(errors), Some(message)) => assert!(errors.to_string().contains(message), "{part}: {errors}"),
            (result, _) => panic!("{part}: {:?}", result.map(drop)),
        }
    }
}

#[test]
fn functions_are_printed_on_several_threads() {
    let mut one = read(1, &text(FUNCTIONS)).expect("the text is right");
    for attrs in [one.attrs(), one.cx.attrs.empty()] {
        one.set_attrs(attrs);
        for annotations in [Annotations::Needed, Annotations::All] {
            let options = PrintOptions { annotations, literals: PrintLiterals::Full };
            let mut expected = String::new();
            print_module(&one, &options, &mut expected).expect("a string takes all text");
            for threads in [1, 2, 5] {
                let mut printed = Vec::new();
                write_module_on(threads, &one, &options, &mut printed).expect("a vector takes all text");
                assert!(printed == expected.as_bytes(), "{threads} threads, {annotations:?}");
            }
        }
    }
}
