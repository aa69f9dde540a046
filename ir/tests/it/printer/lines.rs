//! Single lines of a function, and the variables in them.

use anfora_ir::{
    Body, Context, Editor, Expr, Function, FunctionLine, Literal, Module, VarFlags, VarId, compact_body, line_name,
    signature_line, spelled_local, statement_line,
};

use super::{f32x8, function_attr, main_of, module, parse};

fn names(cx: &Context, body: &Body, vars: &[VarId]) -> Vec<String> {
    vars.iter().map(|&var| line_name(cx, body, var)).collect()
}

fn main(module: &Module) -> &Function {
    module.get(module.find("main").expect("@main is there")).expect("it is not removed")
}

/// Returns the lines of the Lets of @main, then that of its tail.
fn lines(module: &Module) -> Vec<FunctionLine> {
    let body = &main(module).body;
    let mut at = body.root();
    let mut found = Vec::new();
    while let Expr::Let { body: rest, .. } = body.expr(at) {
        found.push(statement_line(&module.cx, body, at));
        at = rest;
    }
    found.push(statement_line(&module.cx, body, at));
    found
}

#[test]
fn a_line_names_its_variables() {
    let module = parse(
        r#"def @main(%x: Tensor[(8,), float32], %"a.b": Tensor[(8,), float32]) {
  let %t = (%x, %"a.b");
  %t
}"#,
    );
    let body = &main(&module).body;
    let head = signature_line(&module.cx, main(&module));
    assert_eq!(names(&module.cx, body, &head.parameters), ["%x", "%\"a.b\""]);
    assert!(head.uses.is_empty() && !head.is_abridged);
    let [let_, tail] = &lines(&module)[..] else { panic!("two lines") };
    assert_eq!(let_.text, r#"let %t = (%x, %"a.b");"#);
    assert_eq!(names(&module.cx, body, &let_.uses), ["%x", "%\"a.b\""], "without the variable that it binds");
    assert_eq!(names(&module.cx, body, &tail.uses), ["%t"]);
}

#[test]
fn a_projection_is_no_part_of_a_name() {
    let module = parse("def @main(%x: Tensor[(8,), float32]) { let %t = (%x, %x); let %a = %t.0; %a }");
    let line = &lines(&module)[1];
    assert_eq!(line.text, "let %a = %t.0;");
    assert_eq!(names(&module.cx, &main(&module).body, &line.uses), ["%t"]);
}

#[test]
fn parameters_of_a_fn_are_no_operands() {
    let module = parse(
        "def @main(%x: Tensor[(8,), float32]) { let %f = fn (%p: Tensor[(8,), float32]) { add(%p, %x) }; %f(%x) }",
    );
    let line = &lines(&module)[0];
    assert_eq!(names(&module.cx, &main(&module).body, &line.parameters), ["%p"]);
    assert!(line.uses.is_empty(), "what the block uses belongs to other lines");
}

#[test]
fn a_function_as_an_attribute_has_variables_of_its_own() {
    let mut module = main_of(|_, x| Ok(x));
    let function = function_attr(&mut module, "inner", &[]);
    let attrs = module.cx.named_attrs(&[("a", function)]);
    let op = module.cx.ops.resolve("nn.note").expect("it is registered");
    let key = module.find("main").expect("@main is there");
    let (f, cx) = module.get_mut(key).expect("@main is there");
    let x = f.body.params()[0].expr();
    let call = Editor::new(cx, &mut f.body).call_op(op, &[x], attrs).unwrap();
    f.body.set_root(call);
    let [line] = &lines(&module)[..] else { panic!("one line") };
    assert_eq!(line.text, "nn.note(%x, a=fn (%inner: Tensor[(8,), float32]) { … })");
    assert_eq!(names(&module.cx, &main(&module).body, &line.uses), ["%x"]);
    assert!(line.parameters.is_empty());
}

#[test]
fn a_variable_without_a_name_is_spelled_as_no_other() {
    let mut m = module();
    let ty = f32x8(&mut m);
    let mut body = Body::new(&m.cx.types);
    let unnamed = body.push_var(None, VarFlags::PLAIN, ty, None);
    let number = unnamed.index().to_string();
    let name = m.cx.names.intern(&number);
    let named = body.push_var(Some(name), VarFlags::PLAIN, ty, None);
    assert_eq!(line_name(&m.cx, &body, unnamed), format!("%#{number}"));
    assert_eq!(line_name(&m.cx, &body, named), format!("%{number}"));
    assert_eq!(spelled_local(&number), format!("%{number}"));
    // After compaction, the number may be that of another variable.
    body.set_params(vec![unnamed]);
    body.set_root(unnamed.expr());
    compact_body(&mut body).expect("no edit is open");
    let number = body.params()[0].index().to_string();
    assert_eq!(line_name(&m.cx, &body, body.params()[0]), format!("%#1:{number}"));
}

#[test]
fn constants_that_differ_have_different_lines() {
    let with = |last: f32| {
        let mut values = [1.0; 9];
        values[8] = last;
        main_of(|f, x| {
            let c = f.literal(Literal::from_elements(&[9], &values).unwrap());
            let pair = f.tuple(&[x, c]);
            Ok(f.bind("t", pair))
        })
    };
    let [two, three] = [2.0, 3.0].map(|last| lines(&with(last))[0].clone());
    assert!(two.text.starts_with("let %t = (%x, dense<Tensor[(9,), float32]>[elided 9 #"), "{}", two.text);
    assert_ne!(two.text, three.text);
    assert_eq!(two, lines(&with(2.0))[0]);
    assert!(two.is_abridged);
}

#[test]
fn a_long_line_is_cut() {
    let line = |operands: usize| lines(&main_of(|f, x| Ok(f.tuple(&vec![x; operands]))))[0].clone();
    assert!(!line(100).is_abridged);
    let long = line(1000);
    assert!(long.is_abridged && long.text.ends_with('…') && long.text.len() < 1010);
}
