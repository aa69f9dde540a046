//! # FuseOps
//!
//! ```text
//! Notation   v a variable; op an operator of a pattern other than Opaque; P(v) the first value
//!            that all paths from v go through (its immediate post-dominator); r the last binding
//!            of a group.
//! Needs      Dataflow regions: nothing else is fused. The body may be in any form, but bindings
//!            whose operands are not atoms or whose values are shared stay as they are.
//! Effect     dataflow { .. let v = op(a, ..); .. let r = op(v, ..); .. }
//!              =>  dataflow { .. let r = @fused_op_op(a, ..); .. }
//!                  def private @fused_op_op(%a: T, .., Primitive=1) {
//!                    let v = op(a, ..); let r = op(v, ..); r
//!                  }
//! Kinds      The kind of a value is the pattern of its operator's row: ElemWise 0, Broadcast 1,
//!            Injective 2, CommReduce 3, OutEWiseFusable 4. Projections are 2, tuples 7, all else
//!            is 8. A row may choose the pattern by the attributes of a call: image.resize to the
//!            nearest neighbour is 2, else 4. A call of a declared function that is pure and has
//!            the attribute `op_pattern`, a number up to 4, is of that kind. A call whose extents
//!            are computed (by an operand that is not a literal) is 8, unless its type states all
//!            extents as numbers or symbols. A Broadcast takes an operand element by element if
//!            the operand has exactly the shape of the result. The kind of a group is that of its
//!            last value, or 4 if a 4 was merged into it.
//! Groups     The group that ends with v is merged with the group of P(v) and with all groups on
//!            the paths to it. Below, "v is 4" means that the group that ends with v is of kind 4.
//!            Phases:
//!            phase 0      v is 4; each operation on the paths takes its operand element by
//!                         element; no group on the way or at P(v) is greater than 1. So
//!                         operations are appended to a convolution.
//!            phases 0, 1  v is 0 or 1; each operation on the paths, P(v) included, is at most 3;
//!                         no group on the way is greater than 2, and that of P(v) is at most 4.
//!            phase 1      v is 2 or 7; no group on the way or at P(v) is greater than 2.
//!            phase 2      v is at most 2; P(v) is a tuple in a group of at most 2, and the groups
//!                         on the way are at most 2.
//!            A group has one result, r: a value that uses any other of its bindings is in the
//!            group too. So no results are put into a tuple.
//! Function   Its parameters are in the order of first use; a value used twice is one parameter.
//!            Literals of rank 0, splats, literals of at most 16 elements and those that a type
//!            rule reads stay inside; larger ones are passed. Symbolic dimensions are the
//!            function's own. A parameter or match_cast binds each symbol that alone is a dimension
//!            or an element of its type. If no parameter of the new function binds a symbol, the
//!            variable of the old function that binds it becomes a further parameter. If that
//!            variable is not visible, the group is not made.
//!            Its name lists the operators and declared functions without their namespaces
//!            (nn.relu gives relu) and without what follows a `#`, in at most 64 characters; _etc
//!            follows if some are left out. Groups that are equal up to names share a function,
//!            which the module may have had before.
//! Never      Parameters, literals, calls of other functions, lambdas and match_cast are in no
//!            group. A projection of a tuple from outside its group stays outside. A group whose
//!            result is not used is dead, and stays as it is (DeadCodeElimination removes it).
//! Limits     FuseOps.max_depth is the greatest number of bindings of a group, each counted once.
//!            FuseOps.max_function_args is the greatest number of parameters of a function; 0 for
//!            no limit. A group that would be too large is not merged.
//! Cost       A walk, and for each use of a value beyond its first a time logarithmic in the
//!            distance between the uses. A merge costs the size of what it merges, once. A refused
//!            merge visits at most max_depth groups and their uses, each once. It visits none if
//!            one path alone has more bindings than a group may have. Idempotent.
//!
//! before     def @f(%x: Tensor[(8,), float32]) {
//!              dataflow {
//!                let %a = exp(%x);
//!                let %b = add(%a, %x);
//!                output(%b)
//!              }
//!              %b
//!            }
//! after      def @f(%x: Tensor[(8,), float32]) {
//!              dataflow {
//!                let %b = @fused_exp_add(%x);
//!                output(%b)
//!              }
//!              %b
//!            }
//!            def private @fused_exp_add(%x: Tensor[(8,), float32], Primitive=1) {
//!              let %a = exp(%x);
//!              let %b = add(%a, %x);
//!              %b
//!            }
//! ```
//!
//! The algorithm is that of T. Chen and others, "TVM: an automated end-to-end optimizing compiler
//! for deep learning", OSDI 2018, in the form of Relay and Relax. InlineFunctions is its inverse up
//! to the order of bindings: the bindings of a group are then at the place of the last of them.

mod graph;
mod groups;

use anfora_ir::bumpalo::Bump;
use anfora_ir::{
    Attr, Body, Context, Cursor, Expr, Function, FunctionKey, GlobalId, Module, PRIMITIVE, RegionWriter, ScratchVec,
    Step,
};
use anfora_manager::{ConfigDef, register_pass};
use anfora_visit::{Binding, Link, PostDominatorTree};
use rustc_hash::FxHashMap;

use self::graph::{Graph, OPAQUE, OUT_ELEM_WISE, kind_of_call};
use self::groups::Groups;
use crate::outline::{Outliner, PassedLiterals, names_of};

/// The name under which near misses are recorded.
const PASS: &str = "FuseOps";

/// The attribute of declared functions with the kind of their calls, as a number.
const OP_PATTERN: &str = "op_pattern";

/// The greatest number of bindings of a group.
pub const MAX_FUSION_DEPTH: ConfigDef =
    ConfigDef::int("FuseOps.max_depth", 0, u32::MAX as i64, 256, "the greatest number of bindings of a group");

/// The greatest number of parameters of a fused function.
pub const MAX_FUSION_ARGS: ConfigDef = ConfigDef::int(
    "FuseOps.max_function_args",
    0,
    u32::MAX as i64,
    0,
    "the greatest number of parameters of a fused function; 0 for no limit",
);

register_pass! {
    /// Moves operators of dataflow regions that can be computed together into functions
    pub FUSE_OPS = ModulePass("FuseOps", 1).needing(["dataflow"]).breaking(["global-symbols"]);
    configs { MAX_FUSION_DEPTH, MAX_FUSION_ARGS }
    run |module, cx| {
        let limit = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        let limits = FusionLimits {
            max_depth: limit(cx.config_of(&MAX_FUSION_DEPTH)?),
            max_function_args: limit(cx.config_of(&MAX_FUSION_ARGS)?),
        };
        let done = fuse_ops(module, limits);
        cx.count("groups", done.groups as u64);
        cx.count("bindings", done.bindings as u64);
        cx.count("functions", done.functions as u64);
        Ok(())
    }
}

/// The limits of the size of groups.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FusionLimits {
    /// The greatest number of bindings of a group.
    pub max_depth: u32,
    /// The greatest number of parameters of a fused function; 0 for no limit.
    pub max_function_args: u32,
}

impl Default for FusionLimits {
    fn default() -> FusionLimits {
        FusionLimits { max_depth: 256, max_function_args: 0 }
    }
}

/// The result of fusing.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Fused {
    /// The number of groups that became calls.
    pub groups: usize,
    /// The number of bindings in these groups.
    pub bindings: usize,
    /// The number of new functions.
    pub functions: usize,
}

/// Fuses the operators in the dataflow regions of a module.
pub fn fuse_ops(module: &mut Module, limits: FusionLimits) -> Fused {
    let keys: Vec<FunctionKey> = module
        .functions()
        .filter(|(_, f)| f.is_definition() && !f.is_primitive(&module.cx))
        .map(|(key, _)| key)
        .collect();
    let declared = kinds_of_declared(module);
    let mut outliner: Option<Outliner> = None;
    let mut done = Fused::default();
    for key in keys {
        let Some(Function { body, .. }) = module.get(key) else { continue };
        module.cx.rewrites.enter_function(Some(module.name(key)));
        let scratch = module.cx.scratch();
        let explains = module.cx.rewrites.explains(PASS);
        let Some(graph) = Graph::new(&module.cx, body, &declared, &scratch) else {
            if explains {
                explain_outside(&module.cx, body, &declared);
            }
            continue;
        };
        let dominators = PostDominatorTree::new(&graph.flow);
        let mut groups = Groups::new(&module.cx, body, &graph, &dominators, limits, &scratch);
        if explains {
            groups.explain(&module.cx, body);
            explain_outside(&module.cx, body, &declared);
        }
        if !groups.merged {
            continue;
        }
        let lists = Lists::new(groups, &graph, &scratch);
        let outliner = outliner.get_or_insert_with(|| {
            let one = module.cx.attr(Attr::Int(1));
            let attrs = module.cx.named_attrs(&[(PRIMITIVE, one)]);
            Outliner::new(module, names_of(module), attrs, PassedLiterals::Large, limits.max_function_args as usize)
        });
        if let Some((function, cx)) = module.get_mut(key) {
            replace_groups(cx, function, &graph, &lists, outliner, &mut done, &scratch);
        }
        done.functions += outliner.add_made(module);
    }
    done
}

/// Records the calls outside of dataflow regions that could be parts of groups in one.
#[cold]
fn explain_outside(cx: &Context, body: &Body, declared: &FxHashMap<GlobalId, u8>) {
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Bound(id) = step
            && let Expr::Let { flags, value, .. } = body.expr(id)
            && !flags.is_dataflow()
            && kind_of_call(cx, body, declared, value).is_some_and(|kind| kind != OPAQUE)
        {
            let why = "it is in no dataflow region (ConvertToDataflow makes them)";
            cx.nearly(body, id, PASS, || why.to_string());
        }
    }
}

/// Returns the kinds of calls of declared functions, as their attributes state them.
fn kinds_of_declared(module: &Module) -> FxHashMap<GlobalId, u8> {
    let cx = &module.cx;
    let kind_of = |f: &Function| match cx.attrs.get(cx.find_attr(f.attrs, OP_PATTERN)?) {
        Attr::Int(kind) => u8::try_from(*kind).ok().filter(|&kind| kind <= OUT_ELEM_WISE),
        _ => None,
    };
    module
        .functions()
        .filter(|(_, f)| !f.is_definition() && f.states_pure(cx))
        .filter_map(|(_, f)| Some((f.global()?, kind_of(f)?)))
        .collect()
}

/// The nodes of each group, in program order.
struct Lists<'b> {
    /// For the last node of each group, `starts[last]..starts[last + 1]` is the range of the group
    /// in `nodes`. Other nodes have empty ranges.
    starts: &'b [u32],
    nodes: &'b [u32],
}

impl<'b> Lists<'b> {
    fn new(mut groups: Groups<'_>, graph: &Graph<'_>, scratch: &'b Bump) -> Lists<'b> {
        let n = graph.len();
        let last: &[u32] = scratch.alloc_slice_fill_with(n, |node| groups.last(node as u32));
        let starts: &mut [u32] = scratch.alloc_slice_fill_copy(n + 1, 0);
        last.iter().for_each(|&l| starts[l as usize] += 1);
        let mut sum = 0;
        for start in &mut *starts {
            sum += *start;
            *start = sum;
        }
        let nodes: &mut [u32] = scratch.alloc_slice_fill_copy(n, 0);
        for (node, &l) in last.iter().enumerate().rev() {
            let start = &mut starts[l as usize];
            *start -= 1;
            nodes[*start as usize] = node as u32;
        }
        Lists { starts, nodes }
    }

    fn of(&self, last: usize) -> &[u32] {
        &self.nodes[self.starts[last] as usize..self.starts[last + 1] as usize]
    }
}

/// Replaces the groups of a function by calls, each at the place of the group's last binding.
fn replace_groups(
    cx: &mut Context,
    function: &mut Function,
    graph: &Graph<'_>,
    lists: &Lists<'_>,
    outliner: &mut Outliner,
    done: &mut Fused,
    scratch: &Bump,
) {
    let body = &mut function.body;
    let gone: &mut [bool] = scratch.alloc_slice_fill_copy(graph.len(), false);
    let mut members: ScratchVec<'_, Binding> = ScratchVec::new_in(scratch);
    // By node: the number of the last node of its group plus one; 0 if it is in no group.
    let taken: &mut [u32] = scratch.alloc_slice_fill_copy(graph.len(), 0);
    for (number, region) in graph.regions.iter().enumerate() {
        let before = done.groups;
        for last in region.start..region.end {
            let nodes = lists.of(last as usize);
            if nodes.len() < 2 || !graph.is_used(last) || !cx.rewrites.may_rewrite() {
                continue;
            }
            // Collect the bindings of the group. Projections belong to it with their tuple.
            members.clear();
            let mut calls = 0;
            for &node in nodes {
                let binding = Binding::of(body, graph.lets[node as usize]).expect("a node is a Let");
                match body.expr(binding.value) {
                    Expr::Proj { tuple, .. }
                        if graph.node(tuple).is_none_or(|tuple| taken[tuple as usize] != last + 1) =>
                    {
                        continue;
                    }
                    Expr::CallOp { .. } | Expr::Call { .. } => calls += 1,
                    _ => {}
                }
                taken[node as usize] = last + 1;
                members.push(binding);
            }
            if members.len() < 2 || calls == 0 {
                continue;
            }
            // Outline the group, and call it.
            let binder = |symbol| graph.binder(symbol, number);
            let root = members[members.len() - 1];
            let outlined = match outliner.outline(cx, body, &members, binder) {
                Ok(outlined) => outlined,
                Err(why) => {
                    cx.nearly(body, root.id, PASS, || format!("its group cannot become a function: {why}"));
                    continue;
                }
            };
            let call = outliner.call(cx, body, outlined, root);
            Link::Value(root.id).set(body, call);
            cx.rewrote(body, root.id, "fused");
            for member in members.iter().filter(|member| member.id != root.id) {
                cx.rewrote_also(body, member.id, "fused");
            }
            for &node in nodes {
                gone[node as usize] = node != last && taken[node as usize] == last + 1;
            }
            done.groups += 1;
            done.bindings += members.len();
        }
        // Unlink the bindings that are gone.
        if done.groups > before {
            // The last Let of a region is the last of its group and is never unlinked, so the link
            // to the next region stays valid.
            let mut link = region.link;
            for node in region.start..region.end {
                if gone[node as usize] {
                    continue;
                }
                let id = graph.lets[node as usize];
                if link.target(body) != id {
                    if link == region.link
                        && let Expr::Let { flags, .. } = body.expr(link.target(body))
                    {
                        RegionWriter::take_out(body, flags, id);
                    }
                    link.set(body, id);
                }
                link = Link::Rest(id);
            }
        }
    }
}
