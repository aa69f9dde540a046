//! Chooses the types and attributes that get an alias: `type !t0 = …;`, `attr !a0 = …;`.
//!
//! A type or attribute of more than 8 nodes that occurs more than once gets an alias. Further
//! aliases are added so that nothing nests more than 32 deep. Each distinct part is visited once,
//! so the plan and the text are linear, however much is shared. A type that names a symbol of a
//! function has no alias, since the symbols belong to the function.

use std::sync::Arc;

use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, DimId, EntityId, IdSet, TypeId};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::types::Type;
use crate::walk::cursor::{Cursor, Step};

use super::{PrintOptions, Printer, annotation, result_annotation};

/// Types and attributes with at most this many nodes get no alias.
const SMALL: u32 = 8;

/// The deepest nesting in the text.
const DEEPEST: u32 = 32;

/// A type with more nodes is not written if it names symbols of a function, so that it can have no
/// alias.
const LARGEST: u32 = 1 << 20;

/// The numbers of the aliases.
#[derive(Default)]
pub(super) struct Aliases {
    of_types: Vec<u32>,
    of_attrs: Vec<u32>,
    too_large: Option<IdSet<TypeId>>,
    /// In the order of definition: parts before wholes, otherwise by first use.
    pub(super) types: Vec<TypeId>,
    pub(super) attrs: Vec<AttrId>,
}

impl Aliases {
    /// Returns the number of a type's alias.
    #[inline]
    pub(super) fn of_type(&self, ty: TypeId) -> Option<u32> {
        self.of_types.get(ty.index()).and_then(|n| n.checked_sub(1))
    }

    /// Returns the number of an attribute's alias.
    pub(super) fn of_attr(&self, attr: AttrId) -> Option<u32> {
        self.of_attrs.get(attr.index()).and_then(|n| n.checked_sub(1))
    }

    /// Returns true if a type is too large to be written.
    pub(super) fn is_too_large(&self, ty: TypeId) -> bool {
        self.too_large.as_ref().is_some_and(|t| t.contains(ty))
    }

    /// Plans the aliases for a text with these attributes and functions.
    pub(super) fn plan<'m>(
        cx: &Context,
        options: &PrintOptions,
        attrs: AttrsId,
        functions: impl Iterator<Item = &'m Function>,
    ) -> Aliases {
        let (sizes, heights) = type_sizes(cx);
        if cx.function_attrs.is_empty() && sizes.iter().all(|&s| s <= SMALL) && small_attrs(cx) {
            return Aliases::default();
        }
        let mut survey = Survey {
            cx,
            options,
            free: free_types(cx),
            types: vec![Seen::default(); sizes.len()],
            attrs: vec![Seen::default(); cx.attrs.len()],
            sizes,
            heights,
            type_order: Vec::new(),
            attr_order: Vec::new(),
        };
        survey.attr_list(attrs);
        for f in functions {
            for root in roots(cx, options, f) {
                match root {
                    Root::Type(t) => survey.ty(t),
                    Root::Attrs(a) => survey.attr_list(a),
                }
            }
        }
        survey.decide()
    }
}

/// Returns the number of nodes of every type, with shared nodes counted at each use, and its
/// nesting depth.
fn type_sizes(cx: &Context) -> (Vec<u32>, Vec<u32>) {
    let mut sizes: Vec<u32> = Vec::with_capacity(cx.types.len());
    let mut heights: Vec<u32> = Vec::with_capacity(cx.types.len());
    for (_, ty) in cx.types.iter() {
        let (mut size, mut height) = (1u32, 0);
        for p in ty.parts() {
            size = size.saturating_add(sizes[p.index()]);
            height = height.max(heights[p.index()]);
        }
        sizes.push(size);
        heights.push(height + 1);
    }
    (sizes, heights)
}

/// Returns true if no list has more than [`SMALL`] nodes.
fn small_attrs(cx: &Context) -> bool {
    let mut sizes: Vec<u32> = Vec::with_capacity(cx.attrs.len());
    for (_, attr) in cx.attrs.iter() {
        let size = attr.items().iter().fold(1u32, |n, i| n.saturating_add(sizes[i.index()]));
        if size > SMALL {
            return false;
        }
        sizes.push(size);
    }
    true
}

/// Marks that a symbol of a function occurs.
const FREE: u32 = u32::MAX;

/// Returns, for every type, the number of enclosing function types that it takes to bind its bound
/// symbols; [`FREE`] if it has a free symbol.
fn free_types(cx: &Context) -> Vec<u32> {
    let mut free: Vec<u32> = Vec::with_capacity(cx.types.len());
    for (id, ty) in cx.types.iter() {
        if !cx.types.is_symbolic(id) {
            free.push(0);
            continue;
        }
        let parts = ty.parts().map(|p| free[p.index()]).max().unwrap_or(0);
        free.push(match ty {
            Type::Tensor(t) => t.dims().map(|&d| free_dim(cx, d)).max().unwrap_or(0),
            Type::Function(_) if parts != FREE => parts.saturating_sub(1),
            _ => parts,
        });
    }
    free
}

fn free_dim(cx: &Context, dim: DimId) -> u32 {
    let mut free = 0;
    cx.types.dims.for_each_symbol(dim, |d| {
        free = free.max(match *cx.types.dims.get(d) {
            Dim::Bound { depth, .. } => depth + 1,
            _ => FREE,
        });
    });
    free
}

/// A type or a list of attributes in the text of a function.
enum Root {
    Type(TypeId),
    Attrs(AttrsId),
}

/// Returns the types and attributes in the text of a function, in their order.
fn roots(cx: &Context, options: &PrintOptions, f: &Function) -> Vec<Root> {
    let body = &f.body;
    let mut roots = vec![Root::Attrs(f.meta)];
    roots.extend(body.params().iter().map(|p| Root::Type(body.ty(p.expr()))));
    roots.push(Root::Attrs(f.attrs));
    roots.extend(result_annotation(cx, f).map(Root::Type));
    if !f.is_definition() {
        return roots;
    }
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, value, .. } = body.expr(id) {
                    roots.extend(body.meta(var.expr()).map(Root::Attrs));
                    roots.extend(annotation(cx, options, body, var, value).map(Root::Type));
                }
            }
            Step::Enter(id) | Step::Flat(id) => {
                roots.extend(body.meta(id).map(Root::Attrs));
                match body.expr(id) {
                    Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => roots.push(Root::Attrs(attrs)),
                    Expr::Lambda { lambda, .. } => {
                        let data = body.lambda(lambda);
                        roots.extend(body.lambda_params(lambda).map(|p| Root::Type(body.ty(p.expr()))));
                        roots.push(Root::Attrs(data.attrs));
                        roots.extend(data.ret.map(Root::Type));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    roots
}

#[derive(Copy, Clone, Default)]
struct Seen {
    count: u32,
    /// For attributes, true if a symbol of a function occurs in it. Like `size`, known once its
    /// parts are visited.
    free: bool,
    size: u32,
    /// The nesting depth in the text; an alias counts as one level.
    depth: u32,
    aliased: bool,
}

struct Survey<'a> {
    cx: &'a Context,
    options: &'a PrintOptions,
    sizes: Vec<u32>,
    heights: Vec<u32>,
    free: Vec<u32>,
    types: Vec<Seen>,
    attrs: Vec<Seen>,
    /// In the order in which they were left: parts before wholes.
    type_order: Vec<TypeId>,
    attr_order: Vec<AttrId>,
}

impl Survey<'_> {
    fn ty(&mut self, root: TypeId) {
        let mut stack = vec![(root, false)];
        while let Some((t, parts_done)) = stack.pop() {
            if parts_done {
                self.type_order.push(t);
                continue;
            }
            if self.sizes[t.index()] <= SMALL {
                continue;
            }
            let seen = &mut self.types[t.index()];
            seen.count = seen.count.saturating_add(1);
            if seen.count == 1 {
                stack.push((t, true));
                stack.extend(self.cx.types.get(t).parts().rev().map(|&p| (p, false)));
            }
        }
    }

    fn attr_list(&mut self, list: AttrsId) {
        let mut stack: Vec<(AttrId, bool)> = self.cx.attrs.list(list).iter().rev().map(|&(_, a)| (a, false)).collect();
        while let Some((a, parts_done)) = stack.pop() {
            if parts_done {
                self.attr_order.push(a);
                continue;
            }
            let seen = &mut self.attrs[a.index()];
            seen.count = seen.count.saturating_add(1);
            if seen.count > 1 {
                continue;
            }
            seen.size = 1;
            match self.cx.attrs.get(a) {
                Attr::List(items) => {
                    stack.push((a, true));
                    stack.extend(items.iter().rev().map(|&i| (i, false)));
                }
                &Attr::Type(t) => {
                    seen.free = self.free[t.index()] != 0;
                    self.ty(t);
                }
                Attr::Shape(dims) => {
                    seen.free = dims.iter().any(|&d| free_dim(self.cx, d) != 0);
                    seen.size = (dims.len() as u32).saturating_add(1);
                    self.attr_order.push(a);
                }
                &Attr::Function(f) => {
                    stack.push((a, true));
                    let from = stack.len();
                    for root in roots(self.cx, self.options, &self.cx.function_attrs[f]) {
                        match root {
                            Root::Type(t) => self.ty(t),
                            Root::Attrs(list) => {
                                stack.extend(self.cx.attrs.list(list).iter().map(|&(_, a)| (a, false)))
                            }
                        }
                    }
                    stack[from..].reverse();
                }
                _ => {}
            }
        }
    }

    fn decide(mut self) -> Aliases {
        let mut aliases = Aliases::default();
        for &t in &self.type_order {
            let (mut depth, mut size) = (0, 1u32);
            for p in self.cx.types.get(t).parts() {
                let part = &mut self.types[p.index()];
                if part.depth >= DEEPEST && self.free[p.index()] == 0 {
                    part.aliased = true;
                }
                // Small parts were not counted.
                let (part_depth, part_size) = match part {
                    Seen { aliased: true, .. } => (1, 1),
                    Seen { depth: 0, .. } => (self.heights[p.index()], self.sizes[p.index()]),
                    part => (part.depth, part.size),
                };
                depth = depth.max(part_depth);
                size = size.saturating_add(part_size);
            }
            let seen = &mut self.types[t.index()];
            (seen.depth, seen.size) = (depth + 1, size);
            seen.aliased = seen.count > 1 && self.free[t.index()] == 0;
            if size > LARGEST && self.free[t.index()] != 0 {
                aliases.too_large.get_or_insert_with(|| IdSet::with_capacity(0)).insert(t);
            }
        }
        for &a in &self.attr_order {
            let (mut depth, mut size, mut free) = (0, 1u32, false);
            match self.cx.attrs.get(a) {
                Attr::List(items) => {
                    for i in items {
                        let part = &mut self.attrs[i.index()];
                        if part.depth >= DEEPEST && !part.free {
                            part.aliased = true;
                        }
                        depth = depth.max(if part.aliased { 1 } else { part.depth.max(1) });
                        size = size.saturating_add(part.size);
                        free |= part.free;
                    }
                }
                // A function counts with the nodes of its body, so that functions within functions
                // are not repeated either.
                &Attr::Function(f) => {
                    let f = &self.cx.function_attrs[f];
                    size = size.saturating_add(SMALL).saturating_add(u32::try_from(f.body.len()).unwrap_or(u32::MAX));
                }
                Attr::Shape(_) => (size, free) = (self.attrs[a.index()].size, self.attrs[a.index()].free),
                _ => {}
            }
            let seen = &mut self.attrs[a.index()];
            (seen.depth, seen.size, seen.free) = (depth + 1, size, free);
            seen.aliased = seen.count > 1 && size > SMALL && !free;
        }
        (aliases.types, aliases.of_types) = numbered(self.type_order, &self.types);
        (aliases.attrs, aliases.of_attrs) = numbered(self.attr_order, &self.attrs);
        aliases
    }
}

/// Returns the parts that have an alias, in their order, and the numbers of their aliases, from 1.
fn numbered<I: EntityId>(mut order: Vec<I>, seen: &[Seen]) -> (Vec<I>, Vec<u32>) {
    order.retain(|id| seen[id.index()].aliased);
    let mut numbers = vec![0; seen.len()];
    for (n, id) in order.iter().enumerate() {
        numbers[id.index()] = n as u32 + 1;
    }
    (order, numbers)
}

impl Printer<'_, '_> {
    /// Prints the definitions of the aliases.
    pub(super) fn alias_definitions(&mut self) {
        let aliases = Arc::clone(&self.aliases);
        for (n, &t) in aliases.types.iter().enumerate() {
            self.out.text("type !t");
            self.out.number(n as u64);
            self.out.text(" = ");
            self.type_in_full(t);
            self.out.text(";\n");
        }
        for (n, &a) in aliases.attrs.iter().enumerate() {
            self.out.text("attr !a");
            self.out.number(n as u64);
            self.out.text(" = ");
            self.attr_in_full(a);
            self.run();
            self.out.text(";\n");
        }
    }
}
