//! Closures over globals, and checks of types at run time.

use anfora_ir::{Arity, AttrDef, AttrKind, Context, Dim, DimId, OpDef, SymbolId, Type, TypeCall, TypeError, TypeId};
use rustc_hash::FxHashSet;

/// Returns the rows of this family. They have no kernel; the interpreter evaluates them.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        OpDef::new(
            "make_closure",
            "the function that a global is once its last parameters have the values of the other operands",
            Arity::at_least(1),
            make_closure,
        ),
        OpDef::new(
            "match_cast",
            "the operand, checked at run time to be of a type; binds the symbolic dimensions that the type names first",
            Arity::exactly(1),
            match_cast,
        )
        .attrs(
            const {
                &[
                    AttrDef::required("to", AttrKind::Type, "the type"),
                    AttrDef::flag("proved", "no run needs the check, since the operand is always of the type"),
                ]
            },
        )
        .may_fail(),
    ]
}

/// Returns the function type without the captured parameters.
fn make_closure(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let callee = call.ty_with_elements(0);
    let captures: Vec<TypeId> = (1..call.count()).map(|i| call.ty_with_elements(i)).collect();
    let cx = &mut *call.cx;
    let Type::Function(function) = cx.types.get(callee).clone() else {
        let found = cx.type_text(callee);
        return Err(TypeError::operand(0, format!("operand 0 is {found}, but a function is expected")));
    };
    let Some(left) = function.params.len().checked_sub(captures.len()) else {
        let (taken, given) = (function.params.len(), captures.len());
        return Err(TypeError::new(format!("the function takes {taken} arguments, fewer than the {given} captured")));
    };
    // The values of the function's symbols: extents of captures where captures have them, otherwise
    // fresh symbols that the result binds.
    let mut bound: Vec<Option<DimId>> = vec![None; function.symbols as usize];
    for (&p, &c) in function.params[left..].iter().zip(&captures) {
        bind(cx, p, c, &mut bound);
    }
    let mut own: Vec<SymbolId> = Vec::new();
    let dims: Vec<DimId> = bound
        .into_iter()
        .map(|d| {
            d.unwrap_or_else(|| {
                let name = cx.names.intern("d");
                let symbol = cx.types.dims.new_symbol(name);
                own.push(symbol);
                cx.types.dims.symbol(symbol)
            })
        })
        .collect();
    let Some((params, ret)) = cx.types.instantiate(callee, &dims) else {
        return Err(TypeError::operand(0, "operand 0 is not a function"));
    };
    for (i, (&p, &c)) in params[left..].iter().zip(&captures).enumerate() {
        if !cx.types.accepts(p, c) {
            let (wanted, found) = (cx.type_text(p), cx.type_text(c));
            let message =
                format!("operand {} is {found}, but the parameter that it is captured for is {wanted}", i + 1);
            return Err(TypeError::operand(i + 1, message));
        }
    }
    Ok(cx.types.function(&params[..left], ret, &own))
}

/// Binds the symbols of a function type that stand alone as a dimension of a parameter.
fn bind(cx: &Context, param: TypeId, capture: TypeId, bound: &mut [Option<DimId>]) {
    cx.types.for_each_dim_beside(param, capture, &mut FxHashSet::default(), |d, e| {
        if let Dim::Bound { depth: 0, index } = *cx.types.dims.get(d)
            && let Some(slot @ None) = bound.get_mut(index as usize)
        {
            *slot = Some(e);
        }
    });
}

fn match_cast(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let Some(to) = call.attrs().ty("to") else { return Err(TypeError::new("attribute `to` has no value")) };
    let from = call.ty_with_elements(0);
    if let Some(why) = never(call.cx, from, to) {
        let (from, to) = (call.cx.type_text(from), call.cx.type_text(to));
        return Err(TypeError::operand(0, format!("no {from} is {to}: {why}")));
    }
    Ok(to)
}

/// Returns the reason why no value of type `from` can have type `to`; `None` if there may be such a
/// value.
fn never(cx: &mut Context, from: TypeId, to: TypeId) -> Option<String> {
    let mut stack = vec![(from, to)];
    let mut seen = FxHashSet::default();
    while let Some((f, t)) = stack.pop() {
        if f == t || !seen.insert((f, t)) {
            continue;
        }
        let (a, b) = (cx.types.get(f).clone(), cx.types.get(t).clone());
        match (a, b) {
            (Type::Any | Type::Error, _) | (_, Type::Any | Type::Error) => {}
            (Type::Tensor(a), Type::Tensor(b)) => {
                if a.dtype != b.dtype {
                    return Some(format!("the elements are {}, not {}", a.dtype, b.dtype));
                }
                let (Some(x), Some(y)) = (&a.shape, &b.shape) else { continue };
                if x.len() != y.len() {
                    return Some(format!("the rank is {}, not {}", x.len(), y.len()));
                }
                for (i, (&d, &e)) in a.dims_beside(&b).enumerate() {
                    if let (Some(p), Some(q)) = (cx.types.dims.as_constant(d), cx.types.dims.as_constant(e))
                        && p != q
                    {
                        let what = if i < x.len() { "extent" } else { "element" };
                        return Some(format!("an {what} is {p}, not {q}"));
                    }
                }
            }
            (Type::Tuple(a), Type::Tuple(b)) => {
                if a.len() != b.len() {
                    return Some(format!("it has {} fields, not {}", a.len(), b.len()));
                }
                stack.extend(a.iter().copied().zip(b.iter().copied()));
            }
            (Type::Function(a), Type::Function(b)) => {
                if a.params.len() != b.params.len() {
                    return Some(format!("it takes {} arguments, not {}", a.params.len(), b.params.len()));
                }
            }
            _ => return Some("they are of different kinds".into()),
        }
    }
    None
}
