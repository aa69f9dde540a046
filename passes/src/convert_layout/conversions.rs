//! Conversions: values in another order of axes.

use anfora_ir::{AttrValue, AxisOrder, Body, Context, DimId, ExprId, Literal, TypeError, TypeId};
use anfora_visit::Site;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// A value in another order of axes than the variable that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Twin {
    pub(super) value: ExprId,
    pub(super) order: AxisOrder,
}

/// The values of a function that are available in several orders of axes.
#[derive(Default)]
pub(super) struct Conversions {
    /// The twin of each variable that is a permutation of it, made by this pass.
    pub(super) twins: FxHashMap<ExprId, Twin>,
    /// The twins of the fields of variables that are tuples.
    pub(super) fields: FxHashMap<ExprId, FieldTwins>,
    /// The variables that are permutations of other values: the value, and the order in which it
    /// is the variable.
    sources: FxHashMap<ExprId, Twin>,
    /// The conversions that were made in the open blocks.
    made: FxHashMap<(ExprId, AxisOrder), ExprId>,
    /// The conversions of each open block.
    made_in: Vec<Vec<(ExprId, AxisOrder)>>,
    /// The variables whose bindings may be removed if nothing uses them.
    pub(super) droppable: FxHashSet<ExprId>,
    /// Those of them that this pass has bound.
    pub(super) made_bindings: FxHashSet<ExprId>,
}

/// The twins of the fields of a tuple; `None` for fields without one.
pub(super) type FieldTwins = SmallVec<[Option<Twin>; 2]>;

/// A list of axes, as attributes have it.
type AxisList = SmallVec<[i64; 8]>;

/// A way to make a value in another order of axes.
enum Way {
    /// The value exists.
    Exists(ExprId),
    /// A constant.
    Constant(Literal),
    /// The axes of extent 1 are removed and put in again, at these places of the result.
    Units { from: ExprId, removed: AxisList, put_in: AxisList },
    /// A permutation of a value.
    Permuted(ExprId, AxisOrder),
}

impl Conversions {
    pub(super) fn enter_block(&mut self) {
        self.made_in.push(Vec::new());
    }

    pub(super) fn exit_block(&mut self) {
        for key in self.made_in.pop().into_iter().flatten() {
            self.made.remove(&key);
        }
    }

    /// Records that a variable is a permutation of a value.
    pub(super) fn note_source(&mut self, var: ExprId, value: ExprId, order: AxisOrder) {
        self.sources.insert(var, Twin { value, order });
    }

    /// Binds a value to a new variable, which may be removed again. `like` is a variable whose name
    /// the new one gets.
    pub(super) fn bind(&mut self, s: &mut Site<'_>, like: Option<ExprId>, value: ExprId) -> ExprId {
        let body = &*s.editor.body;
        let name = like.and_then(|like| body.as_var(like)).and_then(|var| body.var_name(var));
        let var = s.bind(name, value);
        self.droppable.insert(var);
        self.made_bindings.insert(var);
        var
    }

    /// Keeps the binding of a new variable, used or not.
    pub(super) fn keep(&mut self, var: ExprId) {
        self.droppable.remove(&var);
        self.made_bindings.remove(&var);
    }

    /// Returns true if a conversion makes a new permutation; `None` if the conversion is not
    /// possible.
    pub(super) fn needs_permutation(
        &self,
        (cx, body): (&Context, &Body),
        atom: ExprId,
        order: &AxisOrder,
    ) -> Option<bool> {
        Some(matches!(self.way((cx, body), atom, order)?, Way::Permuted(..)))
    }

    /// Returns an atom in another order of axes, which is made before the current binding if there
    /// is none yet. An atom with fewer axes than the order broadcasts to them. `None` if the
    /// conversion is not possible.
    pub(super) fn convert(
        &mut self,
        s: &mut Site<'_>,
        atom: ExprId,
        order: &AxisOrder,
    ) -> Option<Result<ExprId, TypeError>> {
        let way = self.way((s.editor.cx, s.editor.body), atom, order)?;
        Some(self.make(s, atom, order, way))
    }

    fn make(&mut self, s: &mut Site<'_>, atom: ExprId, order: &AxisOrder, way: Way) -> Result<ExprId, TypeError> {
        let made = match way {
            Way::Exists(value) => return Ok(value),
            Way::Constant(literal) => return Ok(s.editor.literal(literal)),
            Way::Units { from, removed, put_in } => {
                let mut value = from;
                for (op, axes) in [("squeeze", removed), ("expand_dims", put_in)] {
                    if !axes.is_empty() {
                        let axes = AttrValue::Ints(axes.to_vec());
                        let moved = s.editor.op(op, &[value], &[("axis", axes)])?;
                        value = self.bind(s, None, moved);
                    }
                }
                value
            }
            Way::Permuted(from, order) => {
                let permuted = permuted(s, from, &order)?;
                let var = self.bind(s, None, permuted);
                self.note_source(var, from, order);
                var
            }
        };
        let key = (atom, order.clone());
        if let Some(block) = self.made_in.last_mut() {
            block.push(key.clone());
        }
        self.made.insert(key, made);
        Ok(made)
    }

    /// Returns the way to make an atom in another order of axes.
    fn way(&self, (cx, body): (&Context, &Body), atom: ExprId, order: &AxisOrder) -> Option<Way> {
        if let Some(&made) = self.made.get(&(atom, order.clone())) {
            return Some(Way::Exists(made));
        }
        let rank = shape_of(cx, body, atom)?.len();
        let added = order.rank().checked_sub(rank)?;
        // A permutation starts from the value that was permuted.
        let twin = self.twins.get(&atom).map(|twin| (twin.value, twin.order.inverse()));
        let source = || self.sources.get(&atom).map(|source| (source.value, source.order.clone()));
        let before = twin.or_else(source).filter(|_| added == 0);
        let (from, order) = match before {
            Some((value, before)) => (value, before.then(order)?),
            None => (atom, order.clone()),
        };
        if rank == 0 || added == 0 && order.is_identity() {
            return Some(Way::Exists(from));
        }
        if !is_moved_by_kernels(cx, body.ty(from)) {
            return None;
        }
        let shape = shape_of(cx, body, from)?;
        let is_unit = |axis: usize| match axis.checked_sub(added) {
            Some(own) => cx.types.dims.as_constant(shape[own]) == Some(1),
            None => true,
        };
        let literal = body.as_literal(from).map(|id| cx.literals.get(id));
        let axes = order.axes();
        let moves_only_units = axes.iter().filter(|&&axis| !is_unit(axis)).is_sorted();
        if !moves_only_units {
            let splat = literal.and_then(|literal| Some((literal, literal.as_splat()?)));
            return match splat {
                _ if added > 0 => None,
                Some((literal, element)) => {
                    let shape: SmallVec<[usize; 6]> = axes.iter().map(|&axis| literal.shape()[axis]).collect();
                    Some(Way::Constant(Literal::splat_bytes(literal.dtype(), &shape, element)))
                }
                None => Some(Way::Permuted(from, order)),
            };
        }
        // An operand that broadcasts does not need its first axes if these have the extent 1.
        let first = match added {
            0 => 0,
            _ => axes.iter().position(|&axis| !is_unit(axis)).unwrap_or(axes.len()),
        };
        let axes = &axes[first..];
        if let Some(literal) = literal {
            let extent = |&axis: &usize| axis.checked_sub(added).map_or(1, |own| literal.shape()[own]);
            let shape: SmallVec<[usize; 6]> = axes.iter().map(extent).collect();
            return literal.reshaped(&shape).ok().map(Way::Constant);
        }
        let places = |axes: &mut dyn Iterator<Item = usize>| -> AxisList {
            axes.enumerate().filter(|&(_, axis)| is_unit(axis)).map(|(place, _)| place as i64).collect()
        };
        let (removed, put_in) = (places(&mut (added..added + rank)), places(&mut axes.iter().copied()));
        if rank == axes.len() && removed == put_in {
            return Some(Way::Exists(from));
        }
        Some(Way::Units { from, removed, put_in })
    }
}

/// Returns true if a type is that of tensors whose elements kernels can move. This is not so for
/// elements of a few bits.
pub(super) fn is_moved_by_kernels(cx: &Context, ty: TypeId) -> bool {
    cx.types.as_tensor(ty).is_some_and(|tensor| tensor.dtype.has_kernels())
}

/// Returns the extents of a tensor of known rank.
fn shape_of<'a>(cx: &'a Context, body: &Body, atom: ExprId) -> Option<&'a [DimId]> {
    cx.types.as_tensor(body.ty(atom))?.shape.as_deref()
}

/// Returns a new permutation of a value.
pub(super) fn permuted(s: &mut Site<'_>, value: ExprId, order: &AxisOrder) -> Result<ExprId, TypeError> {
    let axes: Vec<i64> = order.axes().iter().map(|&axis| axis as i64).collect();
    s.editor.op("permute_dims", &[value], &[("axes", AttrValue::Ints(axes))])
}
