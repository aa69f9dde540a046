//! Tests of unusual edits in callbacks: the walk makes a well-formed program or reports an error.

use anfora_ir::{BlockKind, DType, ExprId, Module, Source, TypeId, VarId, parse_module, verify_module};
use anfora_visit::{
    Link, Mutator, Refused, Rewrite, RewriteError, Scope, Site, Slot, Verdict, mutate_function, substitute,
};
use expect_test::{Expect, expect};

type Answer<T> = Result<T, RewriteError>;

/// A mutator made of closures. They get the name of the variable at the place, or of the operator.
struct Case<const NODES: bool, const RETYPE: bool> {
    expand: fn(&mut Site<'_>, &str, ExprId) -> Answer<Option<ExprId>>,
    expr: fn(&mut Site<'_>, &str, ExprId) -> Answer<Rewrite>,
    value: fn(&mut Site<'_>, &str, ExprId) -> Answer<Verdict>,
    exit: fn(&mut Site<'_>, Scope) -> Answer<()>,
}

impl<const NODES: bool, const RETYPE: bool> Case<NODES, RETYPE> {
    fn new() -> Case<NODES, RETYPE> {
        Case {
            expand: |_, _, _| Ok(None),
            expr: |_, _, _| Ok(Rewrite::Keep),
            value: |_, _, _| Ok(Verdict::Keep),
            exit: |_, _| Ok(()),
        }
    }
}

fn place(site: &Site<'_>, slot: Slot) -> String {
    let name = slot.var.and_then(|var| site.editor.body.binding_name(site.editor.cx, var.expr()));
    name.unwrap_or("tail").to_string()
}

fn operator(site: &Site<'_>, id: ExprId) -> String {
    let call = site.editor.body.call_of(id);
    call.map_or(String::new(), |call| site.editor.cx.ops.get(call.op).name.to_string())
}

impl<const NODES: bool, const RETYPE: bool> Mutator for Case<NODES, RETYPE> {
    type Error = RewriteError;
    const NODES: bool = NODES;
    const VALUES: bool = true;
    const REFUSED: Refused = if RETYPE { Refused::Retype } else { Refused::CastBack };

    fn expand(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Answer<Option<ExprId>> {
        let name = place(site, slot);
        (self.expand)(site, &name, value)
    }

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Answer<Rewrite> {
        let name = operator(site, id);
        (self.expr)(site, &name, id)
    }

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Answer<Verdict> {
        let name = place(site, slot);
        (self.value)(site, &name, value)
    }

    fn exit(&mut self, site: &mut Site<'_>, scope: Scope) -> Answer<()> {
        (self.exit)(site, scope)
    }

    /// Converts an atom, and binds the result.
    fn cast(&mut self, site: &mut Site<'_>, atom: ExprId, to: TypeId) -> Answer<ExprId> {
        let dtype = site.editor.cx.types.as_tensor(to).map_or(DType::Float32, |tensor| tensor.dtype);
        let converted = site.editor.op("astype", &[atom], &[("dtype", dtype.into())])?;
        Ok(site.bind(None, converted))
    }
}

fn module(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

fn named(site: &Site<'_>, name: &str) -> ExprId {
    let body = &*site.editor.body;
    let is_it =
        |&(id, _): &(ExprId, _)| body.as_var(id).is_some() && body.binding_name(site.editor.cx, id) == Some(name);
    body.exprs().find(is_it).unwrap_or_else(|| panic!("no variable %{name}")).0
}

fn var_named(site: &Site<'_>, name: &str) -> VarId {
    let id = named(site, name);
    site.editor.body.as_var(id).unwrap()
}

/// Runs a case on the first function of a text, and verifies the result.
fn outcome<const NODES: bool, const RETYPE: bool>(text: &str, mut case: Case<NODES, RETYPE>) -> String {
    let mut module = module(text);
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    if let Err(error) = mutate_function(cx, function, &mut case) {
        return format!("error: {error}\n");
    }
    verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
    module.to_string().replace("Tensor[(), ", "scalar[")
}

fn check<const NODES: bool, const RETYPE: bool>(text: &str, case: Case<NODES, RETYPE>, expected: Expect) {
    expected.assert_eq(&outcome(text, case));
}

const REGION: &str = "def @main(%x: float32) {
    dataflow { let %a = negative(%x); let %b = exp(%a); output(%b) }
    let %c = sqrt(%b);
    %c
}";

#[test]
fn a_dropped_variable_is_found_wherever_it_comes_back() {
    let text = "def @main(%x: float32, %y: float32) { let %a = negative(%x); let %b = exp(%x); %b }";
    let value: fn(&mut Site<'_>, &str, ExprId) -> Answer<Verdict> = |site, name, _| {
        Ok(match name {
            "a" => Verdict::Drop,
            "b" => Verdict::Var(named(site, "a")),
            _ => Verdict::Keep,
        })
    };
    check(
        text,
        Case::<false, false> { value, ..Case::new() },
        expect![[r#"
        error: the binding of `%a` was dropped, but `%a` is used
    "#]],
    );
    check(
        text,
        Case::<true, false> { value, ..Case::new() },
        expect![[r#"
        error: the binding of `%a` was dropped, but `%a` is used
    "#]],
    );
    check(
        "def @main(%x: float32, %y: float32) { let %c = less(%x, %y); if (%c) { let %a = %x; %a } else { %y } }",
        Case::<false, false> {
            value: |_, name, value| {
                Ok(match name {
                    "c" => Verdict::Drop,
                    "a" => Verdict::Var(value),
                    _ => Verdict::Keep,
                })
            },
            ..Case::new()
        },
        expect![[r#"
            error: the binding of `%c` was dropped, but `%c` is used
        "#]],
    );
}

#[test]
fn a_binding_at_the_end_of_a_block_stands_before_its_tail() {
    let exit: fn(&mut Site<'_>, Scope) -> Answer<()> = |site, scope| {
        if let Scope::Block(BlockKind::Then(_) | BlockKind::Root) = scope {
            let x = named(site, "x");
            let value = site.editor.op("tanh", &[x], &[])?;
            site.bind(None, value);
        }
        Ok(())
    };
    let value: fn(&mut Site<'_>, &str, ExprId) -> Answer<Verdict> = |site, name, value| {
        if name != "tail" || operator(site, value) != "exp" {
            return Ok(Verdict::Keep);
        }
        let x = named(site, "x");
        Ok(Verdict::Value(site.editor.op("sqrt", &[x], &[])?))
    };
    check(
        "def @main(%x: float32, %c: bool) { let %r = if (%c) { exp(%x) } else { %x }; exp(%r) }",
        Case::<false, false> { exit, value, ..Case::new() },
        expect![[r#"
            def @main(%x: scalar[float32], %c: scalar[bool]) -> scalar[float32] {
              let %r = if (%c) {
                let %0 = tanh(%x);
                sqrt(%x)
              } else { %x };
              let %1 = tanh(%x);
              sqrt(%x)
            }
        "#]],
    );
}

#[test]
fn a_variable_that_gets_out_of_its_region_becomes_an_output() {
    let expand: fn(&mut Site<'_>, &str, ExprId) -> Answer<Option<ExprId>> = |site, name, value| {
        if name != "c" || operator(site, value) != "sqrt" {
            return Ok(None);
        }
        let a = named(site, "a");
        Ok(Some(site.editor.op("tanh", &[a], &[])?))
    };
    check(
        REGION,
        Case::<false, false> { expand, ..Case::new() },
        expect![[r#"
        def @main(%x: scalar[float32]) -> scalar[float32] {
          dataflow {
            let %a = negative(%x);
            let %b = exp(%a);
            output(%a, %b);
          }
          let %c = tanh(%a);
          %c
        }
    "#]],
    );
    let value: fn(&mut Site<'_>, &str, ExprId) -> Answer<Verdict> = |site, name, _| {
        if name == "c" {
            let (a, c) = (named(site, "a"), var_named(site, "c"));
            site.replace_var(c, a)?;
        }
        Ok(Verdict::Keep)
    };
    check(
        REGION,
        Case::<false, false> { value, ..Case::new() },
        expect![[r#"
        def @main(%x: scalar[float32]) -> scalar[float32] {
          dataflow {
            let %a = negative(%x);
            let %b = exp(%a);
            output(%a, %b);
          }
          let %c = sqrt(%b);
          %a
        }
    "#]],
    );
}

#[test]
fn a_variable_of_an_expanded_block_may_stand_for_something() {
    check(
        "def @main(%x: float32, %c: bool) { let %r = if (%c) { let %i = exp(%x); %i } else { %x }; let %s = tanh(%r); %s }",
        Case::<false, false> {
            expand: |site, _, value| match site.editor.body.expr(value) {
                anfora_ir::Expr::If { then_block, .. } => {
                    let (i, x) = (var_named(site, "i"), named(site, "x"));
                    site.replace_var(i, x)?;
                    Ok(Some(then_block))
                }
                _ => Ok(None),
            },
            ..Case::new()
        },
        expect![[r#"
            def @main(%x: scalar[float32], %c: scalar[bool]) -> scalar[float32] {
              let %i = exp(%x);
              let %r = %x;
              let %s = tanh(%r);
              %s
            }
        "#]],
    );
}

#[test]
fn a_shared_node_is_converted_for_all_its_places() {
    check(
        "def @main(%p: float32, %q: float16, %z: float32, %c: bool) {
            let %a = exp(%p);
            %g = add(%a, %z);
            let %r = if (%c) { let %v = %g; %v } else { let %w = %g; %w };
            %r
        }",
        Case::<true, true> {
            value: |site, name, _| Ok(if name == "a" { Verdict::Value(named(site, "q")) } else { Verdict::Keep }),
            ..Case::new()
        },
        expect![[r#"
            def @main(%p: scalar[float32], %q: scalar[float16], %z: scalar[float32], %c: scalar[bool]) -> scalar[float32] {
              let %a = %q;
              %0 = add({
                let %1 = astype(%a, dtype=float32);
                %1
              }, %z);
              let %r = if (%c) {
                let %v = %0;
                %v
              } else {
                let %w = %0;
                %w
              };
              %r
            }
        "#]],
    );
}

#[test]
fn a_conversion_may_bind_where_its_value_stands() {
    let value: fn(&mut Site<'_>, &str, ExprId) -> Answer<Verdict> =
        |site, name, _| Ok(if name == "k" { Verdict::Value(named(site, "q")) } else { Verdict::Keep });
    check(
        "def @main(%x: float32, %q: float16, %c: bool) -> float32 {
            let %r = if (%c) { let %k = exp(%x); let %l = tanh(%k); %l } else { %x };
            let %f = fn () -> float32 { let %k = exp(%x); %k };
            let %s = %f();
            let %k = add(%r, %s);
            exp(%k)
        }",
        Case::<false, true> { value, ..Case::new() },
        expect![[r#"
            def @main(%x: scalar[float32], %q: scalar[float16], %c: scalar[bool]) -> scalar[float32] {
              let %r = if (%c) {
                let %k = %q;
                let %l = tanh(%k);
                let %0 = astype(%l, dtype=float32);
                %0
              } else { %x };
              let %f = fn () -> scalar[float32] {
                let %k$1 = %q;
                let %1 = astype(%k$1, dtype=float32);
                %1
              };
              let %s = %f();
              let %k$2 = %q;
              let %2 = exp(%k$2);
              let %3 = astype(%2, dtype=float32);
              %3
            }
        "#]],
    );
}

#[test]
fn what_an_author_puts_in_has_the_type_of_what_it_replaces() {
    let text = "def @main(%x: float32, %q: float16) { let %a = exp(%x); tanh(%a) }";
    check(
        text,
        Case::<false, false> {
            value: |site, name, _| Ok(if name == "a" { Verdict::Value(named(site, "q")) } else { Verdict::Keep }),
            ..Case::new()
        },
        expect![[r#"
            error: a value of type Tensor[(), float16] cannot replace one of type Tensor[(), float32]
        "#]],
    );
    check(
        text,
        Case::<false, false> {
            expand: |site, name, value| {
                Ok((name == "tail" && operator(site, value) == "tanh").then(|| named(site, "q")))
            },
            ..Case::new()
        },
        expect![[r#"
            error: a value of type Tensor[(), float16] cannot replace one of type Tensor[(), float32]
        "#]],
    );
}

#[test]
fn a_function_that_calls_itself_keeps_the_result_of_its_calls() {
    check(
        "def @main(%x: float32, %p: Tensor[(3,), float32], %q: Tensor[(2,), float32], %c: bool) {
            let %k = if (%c) { %q } else { %p };
            let %f: fn(float32) -> Tensor[(?,), float32] = fn (%n: float32) {
                let %r = if (%c) { %f(%n) } else { %k };
                let %s = exp(%r);
                %k
            };
            %f(%x)
        }",
        Case::<false, false> {
            expand: |site, name, value| match site.editor.body.expr(value) {
                anfora_ir::Expr::If { then_block, .. } if name == "k" => Ok(Some(then_block)),
                _ => Ok(None),
            },
            value: |site, name, value| {
                let is_alias = name == "k" && site.editor.body.expr(value).is_atom();
                Ok(if is_alias { Verdict::Var(value) } else { Verdict::Keep })
            },
            ..Case::new()
        },
        expect![[r#"
            def @main(%x: scalar[float32], %p: Tensor[(3,), float32], %q: Tensor[(2,), float32], %c: scalar[bool]) -> Tensor[(?,), float32] {
              let %f = fn (%n: scalar[float32]) -> Tensor[(?,), float32] {
                let %r = if (%c) { %f(%n) } else { %q };
                let %s = exp(%r);
                %q
              };
              %f(%x)
            }
        "#]],
    );
}

#[test]
fn a_substitution_in_a_part_leaves_what_the_rest_uses_alone() {
    let mut module = module(
        "def @main(%c: bool, %a: float32, %b: float32) {
            %g = negative(if (%c) { exp(%a) } else { %a });
            if (%c) { add(%g, %a) } else { %g }
        }",
    );
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    let (params, root) = (function.body.params().to_vec(), function.body.root());
    let mut editor = anfora_ir::Editor::new(cx, &mut function.body);
    substitute(&mut editor, Link::Then(root), &[(params[1], params[2].expr())]).unwrap();
    verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
    expect![[r#"
        def @main(%c: scalar[bool], %a: scalar[float32], %b: scalar[float32]) -> scalar[float32] {
          if (%c) {
            add(negative(if (%c) { exp(%b) } else { %b }), %b)
          } else {
            negative(if (%c) { exp(%a) } else { %a })
          }
        }
    "#]]
    .assert_eq(&module.to_string().replace("Tensor[(), ", "scalar["));
}
