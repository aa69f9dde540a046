//! All differences of two modules.

use anfora_ir::{
    AlphaOptions, DType, DifferenceKind, Expr, ExprId, FunctionBuilder, ItemKind, Literal, MetaPolicy, Module, Source,
    alpha_equal, diff, diff_with, parse_module,
};
use anfora_testing::{depth, on_small_stack};

use crate::tiny::{SHAPES, Shape, deep, deep_type_and_attribute, registry};

fn module(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// Returns the lines of the difference of two texts.
fn lines(left: &str, right: &str) -> Vec<String> {
    let (left, right) = (module(left), module(right));
    let differences = diff(&left, &right);
    assert_eq!(differences.is_empty(), alpha_equal(&left, &right));
    let text = differences.to_string();
    assert_eq!(differences.len(), text.lines().count(), "{text}");
    assert_eq!(differences.len(), diff(&right, &left).len(), "{text}");
    text.lines().map(str::to_string).collect()
}

const V: &str = "Tensor[(8,), float32]";

/// Returns the lines of the difference of two functions from `%x` and `%y` with these statements.
fn body_lines(left: &str, right: &str) -> Vec<String> {
    let function = |body: &str| format!("def @main(%x: {V}, %y: {V}) {{ {body} }}");
    lines(&function(left), &function(right))
}

#[test]
fn a_changed_binding_says_what_changed() {
    let cases = [
        ("let %a = add(%x, %y); %a", "let %a = subtract(%x, %y); %a", "@main %a: operator add -> subtract"),
        ("let %a = add(%x, %y); %a", "let %a = add(%x, %x); %a", "@main %a: operand 1 %y -> %x"),
        ("let %a = add(%x, 1f); %a", "let %a = add(%x, 1.5f); %a", "@main %a: operand 1 1f -> 1.5f"),
        (
            "let %a = nn.softmax(%x, axis=0); %a",
            "let %a = nn.softmax(%x, axis=-1); %a",
            "@main %a: attribute axis 0 -> -1",
        ),
        ("let %a = (%x, %y); %a.0", "let %a = (%x, %y); %a.1", "@main result: field .0 -> .1"),
        ("let %a = add(%x, %y); %a", "let %a = add(%x, %y); %x", "@main result: value %a -> %x"),
        (
            "let %a = add(%x, %y); %a",
            "let %a = (%x, %y); %a.0",
            "@main %a: value add(%x, %y) -> (%x, %y)\n@main result: value %a -> %a.0",
        ),
        ("let %a = add(%x, %y); %a", "let %a = add(%x, %y); let %b = tanh(%a); %a", "@main %b: added: tanh(%a)"),
        ("let %a = tanh(%x); %x", "%x", "@main %a: removed: tanh(%x)"),
        ("let %b = (%x, %y, %x); %b", "let %b = (%x, %x, %y, %x); %b", "@main %b: operand 1 added: %x"),
    ];
    for (left, right, expected) in cases {
        assert_eq!(body_lines(left, right).join("\n"), expected);
    }
}

#[test]
fn an_edit_is_one_difference_whatever_the_names() {
    let left = "let %a = add(%x, %y); let %b = tanh(%a); let %c = exp(%b); let %d = multiply(%c, %a); %d";
    let edited = left.replace("exp", "negative");
    assert_eq!(body_lines(left, &edited), ["@main %c: operator exp -> negative"]);
    let renamed = edited.replace("%a", "%p").replace("%b", "%q").replace("%c", "%r").replace("%d", "%s");
    assert_eq!(body_lines(left, &renamed), ["@main %c (now %r): operator exp -> negative"]);
    // The names are shifted by one, so that each names another binding.
    let shifted = left.replace("%d", "%e").replace("%c", "%d").replace("%b", "%c").replace("%a", "%b");
    assert_eq!(body_lines(left, &shifted), [""; 0]);
    let inserted = format!("let %a = sqrt(%x); {shifted}");
    assert_eq!(body_lines(left, &inserted), ["@main %a: added: sqrt(%x)"]);
}

#[test]
fn a_moved_binding_is_one_difference() {
    let left = "let %a = tanh(%x); let %b = exp(%x); let %c = sqrt(%x); let %d = (%a, %b, %c); %d";
    let right = "let %b = exp(%x); let %c = sqrt(%x); let %a = tanh(%x); let %d = (%a, %b, %c); %d";
    assert_eq!(body_lines(left, right), ["@main %a: moved first -> after %c"]);
    let right = right.replace("%a", "%p");
    assert_eq!(body_lines(left, &right), ["@main %a (now %p): moved first -> after %c"]);
    let inside = |first: &str, second: &str| {
        format!(
            "def @main(%x: {V}, %p: bool) {{
               {first}
               let %i = if (%p) {{ {second} let %b = exp(%x); %b }} else {{ %x }};
               (%i, %x)
             }}"
        )
    };
    let found = lines(&inside("let %a = tanh(%x);", ""), &inside("", "let %a = tanh(%x);"));
    assert_eq!(found, ["@main %a: moved first in the function -> first in then of %i"]);
    let before = module(&inside("let %a = tanh(%x);", ""));
    let after = module(&inside("", "let %a = tanh(%x);"));
    let places = |left, right| {
        let found = diff(left, right);
        let [item] = &found.functions[0].items[..] else { panic!("{found:?}") };
        (item.place.clone(), item.right_place.clone())
    };
    assert_eq!(places(&before, &after), (None, Some("then of %i".to_string())));
    assert_eq!(places(&after, &before), (Some("then of %i".to_string()), Some("the function".to_string())));
}

#[test]
fn a_change_in_a_dataflow_region_says_what_changed() {
    let text = |body: &str| format!("dataflow {{ let %a = tanh(%x); let %b = exp(%a); {body} }} %b");
    let found = body_lines(&text("output(%b);"), &text("output(%a, %b);"));
    assert_eq!(
        found,
        ["@main %a: dataflow the first of a dataflow region -> the first of a dataflow region, and an output"]
    );
}

#[test]
fn blocks_are_compared_inside() {
    let text = |then: &str, other: &str| {
        format!(
            "def @main(%x: {V}, %p: bool) {{
               let %i = if (%p) {{ let %a = tanh(%x); {then} }} else {{ {other} }};
               let %f = fn (%u: {V}) -> {V} {{ let %w = exp(%u); %w }};
               let %r = %f(%i);
               %r
             }}"
        )
    };
    assert_eq!(lines(&text("%a", "%x"), &text("%x", "%x")), ["@main result in then of %i: value %a -> %x"]);
    let found = lines(&text("%a", "%x"), &text("%a", "let %b = exp(%x); %b"));
    assert_eq!(found, ["@main %b in else of %i: added: exp(%x)", "@main result in else of %i: value %x -> %b"]);
    let in_fn = text("%a", "%x").replace("exp(%u)", "sqrt(%u)");
    assert_eq!(lines(&text("%a", "%x"), &in_fn), ["@main %w in fn of %f: operator exp -> sqrt"]);
    let without = format!("def @main(%x: {V}, %p: bool) {{ %x }}");
    let found = lines(&text("%a", "%x"), &without);
    assert_eq!(
        found,
        [
            "@main %i: removed: if %p, with 1 binding",
            "@main %f: removed: a fn, with 1 binding",
            "@main %r: removed: %f(%i)",
            "@main result: value %r -> %x",
        ]
    );
}

#[test]
fn nested_expressions_are_compared_where_they_are() {
    assert_eq!(
        body_lines("add(tanh(%x), %y)", "add(exp(%x), %y)"),
        ["@main expression in the result: operator tanh -> exp"]
    );
    assert_eq!(body_lines("add(tanh(%x), %y)", "add(%x, %y)"), ["@main result: operand 0 tanh(%x) -> %x"]);
    // One node with two uses is not two nodes.
    let shared = "let %a = add(%x, %y); %0 = tanh(%a); (%0, %0)";
    let twice = "let %a = add(%x, %y); %0 = tanh(%a); %1 = tanh(%a); (%0, %1)";
    assert_eq!(body_lines(shared, twice).len(), 1);
}

#[test]
fn constants_show_how_far_they_are_apart() {
    let text = |elements: &str| format!("let %a = add(%x, dense<Tensor[(8,), float32]>[{elements}]); %a");
    let found = body_lines(&text("1, 2, 3, 4, 5, 6, 7, 8"), &text("1, 2, 3.5, 4, 5, 6, 7, 7"));
    let [line] = &found[..] else { panic!("{found:#?}") };
    assert!(line.ends_with("(2 of 8 elements differ, by at most 1)"), "{line}");
    let found = body_lines(&text("1"), &text("1, 1, 1, 1, 1, 1, 1, 1.25"));
    assert!(found[0].ends_with("(1 of 8 elements differ, by at most 0.25)"), "{found:?}");
    let found = body_lines(&text("1"), &text("2"));
    assert!(found[0].ends_with("(8 of 8 elements differ, by at most 1)"), "{found:?}");
}

#[test]
fn elements_of_all_types_are_compared() {
    let text = |ty: &str, elements: &str| format!("def @main() {{ (dense<Tensor[(3,), {ty}]>[{elements}], 1f) }}");
    for (ty, left, right, expected) in [
        // The numbers are the same as float64.
        ("int64", "9007199254740993, 1, 1", "9007199254740992, 1, 1", "1 of 3 elements differ, by at most 1"),
        (
            "int64",
            "9223372036854775807, 0, 0",
            "-9223372036854775808, 0, 1",
            "2 of 3 elements differ, by at most 18446744073709551615",
        ),
        ("uint64", "18446744073709551615, 0, 0", "18446744073709551614, 0, 0", "1 of 3 elements differ, by at most 1"),
        ("int4", "1, 2, 3", "1, 2, 4", "1 of 3 elements differ"),
        ("uint4", "1, 1, 1", "2, 1, 2", "2 of 3 elements differ"),
        ("bool", "true, false, true", "true, true, true", "1 of 3 elements differ"),
    ] {
        let found = lines(&text(ty, left), &text(ty, right));
        assert!(found.len() == 1 && found[0].ends_with(&format!("({expected})")), "{ty}: {found:?}");
    }
}

#[test]
fn long_lists_show_where_they_differ_first() {
    let text = |last: usize| {
        let items: Vec<String> = (0..99).chain([last]).map(|i| i.to_string()).collect();
        format!("#![k=[{}]]\ndef @main() {{ () }}", items.join(", "))
    };
    let found = lines(&text(5), &text(6));
    assert!(found[0].starts_with("module: attribute k [0, 1, 2"), "{found:?}");
    assert!(found[0].ends_with("… (first at [99]: 5 -> 6)"), "{found:?}");
}

#[test]
fn parameters_and_results_are_part_of_the_difference() {
    let f = |head: &str, result: &str| format!("def @main({head}) {{ {result} }}");
    let with = |n: usize| format!("%x: Tensor[({n},), float32]");
    let found = lines(&f(&with(8), "1f"), &f(&with(9), "1f"));
    assert_eq!(found, ["@main parameter %x: type Tensor[(8,), float32] -> Tensor[(9,), float32]"]);
    let found = lines(&f(&with(8), "1f"), &f(&format!("%n: int32, {}", with(8)), "1f"));
    assert_eq!(found, ["@main parameter %n: added: Tensor[(), int32]"]);
    let found = lines("def @main(%a: int32, %b: bool) { 1f }", "def @main(%b: bool, %a: int32) { 1f }");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("moved"), "{found:?}");
    let found = lines("def @main(%a: int32, A=1) { 1f }", "def private @main(%a: int32, A=2) { 1f }");
    assert_eq!(found, ["@main: visibility public -> private; attribute A 1 -> 2"]);
}

#[test]
fn symbols_correspond_by_name_and_then_in_order() {
    let f = |a: &str, b: &str, op: &str| {
        format!(
            "def @main(%x: Tensor[({a} + {b},), float32], %y: Tensor[({a},), float32], %z: Tensor[({b},), float32]) {{
               let %r = {op}(%x);
               (%r, %y)
             }}"
        )
    };
    assert_eq!(lines(&f("n", "m", "tanh"), &f("a", "b", "tanh")), [""; 0]);
    assert_eq!(lines(&f("n", "m", "tanh"), &f("a", "b", "exp")), ["@main %r: operator tanh -> exp"]);
    // The names are swapped throughout, and the operator differs.
    assert_eq!(lines(&f("n", "m", "tanh"), &f("m", "n", "exp")), ["@main %r: operator tanh -> exp"]);
    // They are swapped in one function, and another one differs.
    let other = |op: &str| format!("\ndef @other(%x: float32) {{ let %o = {op}(%x); %o }}");
    let (left, right) = (f("n", "m", "tanh") + &other("tanh"), f("m", "n", "tanh") + &other("exp"));
    assert_eq!(lines(&left, &right), ["@other %o: operator tanh -> exp"]);
    // A new parameter comes first, so the symbols correspond by name.
    let g =
        |first: &str| format!("def @main({first}%x: Tensor[(n,), float32], %y: Tensor[(m,), float32]) {{ (%x, %y) }}");
    assert_eq!(lines(&g(""), &g("%p: Tensor[(m,), float32], ")), ["@main parameter %p: added: Tensor[(m,), float32]"]);
    let same = "def @main(%x: Tensor[(n,), float32], %y: Tensor[(n,), float32]) { 1f }";
    let other = same.replacen("(n,)", "(m,)", 1);
    assert_eq!(lines(same, &other).len(), 1);
}

#[test]
fn functions_are_matched_by_name_and_content() {
    let f = |name: &str, op: &str| format!("def {name}(%x: {V}) {{ let %a = {op}(%x); %a }}\n");
    let (a, b) = (f("@a", "tanh") + &f("@b", "exp"), f("@b", "exp") + &f("@a", "tanh"));
    assert_eq!(lines(&a, &b), [""; 0]);
    assert_eq!(lines(&a, &(f("@a", "tanh") + &f("@c", "exp"))), ["@b (now @c): renamed @b -> @c"]);
    assert_eq!(lines(&a, &f("@b", "exp")), ["@a: removed, with 1 binding"]);
    let found = lines(&a, &(f("@a", "sqrt") + &f("@b", "exp") + &f("@c", "sqrt")));
    assert_eq!(found, ["@a %a: operator tanh -> sqrt", "@c: added, with 1 binding"]);
    // The names of private functions do not count, but help where nothing else does.
    let main = |first: &str, second: &str| {
        format!("def @main(%x: {V}) {{ let %p = {first}(%x); let %q = {second}(%p); %q }}\n")
    };
    let left = f("private @f", "tanh") + &f("private @g", "exp") + &main("@f", "@g");
    let swapped = f("private @g", "tanh") + &f("private @f", "exp") + &main("@g", "@f");
    assert_eq!(lines(&left, &swapped), [""; 0]);
    let changed = f("private @f", "tanh") + &f("private @g", "sqrt") + &main("@f", "@g");
    assert_eq!(lines(&left, &changed), ["@g %a: operator exp -> sqrt"]);
    let changed = f("private @p", "tanh") + &f("private @q", "sqrt") + &main("@p", "@q");
    assert_eq!(lines(&left, &changed), ["@g (now @q) %a: operator exp -> sqrt"]);
}

#[test]
fn functions_in_attributes_are_compared() {
    let text = |op: &str, used: &str| {
        format!(
            "def @main(%x: {V}) {{
               let %a: {V} = onnx.Loop(%x, body=fn (%u: {V}) {{ {op}(%u) }});
               let %b = {used}(%a);
               %b
             }}"
        )
    };
    let parsed = |op, used| {
        let text = text(op, used);
        parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{e:?}"))
    };
    assert!(diff(&parsed("negative", "random"), &parsed("negative", "random")).is_empty());
    let both = diff(&parsed("negative", "negative"), &parsed("random", "random")).to_string();
    assert_eq!(
        both,
        "@main %b: operator negative -> random\n@main result in body of %a: operator negative -> random\n"
    );
}

#[test]
fn functions_in_attributes_are_compared_inside() {
    let parsed = |body: &str, other: &str| {
        let text = format!(
            "def @main(%x: {V}) {{
               let %a: {V} = onnx.Loop(%x, body=fn (%u: {V}) {{ {body} }}, k=1);
               let %b: {V} = onnx.Loop(%a, body=fn (%u: {V}) {{ {body} }}, branches=[fn (%u: {V}) {{ {other} }}]);
               %b
             }}"
        );
        parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{e:?}"))
    };
    let nested =
        |op: &str| format!("let %i: {V} = onnx.Inner(%u, body=fn (%w: {V}) {{ let %deep = {op}(%w); %deep }}); %i");
    let text = |left: &Module, right: &Module| diff(left, right).to_string();
    let (left, right) = (parsed(&nested("negative"), "%u"), parsed(&nested("random"), "negative(%u)"));
    assert_eq!(
        text(&left, &right),
        "@main result in branches[0] of %b: value %u -> negative(%u)\n\
         @main %deep in body of %i in body of %a: operator negative -> random\n\
         @main %deep in body of %i in body of %b: operator negative -> random\n"
    );
    assert_eq!(diff(&left, &right).len(), diff(&right, &left).len());
    // If calls share a function, its inside is shown once.
    let shared = |mut module: Module| {
        let key = module.find("main").expect("it is there");
        let (function, _) = module.get_mut(key).expect("it is there");
        let calls: Vec<ExprId> =
            function.body.exprs().filter(|(_, expr)| matches!(expr, Expr::CallOp { .. })).map(|(id, _)| id).collect();
        let [first, second] = calls[..] else { panic!("{calls:?}") };
        let Expr::CallOp { attrs: of_first, .. } = function.body.expr(first) else { panic!("a call") };
        let Expr::CallOp { op, operands, .. } = function.body.expr(second) else { panic!("a call") };
        function.body.set_expr(second, Expr::CallOp { op, operands, attrs: of_first });
        module
    };
    assert_eq!(
        text(&shared(left), &shared(right)),
        "@main %b: attribute body a function -> a function (the same functions as in body of %a)\n\
         @main %deep in body of %i in body of %a: operator negative -> random\n"
    );
    // The signature of a function belongs to its call.
    let typed = |ty: &str| {
        let text =
            format!("def @main(%x: {V}) {{ let %a: {V} = onnx.Loop(%x, body=fn (%u: {ty}) -> {ty} {{ %u }}); %a }}");
        parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{e:?}"))
    };
    let (left, right) = (typed("int32"), typed("int64"));
    assert_eq!(
        text(&left, &right),
        "@main %a: attribute body a function -> a function (result type Tensor[(), int32] -> Tensor[(), int64])\n\
         @main parameter %u in body of %a: type Tensor[(), int32] -> Tensor[(), int64]\n"
    );
}

#[test]
fn differing_functions_in_attributes_nest_deep() {
    on_small_stack(|| {
        let parsed = |op: &str| {
            let (mut text, size) = (String::new(), depth(2_000));
            for i in 0..size {
                text.push_str(&format!("let %a{i}: {V} = onnx.Loop(%x{i}, body=fn (%x{}: {V}) {{ ", i + 1));
            }
            text.push_str(&format!("{op}(%x{size})"));
            for i in (0..size).rev() {
                text.push_str(&format!(" }}); %a{i}"));
            }
            let text = format!("def @main(%x0: {V}) {{ {text} }}");
            parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{e:?}"))
        };
        let found = diff(&parsed("negative"), &parsed("random"));
        assert_eq!(found.len(), 1, "{found:?}");
    });
}

#[test]
fn metadata_counts_if_asked_for() {
    let text = |name: &str| format!("def @main(%x: {V}) {{ #[onnx_name=\"{name}\"] let %a = tanh(%x); %a }}");
    let (a, b) = (module(&text("first")), module(&text("second")));
    assert!(diff(&a, &b).is_empty());
    let found = diff_with(&a, &b, AlphaOptions { meta: MetaPolicy::Compare });
    assert_eq!(found.to_string(), "@main %a: #[onnx_name] \"first\" -> \"second\"\n");
}

#[test]
fn differences_are_objects_too() {
    let a = module(&format!("def @main(%x: {V}) {{ let %a = nn.softmax(%x, axis=0); %a }}"));
    let b = module(&format!("def @main(%x: {V}) {{ let %a = nn.softmax(%x, axis=-1); let %b = tanh(%x); %a }}"));
    let found = diff(&a, &b);
    let [function] = &found.functions[..] else { panic!("{found:?}") };
    let kinds: Vec<_> = function.items.iter().map(|i| (i.kind, i.item)).collect();
    assert_eq!(kinds, [(DifferenceKind::Changed, ItemKind::Binding), (DifferenceKind::Added, ItemKind::Binding)]);
    let json = "{\"module\":[],\"functions\":[\n\
        {\"kind\":\"changed\",\"left\":\"main\",\"right\":\"main\",\"changes\":[],\"items\":[\n\
        {\"kind\":\"changed\",\"item\":\"binding\",\"left\":\"a\",\"right\":\"a\",\"changes\":[\
        {\"part\":\"attribute\",\"name\":\"axis\",\"left\":\"0\",\"right\":\"-1\"}]},\n\
        {\"kind\":\"added\",\"item\":\"binding\",\"right\":\"b\",\"text\":\"tanh(%x)\",\"changes\":[]}]}\n]}";
    assert_eq!(found.to_json(), json);
    assert_eq!(diff(&a, &a).to_json(), "{\"module\":[],\"functions\":[]}");
}

#[test]
fn deep_programs_types_and_attributes_need_no_stack() {
    on_small_stack(|| {
        for shape in SHAPES {
            let a = deep(shape, depth(5_000), "a", "add");
            assert!(diff(&a, &deep(shape, depth(5_000), "b", "add")).is_empty());
            let found = diff(&a, &deep(shape, depth(5_000), "a", "subtract"));
            assert!(!found.to_string().is_empty() && !found.to_json().is_empty());
            assert!(!diff(&a, &deep(shape, depth(5_000), "b", "subtract")).is_empty());
            assert!(!diff(&a, &deep(Shape::Chain, depth(5_000), "a", "add")).is_empty() || shape == Shape::Chain);
        }
        assert!(diff(&deep_type_and_attribute(1), &deep_type_and_attribute(1)).is_empty());
        assert!(!diff(&deep_type_and_attribute(1), &deep_type_and_attribute(2)).is_empty());
    });
}

#[test]
fn elements_that_are_no_numbers_are_counted() {
    let line = |dtype, left: &[u8], right: &[u8]| {
        let [left, right] = [left, right].map(|codes| {
            let mut module = Module::new(anfora_ops::standard());
            let mut f = FunctionBuilder::new(&mut module, "main");
            let constant = f.literal(Literal::from_codes(dtype, &[codes.len()], codes).expect("they fit"));
            let pair = f.tuple(&[constant]);
            let pair = f.bind("pair", pair);
            f.finish(pair).expect("it is well-formed");
            module
        });
        diff(&left, &right).to_string()
    };
    for dtype in [DType::Float8E4M3FN, DType::Float4E2M1, DType::UInt2] {
        for (left, right, count) in [([0, 1, 2], [0, 1, 3], 1), ([1, 1, 1], [2, 1, 2], 2), ([1, 1, 1], [2, 2, 2], 3)] {
            let text = line(dtype, &left, &right);
            assert!(text.contains(&format!("{count} of 3 elements differ")), "{dtype}: {text}");
        }
    }
}
