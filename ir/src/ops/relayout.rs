//! Layouts: calls of operators on operands whose axes have another order.
//!
//! A row may have a rule ([`OpDef::relayout`](crate::OpDef::relayout)) that writes a call for
//! operands in another order of axes. The rule reads the call through a [`RelayoutCall`] and makes
//! no expressions: it returns the orders that the new call expects and gives, and the attributes
//! and constant operands that change ([`Relayout`]). The pass ConvertLayout writes the calls.

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{ExprId, TypeId};
use crate::core::expr::Expr;
use crate::ops::catch_panic::catch_panic;
use crate::ops::op::{AttrReader, TypeError};
use crate::ops::op_call::OpCall;
use crate::tables::literal::Literal;
use crate::tables::value::AttrValue;

/// A rule that writes a call for operands in another order of axes. It returns `None` if the
/// operator cannot compute on them.
pub type RelayoutRule = fn(&RelayoutCall<'_>) -> Option<Relayout>;

/// An order of axes: axis `i` of the reordered tensor is axis `order[i]` of the tensor. These are
/// the attribute `axes` of a `permute_dims` that makes the reordered tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AxisOrder(SmallVec<[u8; 8]>);

impl AxisOrder {
    /// Returns an order of axes; `None` if the list does not name each axis once.
    ///
    /// ```
    /// use anfora_ir::AxisOrder;
    ///
    /// let last = AxisOrder::new(&[0, 2, 3, 1]).expect("each axis is there");
    /// assert_eq!(last.place(1), Some(3));
    /// assert_eq!(last.inverse().axes().as_slice(), [0, 3, 1, 2]);
    /// assert!(last.then(&last.inverse()).is_some_and(|order| order.is_identity()));
    /// assert_eq!(AxisOrder::new(&[0, 0]), None);
    /// ```
    ///
    /// Cost: one loop.
    pub fn new(axes: &[usize]) -> Option<AxisOrder> {
        let mut is_named: SmallVec<[bool; 8]> = SmallVec::from_elem(false, axes.len());
        let mut order = SmallVec::with_capacity(axes.len());
        for &axis in axes {
            let named = is_named.get_mut(axis)?;
            if std::mem::replace(named, true) {
                return None;
            }
            order.push(u8::try_from(axis).ok()?);
        }
        Some(AxisOrder(order))
    }

    /// Returns an order from a list in which negative axes count from the end; `None` if the list
    /// does not name each axis once.
    ///
    /// Cost: one loop.
    pub fn counted(axes: &[i64]) -> Option<AxisOrder> {
        let rank = axes.len() as i64;
        let counted = |&axis: &i64| usize::try_from(if axis < 0 { axis + rank } else { axis }).ok();
        AxisOrder::new(&axes.iter().map(counted).collect::<Option<SmallVec<[usize; 8]>>>()?)
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Returns true if each axis stays where it is.
    pub fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(place, &axis)| place == usize::from(axis))
    }

    /// Returns the axes in their new order.
    ///
    /// Cost: one loop.
    pub fn axes(&self) -> SmallVec<[usize; 8]> {
        self.0.iter().map(|&axis| usize::from(axis)).collect()
    }

    /// Returns the new place of an axis; `None` if there is no such axis.
    ///
    /// Cost: one loop.
    pub fn place(&self, axis: usize) -> Option<usize> {
        self.0.iter().position(|&at| usize::from(at) == axis)
    }

    /// Returns the new place of an axis, which counts from the end if it is negative; `None` if
    /// there is no such axis.
    ///
    /// Cost: one loop.
    pub fn place_of(&self, axis: i64) -> Option<i64> {
        let axis = if axis < 0 { axis.checked_add(self.rank() as i64)? } else { axis };
        Some(self.place(usize::try_from(axis).ok()?)? as i64)
    }

    /// Returns the new places of a list of axes.
    ///
    /// Cost: one loop.
    pub fn places_of(&self, axes: &[i64]) -> Option<Vec<i64>> {
        axes.iter().map(|&axis| self.place_of(axis)).collect()
    }

    /// Returns the order that undoes this one.
    ///
    /// Cost: one loop.
    pub fn inverse(&self) -> AxisOrder {
        let mut inverse = self.0.clone();
        self.0.iter().enumerate().for_each(|(place, &axis)| inverse[usize::from(axis)] = place as u8);
        AxisOrder(inverse)
    }

    /// Returns this order followed by another one; `None` if the ranks differ.
    ///
    /// Cost: one loop.
    pub fn then(&self, next: &AxisOrder) -> Option<AxisOrder> {
        (self.rank() == next.rank()).then(|| AxisOrder(next.0.iter().map(|&axis| self.0[usize::from(axis)]).collect()))
    }

    /// Returns the order of the axes that a test selects, numbered without the others.
    ///
    /// Cost: one loop.
    pub fn restricted(&self, mut is_kept: impl FnMut(usize) -> bool) -> AxisOrder {
        let kept: SmallVec<[bool; 8]> = (0..self.rank()).map(&mut is_kept).collect();
        let number = |axis: u8| kept[..usize::from(axis)].iter().filter(|kept| **kept).count() as u8;
        AxisOrder(self.0.iter().filter(|&&axis| kept[usize::from(axis)]).map(|&axis| number(axis)).collect())
    }
}

/// A wish for the operands of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayoutRequest<'a> {
    /// An operand is available in this order.
    Follow {
        /// The operand.
        operand: usize,
        /// The order of its axes.
        order: &'a AxisOrder,
    },
    /// The layouts with these letters, for an operator that names its layouts. A kernel without
    /// letters keeps its layout.
    Letters {
        /// The layout of the first operand and of the result.
        data: &'a str,
        /// The layout of the kernel.
        kernel: Option<&'a str>,
    },
    /// The layouts that the operator has by default.
    Plain,
}

/// A call, as seen by the rule that writes it for operands in another order of axes.
pub struct RelayoutCall<'a> {
    cx: &'a Context,
    body: &'a Body,
    call: OpCall<'a>,
    /// The type of the call.
    ty: TypeId,
    request: &'a LayoutRequest<'a>,
}

impl<'a> RelayoutCall<'a> {
    /// Returns the wish.
    pub fn request(&self) -> &'a LayoutRequest<'a> {
        self.request
    }

    /// Returns the operand that is available in another order, and the order; `None` if the wish is
    /// another one.
    pub fn followed(&self) -> Option<(usize, &'a AxisOrder)> {
        match self.request {
            LayoutRequest::Follow { operand, order } => Some((*operand, order)),
            _ => None,
        }
    }

    /// Returns the attributes of the call, with the defaults of the row.
    ///
    /// Cost: one node.
    pub fn attrs(&self) -> AttrReader<'a> {
        self.call.attrs(self.cx)
    }

    /// Returns the number of operands, omitted ones included.
    pub fn operand_count(&self) -> usize {
        self.call.operands.len()
    }

    /// Returns the number of results: of fields, if the result is a tuple.
    ///
    /// Cost: one entry.
    pub fn result_count(&self) -> usize {
        self.cx.types.as_tuple(self.ty).map_or(1, <[TypeId]>::len)
    }

    fn given(&self, i: usize) -> Option<ExprId> {
        let operand = *self.call.operands.get(i)?;
        (self.body.expr(operand) != Expr::None).then_some(operand)
    }

    /// Returns true if an operand is given.
    pub fn is_given(&self, i: usize) -> bool {
        self.given(i).is_some()
    }

    /// Returns the rank of an operand; `None` if it is omitted, not a tensor, or of unknown rank.
    ///
    /// Cost: one entry.
    pub fn rank(&self, i: usize) -> Option<usize> {
        Some(self.cx.types.as_tensor(self.body.type_of(self.given(i)?))?.shape.as_ref()?.len())
    }

    /// Returns the value of an operand that is a constant.
    ///
    /// Cost: one entry.
    pub fn literal(&self, i: usize) -> Option<&'a Literal> {
        Some(self.cx.literals.get(self.body.as_literal(self.given(i)?)?))
    }

    /// Returns an operand that is a constant list of integers.
    ///
    /// Cost: one loop.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        const MOST: usize = 1 << 10;
        self.literal(i).filter(|list| list.rank() == 1 && list.element_count() <= MOST)?.to_i64s()
    }

    /// Returns the answer that an operator gives whose first operand and results have the order
    /// that is followed. Other operands stay as they are.
    ///
    /// Cost: one loop.
    pub fn with_first(&self) -> Option<Relayout> {
        let (operand, order) = self.followed()?;
        (operand == 0 && self.rank(0)? == order.rank()).then(|| Relayout {
            operands: SmallVec::from_iter([Some(order.clone())]),
            results: SmallVec::from_iter([Some(order.clone())]),
            attrs: Vec::new(),
            constants: Vec::new(),
        })
    }
}

/// A call for operands in another order of axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Relayout {
    /// The order in which each operand is expected; `None` for operands that stay as they are, as
    /// do operands beyond the end. An operand of fewer axes than the order has broadcasts: its axes
    /// are the last ones.
    pub operands: SmallVec<[Option<AxisOrder>; 4]>,
    /// The order in which the result is, or each field of a tuple; `None` for results that stay as
    /// they are, as do fields beyond the end.
    pub results: SmallVec<[Option<AxisOrder>; 2]>,
    /// The attributes that change.
    pub attrs: Vec<(&'static str, AttrValue)>,
    /// The constant operands that change.
    pub constants: Vec<(usize, Literal)>,
}

impl Relayout {
    /// Returns the answer with an attribute that changes.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn with_attr(mut self, name: &'static str, value: impl Into<AttrValue>) -> Relayout {
        self.attrs.push((name, value.into()));
        self
    }

    /// Returns the answer of the row of a call; `None` if the row has no rule, or if the operator
    /// cannot compute on such operands. `call` is an expression of `body`.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If the rule panics.
    pub fn of(
        cx: &Context,
        body: &Body,
        call: ExprId,
        request: &LayoutRequest<'_>,
    ) -> Result<Option<Relayout>, TypeError> {
        let Some(read) = body.call_of(call).filter(|read| !cx.ops.is_opaque(read.op)) else { return Ok(None) };
        let row = cx.ops.get(read.op);
        let Some(rule) = row.relayout else { return Ok(None) };
        let view = RelayoutCall { cx, body, call: read, ty: body.ty(call), request };
        catch_panic(|| rule(&view))
            .map_err(|text| TypeError::new(format!("its rule for layouts panics: {text}")).of_op(&*row.name))
    }
}

crate::brief_debug! { RelayoutCall<'_> { operand_count }; }
