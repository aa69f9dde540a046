//! The globals that bodies and attributes name.

use anfora_ir::{Attr, AttrWalk, AttrsId, Body, Context, Cursor, Expr, ExprId, GlobalId, Step};
use rustc_hash::FxHashSet;

/// A walk over the names of globals. Each list of attributes is visited once per walk, however many
/// nodes have it. The same global may be reported several times.
#[derive(Clone, Debug)]
pub struct GlobalWalk {
    /// True if some attribute is a global or a function, or contains one.
    attrs_name_functions: bool,
    lists: FxHashSet<AttrsId>,
    values: AttrWalk,
}

impl GlobalWalk {
    /// Returns a walk that has visited nothing yet. Takes time linear in the number of attribute
    /// values.
    pub fn new(cx: &Context) -> GlobalWalk {
        GlobalWalk {
            attrs_name_functions: cx.attrs.iter().any(|(_, a)| matches!(a, Attr::Global(_) | Attr::Function(_))),
            lists: FxHashSet::default(),
            values: AttrWalk::new(),
        }
    }

    /// Calls `each` for the globals that a body names, in the expressions that its root reaches.
    pub fn in_body(&mut self, cx: &Context, body: &Body, mut each: impl FnMut(GlobalId)) {
        if !self.may_name_in_body(body) {
            return;
        }
        let named = |id: ExprId| match body.expr(id) {
            Expr::Global(global) => Some(global),
            _ => None,
        };
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Atom(id) => named(id).into_iter().for_each(&mut each),
                Step::Flat(id) => {
                    body.inputs(id).iter().filter_map(|&input| named(input)).for_each(&mut each);
                    self.in_attrs(cx, attrs_of(cx, body, id), &mut each);
                }
                Step::Enter(id) => self.in_attrs(cx, attrs_of(cx, body, id), &mut each),
                _ => {}
            }
        }
    }

    /// Calls `each` for the globals that attributes name, including globals in functions that are
    /// attribute values.
    #[inline]
    pub fn in_attrs(&mut self, cx: &Context, attrs: AttrsId, each: impl FnMut(GlobalId)) {
        if self.attrs_name_functions && attrs != cx.attrs.empty() && self.lists.insert(attrs) {
            self.in_new_attrs(cx, attrs, each);
        }
    }

    /// Returns false if [`GlobalWalk::in_body`] would report nothing. The answer for a body that
    /// names no globals may be true.
    ///
    /// Cost: one loop.
    pub fn may_name_in_body(&self, body: &Body) -> bool {
        self.attrs_name_functions || body.exprs().any(|(_, expr)| matches!(expr, Expr::Global(_)))
    }

    /// Returns false if [`GlobalWalk::in_attrs`] would report nothing: if the walk has visited the
    /// attributes, or no attribute names a global. The answer for attributes that name no globals
    /// may be true.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn may_name_in(&self, cx: &Context, attrs: AttrsId) -> bool {
        self.attrs_name_functions && attrs != cx.attrs.empty() && !self.lists.contains(&attrs)
    }

    fn in_new_attrs(&mut self, cx: &Context, attrs: AttrsId, mut each: impl FnMut(GlobalId)) {
        self.values.add(&cx.attrs, attrs);
        while let Some((_, value)) = self.values.next(&cx.attrs) {
            match value {
                Attr::Global(global) => each(*global),
                Attr::Function(function) => {
                    let function = &cx.function_attrs[*function];
                    let mut lists = vec![function.attrs, function.meta];
                    for (id, expr) in function.body.exprs() {
                        match expr {
                            Expr::Global(global) => each(global),
                            _ => lists.push(attrs_of(cx, &function.body, id)),
                        }
                    }
                    lists.into_iter().rev().for_each(|attrs| self.values.add(&cx.attrs, attrs));
                }
                _ => {}
            }
        }
    }
}

/// Returns the attributes of a node.
#[inline]
fn attrs_of(cx: &Context, body: &Body, id: ExprId) -> AttrsId {
    match body.expr(id) {
        Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => attrs,
        Expr::Lambda { lambda, .. } => body.lambda(lambda).attrs,
        _ => cx.attrs.empty(),
    }
}
