//! Infers the type of an expression from the types of its parts.

pub(crate) mod call_types;
pub(crate) mod module;

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, DimId, ExprId, LambdaId, OpId, SymbolId, TypeId};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::infer::call_types::CallKey;
use crate::ops::catch_panic::catch_panic;
use crate::ops::op::{ElementsRule, Operand, TypeCall, TypeError};
use crate::tables::dim::Dim;
use crate::tables::dtype::DType;
use crate::tables::types::Type;
use crate::walk::symbols::SymbolWalk;

/// Returns the type of an expression from the types of its parts. A variable keeps its type. The
/// type of a Let is that of its tail.
///
/// # Errors
/// If the types of the parts do not fit together.
pub fn infer_expr(cx: &mut Context, body: &Body, id: ExprId) -> Result<TypeId, TypeError> {
    match body.expr(id) {
        // Atoms.
        Expr::Var { .. } => Ok(body.ty(id)),
        Expr::Literal(l) => Ok(cx.literal_type(l)),
        Expr::Global(g) => cx.globals.get(g).signature.ok_or_else(|| {
            TypeError::new(format!("the type of `@{}` is not known", cx.global_name(g)))
                .with_help("state its result type, with `-> TYPE`")
        }),
        Expr::Op(_) | Expr::None => Ok(cx.types.any()),
        // Calls. Usually the type is known from an earlier call.
        Expr::CallOp { op, operands, attrs } => {
            let list = body.operands(operands);
            if attrs == cx.attrs.empty()
                && let Some(ty) =
                    CallKey::of(op, list, |o| operand_type(body, o)).and_then(|key| cx.types.calls.get(key))
            {
                return Ok(ty);
            }
            let annotated = body.ty(id);
            // One or two operands need no list.
            match *list {
                [a] => infer_op(cx, op, &[operand(body, a)], attrs, annotated),
                [a, b] => infer_op(cx, op, &[operand(body, a), operand(body, b)], attrs, annotated),
                ref list => {
                    let operands: SmallVec<[Operand; 8]> = list.iter().map(|&o| operand(body, o)).collect();
                    infer_op(cx, op, &operands, attrs, annotated)
                }
            }
        }
        Expr::Call { operands, .. } => {
            let list = body.operands(operands);
            let (&callee, arguments) = list.split_first().ok_or_else(|| TypeError::new("a call without a function"))?;
            let callee = body.type_of(callee);
            let arguments: SmallVec<[TypeId; 8]> = arguments.iter().map(|&a| body.type_of(a)).collect();
            infer_call(cx, callee, &arguments)
        }
        // Tuples.
        Expr::Tuple(fields) => {
            let fields: SmallVec<[TypeId; 8]> = body.operands(fields).iter().map(|&f| body.type_of(f)).collect();
            Ok(cx.types.tuple(&fields))
        }
        Expr::Proj { tuple, index } => {
            let ty = body.type_of(tuple);
            match cx.types.get(ty) {
                Type::Tuple(fields) => fields
                    .get(index as usize)
                    .copied()
                    .ok_or_else(|| TypeError::operand(0, format!("field {index} of a tuple of {}", fields.len()))),
                Type::Error => Ok(ty),
                _ => {
                    let found = cx.type_text(ty);
                    Err(TypeError::operand(0, format!("a projection needs a tuple, not {found}")))
                }
            }
        }
        // Expressions with blocks.
        Expr::Let { body: rest, .. } => Ok(body.type_of(rest)),
        Expr::If { cond, then_block, else_block } => {
            let (cond, a, b) = (body.type_of(cond), body.type_of(then_block), body.type_of(else_block));
            let boolean = cx.types.scalar(DType::Bool);
            if !cx.types.accepts(boolean, cond) {
                let found = cx.type_text(cond);
                return Err(TypeError::operand(0, format!("a condition is a rank-0 bool tensor, not {found}")));
            }
            // If the type of the condition says which branch is taken, the other does not matter.
            let known = cx.types.elements(cond).and_then(|elements| cx.types.dims.as_constant(*elements.first()?));
            if let Some(taken) = known {
                return Ok(if taken != 0 { a } else { b });
            }
            cx.types.join(a, b).ok_or_else(|| {
                let (a, b) = (cx.type_text(a), cx.type_text(b));
                TypeError::new(format!("the branches have nothing in common: {a} and {b}"))
            })
        }
        Expr::Lambda { lambda, body: block } => {
            let params: SmallVec<[TypeId; 4]> = body.lambda_params(lambda).map(|p| body.ty(p.expr())).collect();
            let ret = body.lambda(lambda).ret.unwrap_or_else(|| body.type_of(block));
            Ok(lambda_type(cx, body, lambda, &params, ret))
        }
    }
}

/// Returns the stored type of an operand; `None` for `none`, which is no value, and for a Let,
/// whose type is that of its tail.
#[inline]
fn operand_type(body: &Body, id: ExprId) -> Option<TypeId> {
    (!matches!(body.expr(id), Expr::None | Expr::Let { .. })).then(|| body.ty(id))
}

#[inline]
fn operand(body: &Body, id: ExprId) -> Operand {
    match body.expr(id) {
        Expr::Literal(l) => Operand { ty: body.ty(id), literal: Some(l), absent: false },
        Expr::None => Operand { ty: body.ty(id), literal: None, absent: true },
        _ => Operand { ty: body.type_of(id), literal: None, absent: false },
    }
}

/// Returns the type of a call of an operator. `annotated` is the type that the node has already; it
/// is the type of the result if the operator is opaque.
///
/// # Errors
/// If the number of operands is wrong, or if the type rule of the operator fails or panics.
pub fn infer_op(
    cx: &mut Context,
    op: OpId,
    operands: &[Operand],
    attrs: AttrsId,
    annotated: TypeId,
) -> Result<TypeId, TypeError> {
    let ty_of = |o: Operand| (!o.absent).then_some(o.ty);
    let key = if attrs == cx.attrs.empty() { CallKey::of(op, operands, ty_of) } else { None };
    if let Some(ty) = key.and_then(|key| cx.types.calls.get(key)) {
        return Ok(ty);
    }
    infer_by_rule(cx, op, operands, attrs, annotated, key)
}

/// Returns the type of a call by the rule of its operator. Records it under `key`, if it follows
/// from the key alone.
#[inline(never)]
fn infer_by_rule(
    cx: &mut Context,
    op: OpId,
    operands: &[Operand],
    attrs: AttrsId,
    annotated: TypeId,
    key: Option<CallKey>,
) -> Result<TypeId, TypeError> {
    if cx.ops.is_opaque(op) {
        return Ok(annotated);
    }
    let row = cx.ops.get(op);
    if !row.arity.accepts(operands.len()) {
        let wanted = match (row.arity.min, row.arity.max) {
            (min, Some(max)) if min == max => min.to_string(),
            (min, Some(max)) => format!("{min} to {max}"),
            (min, None) => format!("at least {min}"),
        };
        return Err(TypeError::new(format!("`{}` takes {wanted} operands, not {}", row.name, operands.len()))
            .of_op(row.name.clone()));
    }
    let mut say_elements = false;
    for o in operands {
        if o.ty == cx.types.error() {
            return Ok(o.ty);
        }
        say_elements |= cx.types.has_elements(o.ty);
    }
    let (infer, elements) = (row.infer, row.elements);
    let plain: SmallVec<[Operand; 4]>;
    let seen = match say_elements {
        true => {
            plain = operands.iter().map(|&o| without_elements(cx, o)).collect();
            &plain[..]
        }
        false => operands,
    };
    let found = catch_panic(|| {
        let mut call = TypeCall::with_plain(&mut *cx, op, seen, operands, attrs);
        let ty = infer(&mut call)?;
        let ty = match elements {
            Some(rule) if may_have_elements(call.cx, ty) => with_elements(&mut call, rule, ty),
            _ => ty,
        };
        Ok((ty, key.filter(|_| !call.has_asked_for_value())))
    });
    let error = match found {
        Ok(Ok((ty, key))) => {
            if let Some(key) = key {
                cx.types.calls.set(key, ty);
            }
            return Ok(ty);
        }
        Ok(Err(error)) => error,
        Err(text) => {
            let name = &cx.ops.get(op).name;
            TypeError::new(format!("`{name}` has no type: its type rule panics: {text}"))
        }
    };
    Err(error.of_op(cx.ops.get(op).name.clone()))
}

/// Returns true if a type is a tuple, or a tensor type whose elements may be known.
#[inline]
fn may_have_elements(cx: &Context, ty: TypeId) -> bool {
    match cx.types.get(ty) {
        Type::Tensor(t) => !t.dtype.is_float(),
        ty => matches!(ty, Type::Tuple(_)),
    }
}

/// Returns an operand in the form that type rules see: its type without known elements, and its
/// constant if all elements are known.
fn without_elements(cx: &mut Context, operand: Operand) -> Operand {
    if operand.literal.is_some() || !cx.types.has_elements(operand.ty) {
        return Operand { ty: cx.types.without_elements(operand.ty), ..operand };
    }
    let literal = cx.known_literal(operand.ty).map(|l| cx.literals.intern(l));
    Operand { ty: cx.types.without_elements(operand.ty), literal, ..operand }
}

/// Returns the type of a call, with the elements of its results as far as the operator's rule knows
/// them.
#[inline(never)]
fn with_elements(call: &mut TypeCall<'_>, rule: ElementsRule, ty: TypeId) -> TypeId {
    let may_say = |cx: &Context, ty| cx.types.element_count(ty).is_some_and(|n| n > 0);
    match call.cx.types.get(ty) {
        Type::Tensor(_) if may_say(call.cx, ty) => match rule(call, ty).as_deref() {
            Some([elements]) => call.cx.types.with_elements(ty, elements),
            _ => ty,
        },
        Type::Tuple(fields) if fields.iter().any(|&f| may_say(call.cx, f)) => {
            let fields = fields.clone();
            let Some(results) = rule(call, ty).filter(|r| r.len() == fields.len()) else { return ty };
            let fields: Vec<TypeId> =
                fields.iter().zip(&results).map(|(&f, elements)| call.cx.types.with_elements(f, elements)).collect();
            call.cx.types.tuple(&fields)
        }
        _ => ty,
    }
}

/// Returns the type of a call of a function value. Each symbol of the function type is bound where
/// it first occurs alone as a dimension of a parameter.
///
/// # Errors
/// If the callee is not a function, or the arguments do not fit its parameters.
pub fn infer_call(cx: &mut Context, callee: TypeId, arguments: &[TypeId]) -> Result<TypeId, TypeError> {
    let function = match cx.types.get(callee) {
        Type::Function(f) => f.clone(),
        Type::Error => return Ok(callee),
        _ => {
            let found = cx.type_text(callee);
            return Err(TypeError::operand(0, format!("{found} cannot be called"))
                .with_help("a value of type Any is turned into a function by `match_cast(…, to=fn(…) -> …)`"));
        }
    };
    if function.params.len() != arguments.len() {
        return Err(TypeError::new(format!(
            "the function takes {} arguments, not {}",
            function.params.len(),
            arguments.len()
        )));
    }
    let mut bound: Vec<Option<DimId>> = vec![None; function.symbols as usize];
    if function.symbols > 0 {
        for (&p, &a) in function.params.iter().zip(arguments) {
            bind_symbols(cx, p, a, &mut bound);
        }
    }
    let unknown = cx.types.dims.unknown();
    let dims: Vec<DimId> = bound.into_iter().map(|d| d.unwrap_or(unknown)).collect();
    let (params, ret) = cx.types.instantiate(callee, &dims).expect("it was matched as a function type above");
    for (i, (&p, &a)) in params.iter().zip(arguments).enumerate() {
        if !cx.types.accepts(p, a) {
            let (wanted, found) = (cx.type_text(p), cx.type_text(a));
            return Err(TypeError::operand(i + 1, format!("argument {i} is {found}, but {wanted} is expected")));
        }
    }
    Ok(ret)
}

/// Binds the symbols of a function type to the dimensions of an argument, where the parameter's
/// type has a symbol alone as a dimension.
fn bind_symbols(cx: &Context, param: TypeId, argument: TypeId, bound: &mut [Option<DimId>]) {
    cx.types.for_each_dim_beside(param, argument, &mut Default::default(), |d, e| {
        if let Dim::Bound { depth: 0, index } = *cx.types.dims.get(d)
            && let Some(slot @ None) = bound.get_mut(index as usize)
        {
            *slot = Some(e);
        }
    });
}

/// Returns the type of a `fn` whose parameters and result have these types. The type binds the
/// symbols that belong to the `fn`.
pub fn lambda_type(cx: &mut Context, body: &Body, lambda: LambdaId, params: &[TypeId], ret: TypeId) -> TypeId {
    cx.types.function(params, ret, body.lambda_symbols(lambda))
}

/// Returns the type of a global function whose parameters and result have these types. The type
/// binds every symbol in them.
pub fn signature_type(cx: &mut Context, params: &[TypeId], ret: TypeId) -> TypeId {
    let mut binds: Vec<SymbolId> = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    let mut walk = SymbolWalk::new();
    for &part in params.iter().chain([&ret]) {
        walk.in_type(cx, part, |symbol| binds.extend(seen.insert(symbol).then_some(symbol)));
    }
    cx.types.function(params, ret, &binds)
}

impl Function {
    /// Returns the function type of the function if it returns `ret`, from the types of its
    /// parameters and `ret`. Linear in the types.
    pub fn signature(&self, cx: &mut Context, ret: TypeId) -> TypeId {
        let params: Vec<TypeId> = self.body.params().iter().map(|p| self.body.ty(p.expr())).collect();
        signature_type(cx, &params, ret)
    }
}
