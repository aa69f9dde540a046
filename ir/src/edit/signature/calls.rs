//! The calls and other uses of functions.

use rustc_hash::FxHashSet;

use super::SignatureError;
use crate::core::body::Body;
use crate::core::entity::{AttrsId, ExprId, FunctionAttrId, FunctionKey, GlobalId};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::core::module::Module;
use crate::tables::attrs::Attr;
use crate::tables::entry::Entry;
use crate::walk::attr_walk::AttrWalk;
use crate::walk::cursor::{Cursor, Step};

/// Returns the calls of functions, by calling function, in program order.
///
/// # Errors
/// If one of the functions is used other than by calling it: its signature can then not be changed.
pub fn calls_of(module: &Module, keys: &[FunctionKey]) -> Result<Vec<(FunctionKey, Vec<ExprId>)>, SignatureError> {
    let globals: FxHashSet<GlobalId> =
        keys.iter().filter_map(|&key| module.get(key)).filter_map(Function::global).collect();
    if let Some(global) = used_by_attrs(module, &globals) {
        return Err(by_attr(module, global));
    }
    let mut all = Vec::new();
    for (key, function) in module.functions() {
        let leaves: FxHashSet<ExprId> =
            function.body.global_leaves().into_iter().filter(|(_, g)| globals.contains(g)).map(|(id, _)| id).collect();
        if leaves.is_empty() {
            continue;
        }
        let calls = calls_in(&function.body, &leaves).map_err(|Value { leaf, at }| SignatureError::UsedAsValue {
            name: match function.body.expr(leaf) {
                Expr::Global(global) => module.cx.global_name(global).to_string(),
                _ => String::new(),
            },
            function: Some(module.name(key).to_string()),
            binding: at.and_then(|at| function.body.binding_name(&module.cx, at)).map(str::to_string),
        })?;
        if !calls.is_empty() {
            all.push((key, calls));
        }
    }
    Ok(all)
}

/// Returns the error for a function that an attribute names.
pub(super) fn by_attr(module: &Module, global: GlobalId) -> SignatureError {
    SignatureError::UsedAsValue { name: module.cx.global_name(global).to_string(), function: None, binding: None }
}

/// Returns a global of `globals` that an attribute of the program names. Attributes that were
/// interned but are no longer used do not count, nor does metadata.
fn used_by_attrs(module: &Module, globals: &FxHashSet<GlobalId>) -> Option<GlobalId> {
    let cx = &module.cx;
    let named_by = |attr: &Attr| match attr {
        Attr::Global(global) => Some(*global).filter(|global| globals.contains(global)),
        Attr::Function(f) => {
            let leaves = cx.function_attrs[*f].body.global_leaves();
            leaves.into_iter().map(|(_, global)| global).find(|global| globals.contains(global))
        }
        _ => None,
    };
    // Usually no attribute in the table names any of the globals.
    cx.attrs.iter().find_map(|(_, attr)| named_by(attr))?;
    let mut found = None;
    for_each_attr(module, attr_lists(module), |attr| {
        found = found.or_else(|| named_by(attr));
    });
    found
}

/// Returns the functions in attributes of the program, and in metadata of its functions, that use
/// another function with an outdated signature; each with that other function.
pub(super) fn outdated_function_attrs(module: &Module) -> Vec<(FunctionAttrId, GlobalId)> {
    let cx = &module.cx;
    let outdated = |f: &Function| {
        let is_outdated = |&(leaf, global): &(ExprId, GlobalId)| {
            cx.globals.get(global).signature.is_some_and(|signature| signature != f.body.ty(leaf))
        };
        f.body.global_leaves().into_iter().find(is_outdated).map(|(_, global)| global)
    };
    let mut found = Vec::new();
    // Usually there are none at all.
    if cx.function_attrs.iter().all(|(_, f)| outdated(f).is_none()) {
        return found;
    }
    let mut lists = attr_lists(module);
    lists.extend(module.functions().map(|(_, function)| function.meta));
    for_each_attr(module, lists, |attr| {
        if let Attr::Function(f) = attr {
            found.extend(outdated(&cx.function_attrs[*f]).map(|global| (*f, global)));
        }
    });
    found
}

/// Returns the attributes of a module, of its functions, and of the calls and `fn`s in these.
fn attr_lists(module: &Module) -> Vec<AttrsId> {
    let mut lists: Vec<AttrsId> = vec![module.attrs()];
    for (_, function) in module.functions() {
        lists.push(function.attrs);
        attrs_in(&function.body, &mut lists);
    }
    lists
}

/// Calls `visit` with the values of attributes, and with those of the functions among these values,
/// each once.
fn for_each_attr(module: &Module, mut lists: Vec<AttrsId>, mut visit: impl FnMut(&Attr)) {
    let cx = &module.cx;
    let mut seen_lists: FxHashSet<AttrsId> = FxHashSet::default();
    let mut walk = AttrWalk::new();
    while let Some(list) = lists.pop() {
        if !seen_lists.insert(list) {
            continue;
        }
        walk.add(&cx.attrs, list);
        while let Some((_, attr)) = walk.next(&cx.attrs) {
            visit(attr);
            if let Attr::Function(f) = attr {
                let function = &cx.function_attrs[*f];
                lists.push(function.attrs);
                attrs_in(&function.body, &mut lists);
            }
        }
    }
}

/// Adds the attributes of the calls and `fn`s of a body that are part of the program.
fn attrs_in(body: &Body, lists: &mut Vec<AttrsId>) {
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Flat(id) | Step::Enter(id)) = step else { continue };
        body.for_each_entry(id, |entry| {
            if let Entry::Attrs(attrs) = entry {
                lists.push(attrs);
            }
        });
    }
}

/// A use of a global other than a call of it, and the Let that contains the use.
struct Value {
    leaf: ExprId,
    at: Option<ExprId>,
}

/// Returns the calls of these leaves in a body; an error if a leaf is used otherwise.
fn calls_in(body: &Body, leaves: &FxHashSet<ExprId>) -> Result<Vec<ExprId>, Value> {
    let mut calls: Vec<ExprId> = Vec::new();
    // True right after a call is entered, when the callee is next.
    let mut callee = false;
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let is_callee = std::mem::take(&mut callee);
        match step {
            Step::Atom(id) if !is_callee && leaves.contains(&id) => {
                return Err(Value { leaf: id, at: cursor.binding() });
            }
            Step::Flat(id) | Step::Enter(id) => {
                let inputs = body.inputs(id);
                let calls_one = matches!(body.expr(id), Expr::Call { .. })
                    && inputs.first().is_some_and(|callee| leaves.contains(callee));
                if calls_one {
                    calls.push(id);
                }
                callee = calls_one && matches!(step, Step::Enter(_));
                let mut others = inputs.iter().skip(usize::from(calls_one));
                if let Step::Flat(_) = step
                    && let Some(&leaf) = others.find(|o| leaves.contains(o))
                {
                    return Err(Value { leaf, at: cursor.binding() });
                }
            }
            _ => {}
        }
    }
    Ok(calls)
}
