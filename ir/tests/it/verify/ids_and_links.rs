//! Rules 1 to 4: the conditions for walking a program, and bindings.

use anfora_ir::{
    AttrsId, Body, Context, EntityId, Expr, ExprId, Function, LambdaData, LambdaId, LiteralId, NameId, OperandList,
    TypeId, VarFlags,
};

use super::Rule;
use super::programs::{BRANCH, CHAIN, LAMBDA, edited, errors, find, link, parse, parts, var};
use crate::tiny::{Shape, deep};

/// The id of an expression that no program of these tests has.
fn far() -> ExprId {
    ExprId::from_index(1_000_000)
}

pub(super) fn rule_1_ids_are_in_range(rule: &mut Rule) {
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
            // An operand list past the end of the pool cannot be made from outside the crate; an
            // empty call can.
            let (_, value, ..) = parts(b, link(b, cx, "b"));
            b.set_expr(value, Expr::Call { operands: OperandList::EMPTY, attrs: cx.attrs.empty() });
        },
    ];
    for (i, edit) in edits.iter().enumerate() {
        let m = edited(CHAIN, |b, cx| edit(b, cx, far()));
        assert_eq!(errors(&m).len(), 1, "edit {i}");
    }
    rule.broken_by(&edited(CHAIN, |b, _| b.set_root(far())), "does not exist", "@main");
}

pub(super) fn rule_1_what_a_let_binds_is_a_variable_of_the_body(rule: &mut Rule) {
    let m = edited(CHAIN, |b, cx| {
        let l = link(b, cx, "b");
        let (_, value, rest, flags) = parts(b, l);
        let not_a_var = b.as_var(var(b, cx, "c")).unwrap();
        b.set_expr(not_a_var.expr(), b.expr(value));
        b.set_expr(l, Expr::Let { var: not_a_var, value, body: rest, flags });
    });
    rule.broken_by(&m, "is not a variable", "@main");
    // A Let of a variable of another body, and a name of another module.
    let strange = deep(Shape::Chain, 100, "", "add");
    let strange = strange.get(strange.find("main").unwrap()).unwrap().body.clone();
    let m = edited(CHAIN, |b, cx| {
        let l = link(b, cx, "b");
        let (_, value, rest, flags) = parts(b, l);
        let (far, _) = strange.exprs().filter(|(_, e)| matches!(e, Expr::Var { .. })).last().unwrap();
        b.set_expr(l, Expr::Let { var: strange.as_var(far).unwrap(), value, body: rest, flags });
    });
    rule.broken_by(&m, "what a let binds is not a variable", "@main");
    let m = edited(CHAIN, |b, cx| {
        let v = var(b, cx, "b");
        b.set_expr(v, Expr::Var { name: Some(NameId::from_index(9999)), flags: VarFlags::PLAIN });
    });
    rule.broken_by(&m, "does not exist, in a variable", "@main");
}

pub(super) fn rule_1_parts_of_values_exist(rule: &mut Rule) {
    // An operand of a binding's value.
    let m = edited(CHAIN, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "b"));
        let list = b.expr(value).operand_list().unwrap();
        b.set_operand(list, 1, far());
    });
    rule.broken_by(&m, "a part of it does not exist, in a call of an operator", "@main %b");
    // A call without a callee, and parameters that are no variables.
    let m = edited(CHAIN, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "b"));
        b.set_expr(value, Expr::Call { operands: OperandList::EMPTY, attrs: cx.attrs.empty() });
    });
    rule.broken_by(&m, "a call without a function", "@main %b");
    let m = edited(LAMBDA, |b, cx| {
        let (_, call, ..) = parts(b, link(b, cx, "n"));
        let id = find(b, |e| matches!(e, Expr::Lambda { .. }));
        let Expr::Lambda { lambda, .. } = b.expr(id) else { unreachable!() };
        let params = b.push_operands(&[call]);
        let data = b.lambda(lambda);
        b.set_lambda(lambda, LambdaData { params, ..data });
    });
    rule.broken_by(&m, "a parameter is not a variable", "@main %f");
}

pub(super) fn rule_1_ids_of_the_function_are_in_range(rule: &mut Rule) {
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
        rule.broken_by(&m, what, "@main");
    }
}

pub(super) fn rule_2_what_binds_has_one_parent(rule: &mut Rule) {
    // The chain of the first branch as the second branch too.
    let m = edited(BRANCH, |b, _| {
        let id = find(b, |e| matches!(e, Expr::If { .. }));
        let Expr::If { cond, then_block, .. } = b.expr(id) else { unreachable!() };
        b.set_expr(id, Expr::If { cond, then_block, else_block: then_block });
    });
    rule.broken_by(&m, "two links", "@main %i");
    let mut both = |text: &str, what: &str, place: &str| {
        let m = edited(text, |b, cx| {
            let (_, value, ..) = parts(b, b.root());
            let last = ["s", "r"].iter().find_map(|n| cx.names.find(n).map(|_| link(b, cx, n))).unwrap();
            let (var, _, rest, flags) = parts(b, last);
            b.set_expr(last, Expr::Let { var, value, body: rest, flags });
        });
        rule.broken_by(&m, what, place);
    };
    both(BRANCH, "an `if` has two links", "@main %s");
    both(LAMBDA, "a `fn` has two links", "@main %r");
}

pub(super) fn rule_3_nothing_is_part_of_itself(rule: &mut Rule) {
    let m = edited(CHAIN, |b, cx| {
        let (first, last) = (b.root(), link(b, cx, "c"));
        b.set_let_body(last, first);
    });
    rule.broken_by(&m, "part of itself", "@main %a");
    let m =
        edited("def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(negative(%x)) }", |b, _| {
            let root = b.root();
            let inner = b.operands_of(root)[0];
            let list = b.expr(inner).operand_list().unwrap();
            b.set_operand(list, 0, root);
        });
    rule.broken_by(&m, "part of itself", "@main");
}

pub(super) fn rule_4_a_variable_is_bound_once(rule: &mut Rule) {
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
    rule.broken_by(&m, "`%a` is bound twice", "@main %a");
    let m = edited(CHAIN, |b, _| {
        let x = b.params()[0];
        b.push_param(x);
    });
    assert!(errors(&m)[0].contains("`%x` is bound twice"));
}
