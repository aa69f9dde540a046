//! Which symbolic dimensions types and attributes name.

use anfora_ir::{Attr, AttrId, AttrsId, Context, Dim, SeenParts, SymbolId, TypeId};
use rustc_hash::FxHashSet;

/// Calls `f` with the free symbols of a type, possibly more than once.
pub(crate) fn for_each_free(cx: &Context, ty: TypeId, f: impl FnMut(SymbolId)) {
    for_each_new_free(cx, ty, &mut SeenParts::default(), f);
}

/// Calls `f` with the free symbols of a type, possibly more than once, but not with those of parts
/// that were seen.
pub(crate) fn for_each_new_free(cx: &Context, ty: TypeId, seen: &mut SeenParts, mut f: impl FnMut(SymbolId)) {
    cx.types.for_each_new_symbol(ty, seen, |d| {
        if let Dim::Symbol(s) = *cx.types.dims.get(d) {
            f(s);
        }
    });
}

/// Calls `f` with the symbols that attributes name, possibly more than once.
pub(crate) fn for_each_in_attrs(cx: &Context, attrs: AttrsId, mut f: impl FnMut(SymbolId)) {
    if attrs == cx.attrs.empty() {
        return;
    }
    let mut stack: Vec<AttrId> = cx.attrs.list(attrs).iter().rev().map(|&(_, value)| value).collect();
    let mut seen = FxHashSet::default();
    let mut seen_parts = SeenParts::default();
    while let Some(value) = stack.pop() {
        match cx.attrs.get(value) {
            Attr::List(items) if seen.insert(value) => stack.extend(items.iter().rev()),
            Attr::Type(ty) => for_each_new_free(cx, *ty, &mut seen_parts, &mut f),
            Attr::Shape(dims) => {
                for &d in dims {
                    cx.types.dims.for_each_symbol(d, |d| {
                        if let Dim::Symbol(s) = *cx.types.dims.get(d) {
                            f(s);
                        }
                    });
                }
            }
            _ => {}
        }
    }
}
