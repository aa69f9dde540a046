//! Rules 5 to 8: scopes of variables, regions and effects.

use anfora_ir::{Body, Expr, Form, LetFlags, VarFlags};

use super::Rule;
use super::programs::{BRANCH, CHAIN, REGION, assert_fine, edited, errors, link, parse, parts, var};

pub(super) fn rule_5_a_variable_is_used_where_it_is_visible(rule: &mut Rule) {
    let operand = |text: &str, of: &str, used: &str| {
        edited(text, |b, cx| {
            let (_, value, ..) = parts(b, link(b, cx, of));
            let used = var(b, cx, used);
            let list = b.expr(value).operand_list().unwrap();
            b.set_operand(list, 0, used);
        })
    };
    rule.broken_by(&operand(CHAIN, "a", "c"), "`%c` is used where nothing has bound it", "@main %a");
    rule.broken_by(&operand(CHAIN, "b", "b"), "`%b` is used where nothing has bound it", "@main %b");
    rule.broken_by(&operand(BRANCH, "s", "i"), "`%i` is used outside its scope", "@main %s");
    let through_fn = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        let %f = fn (%y: Tensor[(8,), float32]) { let %n = negative(%y); %n };
        let %r = negative(%x);
        %r
    }";
    rule.broken_by(&operand(through_fn, "r", "y"), "`%y` is used outside its scope", "@main %r");
    rule.broken_by(&operand(through_fn, "r", "n"), "`%n` is used outside its scope", "@main %r");
    // A `fn` may name itself; no other value may.
    let recursive = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        let %f = fn (%y: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %n = %f(%y); %n };
        let %r = %f(%x);
        %r
    }";
    assert_fine(&parse(recursive), Form::Anf);
}

pub(super) fn rule_5_a_shared_node_is_used_where_its_variables_are_visible(rule: &mut Rule) {
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
    rule.broken_by(&m, "a shared node is used where `%i`, which is in it, is not in scope", "@main %s");
    // A shared node that contains a `fn`: the variables that the `fn` binds are not free in the
    // node.
    let text = "def @main(%x: Tensor[(8,), float32], %p: bool) -> Tensor[(8,), float32] {
        %a = (fn (%y: Tensor[(8,), float32]) { let %n = add(%y, %x); %n })(%x);
        let %r = if (%p) { let %i = add(%a, %x); %i } else { %a };
        add(%r, %a)
    }";
    assert_fine(&parse(text), Form::Graph);
    // The same, where the `fn` is walked before the shared node.
    let text = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        %a = (fn (%y: Tensor[(8,), float32]) { let %n = add(%y, %x); %n })(%x);
        let %first = negative(%a);
        %b = add(%a, %first);
        multiply(%b, negative(%b))
    }";
    assert_fine(&parse(text), Form::Graph);
}

pub(super) fn rule_6_regions_are_well_formed(rule: &mut Rule) {
    let m = edited(REGION, |b, cx| {
        let a = link(b, cx, "a");
        let (v, value, rest, _) = parts(b, a);
        b.set_expr(a, Expr::Let { var: v, value, body: rest, flags: LetFlags::DATAFLOW });
    });
    rule.broken_by(&m, "follows none that starts the region", "@main %a");
    let flag = |text: &str, name: &str| {
        edited(text, |b, cx| {
            let v = var(b, cx, name);
            let Expr::Var { name, .. } = b.expr(v) else { unreachable!() };
            b.set_expr(v, Expr::Var { name, flags: VarFlags::DATAFLOW });
        })
    };
    rule.broken_by(&flag(REGION, "b"), "`%b` is visible only in its dataflow region, but used outside", "@main %c");
    rule.broken_by(&flag(REGION, "c"), "`%c` is visible only in a dataflow region, but bound outside", "@main %c");
    rule.broken_by(&flag(CHAIN, "x"), "the parameter `%x` is visible only in a dataflow region", "@main");
    // Adjacent regions are separate.
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
    rule.broken_by(&m, "`%a` is visible only in its dataflow region", "@main %c");
    // The tail is in no region.
    let m = edited(REGION, |b, cx| {
        let (l, a) = (link(b, cx, "b"), var(b, cx, "a"));
        b.set_let_body(l, a);
    });
    rule.broken_by(&m, "`%a` is visible only in its dataflow region", "@main");
}

/// Puts the Lets of `@main`'s own block into one region.
fn regionise(b: &mut Body) {
    let mut at = b.root();
    let mut flags = LetFlags::REGION_START;
    while let Expr::Let { var, value, body, .. } = b.expr(at) {
        b.set_expr(at, Expr::Let { var, value, body, flags });
        flags = LetFlags::DATAFLOW;
        at = body;
    }
}

pub(super) fn rule_7_regions_hold_no_control_flow_and_no_side_effect(rule: &mut Rule) {
    rule.broken_by(&edited(BRANCH, |b, _| regionise(b)), "holds no control flow", "@main %r");
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
        rule.broken_by(&edited(&noisy(value), |b, _| regionise(b)), "holds no side effect", place);
        assert_eq!(errors(&parse(&noisy(value))), Vec::<String>::new());
    }
    for value in ["negative(%x)", "%g(%x)", "@promised(%x)"] {
        assert_fine(&edited(&noisy(value), |b, _| regionise(b)), Form::Anf);
    }
    // The block of a `fn` is not evaluated where the `fn` is defined.
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

pub(super) fn rule_8_shared_nodes_are_pure(rule: &mut Rule) {
    let m = edited(CHAIN, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "a"));
        let Expr::CallOp { operands, attrs, .. } = b.expr(value) else { unreachable!() };
        b.set_expr(value, Expr::CallOp { op: cx.ops.find("random").unwrap(), operands, attrs });
        let l = link(b, cx, "b");
        let (v, _, rest, flags) = parts(b, l);
        b.set_expr(l, Expr::Let { var: v, value, body: rest, flags });
    });
    rule.broken_by(&m, "a shared node may have a side effect", "@main %b");
    let nested = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = negative(random(%x)); %a }";
    assert_fine(&parse(nested), Form::Graph);
}
