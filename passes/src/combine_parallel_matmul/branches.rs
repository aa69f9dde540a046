//! The products of a function, grouped by what they have in common, with the steps behind them.

use anfora_ir::{
    AttrReader, AttrsId, Body, Context, Cursor, DimId, Expr, ExprId, OpId, PerBlock, SideTable, Step, VarId,
};
use anfora_visit::{Binding, RewriteError, link_counts};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::plan::PASS;
use crate::match_facts::is_pointwise;

/// The kind of a product.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum ProductKind {
    Matmul,
    Gemm,
    Convolution,
}

/// The place of a binding: its block, numbered in program order, and its dataflow region, numbered
/// from 1; 0 outside of regions.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
struct BindingPlace {
    block: u32,
    region: u32,
}

/// The extents of an operand except the one in which the products of a group differ.
type OtherExtents = SmallVec<[DimId; 4]>;

/// The facts that all products of a group have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Common {
    place: BindingPlace,
    op: OpId,
    attrs: AttrsId,
    /// The left operand.
    x: ExprId,
    weight: OtherExtents,
    bias: Option<OtherExtents>,
}

/// A product that may be combined with others.
pub(super) struct Branch {
    /// The variable bound to the product.
    pub(super) var: VarId,
    pub(super) call: ExprId,
    /// The number of its Let in program order.
    pub(super) position: u32,
    /// The operand on the right, and the bias.
    pub(super) weight: ExprId,
    pub(super) bias: Option<ExprId>,
    /// The number of columns or channels of the result.
    pub(super) extent: i64,
    /// The pointwise calls behind the product, each on the result of the one before it alone.
    pub(super) steps: SmallVec<[BranchStep; 2]>,
}

/// A pointwise call on the result of a branch.
#[derive(Copy, Clone)]
pub(super) struct BranchStep {
    pub(super) var: VarId,
    pub(super) call: ExprId,
    /// The position of the result among the operands.
    pub(super) operand: usize,
}

/// At least two products that differ only in their weights, biases and steps.
pub(super) struct Group {
    pub(super) op: OpId,
    pub(super) attrs: AttrsId,
    pub(super) x: ExprId,
    pub(super) in_region: bool,
    /// The axes along which weights and biases are joined.
    pub(super) weight_axis: usize,
    pub(super) bias_axis: usize,
    /// The number of axes from the axis of the result that is split to the last, both included.
    pub(super) axis_from_end: usize,
    /// The products in program order.
    pub(super) branches: Vec<Branch>,
}

/// The groups of a function, with facts about its values.
pub(super) struct FoundGroups {
    pub(super) groups: Vec<Group>,
    /// The number of references to each node.
    pub(super) links: SideTable<ExprId, u32>,
    /// The number of the Let of each variable in program order, from 1; 0 for parameters and
    /// constants.
    positions: SideTable<ExprId, u32>,
}

impl FoundGroups {
    /// Returns true if an atom is bound before a Let of this position.
    pub(super) fn is_bound_before(&self, atom: ExprId, position: u32) -> bool {
        self.positions[atom] < position
    }
}

/// Returns the groups of products of a function, in the order of their first products.
///
/// # Errors
/// If the body is not in A-normal form.
pub(super) fn find_groups(cx: &Context, body: &Body) -> Result<FoundGroups, RewriteError> {
    let kinds: Vec<Option<ProductKind>> = cx.ops.registry().rows().map(|(_, row)| kind_of(&row.name)).collect();
    let kind_of_op = |op: OpId| kinds.get(op.index()).copied().flatten();
    let is_product = |expr| matches!(expr, Expr::CallOp { op, .. } if kind_of_op(op).is_some());
    if body.exprs().filter(|&(_, expr)| is_product(expr)).take(2).count() < 2 {
        return Ok(FoundGroups { groups: Vec::new(), links: body.side_table(0), positions: body.side_table(0) });
    }
    let mut scan = BranchScan {
        cx,
        body,
        by_common: FxHashMap::default(),
        ends: FxHashMap::default(),
        found: FoundGroups { groups: Vec::new(), links: link_counts(body), positions: body.side_table(0) },
        unfit: Vec::new(),
        position: 0,
    };
    let (mut blocks, mut regions) = (0, 0);
    let mut here: PerBlock<BindingPlace> = PerBlock::default();
    let mut cursor = Cursor::with_regions(body);
    while let Some(step) = cursor.next(body) {
        RewriteError::unless_anf(cx, body, &cursor, step)?;
        match step {
            Step::EnterBlock(..) => {
                blocks += 1;
                here.enter_with(BindingPlace { block: blocks, region: 0 });
            }
            Step::ExitBlock(..) => drop(here.exit()),
            Step::EnterRegion(_) => {
                regions += 1;
                here.region = regions;
            }
            Step::ExitRegion(_) => here.region = 0,
            Step::Let(id) => {
                let Some(binding) = Binding::of(body, id) else { continue };
                scan.number(binding.var);
                let Expr::CallOp { op, .. } = body.expr(binding.value) else { continue };
                match kind_of_op(op) {
                    Some(kind) => scan.product(&binding, *here, kind),
                    None => scan.step(&binding, *here),
                }
            }
            _ => {}
        }
    }
    if cx.rewrites.explains(PASS) {
        scan.explain_single();
    }
    let mut found = scan.found;
    found.groups.retain(|group| group.branches.len() > 1);
    Ok(found)
}

fn kind_of(op: &str) -> Option<ProductKind> {
    match op {
        "matmul" => Some(ProductKind::Matmul),
        "nn.gemm" => Some(ProductKind::Gemm),
        "nn.conv1d" | "nn.conv2d" | "nn.conv3d" => Some(ProductKind::Convolution),
        _ => None,
    }
}

/// Returns the known extents of an operand with one axis left out, and the extent of this axis.
pub(super) fn without_axis(
    cx: &Context,
    body: &Body,
    operand: ExprId,
    axis_from_end: usize,
) -> Option<(OtherExtents, DimId)> {
    let shape = cx.types.as_tensor(body.type_of(operand))?.shape.as_deref()?;
    let axis = shape.len().checked_sub(axis_from_end)?;
    let mut others = OtherExtents::from_slice(shape);
    let extent = others.remove(axis);
    let unknown = cx.types.dims.unknown();
    (extent != unknown && !others.contains(&unknown)).then_some((others, extent))
}

/// The scan of a function.
struct BranchScan<'a> {
    cx: &'a Context,
    body: &'a Body,
    /// The index of the group of each set of facts.
    by_common: FxHashMap<Common, u32>,
    /// The branches that may go on, by the last value of each: the group, the branch, its place.
    ends: FxHashMap<ExprId, (u32, u32, BindingPlace)>,
    found: FoundGroups,
    /// The variables and left operands of products that are in no group.
    unfit: Vec<(ExprId, ExprId)>,
    position: u32,
}

impl BranchScan<'_> {
    fn number(&mut self, var: VarId) {
        self.position += 1;
        *self.found.positions.get_mut(var.expr()) = self.position;
    }

    /// Returns true if a binding is the only one of its value, has its type, and is used.
    fn is_plain(&self, binding: &Binding) -> bool {
        let links = &self.found.links;
        links[binding.value] == 1
            && links[binding.var.expr()] > 0
            && self.body.ty(binding.var.expr()) == self.body.ty(binding.value)
    }

    /// Adds a product to its group.
    fn product(&mut self, binding: &Binding, place: BindingPlace, kind: ProductKind) {
        let found = if self.is_plain(binding) { self.branch(binding, place, kind) } else { None };
        let Some((common, branch, axes)) = found else {
            let left = self.body.operands_of(binding.value).first();
            return self.unfit.extend(left.map(|&x| (binding.var.expr(), x)));
        };
        let groups = &mut self.found.groups;
        let Common { op, attrs, x, .. } = common;
        let index = *self.by_common.entry(common).or_insert_with(|| {
            let [weight_axis, bias_axis, axis_from_end] = axes;
            let in_region = place.region != 0;
            groups.push(Group { op, attrs, x, in_region, weight_axis, bias_axis, axis_from_end, branches: Vec::new() });
            groups.len() as u32 - 1
        });
        let branches = &mut groups[index as usize].branches;
        self.ends.insert(binding.var.expr(), (index, branches.len() as u32, place));
        branches.push(branch);
    }

    /// Records why products stay of whose left operand there is another product.
    #[cold]
    fn explain_single(&self) {
        let (cx, body) = (self.cx, self.body);
        let products = self.found.groups.iter().map(|group| (group.branches[0].var.expr(), group.x));
        let products: Vec<(ExprId, ExprId)> = products.chain(self.unfit.iter().copied()).collect();
        let mut by_operand: FxHashMap<ExprId, SmallVec<[ExprId; 2]>> = FxHashMap::default();
        for &(var, x) in &products {
            let some = by_operand.entry(x).or_default();
            if some.len() < 2 {
                some.push(var);
            }
        }
        let is_single = |index: usize| self.found.groups.get(index).is_none_or(|group| group.branches.len() == 1);
        for (index, &(var, x)) in products.iter().enumerate().filter(|&(index, _)| is_single(index)) {
            let Some(&other) = by_operand[&x].iter().find(|&&other| other != var) else { continue };
            cx.nearly(body, var, PASS, || {
                let other = body.binding_name(cx, other).map_or("another product".to_string(), |n| format!("%{n}"));
                match index < self.found.groups.len() {
                    true => {
                        format!("{other} has the same left operand, but other attributes, extents, or another block")
                    }
                    false => format!(
                        "{other} has the same left operand, but this product has groups, extents that are not known, \
                         no use, or a type or a value that another binding has too"
                    ),
                }
            });
        }
    }

    /// Returns a product as a branch, with the facts by which it is grouped, and the axes of the
    /// group.
    fn branch(
        &self,
        binding: &Binding,
        place: BindingPlace,
        kind: ProductKind,
    ) -> Option<(Common, Branch, [usize; 3])> {
        let (cx, body) = (self.cx, self.body);
        let Expr::CallOp { op, operands, attrs } = body.expr(binding.value) else { return None };
        let operands = body.operands(operands);
        let (&x, &weight) = (operands.first()?, operands.get(1)?);
        let bias = operands.get(2).copied().filter(|&bias| body.expr(bias) != Expr::None);
        let reader = AttrReader { cx, op, attrs };
        let rank = |operand: ExprId| Some(cx.types.as_tensor(body.type_of(operand))?.shape.as_ref()?.len());
        let (weight_rank, result_rank) = (rank(weight)?, rank(binding.value)?);
        // The axes are counted from the end.
        let (weight_axis, axis_from_end) = match kind {
            ProductKind::Matmul if weight_rank >= 2 => (1, 1),
            ProductKind::Gemm => (if reader.bool("trans_b")? { 2 } else { 1 }, 1),
            ProductKind::Convolution if reader.int("groups")? == 1 => {
                let place = |layout: &str, letter: char| reader.str(layout)?.find(letter);
                let (features, channels) = (place("kernel_layout", 'O')?, place("data_layout", 'C')?);
                (weight_rank.checked_sub(features)?, result_rank.checked_sub(channels)?)
            }
            _ => return None,
        };
        let (of_weight, columns) = without_axis(cx, body, weight, weight_axis)?;
        let extent = cx.types.dims.as_constant(columns)?;
        let of_bias = match bias {
            Some(bias) => {
                let (others, extent) = without_axis(cx, body, bias, 1)?;
                Some(Some(others).filter(|_| extent == columns)?)
            }
            None => None,
        };
        let bias_axis = of_bias.as_ref().map_or(0, SmallVec::len);
        let common = Common { place, op, attrs, x, weight: of_weight, bias: of_bias };
        let position = self.position;
        let branch =
            Branch { var: binding.var, call: binding.value, position, weight, bias, extent, steps: SmallVec::new() };
        Some((common, branch, [weight_rank - weight_axis, bias_axis, axis_from_end]))
    }

    /// Adds a pointwise call to the branch whose result it alone uses.
    fn step(&mut self, binding: &Binding, place: BindingPlace) {
        let body = self.body;
        let mut ends = body.operands_of(binding.value).iter().enumerate().filter_map(|(i, operand)| {
            let end = self.ends.get(operand).filter(|_| self.found.links[*operand] == 1)?;
            Some((i, *operand, *end))
        });
        let (Some((operand, value, (group, branch, of_branch))), None) = (ends.next(), ends.next()) else { return };
        let Expr::CallOp { op, .. } = body.expr(binding.value) else { return };
        let can_fail = self.cx.ops.get(op).may_fail;
        if of_branch != place || can_fail || !is_pointwise(self.cx, op) || !self.is_plain(binding) {
            return;
        }
        self.ends.remove(&value);
        self.ends.insert(binding.var.expr(), (group, branch, place));
        let step = BranchStep { var: binding.var, call: binding.value, operand };
        self.found.groups[group as usize].branches[branch as usize].steps.push(step);
    }
}
