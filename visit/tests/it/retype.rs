//! Tests of types that change in a walk, and of types that are restored.

use anfora_ir::{DType, ExprId, Module, Source, TypeId, parse_module, update_signatures, verify_module};
use anfora_visit::{Mutator, Refused, Rewrite, RewriteError, Site, mutate_function};
use expect_test::{Expect, expect};

/// Converts `sqrt` of a float32 tensor to float16.
struct HalfRoots;

fn convert(site: &mut Site<'_>, value: ExprId, dtype: DType) -> Result<ExprId, RewriteError> {
    Ok(site.editor.op("astype", &[value], &[("dtype", dtype.into())])?)
}

fn dtype(site: &Site<'_>, ty: TypeId) -> Option<DType> {
    site.editor.cx.types.as_tensor(ty).map(|tensor| tensor.dtype)
}

impl Mutator for HalfRoots {
    type Error = RewriteError;
    const REFUSED: Refused = Refused::Retype;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let Some(call) = site.editor.body.call_of(id) else { return Ok(Rewrite::Keep) };
        let &[x] = call.operands else { return Ok(Rewrite::Keep) };
        let ty = site.editor.body.ty(id);
        if site.editor.cx.ops.get(call.op).name != "sqrt" || dtype(site, ty) != Some(DType::Float32) {
            return Ok(Rewrite::Keep);
        }
        let half = convert(site, x, DType::Float16)?;
        Ok(Rewrite::Replace(site.editor.op("sqrt", &[half], &[])?))
    }

    fn cast(&mut self, site: &mut Site<'_>, atom: ExprId, to: TypeId) -> Result<ExprId, RewriteError> {
        let dtype = dtype(site, to).unwrap_or(DType::Float32);
        convert(site, atom, dtype)
    }
}

fn module(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), anfora_ops::standard())
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(|e| format!("{e}\n")).collect::<String>()))
}

fn check(text: &str, expected: Expect) {
    let mut module = module(text);
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    mutate_function(cx, function, &mut HalfRoots).unwrap();
    update_signatures(&mut module, &[key]).unwrap();
    if let Err(errors) = verify_module(&module) {
        panic!("{errors:?}\n{module}");
    }
    expected.assert_eq(&module.to_string().replace("Tensor[(), ", "scalar[").replace("scalar[bool]", "bool"));
}

#[test]
fn types_change_through_bindings_and_tuples() {
    check(
        "def @main(%x: float32) {
            let %a = sqrt(%x);
            let %t = (%a, %x);
            let %b = %t.0;
            let %alias = %b;
            let %c = exp(%alias);
            (%c, negative(sqrt(%x)), %t)
        }",
        expect![[r#"
            def @main(%x: scalar[float32]) -> (scalar[float16], scalar[float16], (scalar[float16], scalar[float32])) {
              let %a = sqrt(astype(%x, dtype=float16));
              let %t = (%a, %x);
              let %b = %t.0;
              let %alias = %b;
              let %c = exp(%alias);
              (%c, negative(sqrt(astype(%x, dtype=float16))), %t)
            }
        "#]],
    );
}

#[test]
fn what_is_refused_gets_its_type_back() {
    check(
        "def @main(%x: float32) {
            dataflow { let %a = sqrt(%x); let %b = add(%a, %x); let %c = add(%x, sqrt(%b)); output(%a, %c) }
            let %d = add(multiply(%a, %c), 1f);
            %d
        }",
        expect![[r#"
            def @main(%x: scalar[float32]) -> scalar[float32] {
              dataflow {
                let %a = sqrt(astype(%x, dtype=float16));
                let %a$1 = astype(%a, dtype=float32);
                let %b = add(%a$1, %x);
                let %c = add(%x, {
                  let %0 = sqrt(astype(%b, dtype=float16));
                  astype(%0, dtype=float32)
                });
                output(%a, %c);
              }
              let %d = add(multiply(astype(%a, dtype=float32), %c), 1f);
              %d
            }
        "#]],
    );
}

#[test]
fn branches_meet_in_the_type_that_both_had() {
    check(
        "def @main(%x: float32, %c: bool) {
            let %a = if (%c) { sqrt(%x) } else { let %e = exp(%x); %e };
            let %b = if (%c) { let %s = sqrt(%a); exp(%s) } else { sqrt(%x) };
            let %d = if (%c) { (%b, %x) } else { (%x, %x) };
            (%a, %b)
        }",
        expect![[r#"
            def @main(%x: scalar[float32], %c: bool) -> (scalar[float32], scalar[float16]) {
              let %a = if (%c) {
                let %0 = sqrt(astype(%x, dtype=float16));
                astype(%0, dtype=float32)
              } else {
                let %e = exp(%x);
                %e
              };
              let %b = if (%c) {
                let %s = sqrt(astype(%a, dtype=float16));
                exp(%s)
              } else {
                sqrt(astype(%x, dtype=float16))
              };
              let %d = if (%c) {
                let %1 = (%b, %x);
                let %2 = %1.0;
                let %3 = astype(%2, dtype=float32);
                let %4 = %1.1;
                (%3, %4)
              } else { (%x, %x) };
              (%a, %b)
            }
        "#]],
    );
}

#[test]
fn results_that_are_stated_keep_their_types() {
    check(
        "def @main(%x: float32) -> float32 {
            let %f = fn (%v: float32) -> float32 { let %w = sqrt(%v); %w };
            let %g = fn (%v: float32) { sqrt(%v) };
            let %a = %f(%x);
            let %b = %g(%a);
            sqrt(%b)
        }",
        expect![[r#"
            def @main(%x: scalar[float32]) -> scalar[float32] {
              let %f = fn (%v: scalar[float32]) -> scalar[float32] {
                let %w = sqrt(astype(%v, dtype=float16));
                astype(%w, dtype=float32)
              };
              let %g = fn (%v$1: scalar[float32]) {
                sqrt(astype(%v$1, dtype=float16))
              };
              let %a = %f(%x);
              let %b = %g(%a);
              let %0 = sqrt(%b);
              astype(%0, dtype=float32)
            }
        "#]],
    );
    check(
        "def @main(%x: float32) { let %a = sqrt(%x); %a }",
        expect![[r#"
        def @main(%x: scalar[float32]) -> scalar[float16] {
          let %a = sqrt(astype(%x, dtype=float16));
          %a
        }
    "#]],
    );
}

#[test]
fn a_type_that_is_stated_of_a_variable_changes_where_it_must() {
    check(
        "def @main(%x: float32, %y: Tensor[(4,), float32]) {
            let %a: Tensor[?, float32] = sqrt(%y);
            let %b: Any = sqrt(%x);
            (%a, %b)
        }",
        expect![[r#"
            def @main(%x: scalar[float32], %y: Tensor[(4,), float32]) -> (Tensor[(4,), float16], scalar[float16]) {
              let %a = sqrt(astype(%y, dtype=float16));
              let %b = sqrt(astype(%x, dtype=float16));
              (%a, %b)
            }
        "#]],
    );
}

#[test]
fn a_call_is_given_what_the_function_takes() {
    check(
        "def @main(%x: float32) { let %a = sqrt(%x); let %b = @other(%a, %a); let %f = fn (%v: float32) { %v }; %f(%a) }
         def @other(%x: float32, %y: float32) -> float32 { add(%x, %y) }",
        expect![[r#"
            def @main(%x: scalar[float32]) -> scalar[float32] {
              let %a = sqrt(astype(%x, dtype=float16));
              let %a$1 = astype(%a, dtype=float32);
              let %b = @other(%a$1, %a$1);
              let %f = fn (%v: scalar[float32]) { %v };
              let %a$2 = astype(%a, dtype=float32);
              %f(%a$2)
            }

            def @other(%x: scalar[float32], %y: scalar[float32]) -> scalar[float32] {
              add(%x, %y)
            }
        "#]],
    );
}

#[test]
fn a_function_that_calls_itself_keeps_its_type() {
    check(
        "def @main(%x: float32, %c: bool) {
            let %f: fn(float32) -> float32 = fn (%v: float32) {
                if (%c) { let %a = exp(%v); %f(%a) } else { sqrt(%v) }
            };
            %f(%x)
        }",
        expect![[r#"
            def @main(%x: scalar[float32], %c: bool) -> scalar[float32] {
              let %f = fn (%v: scalar[float32]) -> scalar[float32] {
                if (%c) {
                  let %a = exp(%v);
                  %f(%a)
                } else {
                  let %0 = sqrt(astype(%v, dtype=float16));
                  astype(%0, dtype=float32)
                }
              };
              %f(%x)
            }
        "#]],
    );
}

#[test]
fn a_call_of_a_function_in_itself_has_the_type_that_the_function_keeps() {
    check(
        "def @main(%x: float32) {
            let %f: fn(float32) -> float32 = fn (%v: float32) { let %a = %f(%v); sqrt(%a) };
            %f(%x)
        }",
        expect![[r#"
            def @main(%x: scalar[float32]) -> scalar[float32] {
              let %f = fn (%v: scalar[float32]) -> scalar[float32] {
                let %a = %f(%v);
                let %0 = sqrt(astype(%a, dtype=float16));
                astype(%0, dtype=float32)
              };
              %f(%x)
            }
        "#]],
    );
}

/// Replaces `less` by a number.
struct NumberForBool;

impl Mutator for NumberForBool {
    type Error = RewriteError;
    const REFUSED: Refused = Refused::Retype;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let is_less = site.editor.body.call_of(id).is_some_and(|call| site.editor.cx.ops.get(call.op).name == "less");
        if !is_less || dtype(site, site.editor.body.ty(id)) != Some(DType::Bool) {
            return Ok(Rewrite::Keep);
        }
        Ok(Rewrite::Replace(convert(site, id, DType::Int8)?))
    }

    fn cast(&mut self, site: &mut Site<'_>, atom: ExprId, to: TypeId) -> Result<ExprId, RewriteError> {
        let dtype = dtype(site, to).unwrap_or(DType::Bool);
        convert(site, atom, dtype)
    }
}

#[test]
fn a_condition_is_given_back_its_type() {
    let mut module =
        module("def @main(%x: float32) { let %c = less(%x, 1f); let %y = if (%c) { %x } else { exp(%x) }; (%c, %y) }");
    let key = module.order()[0];
    let (function, cx) = module.get_mut(key).unwrap();
    mutate_function(cx, function, &mut NumberForBool).unwrap();
    update_signatures(&mut module, &[key]).unwrap();
    verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
    expect![[r#"
        def @main(%x: Tensor[(), float32]) -> (Tensor[(), int8], Tensor[(), float32]) {
          let %c = astype(less(%x, 1f), dtype=int8);
          let %0 = astype(%c, dtype=bool);
          let %y = if (%0) { %x } else { exp(%x) };
          (%c, %y)
        }
    "#]]
    .assert_eq(&module.to_string());
}
