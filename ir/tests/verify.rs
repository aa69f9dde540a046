//! The rules of well-formed programs, each with a program that breaks just it.

mod tiny;

use anfora_ir::{
    Attr, AttrsId, Body, Context, DType, EntityId, Expr, ExprId, Form, Function, FunctionBuilder, LambdaId, LetFlags,
    LiteralId, MAX_VERIFY_ERRORS, Module, NameId, OperandList, Source, TypeId, VarFlags, VarId, parse_module,
    verify_function, verify_module,
};
use tiny::{SHAPES, Shape, deep, module, on_a_small_stack, registry, vector};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), registry()).unwrap_or_else(|e| {
        let all: Vec<String> = e.iter().map(ToString::to_string).collect();
        panic!("{}", all.join("\n"))
    })
}

fn errors(m: &Module) -> Vec<String> {
    verify_module(m).err().unwrap_or_default().iter().map(|d| d.to_string()).collect()
}

/// One error, which says `what` about this function and binding, as `@f %x`.
#[track_caller]
fn assert_breaks(m: &Module, what: &str, place: &str) {
    let errors = verify_module(m).expect_err("it breaks a rule");
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    let text = error.to_string();
    assert!(text.contains(what), "{text:?} does not say {what:?}");
    let function = error.function.iter().map(|f| format!("@{f}"));
    let named: Vec<String> = function.chain(error.binding.iter().map(|b| format!("%{b}"))).collect();
    assert_eq!(named.join(" "), place, "{text}");
}

fn assert_fine(m: &Module, form: Form) {
    assert_eq!(verify_module(m).map(|r| r.form()), Ok(form));
}

/// A module of a text whose `@main` was edited.
fn edited(text: &str, edit: impl FnOnce(&mut Body, &mut Context)) -> Module {
    let mut m = parse(text);
    assert_eq!(errors(&m), Vec::<String>::new(), "the program is in order before the edit");
    edit_main(&mut m, edit);
    m
}

fn edit_main(m: &mut Module, edit: impl FnOnce(&mut Body, &mut Context)) {
    let main = m.find("main").unwrap();
    let (f, cx) = m.get_mut(main).unwrap();
    edit(&mut f.body, cx);
}

fn find(body: &Body, mut f: impl FnMut(&Expr) -> bool) -> ExprId {
    body.exprs().find(|(_, e)| f(e)).unwrap().0
}

/// The Let of a variable.
fn link(body: &Body, cx: &Context, name: &str) -> ExprId {
    let name = cx.names.find(name).unwrap();
    find(body, |e| matches!(e, Expr::Let { var, .. } if body.var_name(*var) == Some(name)))
}

fn parts(body: &Body, link: ExprId) -> (VarId, ExprId, ExprId, LetFlags) {
    match body.expr(link) {
        Expr::Let { var, value, body, flags } => (var, value, body, flags),
        other => panic!("{other:?} is not a Let"),
    }
}

fn var(body: &Body, cx: &Context, name: &str) -> ExprId {
    let name = cx.names.find(name);
    find(body, |e| matches!(e, Expr::Var { name: n, .. } if *n == name))
}

const CHAIN: &str = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
    let %a = negative(%x);
    let %b = add(%a, %x);
    let %c = add(%b, %a);
    %c
}";

const REGION: &str = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
    dataflow {
        let %a = negative(%x);
        let %b = add(%a, %x);
        output(%b);
    }
    let %c = add(%b, %x);
    %c
}";

const BRANCH: &str = "def @main(%x: Tensor[(8,), float32], %p: bool) -> Tensor[(8,), float32] {
    let %r = if (%p) { let %i = negative(%x); %i } else { %x };
    let %s = add(%r, %r);
    %s
}";

const LAMBDA: &str = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
    let %f = fn (%y: Tensor[(8,), float32]) { let %n = negative(%y); %n };
    let %r = %f(%x);
    %r
}";

#[test]
fn well_formed_programs_pass_and_say_their_form() {
    for text in [CHAIN, REGION, BRANCH, LAMBDA] {
        assert_fine(&parse(text), Form::Anf);
    }
    for text in [
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(negative(%x)) }",
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %a = negative(%x); add(%a, %a) }",
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = { let %b = negative(%x); %b }; %a }",
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { if (less(%x, %x)) { %x } else { %x } }",
    ] {
        assert_fine(&parse(text), Form::Graph);
    }
    let m = parse(&format!("{CHAIN} def @other(%x: Tensor[(8,), float32]) {{ negative(negative(%x)) }}"));
    let report = verify_module(&m).unwrap();
    let forms: Vec<Form> = report.functions.iter().map(|f| f.1).collect();
    assert_eq!([Form::Anf, Form::Graph].map(Form::name), ["ANF", "graph"]);
    assert_eq!((report.form(), forms), (Form::Graph, vec![Form::Anf, Form::Graph]));
    assert_eq!(verify_function(&m, m.find("main").unwrap()), Ok(Form::Anf));
}

// ---- 1: ids ----

#[test]
fn rule_1_ids_are_in_range() {
    let far = ExprId::from_index(1_000_000);
    type Edit = fn(&mut Body, &mut Context, ExprId);
    let edits: [Edit; 7] = [
        |b, _, far| b.set_root(far),
        |b, cx, far| {
            let l = link(b, cx, "b");
            b.set_let_body(l, far);
        },
        |b, cx, far| {
            let (_, value, ..) = parts(b, link(b, cx, "b"));
            let list = b.expr(value).operand_list().unwrap();
            b.set_operand(list, 0, far);
        },
        |b, cx, _| b.set_type(var(b, cx, "a"), TypeId::from_index(9999)),
        |b, cx, _| {
            let (_, value, ..) = parts(b, link(b, cx, "b"));
            b.set_expr(value, Expr::Literal(LiteralId::from_index(9999)));
        },
        |b, cx, _| {
            let (_, value, ..) = parts(b, link(b, cx, "b"));
            let body = b.root();
            b.set_expr(value, Expr::Lambda { lambda: LambdaId::from_index(9999), body });
        },
        |b, cx, _| {
            // What an operand list reaches past the pool cannot be made from outside; an empty call can.
            let (_, value, ..) = parts(b, link(b, cx, "b"));
            b.set_expr(value, Expr::Call { operands: OperandList::EMPTY, attrs: cx.attrs.empty() });
        },
    ];
    for (i, edit) in edits.iter().enumerate() {
        let m = edited(CHAIN, |b, cx| edit(b, cx, far));
        assert_eq!(errors(&m).len(), 1, "edit {i}");
    }
    assert_breaks(&edited(CHAIN, |b, _| b.set_root(far)), "does not exist", "@main");
    let m = edited(CHAIN, |b, cx| {
        let l = link(b, cx, "b");
        let (_, value, rest, flags) = parts(b, l);
        let not_a_var = b.as_var(var(b, cx, "c")).unwrap();
        b.set_expr(not_a_var.expr(), b.expr(value));
        b.set_expr(l, Expr::Let { var: not_a_var, value, body: rest, flags });
    });
    assert_breaks(&m, "is not a variable", "@main");
    // A let of a variable that another body has, and a name that another module has.
    let strange = deep(Shape::Chain, 100, "", "add");
    let strange = strange.get(strange.find("main").unwrap()).unwrap().body.clone();
    let m = edited(CHAIN, |b, cx| {
        let l = link(b, cx, "b");
        let (_, value, rest, flags) = parts(b, l);
        let (far, _) = strange.exprs().filter(|(_, e)| matches!(e, Expr::Var { .. })).last().unwrap();
        b.set_expr(l, Expr::Let { var: strange.as_var(far).unwrap(), value, body: rest, flags });
    });
    assert_breaks(&m, "what a let binds is not a variable", "@main");
    let m = edited(CHAIN, |b, cx| {
        let v = var(b, cx, "b");
        b.set_expr(v, Expr::Var { name: Some(NameId::from_index(9999)), flags: VarFlags::PLAIN });
    });
    assert_breaks(&m, "does not exist, in a variable", "@main");
    // Of the operands of a binding's value.
    let m = edited(CHAIN, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "b"));
        let list = b.expr(value).operand_list().unwrap();
        b.set_operand(list, 1, far);
    });
    assert_breaks(&m, "a part of it does not exist, in a call of an operator", "@main %b");
    // Of the function.
    type FunctionEdit = fn(&mut Function);
    let edits: [(FunctionEdit, &str); 3] = [
        (|f| f.ret = Some(TypeId::from_index(9999)), "result type does not exist"),
        (|f| f.attrs = AttrsId::from_index(9999), "attributes do not exist"),
        (|f| f.meta = AttrsId::from_index(9999), "attributes do not exist"),
    ];
    for (edit, what) in edits {
        let mut m = parse(CHAIN);
        let main = m.find("main").unwrap();
        edit(m.get_mut(main).unwrap().0);
        assert_breaks(&m, what, "@main");
    }
}

// ---- 2, 3: one parent, no cycles ----

#[test]
fn rule_2_what_binds_has_one_parent() {
    // The chain of the first branch as the second too.
    let m = edited(BRANCH, |b, _| {
        let id = find(b, |e| matches!(e, Expr::If { .. }));
        let Expr::If { cond, then_block, .. } = b.expr(id) else { unreachable!() };
        b.set_expr(id, Expr::If { cond, then_block, else_block: then_block });
    });
    assert_breaks(&m, "two links", "@main %i");
    let both = |text: &str, what: &str, place: &str| {
        let m = edited(text, |b, cx| {
            let (_, value, ..) = parts(b, b.root());
            let last = ["s", "r"].iter().find_map(|n| cx.names.find(n).map(|_| link(b, cx, n))).unwrap();
            let (var, _, rest, flags) = parts(b, last);
            b.set_expr(last, Expr::Let { var, value, body: rest, flags });
        });
        assert_breaks(&m, what, place);
    };
    both(BRANCH, "an `if` has two links", "@main %s");
    both(LAMBDA, "a `fn` has two links", "@main %r");
}

#[test]
fn rule_3_nothing_is_part_of_itself() {
    let m = edited(CHAIN, |b, cx| {
        let (first, last) = (b.root(), link(b, cx, "c"));
        b.set_let_body(last, first);
    });
    assert_breaks(&m, "part of itself", "@main %a");
    let m =
        edited("def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(negative(%x)) }", |b, _| {
            let root = b.root();
            let inner = b.operands_of(root)[0];
            let list = b.expr(inner).operand_list().unwrap();
            b.set_operand(list, 0, root);
        });
    assert_breaks(&m, "part of itself", "@main");
}

// ---- 4, 5: binding and scope ----

#[test]
fn rule_4_a_variable_is_bound_once() {
    let m = edited(CHAIN, |b, cx| {
        let (a, ..) = parts(b, link(b, cx, "a"));
        let l = link(b, cx, "b");
        let (_, value, rest, flags) = parts(b, l);
        let c = link(b, cx, "c");
        let (_, c_value, ..) = parts(b, c);
        let list = b.expr(c_value).operand_list().unwrap();
        b.set_operand(list, 0, a.expr());
        b.set_expr(l, Expr::Let { var: a, value, body: rest, flags });
    });
    assert_breaks(&m, "`%a` is bound twice", "@main %a");
    let m = edited(CHAIN, |b, _| {
        let x = b.params()[0];
        b.push_param(x);
    });
    assert!(errors(&m)[0].contains("`%x` is bound twice"));
}

#[test]
fn rule_5_a_variable_is_used_where_it_is_visible() {
    let operand = |text: &str, of: &str, used: &str| {
        edited(text, |b, cx| {
            let (_, value, ..) = parts(b, link(b, cx, of));
            let used = var(b, cx, used);
            let list = b.expr(value).operand_list().unwrap();
            b.set_operand(list, 0, used);
        })
    };
    assert_breaks(&operand(CHAIN, "a", "c"), "`%c` is used where nothing has bound it", "@main %a");
    assert_breaks(&operand(CHAIN, "b", "b"), "`%b` is used where nothing has bound it", "@main %b");
    assert_breaks(&operand(BRANCH, "s", "i"), "`%i` is used outside its scope", "@main %s");
    let through_fn = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        let %f = fn (%y: Tensor[(8,), float32]) { let %n = negative(%y); %n };
        let %r = negative(%x);
        %r
    }";
    assert_breaks(&operand(through_fn, "r", "y"), "`%y` is used outside its scope", "@main %r");
    assert_breaks(&operand(through_fn, "r", "n"), "`%n` is used outside its scope", "@main %r");
    // A `fn` may name itself; nothing else may.
    let recursive = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        let %f = fn (%y: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %n = %f(%y); %n };
        let %r = %f(%x);
        %r
    }";
    assert_fine(&parse(recursive), Form::Anf);
}

#[test]
fn rule_5_a_shared_node_is_used_where_its_variables_are_visible() {
    // add(n, n) in the tail of a branch, then the same node after the If.
    let m = edited(BRANCH, |b, cx| {
        let i = link(b, cx, "i");
        let (i_var, value, ..) = parts(b, i);
        let operands = b.push_operands(&[i_var.expr(), i_var.expr()]);
        let Expr::CallOp { attrs, .. } = b.expr(value) else { unreachable!() };
        let op = cx.ops.find("add").unwrap();
        let ty = b.ty(value);
        let shared = b.push(Expr::CallOp { op, operands, attrs }, ty, None);
        b.set_let_body(i, shared);
        let s = link(b, cx, "s");
        let (v, _, rest, flags) = parts(b, s);
        b.set_expr(s, Expr::Let { var: v, value: shared, body: rest, flags });
    });
    assert_breaks(&m, "a shared node is used where `%i`, which is in it, is not in scope", "@main %s");
    // A node with a `fn` in it: what the `fn` binds is not free in it.
    let text = "def @main(%x: Tensor[(8,), float32], %p: bool) -> Tensor[(8,), float32] {
        %a = (fn (%y: Tensor[(8,), float32]) { let %n = add(%y, %x); %n })(%x);
        let %r = if (%p) { let %i = add(%a, %x); %i } else { %a };
        add(%r, %a)
    }";
    assert_fine(&parse(text), Form::Graph);
    // Likewise where the `fn` was walked before the node that is shared.
    let text = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        %a = (fn (%y: Tensor[(8,), float32]) { let %n = add(%y, %x); %n })(%x);
        let %first = negative(%a);
        %b = add(%a, %first);
        multiply(%b, negative(%b))
    }";
    assert_fine(&parse(text), Form::Graph);
}

// ---- 6, 7: regions ----

#[test]
fn rule_6_regions_are_well_formed() {
    let m = edited(REGION, |b, cx| {
        let a = link(b, cx, "a");
        let (v, value, rest, _) = parts(b, a);
        b.set_expr(a, Expr::Let { var: v, value, body: rest, flags: LetFlags::DATAFLOW });
    });
    assert_breaks(&m, "follows none that starts the region", "@main %a");
    let flag = |text: &str, name: &str| {
        edited(text, |b, cx| {
            let v = var(b, cx, name);
            let Expr::Var { name, .. } = b.expr(v) else { unreachable!() };
            b.set_expr(v, Expr::Var { name, flags: VarFlags::DATAFLOW });
        })
    };
    assert_breaks(&flag(REGION, "b"), "`%b` is visible only in its dataflow region, but used outside", "@main %c");
    assert_breaks(&flag(REGION, "c"), "`%c` is visible only in a dataflow region, but bound outside", "@main %c");
    assert_breaks(&flag(CHAIN, "x"), "the parameter `%x` is visible only in a dataflow region", "@main");
    // Regions side by side are two.
    let two = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        dataflow { let %a = negative(%x); let %b = add(%a, %x); output(%b); }
        dataflow { let %c = negative(%b); output(%c); }
        %c
    }";
    assert_fine(&parse(two), Form::Anf);
    let m = edited(two, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "c"));
        let a = var(b, cx, "a");
        let list = b.expr(value).operand_list().unwrap();
        b.set_operand(list, 0, a);
    });
    assert_breaks(&m, "`%a` is visible only in its dataflow region", "@main %c");
    // The tail is in no region.
    let m = edited(REGION, |b, cx| {
        let (l, a) = (link(b, cx, "b"), var(b, cx, "a"));
        b.set_let_body(l, a);
    });
    assert_breaks(&m, "`%a` is visible only in its dataflow region", "@main");
}

/// Makes one region of the Lets of `@main`'s own block.
fn regionise(b: &mut Body) {
    let mut at = b.root();
    let mut flags = LetFlags::REGION_START;
    while let Expr::Let { var, value, body, .. } = b.expr(at) {
        b.set_expr(at, Expr::Let { var, value, body, flags });
        flags = LetFlags::DATAFLOW;
        at = body;
    }
}

#[test]
fn rule_7_regions_hold_no_control_flow_and_no_side_effect() {
    assert_breaks(&edited(BRANCH, |b, _| regionise(b)), "holds no control flow", "@main %r");
    let noisy = |value: &str| {
        format!(
            "declare @external(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32];
            declare @promised(%x: Tensor[(8,), float32], Pure=1) -> Tensor[(8,), float32];
            def @main(%x: Tensor[(8,), float32], %h: fn(Tensor[(8,), float32]) -> Tensor[(8,), float32]) -> Tensor[(8,), float32] {{
                let %f = fn (%y: Tensor[(8,), float32]) {{ let %n = random(%y); %n }};
                let %g = fn (%y: Tensor[(8,), float32]) {{ let %n = negative(%y); %n }};
                let %r = {value};
                %r
            }}"
        )
    };
    for value in ["random(%x)", "%f(%x)", "%h(%x)", "@external(%x)", "{ let %v = random(%x); %v }"] {
        let place = if value.starts_with('{') { "@main %v" } else { "@main %r" };
        assert_breaks(&edited(&noisy(value), |b, _| regionise(b)), "holds no side effect", place);
        assert_eq!(errors(&parse(&noisy(value))), Vec::<String>::new());
    }
    for value in ["negative(%x)", "%g(%x)", "@promised(%x)"] {
        assert_fine(&edited(&noisy(value), |b, _| regionise(b)), Form::Anf);
    }
    // What a `fn` holds is not evaluated where it is defined.
    let inside = "def @main(%x: Tensor[(8,), float32], %p: bool) -> Tensor[(8,), float32] {
        let %f = fn (%y: Tensor[(8,), float32]) {
            let %n = random(%y);
            let %c = if (%p) { %n } else { %y };
            %c
        };
        %x
    }";
    assert_fine(&edited(inside, |b, _| regionise(b)), Form::Anf);
}

// ---- 8: sharing and effects ----

#[test]
fn rule_8_shared_nodes_are_pure() {
    let m = edited(CHAIN, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "a"));
        let Expr::CallOp { operands, attrs, .. } = b.expr(value) else { unreachable!() };
        b.set_expr(value, Expr::CallOp { op: cx.ops.find("random").unwrap(), operands, attrs });
        let l = link(b, cx, "b");
        let (v, _, rest, flags) = parts(b, l);
        b.set_expr(l, Expr::Let { var: v, value, body: rest, flags });
    });
    assert_breaks(&m, "a shared node may have a side effect", "@main %b");
    let nested = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = negative(random(%x)); %a }";
    assert_fine(&parse(nested), Form::Graph);
}

// ---- 9, 10: calls and types ----

#[test]
fn rule_9_operands_and_attributes_agree_with_the_row() {
    let call = |f: fn(&mut Body, &mut Context, ExprId)| {
        edited(CHAIN, |b, cx| {
            let (_, value, ..) = parts(b, link(b, cx, "a"));
            f(b, cx, value);
        })
    };
    let m = call(|b, cx, value| {
        let Expr::CallOp { operands, attrs, .. } = b.expr(value) else { unreachable!() };
        b.set_expr(value, Expr::CallOp { op: cx.ops.find("add").unwrap(), operands, attrs });
    });
    assert_breaks(&m, "`add` takes 2 operands, not 1", "@main %a");
    let m = call(|b, cx, value| {
        let Expr::CallOp { op, operands, .. } = b.expr(value) else { unreachable!() };
        let axis = cx.int_attr(1);
        let attrs = cx.named_attrs(&[("axes", axis)]);
        b.set_expr(value, Expr::CallOp { op, operands, attrs });
    });
    assert_breaks(&m, "`negative` has no attribute `axes`", "@main %a");
    let m = call(|b, cx, value| {
        let Expr::CallOp { operands, .. } = b.expr(value) else { unreachable!() };
        let axis = cx.int_attr(0);
        let attrs = cx.named_attrs(&[("axis", axis)]);
        b.set_expr(value, Expr::CallOp { op: cx.ops.find("flip").unwrap(), operands, attrs });
    });
    assert_breaks(&m, "not in their one form", "@main %a");
}

#[test]
fn rule_10_stored_types_are_what_inference_gives() {
    // Of a call, through the last binding, so that nothing follows from it.
    let other = |cx: &mut Context| cx.types.static_tensor(DType::Int8, &[3]);
    let m = edited(CHAIN, |b, cx| {
        let (v, value, ..) = parts(b, link(b, cx, "c"));
        let (any, wrong) = (cx.types.any(), other(cx));
        b.set_type(value, wrong);
        // The variable accepts anything; the function's result still has to.
        b.set_type(v.expr(), any);
    });
    let all = errors(&m);
    assert!(
        all[0].contains("the stored type is Tensor[(3,), int8], but its parts give Tensor[(8,), float32]"),
        "{all:?}"
    );
    // Of a variable: less specific is fine, another is not.
    let retyped = |wrong: fn(&mut Context) -> TypeId| {
        edited(CHAIN, |b, cx| {
            let ty = wrong(cx);
            let s = link(b, cx, "c");
            let (v, _, _, flags) = parts(b, s);
            // A binding that nobody uses.
            let unused = b.push_var(None, VarFlags::PLAIN, ty, None);
            let link = b.push(Expr::Let { var: unused, value: v.expr(), body: v.expr(), flags }, ty, None);
            b.set_let_body(s, link);
        })
    };
    assert_fine(&retyped(|cx| cx.types.any()), Form::Anf);
    assert_breaks(&retyped(other), "is of type Tensor[(3,), int8], but its value is Tensor[(8,), float32]", "@main");
    // Of a condition, a constant, a function's result.
    let m = edited(BRANCH, |b, cx| {
        let id = find(b, |e| matches!(e, Expr::If { .. }));
        let Expr::If { then_block, else_block, .. } = b.expr(id) else { unreachable!() };
        let x = var(b, cx, "x");
        b.set_expr(id, Expr::If { cond: x, then_block, else_block });
    });
    assert_breaks(&m, "a condition is a rank-0 bool tensor", "@main %r");
    let constant = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = less(1f, %x); %x }";
    let m = edited(constant, |b, cx| {
        let ty = other(cx);
        let id = find(b, |e| matches!(e, Expr::Literal(_)));
        b.set_type(id, ty);
    });
    assert_breaks(&m, "its parts give Tensor[(), float32]", "@main %a");
    let mut m = parse(CHAIN);
    let main = m.find("main").unwrap();
    let (f, cx) = m.get_mut(main).unwrap();
    f.ret = Some(cx.types.static_tensor(DType::Int8, &[3]));
    let all = errors(&m);
    assert!(all[0].contains("the function returns Tensor[(8,), float32], but Tensor[(3,), int8] is stated"), "{all:?}");
    // Of a `fn`'s result.
    let m = edited(LAMBDA, |b, cx| {
        let id = find(b, |e| matches!(e, Expr::Lambda { .. }));
        let Expr::Lambda { lambda, .. } = b.expr(id) else { unreachable!() };
        let mut data = b.lambda(lambda);
        data.ret = Some(other(cx));
        b.set_lambda(lambda, data);
    });
    assert_breaks(&m, "but Tensor[(3,), int8] is stated", "@main %f");
    let m = edited(LAMBDA, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "r"));
        let f = b.operands_of(value)[0];
        let operands = b.push_operands(&[f]);
        b.set_expr(value, Expr::Call { operands, attrs: cx.attrs.empty() });
    });
    assert_breaks(&m, "the function takes 1 arguments, not 0", "@main %r");
}

// ---- 11: symbols ----

#[test]
fn rule_11_symbols_are_named_where_they_are_bound() {
    let fine = "def @main(%x: Tensor[(n + m, n), float32], %y: Tensor[(m,), float32], %z: Tensor[?, float32], %p: bool) -> Tensor[(m,), float32] {
        let %a = match_cast(%z, to=Tensor[(k, n), float32]);
        let %b = negative(%a);
        let %f = fn (%q: Tensor[(j, k), float32]) { let %w = negative(%q); %w };
        let %c = if (%p) { let %d = match_cast(%z, to=Tensor[(l,), float32]); let %e = negative(%d); %y } else { %y };
        %c
    }";
    assert_fine(&parse(fine), Form::Anf);
    // What a branch, a `fn` or a block as a value binds may be in the type of what comes out of it.
    let out = "def @main(%x: Tensor[?, float32], %p: bool) {
        let %r = if (%p) { let %y = match_cast(%x, to=Tensor[(k,), float32]); %y }
            else { let %z = match_cast(%x, to=Tensor[(j,), float32]); %z };
        let %f = fn (%u: Tensor[?, float32]) { let %v = match_cast(%u, to=Tensor[(l,), float32]); %v };
        let %s = %f(%r);
        let %g = fn (%h: fn(Tensor[(n,), float32]) -> Tensor[(n,), float32], %u: Tensor[(n,), float32]) { let %z = %h(%u); %z };
        %s
    }";
    assert_fine(&parse(out), Form::Anf);
    let block = "def @main(%x: Tensor[?, float32]) {
        let %r = { let %y = match_cast(%x, to=Tensor[(k,), float32]); %y };
        let %s = add(%r, %r);
        %s
    }";
    assert_fine(&parse(block), Form::Graph);
    // A symbol that nothing binds.
    let with_type = |make: fn(&mut Context) -> TypeId| {
        let mut m = module();
        let v = vector(&mut m);
        let ty = make(&mut m.cx);
        let mut b = FunctionBuilder::new(&mut m, "main");
        let x = b.param("x", v);
        let op = b.cx().ops.resolve("onnx.Foo").unwrap();
        let attrs = b.cx().attrs.empty();
        let call = b.editor().call_opaque(op, &[x], attrs, ty);
        b.bind("a", call);
        b.finish(x).unwrap();
        m
    };
    let all = errors(&with_type(|cx| {
        let name = cx.names.intern("n");
        let s = cx.types.dims.new_symbol(name);
        let d = cx.types.dims.symbol(s);
        cx.types.tensor(DType::Float32, &[d])
    }));
    assert!(all[0].contains("`n` is named where it is not bound"), "{all:?}");
    // A branch's symbol after the branch.
    let m = edited(fine, |b, cx| {
        let d = var(b, cx, "d");
        let ty = b.ty(d);
        let c = link(b, cx, "c");
        let (_, _, rest, _) = parts(b, c);
        let op = cx.ops.opaque("onnx.Foo", anfora_ir::OpPurity::Pure).unwrap();
        let attrs = cx.attrs.empty();
        let call = b.push(Expr::CallOp { op, operands: OperandList::EMPTY, attrs }, ty, None);
        let any = cx.types.any();
        let v = b.push_var(None, VarFlags::PLAIN, any, None);
        let link = b.push(Expr::Let { var: v, value: call, body: rest, flags: LetFlags::PLAIN }, any, None);
        b.set_let_body(c, link);
    });
    assert_breaks(&m, "`l` is named where it is not bound", "@main");
    // In an attribute.
    let mut m = parse("def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = negative(%x); %a }");
    edit_main(&mut m, |b, cx| {
        let name = cx.names.intern("q");
        let s = cx.types.dims.new_symbol(name);
        let d = cx.types.dims.symbol(s);
        let shape = cx.attr(Attr::Shape([d].into()));
        let attrs = cx.named_attrs(&[("shape", shape)]);
        let (_, value, ..) = parts(b, b.root());
        let Expr::CallOp { operands, .. } = b.expr(value) else { unreachable!() };
        let op = cx.ops.opaque("onnx.Foo", anfora_ir::OpPurity::Pure).unwrap();
        b.set_expr(value, Expr::CallOp { op, operands, attrs });
    });
    assert_breaks(&m, "`q` is named where it is not bound", "@main %a");
    // In an attribute of a function whose result is not stated.
    let mut m = parse("def @main(%x: Tensor[(8,), float32]) { let %a = negative(%x); %a }");
    let main = m.find("main").unwrap();
    let (f, cx) = m.get_mut(main).unwrap();
    let name = cx.names.intern("q");
    let s = cx.types.dims.new_symbol(name);
    let d = cx.types.dims.symbol(s);
    let shape = cx.attr(Attr::Shape([d].into()));
    f.attrs = cx.named_attrs(&[("shape", shape)]);
    assert_breaks(&m, "`q` is named where it is not bound", "@main");
    // One symbol of two functions.
    let mut m = module();
    let mut b = FunctionBuilder::new(&mut m, "f");
    let n = b.symbol("n");
    let t = b.cx().types.tensor(DType::Float32, &[n]);
    let x = b.param("x", t);
    b.finish(x).unwrap();
    assert_fine(&m, Form::Anf);
    let mut b = FunctionBuilder::new(&mut m, "g");
    let x = b.param("x", t);
    b.finish(x).unwrap();
    assert_breaks(&m, "`n` is bound in another function too", "@g");
}

// ---- 12, 13: globals and phase ----

#[test]
fn rule_12_globals_resolve_and_signatures_agree() {
    let text = "def @helper(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(%x) }
        def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %r = @helper(%x); %r }";
    let mut m = parse(text);
    assert_fine(&m, Form::Anf);
    let helper = m.find("helper").unwrap();
    m.remove(&[helper]);
    assert_breaks(&m, "nothing defines or declares `@helper`", "@main %r");
    let helpers = format!("{text} def @helpers(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {{ %x }}");
    let mut m = parse(&helpers);
    let helper = m.find("helper").unwrap();
    m.remove(&[helper]);
    assert_breaks(&m, "did you mean `@helpers`?", "@main %r");
    let mut m = parse(CHAIN);
    let global = m.cx.find_global("main").unwrap();
    let any = m.cx.types.any();
    m.set_signature(global, any);
    assert_breaks(&m, "the signature of the function is", "@main");
    // A declaration has to state its result.
    let mut m = parse("declare @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32];");
    assert_fine(&m, Form::Anf);
    let f = m.find("f").unwrap();
    m.get_mut(f).unwrap().0.ret = None;
    assert_breaks(&m, "states no result type", "@f");
}

#[test]
fn rule_13_a_claimed_phase_is_true() {
    let with = |phase: &str, text: &str| parse(&format!("#![phase={phase}]\n{text}"));
    let nested = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(negative(%x)) }";
    assert_breaks(&with("0", nested), "not in A-normal form", "@main");
    assert_breaks(&with("1", LAMBDA), "holds a `fn`", "@main");
    assert_breaks(&with("2.1", REGION), "has a dataflow region", "@main");
    assert_breaks(&with("\"2.2\"", REGION), "has a dataflow region", "@main");
    assert_breaks(&with("\"late\"", CHAIN), "not a number", "");
    assert_fine(&with("1", REGION), Form::Anf);
    assert_fine(&with("2.3", CHAIN), Form::Anf);
}

// ---- Reports ----

#[test]
fn errors_have_places_and_a_limit() {
    let text = CHAIN;
    let m = edited(text, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "b"));
        let c = var(b, cx, "c");
        let list = b.expr(value).operand_list().unwrap();
        b.set_operand(list, 0, c);
    });
    let all = verify_module(&m).unwrap_err();
    assert_eq!((all[0].function.as_deref(), all[0].binding.as_deref()), (Some("main"), Some("b")));
    let span = all[0].span.clone().expect("the text is kept");
    assert!(text.get(span).is_some());
}

#[test]
fn errors_past_the_limit_are_counted() {
    for (count, last) in [
        (MAX_VERIFY_ERRORS, None),
        (MAX_VERIFY_ERRORS + 1, Some("1 more error is not shown")),
        (1000, Some("900 more errors are not shown")),
    ] {
        let mut m = deep(Shape::Chain, count, "", "add");
        edit_main(&mut m, |b, cx| {
            let stray = b.push_var(None, VarFlags::PLAIN, cx.types.any(), None);
            let calls: Vec<_> = b.exprs().filter_map(|(_, e)| e.operand_list()).filter(|l| l.len() == 2).collect();
            let ty = b.ty(b.params()[0].expr());
            b.set_type(stray.expr(), ty);
            for list in calls {
                b.set_operand(list, 1, stray.expr());
            }
        });
        let all = verify_module(&m).unwrap_err();
        assert_eq!(all.get(MAX_VERIFY_ERRORS).map(|d| d.message.as_str()), last);
        assert!(all[..MAX_VERIFY_ERRORS].iter().all(|d| d.message.contains("nothing has bound it")));
        assert!(all.len() <= MAX_VERIFY_ERRORS + 1);
    }
}

#[test]
fn functions_in_attributes_are_verified() {
    let with = |sound: bool| {
        let mut m = parse(CHAIN);
        let mut inner: Function = m.get(m.find("main").unwrap()).unwrap().clone();
        if !sound {
            let c = var(&inner.body, &m.cx, "c");
            let (_, value, ..) = parts(&inner.body, link(&inner.body, &m.cx, "b"));
            let list = inner.body.expr(value).operand_list().unwrap();
            inner.body.set_operand(list, 0, c);
        }
        let inner = m.cx.function_attrs.push(std::sync::Arc::new(inner));
        let inner = m.cx.attr(Attr::Function(inner));
        let inner = m.cx.attr(Attr::List([inner].into()));
        edit_main(&mut m, |b, cx| {
            let attrs = cx.named_attrs(&[("body", inner)]);
            let (_, value, ..) = parts(b, b.root());
            let Expr::CallOp { operands, .. } = b.expr(value) else { unreachable!() };
            let op = cx.ops.opaque("onnx.Loop", anfora_ir::OpPurity::Pure).unwrap();
            b.set_expr(value, Expr::CallOp { op, operands, attrs });
        });
        m
    };
    assert_fine(&with(true), Form::Anf);
    assert_breaks(&with(false), "`%c` is used where nothing has bound it", "@main %b");
}

#[test]
fn deep_programs_need_no_stack() {
    on_a_small_stack(|| {
        for shape in SHAPES {
            let m = deep(shape, 1_000_000, "a", "add");
            let form = if matches!(shape, Shape::NestedCall | Shape::LetInValue) { Form::Graph } else { Form::Anf };
            assert_fine(&m, form);
        }
        // A diamond of shared nodes, a million deep, each used again in another block.
        let mut m = module();
        let (v, c) = (vector(&mut m), tiny::flag(&mut m));
        let mut b = FunctionBuilder::new(&mut m, "main");
        let (x, p) = (b.param("x", v), b.param("p", c));
        let mut nodes = vec![x];
        for i in 0..1_000_000 {
            let node = b.call_op("add", &[nodes[i], nodes[i]], &[]).unwrap();
            nodes.push(node);
        }
        let all = b.tuple(&nodes);
        b.bind("all", all);
        let choice = b.if_(p, nodes[1_000_000], nodes[500_000]).unwrap();
        b.finish(choice).unwrap();
        assert_fine(&m, Form::Graph);
        let mut m = module();
        let mut ty = vector(&mut m);
        let mut attr = m.cx.int_attr(1);
        for _ in 0..100_000 {
            ty = m.cx.types.tuple(&[ty, ty]);
            attr = m.cx.attr(Attr::List([attr, attr].into()));
        }
        let mut b = FunctionBuilder::new(&mut m, "main");
        b.attr("deep", attr);
        let x = b.param("x", ty);
        b.finish(x).unwrap();
        assert_fine(&m, Form::Anf);
        // What is wrong with such a type is said in few words.
        let main = m.find("main").unwrap();
        let (f, cx) = m.get_mut(main).unwrap();
        f.ret = Some(cx.types.unit());
        let errors = verify_module(&m).unwrap_err();
        assert!(errors.iter().all(|e| e.message.len() < 100_000));
        // An error at the far end of each shape.
        for shape in SHAPES {
            let mut m = deep(shape, 1_000_000, "a", "add");
            edit_main(&mut m, |b, _| {
                let ty = b.ty(b.params()[0].expr());
                let stray = b.push_var(None, VarFlags::PLAIN, ty, None);
                let call = find(b, |e| matches!(e, Expr::CallOp { .. }));
                let first = b.expr(call).operand_list().unwrap();
                b.set_operand(first, 0, stray.expr());
            });
            let place = match shape {
                Shape::Chain => "@main %ab",
                Shape::NestedIf => "@main %ai",
                Shape::NestedFn => "@main %af",
                Shape::NestedCall => "@main",
                Shape::LetInValue => "@main %aw",
            };
            assert_breaks(&m, "is used where nothing has bound it", place);
        }
    });
}
