//! Rewriting to a fixpoint with a worklist.

mod near_misses;

use std::collections::VecDeque;

use anfora_ir::{
    Body, Context, Cursor, Editor, EntityId, Expr, ExprId, IdSet, Retype, SharedEdits, Step, TypeId, VarFlags, VarId,
    infer_expr,
};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::analysis::Definition;
use crate::chain::{insert_before, pass_on_output, set_var_flags, unlink_let};
use crate::error::{RewriteError, check_type};
use crate::link::{Binding, Link};
use crate::pattern::captures::Captures;
use crate::pattern::compile::Compiled;
use crate::pattern::error::Refused;
use crate::pattern::facts::{Facts, is_primitive};
use crate::pattern::glance::Glance;
use crate::pattern::illegal_edit::IllegalEdit;
use crate::pattern::outcome::{Outcome, PatternOptions, PatternRewriteError, RuleCounts, StopReason};
use crate::pattern::rewriter::{Nested, New, Rewriter, named};
use crate::pattern::rule::{Built, ReadyRule, Right, Rule, RuleTable};
use crate::pattern::rule_set::RuleSet;
use crate::pattern::search::{Attempt, Search, default_budget};
use crate::pattern::sight::Sight;
use crate::pattern::trace::{Applied, node_text};

use near_misses::{DriverMisses, explained};

/// Rewrites a body by rules, until none applies any more or a limit is reached.
///
/// Nodes are visited in program order, and the rules at each node are tried in the order in which
/// they are given; the first rule that matches and applies replaces the node. The new nodes and
/// their users are visited next. Then sweeps over the body follow, until a sweep changes nothing
/// ([`StopReason::Fixpoint`]). A rule whose pattern cannot begin at a node costs nothing there. A
/// rewrite costs as much as it changes, and the whole is near-linear in the body and the rewrites.
///
/// In a program in A-normal form, the result is in A-normal form: nested parts of a replacement are
/// bound just before the binding or tail that is rewritten, in its dataflow region if it is in one.
/// If the value of a binding becomes an atom, that atom replaces the uses of its variable and the
/// binding is removed. In a graph, and in any other program, a node is replaced at all its uses and
/// nothing is bound. There, no pattern matches an operand that is impure, an `if`, a `fn` or a
/// block, and no pattern looks through a binding whose value has nested parts. If these matter,
/// convert the program to A-normal form first (`ToANormalForm`).
///
/// A replacement must have a type that is equal to the old one or more specific; otherwise the rule
/// does not apply there ([`RuleCounts::mistyped`]). The types of its users are inferred again. If a
/// replacement uses a variable of another dataflow region, the variable becomes an output of its
/// region. Pure bindings that a rewrite leaves without uses are erased, so that
/// [`used_once`](crate::pattern::Pattern::used_once) is right for the next rule; other dead code
/// stays.
///
/// A `fn` with the attribute `Primitive=1` is finished: nothing in it is visited. A rule that fuses
/// nodes into a `fn` must give it that attribute, or the rule applies again inside.
///
/// If a default limit, which the caller did not set, is reached, the changes are rolled back and
/// [`Outcome::remarks`] are noted in the body ([`Body::note_remarks`]). The pass manager reports
/// them.
///
/// A rule can do what [`Rewriter`] offers: make expressions. It can edit nothing else.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_visit::pattern::{PatternOptions, Rule, capture, literal, op, rewrite_patterns};
///
/// let mut rules = [
///     Rule::replace(
///         "x * 1",
///         op("multiply", [capture("x"), literal(1) | literal(1.0)]),
///         capture("x"),
///     ),
///     // -0 + 0 is 0: of floats, only -0 can be left out.
///     Rule::replace(
///         "x + 0",
///         op("add", [capture("x"), literal(0) | literal(-0.0)]),
///         capture("x"),
///     ),
/// ];
/// let text = "def @main(%x: Tensor[(8,), float32]) {
///   let %a = multiply(1f, %x);
///   let %b = add(%a, -0f);
///   exp(%b)
/// }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard()).unwrap();
/// let key = module.find("main").unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// let mut editor = anfora_ir::Editor::new(cx, &mut function.body);
/// let outcome = rewrite_patterns(&mut editor, &mut rules, &PatternOptions::default())?;
/// assert_eq!(outcome.rewrites, 2);
/// assert_eq!(
///     module.to_text(),
///     "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {\n  exp(%x)\n}\n"
/// );
/// # Ok::<(), anfora_visit::pattern::PatternRewriteError>(())
/// ```
///
/// # Errors
/// If a rule is invalid, before anything is rewritten; the errors that rules return; or if the
/// result does not fit. The body is unchanged then.
pub fn rewrite_patterns(
    editor: &mut Editor<'_>,
    rules: &mut [Rule<'_>],
    options: &PatternOptions<'_>,
) -> Result<Outcome, PatternRewriteError> {
    let mut ready = Vec::with_capacity(rules.len());
    for rule in &*rules {
        let made = ReadyRule::new(editor.cx, rule.name.clone().into(), &rule.pattern, &rule.right);
        let refused =
            |(refused, _): (Refused, _)| PatternRewriteError::Pattern { rule: rule.name.clone(), error: refused.error };
        ready.push(made.map_err(refused)?);
    }
    let build = &mut |rule: usize, rewriter: &mut Rewriter<'_, '_>, captures: &Captures<'_>| match rules
        .get_mut(rule)
        .map(|rule| &mut rule.right)
    {
        Some(Right::Built(build)) => build(rewriter, captures),
        _ => Ok(None),
    };
    run(editor, &RuleTable::new(ready), build, options)
}

/// Rewrites a body as [`rewrite_patterns`] does, by a set of rules that is made once for many runs.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_visit::pattern::{PatternOptions, rewrite_rules};
/// use anfora_visit::rules;
///
/// let rules = rules!["multiply(%x, 1)" => "%x", "add(%x, 0)" => "%x", "add(%x, -0f)" => "%x"];
/// let text = "def @main(%x: Tensor[(8,), float32]) {
///   let %a = multiply(1f, %x);
///   let %b = add(%a, -0f);
///   exp(%b)
/// }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard()).unwrap();
/// let key = module.find("main").unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// let mut editor = anfora_ir::Editor::new(cx, &mut function.body);
/// let outcome = rewrite_rules(&mut editor, &rules, &PatternOptions::default())?;
/// assert_eq!(outcome.rewrites, 2);
/// # Ok::<(), anfora_visit::pattern::PatternRewriteError>(())
/// ```
///
/// # Errors
/// The errors of [`rewrite_patterns`], and all mistakes in the texts of the rules.
pub fn rewrite_rules(
    editor: &mut Editor<'_>,
    rules: &RuleSet,
    options: &PatternOptions<'_>,
) -> Result<Outcome, PatternRewriteError> {
    let table = rules.ready(editor.cx).map_err(PatternRewriteError::Rules)?;
    run(editor, &table, &mut |rule, rewriter, captures| rules.build_by(rule, rewriter, captures), options)
}

/// Makes the replacements of the rules whose right side is code, by the number of the rule.
type BuildBy<'b> = &'b mut dyn FnMut(usize, &mut Rewriter<'_, '_>, &Captures<'_>) -> Built;

fn run(
    editor: &mut Editor<'_>,
    table: &RuleTable,
    build: BuildBy<'_>,
    options: &PatternOptions<'_>,
) -> Result<Outcome, PatternRewriteError> {
    editor.body.note_stop(None);
    let may_apply = table.needs.may_be_met(editor.cx, editor.body);
    if !may_apply && explained(editor.cx, table).is_empty() {
        return Ok(Outcome {
            stop: StopReason::Fixpoint,
            rewrites: 0,
            erased: 0,
            sweeps: 1,
            attempted: 0,
            taken_back: false,
            rules: table.counts(),
            trace: Vec::new(),
        });
    }
    let before = editor.cx.rewrites.mark();
    let room = editor.cx.rewrites.room();
    let may_be_taken_back = options.fuel.is_none() || options.sweeps.is_none();
    // Rewrites that are taken back as a whole do not count, and only the end shows whether they
    // are. So they are made without the limit of the ledger first, and again with it if they are
    // kept and are too many. A failure after more rewrites than the limit does not happen.
    let is_tried = may_be_taken_back && room > 0 && room < u64::MAX;
    let first = if is_tried { u64::MAX } else { room };
    let mut result = attempt(editor, (table, may_apply), build, options, first);
    let is_too_far = match &result {
        Ok(outcome) => !outcome.taken_back && outcome.rewrites > room,
        Err(_) => editor.cx.rewrites.room() == 0,
    };
    if is_tried && is_too_far {
        editor.body.rollback_journal();
        editor.cx.rewrites.take_back(before);
        result = attempt(editor, (table, may_apply), build, options, room);
    }
    match &result {
        Ok(outcome) if !outcome.taken_back => {
            editor.body.commit_journal();
        }
        Ok(outcome) => {
            editor.body.rollback_journal();
            editor.cx.rewrites.take_back(before);
            editor.body.note_remarks(outcome.remarks());
        }
        Err(_) => {
            let stop = editor.body.stop();
            editor.body.rollback_journal();
            editor.cx.rewrites.undo_since(before);
            let len = editor.body.len();
            editor.body.note_stop(stop.filter(|at| at.index() < len));
        }
    }
    result
}

/// Opens a journal, and makes rewrites, at most `room` of them. If no rule of the table may apply,
/// only near misses are looked for.
fn attempt(
    editor: &mut Editor<'_>,
    (table, may_apply): (&RuleTable, bool),
    build: BuildBy<'_>,
    options: &PatternOptions<'_>,
    room: u64,
) -> Result<Outcome, PatternRewriteError> {
    editor.body.begin_journal();
    editor.body.shared_edits(SharedEdits::Meant);
    let facts = Facts::new(editor.cx, editor.body, options.purity);
    let mut driver = Driver {
        table,
        may_apply,
        left_out: table.making(options.never_make),
        fuel: options.fuel.unwrap_or(1000 + 8 * facts.node_count as u64),
        facts,
        room,
        near_misses: DriverMisses::new(editor.cx, table),
        work: Vec::new(),
        queued: IdSet::with_capacity(editor.body.len()),
        search: Search::default(),
        nested: Nested::default(),
        retype: None,
        next: Vec::new(),
        counts: table.counts(),
        is_recorded: false,
        trace: options.trace.then(Vec::new),
        erased: 0,
        last: VecDeque::new(),
        start: editor.body.len(),
        origin: editor.body.root(),
        editor,
    };
    let mut sweeps = 0;
    // True if something was rewritten since the facts were computed.
    let mut is_new = false;
    let stop = loop {
        sweeps += 1;
        match driver.sweep(build, options.steps)? {
            None => break StopReason::OutOfFuel,
            Some(true) => is_new = true,
            Some(false) if driver.facts.is_anf || !std::mem::take(&mut is_new) => break StopReason::Fixpoint,
            // A block that lost its bindings is a value now, and patterns may look through it.
            Some(false) => driver.facts = Facts::new(driver.editor.cx, driver.editor.body, options.purity),
        }
        if sweeps >= options.sweeps.unwrap_or(SWEEPS) {
            break StopReason::OutOfSweeps;
        }
    };
    let taken_back = match stop {
        StopReason::Fixpoint => false,
        StopReason::OutOfFuel => options.fuel.is_none(),
        StopReason::OutOfSweeps => options.sweeps.is_none(),
    };
    // The attempt is made again if there are more rewrites than the limit of the ledger.
    if taken_back || driver.editor.cx.rewrites.is_within_limit() {
        driver.report_misses();
    }
    Ok(driver.outcome(stop, sweeps, taken_back))
}

/// The default limit of the number of sweeps.
const SWEEPS: u32 = 32;

/// The number of a sweep's last rewrites that are remembered, to find the rules that undo each
/// other.
const LAST: usize = 64;

/// The number of nodes that a rewrite puts back on the worklist. The next sweep visits the others.
const REACH: usize = 256;

struct Driver<'t, 'e> {
    editor: &'t mut Editor<'e>,
    facts: Facts<'t>,
    table: &'t RuleTable,
    /// True if one of the rules may apply.
    may_apply: bool,
    /// For each rule, true if it must not apply; empty if all may.
    left_out: Vec<bool>,
    fuel: u64,
    /// The number of rewrites that may still be made, by the limit of the ledger. With 0, no rule
    /// is tried any more.
    room: u64,
    near_misses: DriverMisses,
    /// Nodes to visit, the next one last.
    work: Vec<ExprId>,
    queued: IdSet<ExprId>,
    search: Search,
    nested: Nested,
    /// Type changes that pass through blocks, left for the end of the sweep.
    retype: Option<Retype>,
    /// Nodes to put on the worklist after a rewrite.
    next: Vec<ExprId>,
    counts: Vec<RuleCounts>,
    /// True if the last replacement is recorded in the ledger.
    is_recorded: bool,
    /// The replacements so far, if a trace is requested.
    trace: Option<Vec<Applied>>,
    erased: u64,
    /// The last rewrites of this sweep, the oldest first: the rule and the original expression.
    last: VecDeque<(usize, ExprId)>,
    /// The number of nodes at the start.
    start: usize,
    /// The last original node at which, or at whose replacement, a rule applied. Remarks name it
    /// after a rollback.
    origin: ExprId,
}

impl Driver<'_, '_> {
    /// Tries the rules at all nodes, and again at the nodes that they change. Returns true if
    /// anything changed; `None` if the fuel is used up.
    fn sweep(&mut self, build: BuildBy<'_>, steps: Option<u64>) -> Result<Option<bool>, PatternRewriteError> {
        self.fill();
        self.last.clear();
        let fuel = self.fuel;
        let mut is_out_of_fuel = false;
        while !is_out_of_fuel
            && self.room > 0
            && (self.may_apply || self.near_misses.are_asked_for())
            && let Some(node) = self.take()
        {
            let tried = self.try_rules(build, steps, node);
            if tried.is_err() {
                self.editor.body.note_stop(Some(self.original(node)));
            }
            is_out_of_fuel = tried?;
        }
        let mut retyped = 0;
        if let Some(mut retype) = self.retype.take() {
            let root = self.editor.body.root();
            let swept = retype.sweep(self.editor.cx, self.editor.body, root);
            if swept.is_err() {
                let at = self.editor.body.stop().map(|at| self.original(at));
                self.editor.body.note_stop(at);
            }
            retyped = swept?;
        }
        Ok((!is_out_of_fuel).then_some(self.fuel < fuel || retyped > 0))
    }

    /// Returns the outcome, with the rules that a limit stopped: the rule that the limit refused,
    /// and those that were applied repeatedly before.
    fn outcome(mut self, stop: StopReason, sweeps: u32, taken_back: bool) -> Outcome {
        let refused = self.last.back().map(|&(rule, _)| rule);
        let mut times = vec![0; self.counts.len()];
        for &(rule, _) in &self.last {
            times[rule] += 1;
        }
        for (rule, at) in self.last {
            let was_stopped = match stop {
                StopReason::Fixpoint => false,
                StopReason::OutOfFuel => refused == Some(rule) || (taken_back && times[rule] > 1),
                StopReason::OutOfSweeps => true,
            };
            if was_stopped {
                self.counts[rule].still_applies.get_or_insert(at);
            }
        }
        let attempted = self.counts.iter().map(|c| c.rewrites).sum();
        Outcome {
            stop,
            rewrites: if taken_back { 0 } else { attempted },
            erased: if taken_back { 0 } else { self.erased },
            sweeps,
            attempted,
            taken_back,
            rules: self.counts,
            trace: self.trace.unwrap_or_default(),
        }
    }

    /// Puts every node at which a rule may begin on the worklist, in program order.
    fn fill(&mut self) {
        let mut cursor = Cursor::new(self.editor.body);
        while let Some(step) = cursor.next(self.editor.body) {
            if let Step::Enter(id) = step
                && is_primitive(self.editor.cx, self.editor.body, id)
            {
                cursor.skip();
            }
            if let Step::Flat(id) | Step::Exit(id) = step
                && !self.table.dispatch.rules(self.editor.body, id).is_empty()
                && self.queued.insert(id)
            {
                self.work.push(id);
            }
        }
        self.work.reverse();
    }

    /// Returns the next node that is still part of the program.
    fn take(&mut self) -> Option<ExprId> {
        loop {
            let node = self.work.pop()?;
            self.queued.remove(node);
            if self.facts.def_use.use_count(node) > 0 && !self.editor.body.expr(node).is_atom() {
                return Some(node);
            }
        }
    }

    /// Tries the rules at a node. Returns true if one applies and the fuel is used up.
    fn try_rules(&mut self, build: BuildBy<'_>, steps: Option<u64>, node: ExprId) -> Result<bool, PatternRewriteError> {
        let sight = Sight { cx: self.editor.cx, body: self.editor.body, facts: &self.facts };
        let table = self.table;
        // The rules that a look at the operands does not exclude.
        let mut candidates: SmallVec<[u32; 8]> = SmallVec::from_slice(table.dispatch.rules(self.editor.body, node));
        if candidates.len() > 1
            && let Some(glance) = Glance::of(sight, node)
        {
            candidates.retain(|number| {
                glance.may_match(&table.rules[*number as usize].pattern.resolved) || self.is_explained(*number as usize)
            });
        }
        for number in candidates {
            let number = number as usize;
            let ReadyRule { name, pattern, template } = &table.rules[number];
            let budget = steps.unwrap_or_else(|| default_budget(pattern));
            if !self.matches(number, node, budget) {
                continue;
            }
            // Make the replacement.
            let mark = self.editor.body.len();
            let captures = self.search.captures(pattern);
            let mut rewriter = Rewriter::new(self.editor, &self.facts, node);
            let failed = |error| PatternRewriteError::Rule { rule: name.to_string(), error };
            let new = match template.as_ref().map(|template| template.build(&mut rewriter, &captures)) {
                Some(Ok(new)) => new,
                Some(Err(error)) => {
                    let at = self.original(node);
                    self.miss(number, node, || error.to_string());
                    self.counts[number].misfit(at, || error.to_string());
                    continue;
                }
                None => build(number, &mut rewriter, &captures).map_err(failed)?,
            };
            let (closed, pure) = rewriter.finish();
            for range in closed {
                self.facts.close(range);
            }
            for function in pure {
                self.facts.note_pure(self.editor.body, function);
            }
            let Some(new) = new.filter(|&new| new != node) else {
                self.miss(number, node, || "the rule matches and declines".to_string());
                self.counts[number].declined += 1;
                continue;
            };
            // Skip the replacement if its type does not fit.
            let (wanted, found) = (self.editor.body.type_of(node), self.editor.body.type_of(new));
            if check_type(self.editor.cx, wanted, found).is_err() {
                let at = self.original(node);
                if self.may_explain(number, node) {
                    let why = mistyped(self.editor.cx, wanted, found);
                    self.near_misses.add(number, node, (usize::MAX, why));
                }
                let cx = &*self.editor.cx;
                self.counts[number].misfit(at, || mistyped(cx, wanted, found));
                continue;
            }
            let rule = || name.to_string();
            let ready = self.prepare(pattern, node, new, mark);
            let Some(new) = ready.map_err(|error| PatternRewriteError::Illegal { rule: rule(), error })? else {
                self.miss(number, node, || "the replacement is the same value".to_string());
                self.counts[number].declined += 1;
                continue;
            };
            self.remember(number, node);
            if self.fuel == 0 {
                return Ok(true);
            }
            self.note_trace(number, node, new);
            self.count(number, node);
            let replaced = self.replace(number, node, new, mark);
            replaced.map_err(|error| PatternRewriteError::Users { rule: rule(), error })?;
            self.fuel -= 1;
            self.room -= 1;
            self.counts[number].rewrites += 1;
            return Ok(false);
        }
        Ok(false)
    }

    /// Returns true if the pattern of a rule matches at a node, and the rule is not left out.
    #[inline]
    fn matches(&mut self, number: usize, node: ExprId, budget: u64) -> bool {
        let pattern = &self.table.rules[number].pattern;
        let sight = Sight { cx: self.editor.cx, body: self.editor.body, facts: &self.facts };
        if self.left_out.get(number) == Some(&true) {
            if self.is_explained(number) && self.search.attempt(sight, pattern, node, budget) == Attempt::Matched {
                self.miss(number, node, || "its result has an operator that `Rules.never_make` lists".to_string());
            }
            return false;
        }
        match self.search.attempt(sight, pattern, node, budget) {
            Attempt::Matched => return true,
            Attempt::Failed if self.may_explain(number, node) => {
                let sight = Sight { cx: self.editor.cx, body: self.editor.body, facts: &self.facts };
                let why = self.search.why_not(sight, pattern, node, budget);
                why.into_iter().for_each(|why| self.near_misses.add(number, node, why));
            }
            Attempt::Failed => {}
            Attempt::GaveUp => {
                self.miss(number, node, || format!("the search takes more than {budget} steps"));
                self.counts[number].gave_up += 1;
                let at = self.original(node);
                self.counts[number].first_gave_up.get_or_insert(at);
            }
        }
        false
    }

    /// Counts a replacement before it is made.
    #[inline]
    fn count(&mut self, rule: usize, node: ExprId) {
        if self.editor.cx.rewrites.is_on() {
            let at = self.facts.let_of(self.editor.body, node).map_or(node, |binding| binding.id);
            self.editor.rewrote(at, &self.table.rules[rule].name);
            self.is_recorded = self.editor.cx.rewrites.records_last();
        }
    }

    /// Records a binding that the last replacement changed, made or removed, if that is recorded.
    #[inline]
    fn record_also(&self, rule: usize, at: Option<ExprId>) {
        if self.is_recorded {
            let Editor { cx, body } = &*self.editor;
            let binding = at.map(|at| self.facts.let_of(body, at).map_or(at, |binding| binding.id));
            if let Some(binding) = binding {
                cx.rewrote_also(body, binding, &self.table.rules[rule].name);
            }
        }
    }

    /// Records a replacement before it is made, if a trace is requested.
    fn note_trace(&mut self, rule: usize, node: ExprId, new: ExprId) {
        let Some(trace) = &mut self.trace else { return };
        let Editor { cx, body } = &*self.editor;
        let binding = self.facts.let_of(body, node).and_then(|b| body.binding_name(cx, b.id)).map(str::to_string);
        let (before, after) = (node_text(cx, body, node), node_text(cx, body, new));
        trace.push(Applied { rule, at: self.origin, binding, before, after });
    }

    /// Records where a rule was applied last, as an expression that still exists after a rollback.
    fn remember(&mut self, rule: usize, node: ExprId) {
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        let at = self.facts.let_of(self.editor.body, node).map_or(node, |binding| binding.id);
        self.origin = self.original(at);
        self.last.push_back((rule, self.origin));
    }

    /// Returns a node that still exists after a rollback: this one, or the last such node at which
    /// a rule was applied.
    fn original(&self, at: ExprId) -> ExprId {
        if at.index() < self.start { at } else { self.origin }
    }

    /// Checks the replacement of a node and splits it into bindings. Returns `None` if the
    /// replacement is the node itself. Overwrites nothing that is part of the program.
    fn prepare(
        &mut self,
        pattern: &Compiled,
        node: ExprId,
        new: ExprId,
        mark: usize,
    ) -> Result<Option<ExprId>, IllegalEdit> {
        let (body, facts) = (&*self.editor.body, &self.facts);
        if facts.is_anf {
            let parts = New { from: mark, start: mark, root: node, scopes: &[] };
            if named(body, facts, new, parts)? == node {
                return Ok(None);
            }
            let top = self.nested.find(self.editor, facts, new, parts)?;
            for &(var, value) in &self.nested.bindings {
                if self.facts.is_noted_pure(self.editor.body, value) {
                    self.facts.note_pure(self.editor.body, var.expr());
                }
            }
            if self.facts.place(node).region != 0 {
                let mut parts = self.nested.bindings.iter().map(|&(_, value)| value).chain([top]);
                if parts.any(|id| id.index() >= mark && self.facts.call_is_barred(self.editor.cx, self.editor.body, id))
                {
                    return Err(IllegalEdit::Impure);
                }
            }
            return Ok(Some(top));
        }
        // Parts of a graph may be shared, except for those that hold blocks.
        if new.index() < mark && body.expr(new).binds() {
            return Err(IllegalEdit::Elsewhere);
        }
        let mut shared = share_parts(self.editor.cx, body, &mut self.facts, node, new, mark)?;
        if !shared.is_empty() {
            // The captured expressions are below the node, so the node is not a part of them.
            let captured: FxHashSet<ExprId> = self.search.captures(pattern).nodes(body).collect();
            shared.retain(|part| !captured.contains(part));
        }
        if has_part(body, &self.facts, shared, node) {
            return Err(IllegalEdit::Cyclic);
        }
        if body.expr(new).binds() && self.facts.def_use.use_count(node) > 1 {
            return Err(IllegalEdit::Shared);
        }
        Ok(Some(new))
    }

    /// Replaces a node by `new` at all its links.
    fn replace(&mut self, rule: usize, node: ExprId, new: ExprId, mark: usize) -> Result<(), RewriteError> {
        let mut links: SmallVec<[Link; 4]> = self.facts.def_use.uses(self.editor.body, node).collect();
        let retyped = self.editor.body.type_of(node) != self.editor.body.type_of(new);
        let is_atom = self.editor.body.expr(new).is_atom();
        self.next.clear();
        self.take_in(node, new, mark);
        if let Some(link) = links.first_mut() {
            *link = self.bind_nested(*link, node);
            self.nested.bindings.iter().for_each(|&(var, _)| self.record_also(rule, Some(var.expr())));
        }
        if !is_atom {
            self.next.push(new);
        }
        let mut changed: SmallVec<[Link; 8]> = SmallVec::new();
        for link in links {
            match (link, Binding::of(self.editor.body, link.holder().unwrap_or(node))) {
                (Link::Value(_), Some(binding)) if is_atom => {
                    let uses: SmallVec<[Link; 8]> =
                        self.facts.def_use.uses(self.editor.body, binding.var.expr()).collect();
                    for &link in &uses {
                        self.facts.def_use.set(self.editor.body, link, new);
                    }
                    pass_on_output(self.editor.body, binding.var, new);
                    self.facts.set_alias(binding.var, new);
                    self.unlink(binding.id);
                    changed.extend(uses);
                }
                (_, binding) => {
                    self.facts.def_use.set(self.editor.body, link, new);
                    changed.push(link);
                    if let (Link::Value(_), Some(binding)) = (link, binding) {
                        self.next.extend(self.facts.def_use.users(binding.var.expr()).take(REACH));
                    }
                }
            }
        }
        changed.iter().for_each(|link| self.record_also(rule, link.holder()));
        self.next.extend(changed.iter().take(REACH).filter_map(|&link| link.holder()));
        let is_constant = matches!(self.editor.body.expr(new), Expr::Literal(_) | Expr::None);
        if retyped || is_constant {
            self.pass_on(changed)?;
        }
        self.erase_unused(rule);
        self.queue();
        Ok(())
    }

    /// Adds the appended nodes to the facts, and makes variables of other dataflow regions that
    /// they use outputs of those regions.
    fn take_in(&mut self, node: ExprId, new: ExprId, mark: usize) {
        self.facts.add_all(self.editor.cx, self.editor.body, mark, node);
        let (body, facts) = (&*self.editor.body, &self.facts);
        let region = facts.place(node).region;
        let made = (mark..body.len()).map(ExprId::from_index).filter(|&id| !body.expr(id).is_atom());
        let used = made.flat_map(|id| body.parts(id)).chain([new]).filter_map(|id| body.as_var(id));
        let is_foreign = |&var: &VarId| {
            body.is_dataflow_var(var) && facts.place_of_definition(body, var).is_some_and(|at| at.region != region)
        };
        let foreign: SmallVec<[VarId; 4]> = used.filter(is_foreign).collect();
        for var in foreign {
            set_var_flags(self.editor.body, var, VarFlags::PLAIN);
        }
    }

    /// Binds the parts of a replacement before the binding or tail that a link belongs to, and
    /// returns the link at which the replaced node is then.
    fn bind_nested(&mut self, link: Link, node: ExprId) -> Link {
        if self.nested.bindings.is_empty() {
            return link;
        }
        let before = match link {
            Link::Value(id) => self.facts.def_use.only_use(self.editor.body, id).expect("a Let is at one link"),
            tail => tail,
        };
        let after = insert_before(self.editor, before, &self.nested.bindings);
        self.next.extend(self.nested.bindings.iter().map(|&(_, value)| value));
        self.facts.def_use.sync(self.editor.body, before);
        self.facts.place_inserted(self.editor.body, before, self.nested.bindings.len(), node);
        match link {
            Link::Value(_) => link,
            _ => after,
        }
    }

    fn unlink(&mut self, id: ExprId) {
        let link = self.facts.def_use.only_use(self.editor.body, id).expect("a Let is at one link");
        unlink_let(self.editor.body, link);
        self.facts.def_use.sync(self.editor.body, link);
    }

    /// Infers the types of the users of links whose targets have another type now. Types that
    /// follow from the type of a block or condition are inferred at the end of the sweep.
    fn pass_on(&mut self, changed: SmallVec<[Link; 8]>) -> Result<(), RewriteError> {
        let mut stack = changed;
        stack.reverse();
        while let Some(link) = stack.pop() {
            let target = link.target(self.editor.body);
            match link {
                Link::Root => {}
                Link::Value(id) => {
                    let Some(binding) = Binding::of(self.editor.body, id) else { continue };
                    let ty = self.editor.body.type_of(target);
                    self.retype_as(binding.var.expr(), ty, &mut stack)?;
                }
                // A known condition selects the branch whose type the If has.
                Link::Cond(_) | Link::Rest(_) | Link::Then(_) | Link::Else(_) | Link::Lambda(_) => {
                    self.retype.get_or_insert_with(|| Retype::new(self.editor.body)).changed(target);
                }
                Link::Operand(id, _) => {
                    let ty = infer_expr(self.editor.cx, self.editor.body, id)?;
                    if self.retype_as(id, ty, &mut stack)? {
                        self.next.push(id);
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives a node another type and pushes its uses on the stack. Returns false if it has the type
    /// already.
    fn retype_as(&mut self, id: ExprId, ty: TypeId, stack: &mut SmallVec<[Link; 8]>) -> Result<bool, RewriteError> {
        let old = self.editor.body.ty(id);
        if old == ty {
            return Ok(false);
        }
        check_type(self.editor.cx, old, ty)?;
        self.editor.body.set_type(id, ty);
        stack.extend(self.facts.def_use.uses(self.editor.body, id));
        Ok(true)
    }

    /// Erases bindings that lost their last use and can be erased, and puts the users of nodes that
    /// now have one use on the worklist.
    fn erase_unused(&mut self, rule: usize) {
        let mut losses = self.facts.def_use.take_losses();
        while !losses.is_empty() {
            for id in losses {
                match self.facts.def_use.use_count(id) {
                    0 => {
                        if let Some(var) = self.editor.body.as_var(id)
                            && let Some(Definition::Let(link)) = self.facts.def_use.definition(self.editor.body, var)
                            && let Some(value) = self.facts.def_use.value(self.editor.body, var)
                            && self.can_be_left_out(value)
                        {
                            self.record_also(rule, Some(link));
                            self.unlink(link);
                            self.erased += 1;
                        }
                    }
                    1 if self.table.asks_for_uses => self.next.extend(self.facts.def_use.users(id)),
                    _ => {}
                }
            }
            losses = self.facts.def_use.take_losses();
        }
    }

    fn can_be_left_out(&self, value: ExprId) -> bool {
        match self.editor.body.expr(value) {
            // It is checked at run time, used or not.
            Expr::CallOp { op, .. } if self.editor.cx.ops.facts(op).is_match_cast() => false,
            Expr::If { .. } | Expr::Let { .. } => false,
            _ => !self.facts.is_impure(value),
        }
    }

    /// Puts the nodes of a rewrite on the worklist, and the nodes whose patterns may look at them
    /// through operands.
    fn queue(&mut self) {
        let body = &*self.editor.body;
        let mut level = 0;
        for _ in 1..self.table.depth.max(2) {
            let end = self.next.len();
            for i in level..end {
                if self.next.len() >= REACH {
                    break;
                }
                let id = self.next[i];
                let named = self.facts.let_of(body, id).map_or(id, |binding| binding.var.expr());
                let room = REACH - self.next.len();
                self.next.extend(self.facts.def_use.users(named).take(room));
            }
            level = end;
        }
        while let Some(id) = self.next.pop() {
            if !self.table.dispatch.rules(body, id).is_empty() && !self.facts.is_closed(id) && self.queued.insert(id) {
                self.work.push(id);
            }
        }
    }
}

/// Checks the parts of a replacement in a graph: the new nodes and the shared nodes of the program.
/// Shared parts are evaluated where `node` is, too. Returns the shared nodes.
fn share_parts(
    cx: &Context,
    body: &Body,
    facts: &mut Facts,
    node: ExprId,
    new: ExprId,
    mark: usize,
) -> Result<SmallVec<[ExprId; 8]>, IllegalEdit> {
    let place = facts.place(node);
    let mut shared: SmallVec<[ExprId; 8]> = SmallVec::new();
    let mut seen: IdSet<ExprId> = IdSet::with_capacity(0);
    let mut stack = vec![new];
    while let Some(id) = stack.pop() {
        let (expr, is_new) = (body.expr(id), id.index() >= mark);
        if let Some(var) = body.as_var(id).filter(|_| !is_new) {
            facts.check_visible(body, var, node)?;
        }
        if !is_new && expr.binds() {
            return Err(IllegalEdit::Elsewhere);
        }
        if expr.is_atom() || !seen.insert(id) {
            continue;
        }
        if !is_new {
            shared.push(id);
            // If the part's place does not change, it uses only variables that are visible at
            // `node`.
            if !facts.scopes.meet(id, place) {
                continue;
            }
        }
        if is_new && place.region != 0 && facts.call_is_barred(cx, body, id) {
            return Err(IllegalEdit::Impure);
        }
        stack.extend(body.inputs(id));
        if let Expr::Lambda { body: block, .. } = expr {
            stack.push(block);
        }
    }
    Ok(shared)
}

fn mistyped(cx: &Context, wanted: TypeId, found: TypeId) -> String {
    let (wanted, found) = (cx.type_text(wanted), cx.type_text(found));
    format!("what it makes is of type {found}, in the place of {wanted}")
}

/// Returns true if `node` is one of the nodes, or a direct or indirect part of one of them.
fn has_part(body: &Body, facts: &Facts, mut nodes: SmallVec<[ExprId; 8]>, node: ExprId) -> bool {
    // Most rules share a part of the node that is a few steps away. Such a part cannot contain the
    // node.
    let mut inside = vec![node];
    let mut next = 0;
    while next < inside.len() && !nodes.is_empty() {
        let id = inside[next];
        nodes.retain(|other| *other != id);
        let room = REACH - inside.len();
        inside.extend(body.inputs(id).iter().take(room).map(|&operand| facts.value(body, operand)));
        next += 1;
    }
    let mut seen: IdSet<ExprId> = IdSet::with_capacity(0);
    while let Some(id) = nodes.pop() {
        if id == node {
            return true;
        }
        if seen.insert(id) {
            nodes.extend(body.parts(id));
        }
    }
    false
}
