//! Text is read and printed on several threads as on one.

use std::fmt::Write as _;
use std::sync::Arc;

use anfora_ir::{
    Annotations, Diagnostics, EntityId, Module, OpRegistry, PrintLiterals, PrintOptions, Source, parse_module,
    parse_module_on, print_module, write_module_on,
};

/// The number of functions of a text, which is read in several chunks.
const FUNCTIONS: usize = 12 * 97;

/// Returns a text of functions with types, symbols, constants, attributes, operators, metadata and
/// functions of their own, and of functions that they share.
fn text(functions: usize) -> String {
    let mut text = String::from(
        "#![origin=\"test\"]\n\ntype !t0 = (Tensor[(2, 3), float32], int64);\n\n\
         declare @outside(%x: float32) -> float32;\n",
    );
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
  let %h = vendor.with(%x{i}, f=fn (%z: (int64, (int64, int64), (int64, int64), (int64, int64), bool)) -> int64 {{
    let %u = %z.1;
    %u.0
  }});
  let %once = if (true) {{ let %v = add(%t.1, %t.1); %v }} else {{ %t.1 }};
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

/// Returns the entries of the tables of a module by their ids, and the nodes of its functions with
/// their types and places.
fn contents(module: &Module) -> String {
    let cx = &module.cx;
    let mut text = format!("{} types, {} constants, {} values", cx.types.len(), cx.literals.len(), cx.attrs.len());
    let symbols = (0..cx.types.dims.symbol_count()).map(EntityId::from_index);
    let symbols = symbols.map(|symbol| cx.names.get(cx.types.dims.symbol_name(symbol))).collect::<Vec<_>>();
    let globals: Vec<_> = cx.globals.iter().map(|(id, global)| (id, cx.names.get(global.name))).collect();
    write!(text, "{symbols:?} {globals:?} {}", cx.function_attrs.iter().count()).expect("a string takes all text");
    for (key, function) in module.functions() {
        let body = &function.body;
        let nodes = body.exprs().map(|(id, expr)| (expr, body.ty(id), body.span(id)));
        let nodes: Vec<_> = nodes.collect();
        write!(text, "{} {:?} {:?} {nodes:?}", module.name(key), function.span, function.ret).expect("it takes all");
    }
    text
}

/// Checks that several threads read a text as one does. Returns the result.
#[track_caller]
fn check(text: &str) -> Result<Module, Diagnostics> {
    let one = parse_module(Source::new("test", text), registry());
    for threads in [2, 5] {
        match (&one, &read(threads, text)) {
            (Ok(one), Ok(several)) => {
                assert_eq!(one.to_text(), several.to_text());
                assert_eq!(contents(one), contents(several));
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
    assert_eq!(module.order().len(), FUNCTIONS + 1);
    // Without the empty lines between functions, and with lines that end in another way.
    check(&text.replace("}\n\n", "}\n")).expect("the text is right");
    check(&text.replace('\n', "\r\n")).expect("the text is right");
}

/// Functions in graph form, with the same ids of nodes.
const GRAPHS: &str = "def @graph(%x: int64, %c: bool) {
  %a = if (%c) { let %y = add(%x, %x); %y } else { %x };
  add(%a, %x)
}
def @again(%x: int64, %c: bool) {
  %a = if (%c) { let %y = add(%x, %x); %y } else { %x };
  add(%a, %x)
}
";

#[test]
fn nodes_with_blocks_are_used_once_in_each_function() {
    let text = text(FUNCTIONS).replacen("#![origin=\"test\"]", "", 1);
    check(&format!("{GRAPHS}{text}{}", GRAPHS.replace("@graph", "@graph2").replace("@again", "@again2")))
        .expect("the text is right");
}

#[test]
fn aliases_that_are_longer_than_a_chunk_come_first() {
    let aliases: String = (0..6000).map(|i| format!("type !u{i} = Tensor[({i}, {i}), int8];\n")).collect();
    check(&(aliases + &text(FUNCTIONS).replacen("#![origin=\"test\"]", "", 1))).expect("the text is right");
}

#[test]
fn chunks_with_errors_are_read_again() {
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
        ("attr !a0 = [1, 2];\ndef @late() { vendor.call(key=!a0) }\n", None),
        // Each use of a node with a block is the only one of its function.
        (GRAPHS, None),
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
