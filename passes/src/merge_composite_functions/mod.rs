//! # MergeCompositeFunctions
//!
//! ```text
//! Notation   @c a composite function: it has Composite="B.name" and no Codegen; B its backend.
//!            g a group: calls of composite functions of one backend in one dataflow region.
//! Needs      A-normal form. Calls outside of dataflow regions stay.
//! Effect     let a = @c(x); …; let b = @d(a, y)   =>   let b = @fused_c_d_B(x, y)
//!              def private @fused_c_d_B(%x: T, %y: T, Codegen="B", Primitive=1) {
//!                let a = @c(x); let b = @d(a, y); b
//!              }
//!            A single call is a group too. If several variables of a group are used outside of
//!            it, the function returns them as a tuple.
//! Groups     Calls are in one group if a path of calls joins them, and if no path leads from the
//!            group through other bindings back into it. The groups are found by levels
//!            (levels.rs), not by all paths: in rare programs there are larger ones.
//! Order      The bindings of a region stay in order, except those that a group needs: they move
//!            before it. No binding moves across a `match_cast` to a symbolic type.
//! Function   It calls the composite functions, which stay functions of the module. Equal groups
//!            share one. Symbolic dimensions are bound as FuseOpsByPattern binds them.
//! Stays      Groups that need a symbol that no parameter binds.
//! Cost       A walk, and a constant number of walks of the uses of each region that calls
//!            composite functions. Idempotent.
//!
//! before     def @f(%x: Tensor[(2, 4), float32]) {
//!              dataflow {
//!                let %a = @fused_exp(%x);
//!                let %b = @fused_tanh(%a);
//!                output(%b);
//!              }
//!              %b
//!            }
//! after      def @f(%x: Tensor[(2, 4), float32]) {
//!              dataflow {
//!                let %b = @fused_exp_tanh_mine(%x);
//!                output(%b);
//!              }
//!              %b
//!            }
//!            def private @fused_exp_tanh_mine(%x: Tensor[(2, 4), float32],
//!                                             Codegen="mine", Primitive=1) {
//!              let %a = @fused_exp(%x);
//!              let %b = @fused_tanh(%a);
//!              %b
//!            }
//! ```

mod levels;

use anfora_ir::{
    Attr, Body, Context, Editor, Expr, ExprId, Function, FunctionKey, GlobalId, LetFlags, Module, PRIMITIVE, SideTable,
    VarFlags,
};
use anfora_manager::{PassError, register_pass};
use anfora_visit::Binding;
use rustc_hash::FxHashMap;

use self::levels::{Adjacency, NO_COLOR, Partition};
use crate::fuse_ops_by_pattern::{CODEGEN, COMPOSITE};
use crate::outline::{NotOutlined, Outliner, PassedLiterals, SymbolBinders, names_of};
use crate::region_scan::{RegionScan, Segment};

register_pass! {
    /// Merges neighbouring calls of composite functions of one backend into functions
    pub MERGE_COMPOSITE_FUNCTIONS = ModulePass("MergeCompositeFunctions", 0)
        .needing(["anf"])
        .breaking(["global-symbols"]);
    run |module, cx| {
        let merged = merge_composite_functions(module)?;
        cx.count("calls", merged.calls as u64);
        cx.count("functions", merged.functions as u64);
        Ok(())
    }
}

/// The name under which near misses are recorded.
const PASS: &str = "MergeCompositeFunctions";

/// The result of [`merge_composite_functions`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct MergedFunctions {
    /// The number of calls of composite functions that are in groups now.
    pub calls: usize,
    /// The number of new functions.
    pub functions: usize,
}

/// Merges the calls of composite functions in the dataflow regions of a module.
///
/// # Errors
/// If a function is not in A-normal form. The module may be half rewritten then.
pub fn merge_composite_functions(module: &mut Module) -> Result<MergedFunctions, PassError> {
    let mut merged = MergedFunctions::default();
    let Some(mut backends) = Backends::of(module) else { return Ok(merged) };
    let calls_composites = |(_, f): &(FunctionKey, &Function)| {
        let named = || f.body.global_leaves().into_iter().any(|(_, global)| backends.colors[global] != NO_COLOR);
        f.is_definition() && !f.is_primitive(&module.cx) && backend_of(&module.cx, f).is_none() && named()
    };
    let keys: Vec<FunctionKey> = module.functions().filter(calls_composites).map(|(key, _)| key).collect();
    for key in keys {
        module.cx.rewrites.enter_function(Some(module.name(key)));
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let scan = RegionScan::of(cx, &function.body);
        let scan = scan.map_err(|error| PassError::from(error).in_function(module.name(key)))?;
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let binders = SymbolBinders::of(cx, function);
        // The last region first, as `relink` wants it.
        for region in scan.regions.iter().rev() {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            if cx.rewrites.explains(PASS) {
                let segments = region.segments.iter().map(|&number| &scan.segments[number]);
                explain_segments(cx, &function.body, &backends, segments);
            }
            for &number in &region.segments {
                let segment = &scan.segments[number];
                let mut groups = Regrouping { cx, body: &mut function.body, binders: &binders, segment };
                before.extend_from_slice(&segment.lets);
                merged.calls += groups.regroup(&mut backends, &mut after);
            }
            if before != after {
                region.relink(&mut function.body, &before, &after);
            }
        }
        merged.functions += backends.outliners.iter_mut().map(|outliner| outliner.add_made(module)).sum::<usize>();
    }
    Ok(merged)
}

/// The backends that the composite functions of a module are for.
struct Backends {
    /// By global: the number of the backend of the composite function, counted from 1.
    colors: SideTable<GlobalId, u32>,
    /// By backend: makes its functions.
    outliners: Vec<Outliner>,
}

impl Backends {
    /// Returns the backends of a module; `None` if it has no composite function.
    fn of(module: &mut Module) -> Option<Backends> {
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut names = Vec::new();
        let mut composites: Vec<(GlobalId, u32)> = Vec::new();
        for (_, function) in module.functions() {
            let (Some(global), Some(backend)) = (function.global(), backend_of(&module.cx, function)) else { continue };
            let number = *numbers.entry(backend.to_string()).or_insert_with(|| {
                names.push(backend.to_string());
                names.len() as u32
            });
            composites.push((global, number));
        }
        if composites.is_empty() {
            return None;
        }
        let mut colors = SideTable::new(module.cx.globals.len(), NO_COLOR);
        composites.into_iter().for_each(|(global, number)| *colors.get_mut(global) = number);
        let free = names_of(module);
        let outliners = names.iter().map(|backend| {
            let (one, codegen) = (module.cx.attr(Attr::Int(1)), module.cx.str_attr(backend));
            let attrs = module.cx.named_attrs(&[(PRIMITIVE, one), (CODEGEN, codegen)]);
            Outliner::new(module, free.clone(), attrs, PassedLiterals::None, 0).with_suffix(backend)
        });
        Some(Backends { outliners: outliners.collect(), colors })
    }

    /// Returns the number of the backend of the composite function that a value calls.
    fn color(&self, body: &Body, value: ExprId) -> u32 {
        let Expr::Call { .. } = body.expr(value) else { return NO_COLOR };
        match body.inputs(value).first().map(|&callee| body.expr(callee)) {
            Some(Expr::Global(global)) => self.colors[global],
            _ => NO_COLOR,
        }
    }
}

/// Returns the backend of a composite function that no other pass has given to the backend yet.
fn backend_of<'m>(cx: &'m Context, function: &Function) -> Option<&'m str> {
    if !function.is_definition() || cx.find_attr(function.attrs, CODEGEN).is_some() {
        return None;
    }
    match cx.attrs.get(cx.find_attr(function.attrs, COMPOSITE)?) {
        &Attr::Str(name) => cx.names.get(name).split_once('.').map(|(backend, _)| backend),
        _ => None,
    }
}

/// The segment of a region whose calls are grouped.
struct Regrouping<'a> {
    cx: &'a mut Context,
    body: &'a mut Body,
    binders: &'a SymbolBinders,
    segment: &'a Segment,
}

impl Regrouping<'_> {
    /// Replaces the groups of the segment by calls, and appends its Lets in their new order.
    /// Returns the number of calls of composite functions that went into functions.
    fn regroup(&mut self, backends: &mut Backends, after: &mut Vec<ExprId>) -> usize {
        let lets = &self.segment.lets;
        let value = |body: &Body, id: ExprId| Binding::of(body, id).map(|binding| binding.value);
        let colors: Vec<u32> =
            lets.iter().map(|&id| value(self.body, id).map_or(NO_COLOR, |v| backends.color(self.body, v))).collect();
        if colors.iter().all(|&color| color == NO_COLOR) || !self.cx.rewrites.may_rewrite() {
            after.extend_from_slice(lets);
            return 0;
        }
        let mut partition = Partition::of(&colors, &self.segment.uses);
        let groups: Vec<u32> = (0..lets.len() as u32).map(|node| partition.group(node)).collect();
        if self.cx.rewrites.explains(PASS) {
            self.explain(&colors, &groups);
        }
        let is_output = self.outputs(&groups);
        // The members of each group, in program order.
        let numbered: Vec<(u32, u32)> = groups.iter().zip(0..).map(|(&group, node)| (group, node)).collect();
        let members = Adjacency::of(lets.len(), &numbered);
        let mut calls = 0;
        for group in sorted(&groups, &members, &self.segment.uses) {
            let members = members.of_node(group);
            let color = colors[group as usize];
            let lets_of_group = || members.iter().map(|&node| lets[node as usize]);
            // If no more may be replaced, the others are in the order of groups all the same.
            if color == NO_COLOR || !self.cx.rewrites.may_rewrite() {
                after.extend(lets_of_group());
                continue;
            }
            let outputs: Vec<ExprId> =
                members.iter().filter(|&&node| is_output[node as usize]).map(|&node| lets[node as usize]).collect();
            let bindings: Vec<Binding> = lets_of_group().filter_map(|id| Binding::of(self.body, id)).collect();
            match self.call(&mut backends.outliners[color as usize - 1], bindings, &outputs) {
                Ok(by) => {
                    after.extend(by);
                    calls += members.len();
                    self.record(members);
                }
                Err(why) => {
                    let at = lets[members[members.len() - 1] as usize];
                    let (cx, body) = (&*self.cx, &*self.body);
                    cx.nearly(body, at, PASS, || format!("its group cannot become a function: {why}"));
                    after.extend(lets_of_group());
                }
            }
        }
        calls
    }

    /// Counts the replacement of a group by a call, given its nodes.
    fn record(&self, members: &[u32]) {
        let [others @ .., last] = members else { return };
        let at = |node: u32| self.segment.lets[node as usize];
        self.cx.rewrote(self.body, at(*last), "merged");
        for &other in others {
            self.cx.rewrote_also(self.body, at(other), "merged");
        }
    }

    /// Records why calls of one backend that use each other are not in one group.
    #[cold]
    fn explain(&self, colors: &[u32], groups: &[u32]) {
        for &(value, user) in &self.segment.uses {
            let (value, user) = (value as usize, user as usize);
            if colors[value] != NO_COLOR && colors[value] == colors[user] && groups[value] != groups[user] {
                let (cx, body, lets) = (&*self.cx, &*self.body, &self.segment.lets);
                cx.nearly(body, lets[user], PASS, || {
                    format!(
                        "{} also leads to it through bindings of no or another backend",
                        name(cx, body, lets[value])
                    )
                });
            }
        }
    }

    /// Returns for each node whether its variable is used outside of its group, or nowhere.
    fn outputs(&self, groups: &[u32]) -> Vec<bool> {
        let mut is_output = vec![true; groups.len()];
        for &(value, user) in &self.segment.uses {
            if groups[value as usize] == groups[user as usize] {
                is_output[value as usize] = false;
            }
        }
        let leaves = self.segment.uses.iter().filter(|(value, user)| groups[*value as usize] != groups[*user as usize]);
        leaves.for_each(|&(value, _)| is_output[value as usize] = true);
        self.segment.outputs.iter().for_each(|&(value, _)| is_output[value as usize] = true);
        is_output
    }

    /// Outlines a group, given its bindings in program order and the Lets whose variables are used
    /// outside of it. Returns the Lets that take its place.
    ///
    /// # Errors
    /// If the group cannot become a function, and stays.
    fn call(
        &mut self,
        outliner: &mut Outliner,
        mut bindings: Vec<Binding>,
        outputs: &[ExprId],
    ) -> Result<Vec<ExprId>, NotOutlined> {
        let results: Vec<ExprId> =
            outputs.iter().filter_map(|&id| Some(Binding::of(self.body, id)?.var.expr())).collect();
        // The last member is an output, since nothing in the group uses it.
        if results.len() > 1 {
            let mut editor = Editor::new(self.cx, self.body);
            let tuple = editor.tuple(&results);
            let var = editor.var(None, VarFlags::DATAFLOW, editor.body.ty(tuple));
            let link = editor.let_(var, tuple, var.expr(), LetFlags::DATAFLOW);
            bindings.extend(Binding::of(self.body, link));
        }
        let Some(&last) = bindings.last() else { return Ok(Vec::new()) };
        let outlined = outliner.outline(self.cx, self.body, &bindings, |symbol| self.binders.binder(symbol))?;
        let call = outliner.call(self.cx, self.body, outlined, last);
        self.set_value(last.id, call);
        let mut lets = vec![last.id];
        if results.len() > 1 {
            for (&id, index) in outputs.iter().zip(0..) {
                let ty = self.body.ty(self.body.inputs(last.value)[index as usize]);
                let field = self.body.push(Expr::Proj { tuple: last.var.expr(), index }, ty, None);
                self.set_value(id, field);
                lets.push(id);
            }
        }
        Ok(lets)
    }

    fn set_value(&mut self, id: ExprId, value: ExprId) {
        if let Expr::Let { var, body, flags, .. } = self.body.expr(id) {
            self.body.set_expr(id, Expr::Let { var, value, body, flags });
        }
    }
}

/// Returns the name of the variable of a Let.
fn name(cx: &Context, body: &Body, id: ExprId) -> String {
    body.binding_name(cx, id).map_or("a binding".to_string(), |name| format!("%{name}"))
}

/// Records the calls of a region that use a call of the same backend in another segment.
#[cold]
fn explain_segments<'s>(cx: &Context, body: &Body, backends: &Backends, segments: impl Iterator<Item = &'s Segment>) {
    // By variable of the segments before: the Let, and the backend of its call.
    let mut before: FxHashMap<ExprId, (ExprId, u32)> = FxHashMap::default();
    for segment in segments {
        let bindings: Vec<Option<Binding>> = segment.lets.iter().map(|&id| Binding::of(body, id)).collect();
        let color = |binding: &Binding| backends.color(body, binding.value);
        for &(input, user) in &segment.inputs {
            let Some(binding) = &bindings[user as usize] else { continue };
            if let Some(&(id, of_input)) = before.get(&input)
                && of_input != NO_COLOR
                && color(binding) == of_input
            {
                cx.nearly(body, binding.id, PASS, || format!("a match_cast is between {} and it", name(cx, body, id)));
            }
        }
        before.extend(bindings.iter().flatten().map(|b| (b.var.expr(), (b.id, color(b)))));
    }
}

/// Returns the groups, each after those that it uses, and otherwise in the order of their first
/// nodes.
fn sorted(groups: &[u32], members: &Adjacency, uses: &[(u32, u32)]) -> Vec<u32> {
    let between: Vec<(u32, u32)> = uses
        .iter()
        .map(|&(value, user)| (groups[user as usize], groups[value as usize]))
        .filter(|(user, value)| user != value)
        .collect();
    let operands = Adjacency::of(groups.len(), &between);
    let mut order = Vec::new();
    let mut is_open = vec![false; groups.len()];
    // The groups whose operands are being placed, each with the number of its next operand.
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for group in (0..groups.len() as u32).filter(|&group| !members.of_node(group).is_empty()) {
        if !std::mem::replace(&mut is_open[group as usize], true) {
            stack.push((group, 0));
        }
        while let Some((group, next)) = stack.last_mut() {
            let Some(&operand) = operands.of_node(*group).get(*next) else {
                order.push(*group);
                stack.pop();
                continue;
            };
            *next += 1;
            if !std::mem::replace(&mut is_open[operand as usize], true) {
                stack.push((operand, 0));
            }
        }
    }
    order
}
