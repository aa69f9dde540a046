//! Tests of BindSymbols that a file cannot express: symbols by id, and invalid options.

use anfora_ir::{Dim, Module, Source, SymbolId, parse_module, verify_module};
use anfora_manager::{Pass, PassContext, parse_pipeline};
use anfora_passes::{SymbolRef, bind_symbols, registry};

fn parse(text: &str) -> Module {
    parse_module(Source::new("input", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{e:?}"))
}

/// Returns the first symbol of the first parameter of a function.
fn symbol_of(module: &Module, function: &str) -> SymbolId {
    let body = &module.get(module.find(function).unwrap()).unwrap().body;
    let tensor = module.cx.types.as_tensor(body.ty(body.params()[0].expr())).unwrap();
    let symbols = tensor.dims().filter_map(|&d| match *module.cx.types.dims.get(d) {
        Dim::Symbol(symbol) => Some(symbol),
        _ => None,
    });
    symbols.into_iter().next().unwrap()
}

#[test]
fn a_symbol_may_be_named_by_its_id() {
    let text = "def @f(%x: Tensor[(n,), float32]) { %x } def @g(%x: Tensor[(n,), float32]) { %x }";
    let mut module = parse(text);
    let n = symbol_of(&module, "f");
    assert_eq!(bind_symbols(&mut module, None, &[(SymbolRef::Symbol(n), 16)]).unwrap(), 1);
    verify_module(&module).unwrap();
    assert_eq!(module.to_string(), parse(&text.replacen("(n,)", "(16,)", 1)).to_string());
    let error = bind_symbols(&mut module, Some("g"), &[(SymbolRef::Symbol(n), 16)]).unwrap_err();
    assert_eq!(error.message(), "there is no symbol `n`");
}

#[test]
fn a_symbol_is_bound_once_and_to_an_extent() {
    for (symbols, wanted) in [
        (&[("n", 4), ("n", 4)][..], "the symbol `n` is bound twice"),
        (&[("n", -1)], "the symbol `n` cannot be -1: extents are not negative"),
    ] {
        let mut module = parse("def @f(%x: Tensor[(n,), float32]) { %x }");
        let symbols: Vec<_> = symbols.iter().map(|&(name, extent)| (SymbolRef::Name(name), extent)).collect();
        let error = bind_symbols(&mut module, None, &symbols).unwrap_err();
        assert_eq!(error.message(), wanted);
    }
}

#[test]
fn options_that_are_no_symbols_are_errors_of_the_pipeline() {
    let registry = registry();
    for (text, wanted) in [
        ("BindSymbols{n=4,n=5}", "`n` is given more than once"),
        ("BindSymbols{n=4,\"n\"=5}", "`n` is given more than once"),
        ("BindSymbols{\"n\"=4,n=5}", "`n` is given more than once"),
        ("BindSymbols{\"n\"=4 n=5}", "expected `,` or `}`"),
        ("BindSymbols{n=-1}", "`n` takes a whole number from 0, not `-1`"),
        ("BindSymbols{n=four}", "`n` takes a whole number from 0, not `four`"),
        ("BindSymbols{n=9223372036854775808}", "`n` takes a whole number from 0"),
        ("BindSymbols{n}", "expected `=`"),
        ("BindParams{\"function\"=4}", "unknown option of BindParams `function`"),
    ] {
        let error = parse_pipeline(&registry, text).err().unwrap_or_else(|| panic!("{text} is taken")).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    let text = "BindSymbols{function=main,n=4,\"function\"=5,\"a \\\"b\\\"\"=6,symbols=7}";
    let pipeline = parse_pipeline(&registry, text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(pipeline.to_string(), text, "it is written as it is read");
    let other_order = "BindSymbols{\"function\"=5,function=main}";
    let pipeline = parse_pipeline(&registry, other_order).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(pipeline.to_string(), "BindSymbols{function=main,\"function\"=5}");
}

#[test]
fn many_callers_and_callees_are_adapted_once() {
    // Each function is called by the next one, which knows less of its argument.
    let mut text = String::from("def @f0(%x: Tensor[(n,), float32]) { %x }\n");
    for i in 1..200 {
        let call = i - 1;
        text += &format!("def @f{i}(%x: Tensor[(m,), float32]) {{ let %y = @f{call}(%x); %y }}\n");
    }
    let mut module = parse(&text);
    assert_eq!(bind_symbols(&mut module, None, &[(SymbolRef::Name("n"), 3)]).unwrap(), 1);
    verify_module(&module).unwrap();
    let text = module.to_string();
    assert_eq!(text.matches("match_cast").count(), 1, "{text}");
    assert_eq!(text.matches("-> Tensor[(3,), float32]").count(), 200);
}

#[test]
fn nodes_that_hang_at_several_places_are_meant() {
    let program = "def @main(%x: Tensor[(n,), float32]) {
        let %s = zeros(shape=shape(n));
        let %t = @callee(%x, %x);
        (add(%s, %s), %t)
    }
    def private @callee(%x: Tensor[(m,), float32], %w: Tensor[(k,), float32]) {
        let %s = zeros(shape=shape(m + k));
        add(%s, %s)
    }";
    let registry = registry();
    let options = ["BindSymbols{n=4}", BIND_M, "BindSymbols{n=4},BindSymbols{function=callee,m=4}", BIND_W];
    for pass in options {
        // The graph has shared nodes.
        let text = format!("ToGraphNormalForm,{pass}");
        let pipeline = parse_pipeline(&registry, &text).unwrap_or_else(|e| panic!("{e}"));
        let cx = PassContext::builder().registry(registry.clone()).build().unwrap();
        let mut module = parse(program);
        pipeline.apply(&mut module, &cx).unwrap_or_else(|e| panic!("{pass}: {e}"));
        verify_module(&module).unwrap();
        let remarks: Vec<String> = cx.take_remarks().iter().map(|r| r.diagnostic.to_string()).collect();
        assert!(remarks.iter().all(|r| !r.contains("overwritten")), "{pass}: {remarks:?}");
    }
}

const BIND_M: &str = "BindSymbols{function=callee,m=4}";
const BIND_W: &str = "BindParams{function=callee,params=\"%w=dense<Tensor[(4,), float32]>[1, 2, 3, 4]\"}";

#[test]
fn a_program_that_was_printed_before_is_no_other_one() {
    let text = "def @f0(%x: Tensor[(n,), float32]) { exp(%x) }
    def @f1(%x: Tensor[(m,), float32]) { let %y = @f0(%x); %y }
    def @f2(%x: Tensor[(k,), float32]) { @f1(%x) }";
    let printed = parse(text).to_string();
    assert!(printed.contains("-> Tensor[(m,), float32]"), "{printed}");
    for text in [text, printed.as_str()] {
        let mut module = parse(text);
        assert_eq!(bind_symbols(&mut module, None, &[(SymbolRef::Name("n"), 4)]).unwrap(), 1, "{text}");
        verify_module(&module).unwrap();
        verify_module(&parse(&module.to_string())).unwrap();
    }
}
