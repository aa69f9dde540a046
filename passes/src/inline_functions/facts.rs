//! The facts about functions on which inlining depends, found by one walk of each function.

use anfora_ir::{
    BlockKind, Body, Context, Cursor, Expr, ExprId, Function, FunctionKey, GlobalId, IdSet, Module, SideTable, Step,
    TypeId, VarId,
};
use anfora_visit::CallGraph;
use smallvec::SmallVec;

/// The facts about the block of a function. All are empty for a function that is neither a
/// candidate nor names one.
#[derive(Default)]
pub(super) struct FunctionFacts {
    /// The candidates that it names, once for each reference, in order.
    pub(super) named: SmallVec<[GlobalId; 2]>,
    /// The variables that are bound to calls and have no uses other than projections.
    pub(super) projected: SmallVec<[VarId; 2]>,
    /// The types of its `match_cast`s, in order.
    pub(super) casts: Vec<TypeId>,
    /// The number of reachable nodes, parameters included.
    pub(super) size: usize,
}

/// The facts about the functions of a module.
pub(super) struct InlineFacts {
    /// In program order.
    functions: Vec<FunctionFacts>,
    /// By global: the position of its function in program order.
    positions: SideTable<GlobalId, u32>,
    /// By global: the number of references to a candidate.
    uses: SideTable<GlobalId, usize>,
}

impl InlineFacts {
    /// Walks the functions that are candidates or name one.
    pub(super) fn of(module: &Module, graph: &CallGraph, candidates: &[FunctionKey]) -> InlineFacts {
        let cx = &module.cx;
        let mut is_candidate = IdSet::with_capacity(cx.globals.len());
        for global in candidates.iter().filter_map(|&key| module.get(key)?.global()) {
            is_candidate.insert(global);
        }
        let mut walk = Walk { latest: SideTable::new(0, 0), number: 0, is_candidate };
        let mut facts = InlineFacts {
            functions: Vec::with_capacity(module.order().len()),
            positions: SideTable::new(cx.globals.len(), 0),
            uses: SideTable::new(cx.globals.len(), 0),
        };
        for (key, function) in module.functions() {
            let is_candidate = |key| {
                module.get(key).and_then(Function::global).is_some_and(|global| walk.is_candidate.contains(global))
            };
            let found = match is_candidate(key) || graph.callees(key).any(is_candidate) {
                true => walk.of_body(cx, &function.body),
                false => FunctionFacts::default(),
            };
            found.named.iter().for_each(|&global| *facts.uses.get_mut(global) += 1);
            if let Some(global) = function.global() {
                facts.positions.set(global, facts.functions.len() as u32);
            }
            facts.functions.push(found);
        }
        facts
    }

    /// Returns the position in program order of the function that a global names.
    pub(super) fn position(&self, global: GlobalId) -> usize {
        self.positions[global] as usize
    }

    /// Returns the facts about the function at a position in program order.
    pub(super) fn at(&self, position: usize) -> &FunctionFacts {
        &self.functions[position]
    }

    /// Returns the number of references to a candidate.
    pub(super) fn uses(&self, global: GlobalId) -> usize {
        self.uses[global]
    }
}

/// A walk of one function after the other.
struct Walk {
    /// By expression: the number of the last function that had it as an operand, value or tail.
    latest: SideTable<ExprId, u32>,
    number: u32,
    is_candidate: IdSet<GlobalId>,
}

impl Walk {
    fn of_body(&mut self, cx: &Context, body: &Body) -> FunctionFacts {
        self.number += 1;
        let mut facts = FunctionFacts { size: body.params().len(), ..FunctionFacts::default() };
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(_, BlockKind::Lambda(id)) => {
                    if let Expr::Lambda { lambda, .. } = body.expr(id) {
                        facts.size += body.lambda_params(lambda).len();
                    }
                }
                Step::Let(id) => {
                    if let Expr::Let { var, value, .. } = body.expr(id)
                        && let Expr::Call { .. } = body.expr(value)
                    {
                        facts.projected.push(var);
                    }
                }
                // The Let and its variable.
                Step::Bound(_) => facts.size += 2,
                Step::Atom(id) => self.atom(&mut facts, body, id),
                Step::Flat(id) | Step::Exit(id) => {
                    facts.size += 1;
                    facts.casts.extend(cx.cast_type(body.expr(id)));
                    if let Step::Flat(_) = step {
                        body.operands_of(id).iter().for_each(|&operand| self.atom(&mut facts, body, operand));
                    }
                }
                _ => {}
            }
        }
        facts.projected.retain(|var| self.latest[var.expr()] != self.number);
        facts
    }

    fn atom(&mut self, facts: &mut FunctionFacts, body: &Body, id: ExprId) {
        let is_new = std::mem::replace(self.latest.get_mut(id), self.number) != self.number;
        let expr = body.expr(id);
        // A variable counts where it is bound.
        facts.size += usize::from(is_new && !matches!(expr, Expr::Var { .. }));
        if let Expr::Global(global) = expr
            && self.is_candidate.contains(global)
        {
            facts.named.push(global);
        }
    }
}

/// Returns the globals for which `is_one` returns true, once for each reference in a body, in
/// order.
pub(super) fn named_in(body: &Body, is_one: impl Fn(GlobalId) -> bool) -> Vec<GlobalId> {
    let mut named = Vec::new();
    let mut add = |id: ExprId| {
        if let Expr::Global(global) = body.expr(id)
            && is_one(global)
        {
            named.push(global);
        }
    };
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Atom(id) => add(id),
            Step::Flat(id) => body.operands_of(id).iter().for_each(|&o| add(o)),
            _ => {}
        }
    }
    named
}
