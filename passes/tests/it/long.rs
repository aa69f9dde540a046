//! Tests of smaller passes on long and deep programs with parts that the generated programs lack:
//! casts that bind symbols, bound parameters, and wide tuples of functions.

use std::fmt::Write as _;

use anfora_ir::{Literal, Module, Purity, Source, parse_module, verify_module};
use anfora_passes::{
    OperandOrder, SymbolRef, bind_params, bind_symbols, canonicalize_bindings, eliminate_common_subexpr,
    inline_functions,
};
use anfora_testing::on_small_stack;

const N: usize = 20_000;

fn parse(text: String) -> Module {
    parse_module(Source::new("input", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{e:?}"))
}

fn bindings(module: &Module) -> usize {
    let body = &module.get(module.find("f").unwrap()).unwrap().body;
    anfora_visit::chain(body, body.root()).count()
}

#[test]
fn a_chain_of_casts_each_of_which_binds_a_symbol() {
    on_small_stack(|| {
        let mut text = String::from("def @f(%x0: Tensor[(n,), float32]) {\n");
        for i in 1..=N {
            writeln!(text, "let %x{i} = match_cast(%x{}, to=Tensor[(k{i},), float32]);", i - 1).unwrap();
        }
        writeln!(text, "%x{N} }}").unwrap();
        let mut module = parse(text);
        let key = module.find("f").unwrap();
        let (f, cx) = module.get_mut(key).unwrap();
        let done = canonicalize_bindings(cx, f).unwrap();
        assert_eq!((done.resolved, done.replaced), (N, N));
        assert_eq!(bindings(&module), 0);
    });
}

#[test]
fn lambdas_in_lambdas_each_of_which_casts() {
    on_small_stack(|| {
        let depth = N / 100;
        let mut text = String::from("def @f(%x: Tensor[(n,), float32]) {\n");
        for i in 0..depth {
            writeln!(text, "let %f{i} = fn () {{ let %y{i} = match_cast(%x, to=Tensor[(k{i},), float32]);").unwrap();
        }
        text.push_str("%x ");
        for i in (0..depth).rev() {
            writeln!(text, "}}; %f{i}").unwrap();
        }
        text.push('}');
        let mut module = parse(text);
        let key = module.find("f").unwrap();
        let (f, cx) = module.get_mut(key).unwrap();
        assert_eq!(canonicalize_bindings(cx, f).unwrap().resolved, depth);
        verify_module(&module).unwrap();
    });
}

#[test]
fn symbols_of_long_and_deep_functions_and_of_their_callers() {
    on_small_stack(|| {
        let (depth, mut ty) = (N / 40, "Tensor[(n,), float32]".to_string());
        for _ in 0..depth {
            ty = format!("({ty},)");
        }
        let mut text = format!("def private @f(%x: {ty}, %y: Tensor[(n,), float32], %c: bool) {{\n");
        for _ in 0..depth {
            text.push_str("if (%c) { add(%y, ");
        }
        text.push_str("%y");
        for _ in 0..depth {
            text.push_str(") } else { %y }");
        }
        let ty = ty.replace("(n,)", "(m,)");
        writeln!(text, "}}\ndef @g(%x: {ty}, %y0: Tensor[(m,), float32], %c: bool) {{").unwrap();
        for i in 1..=depth {
            writeln!(text, "let %y{i} = @f(%x, %y{}, %c);", i - 1).unwrap();
        }
        writeln!(text, "%y{depth} }}").unwrap();
        let mut module = parse(text);
        assert_eq!(bind_symbols(&mut module, Some("f"), &[(SymbolRef::Name("n"), 4)]).unwrap(), 1);
        verify_module(&module).unwrap();
        let text = module.to_string();
        assert_eq!(text.matches("match_cast(%y").count(), depth);
        assert!(text.contains("%c: Tensor[(), bool]) -> Tensor[(4,), float32]"));
    });
}

#[test]
fn a_parameter_of_a_long_function_with_many_callers() {
    on_small_stack(|| {
        let mut text = String::from("def @f(%x: Tensor[(n,), float32], %w: Tensor[(n,), float32]) {\nlet %x0 = %x;\n");
        for i in 1..=N {
            writeln!(text, "let %x{i} = add(%x{}, %w);", i - 1).unwrap();
        }
        writeln!(text, "%x{N} }}").unwrap();
        for i in 0..N / 10 {
            writeln!(text, "def @g{i}(%x: Tensor[(2,), float32]) {{ @f(%x, %x) }}").unwrap();
        }
        let mut module = parse(text);
        let literal = Literal::from_elements(&[2], &[1f32, 2f32]).unwrap();
        assert_eq!(bind_params(&mut module, "f", &[("w".into(), literal)]).unwrap(), 1);
        assert_eq!(bindings(&module), N + 2);
        verify_module(&module).unwrap();
    });
}

#[test]
fn a_tuple_of_many_functions() {
    on_small_stack(|| {
        let mut text = String::from("def @f(%x: int32) {\nlet %t = (");
        for i in 0..N {
            write!(text, "@g{i}, @g{}, ", i / 2).unwrap();
        }
        text.push_str("@g0);\nlet %u = %t.0;\n%u(%x) }\n");
        for i in 0..N {
            writeln!(text, "def private @g{i}(%y: int32) {{ add(%y, {i}) }}").unwrap();
        }
        let mut module = parse(text);
        let done = inline_functions(&mut module, &[], None).unwrap();
        assert_eq!((done.uses, done.functions), (N, N));
        // A lambda for each function, the tuple and the projection.
        assert_eq!(bindings(&module), N + 2);
        verify_module(&module).unwrap();
    });
}

/// Equal values in sibling branches are not visible in each other; the table keeps one value of
/// each kind.
#[test]
fn equal_values_in_many_branches_stay_in_them() {
    on_small_stack(|| {
        let mut text = String::from("def @f(%x: float32, %c: bool) {\nlet %r0 = %x;\n");
        for i in 1..=N {
            let branch =
                format!("let %a = exp(%x); let %b = if (%c) {{ exp(%x) }} else {{ %x }}; add(%b, %r{})", i - 1);
            writeln!(text, "let %r{i} = if (%c) {{ {branch} }} else {{ %x }};").unwrap();
        }
        writeln!(text, "%r{N} }}").unwrap();
        let mut module = parse(text);
        let purity = Purity::of_module(&module);
        let key = module.find("f").unwrap();
        let (f, cx) = module.get_mut(key).unwrap();
        // In each branch, the inner `exp` is merged into the outer one.
        let merged = eliminate_common_subexpr(cx, f, &purity, OperandOrder::Exact).unwrap();
        assert_eq!(merged, N);
        verify_module(&module).unwrap();
    });
}
