//! Moving bindings out of branches, `fn`s, blocks as values and dataflow regions.

use anfora_ir::{
    Attr, AttrsId, BlockKind, Body, BodyPurity, Context, Cursor, Diagnostic, Diagnostics, Dim, Editor, Expr, ExprId,
    IdSet, IntoDiagnostics, LetFlags, Purity, SideTable, Step, SymbolId, TypeId, VarFlags, VarId,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chain::{set_let_flags, set_var_flags, unlink_let};
use crate::error::name_for_error;
use crate::expand::operand_link;
use crate::link::{Binding, Link};
use crate::variables::free_variables;

/// Why a binding was not moved. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HoistError {
    /// It is not a variable that a Let of the program binds.
    #[error("%{0} is not bound by a let of the function")]
    NotBound(String),
    /// The binding is in the function's own block.
    #[error("%{0} is bound in the function's own block, and nothing encloses it")]
    Outermost(String),
    /// The binding is in no dataflow region.
    #[error("%{0} is not bound in a dataflow region")]
    NotInRegion(String),
    /// The block that the binding is in is an operand, or belongs to an operand: it is not clear before what that is evaluated.
    #[error(
        "the block in which %{0} is bound is not the value of a binding; bring the program into A-normal form first"
    )]
    NotANormalForm(String),
    /// The binding, or one that it needs, does something that can be observed.
    #[error("evaluating %{0} can be observed, so it stays where it is")]
    Impure(String),
    /// The binding, or one that it needs, may fail, and would be evaluated where it was not.
    #[error("%{0} may fail, and it is not evaluated whenever what encloses it is")]
    MayFail(String),
    /// The binding, or one that it needs, uses a variable that is not visible where it would go.
    #[error("%{binding} uses %{needs}, which is not visible outside")]
    NotVisible {
        /// The binding that uses it.
        binding: String,
        /// A parameter of the `fn`, or the enclosing binding itself.
        needs: String,
    },
    /// The binding, or one that it needs, names a symbolic dimension that the `fn` binds.
    #[error("%{0} names a symbolic dimension that is not visible outside")]
    Symbol(String),
    /// The binding, or one that it needs, is evaluated by control flow, which the dataflow region that it would go to does not hold.
    #[error("%{0} holds an `if`, and would be evaluated in a dataflow region")]
    ControlFlow(String),
    /// The bindings are not where the [`Hoister`] saw or left them.
    #[error("the program was edited since the hoister looked at it")]
    Moved,
}

impl IntoDiagnostics for HoistError {
    fn into_diagnostics(self) -> Diagnostics {
        let diagnostic = Diagnostic::from_error(&self);
        match self {
            HoistError::NotBound(name)
            | HoistError::Outermost(name)
            | HoistError::NotInRegion(name)
            | HoistError::NotANormalForm(name)
            | HoistError::Impure(name)
            | HoistError::MayFail(name)
            | HoistError::NotVisible { binding: name, .. }
            | HoistError::Symbol(name)
            | HoistError::ControlFlow(name) => diagnostic.on_binding(name).into(),
            HoistError::Moved => diagnostic.into(),
        }
    }
}

/// Moves a binding, and those that it needs, out of the block that it is in: [`Hoister::hoist`] for a single one. Takes time linear in the body.
///
/// # Errors
/// As [`Hoister::hoist`].
///
/// ```
/// # use anfora_ir::{DType, Editor, FunctionBuilder, Module, OpRegistry, Purity};
/// # use std::sync::Arc;
/// use anfora_visit::{Link, chain, hoist};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let flag = module.cx.types.scalar(DType::Bool);
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let c = f.param("c", flag);
/// # f.open_block();
/// # let pair = f.tuple(&[c, c]);
/// # let inner = f.bind("inner", pair);
/// # let then_block = f.close_block(inner).unwrap();
/// # let other = f.tuple(&[c, c]);
/// # let choice = f.if_(c, then_block, other).unwrap();
/// # let outer = f.bind("outer", choice);
/// # let key = f.finish(outer).unwrap();
/// let purity = Purity::of_module(&module);
/// let (function, cx) = module.get_mut(key).unwrap();
/// // let %outer = if (%c) { let %inner = (%c, %c); %inner } else { (%c, %c) }; %outer
/// let outer = chain(&function.body, function.body.root()).next().unwrap();
/// let inner = chain(&function.body, Link::Then(outer.value).target(&function.body)).next().unwrap();
/// hoist(&mut Editor::new(cx, &mut function.body), &purity, inner.var)?;
/// // let %inner = (%c, %c); let %outer = if (%c) { %inner } else { (%c, %c) }; %outer
/// let vars: Vec<_> = chain(&function.body, function.body.root()).map(|b| b.var).collect();
/// assert_eq!(vars, [inner.var, outer.var]);
/// # Ok::<(), anfora_visit::HoistError>(())
/// ```
pub fn hoist(editor: &mut Editor<'_>, purity: &Purity, var: VarId) -> Result<(), HoistError> {
    Hoister::new(editor.cx, editor.body, purity).hoist(editor, var)
}

/// Moves any number of bindings of a body outwards, each if that is legal. It looks at the body once, and keeps up with what it moves; in between,
/// bindings are put in, taken out and moved by it alone.
///
/// Where somebody else did, it says so ([`HoistError::Moved`]) if it can see it from what it would touch: the bindings that are to be moved, those
/// directly after them, a few before them in their chain, and the place where they would go. What it cannot see is that more than sixteen bindings in a row,
/// directly before one of these, were taken out.
///
/// What it found out about a binding is kept: to be told that binding after binding of a block stays where it is takes time linear in the block and its
/// values, in whatever order they are asked for. Only for a `fn` in a dataflow region is that found out again: when it comes into
/// the region or leaves it, and when a binding with an `if` in it comes into its block. So what was refused for what is in the value of another binding
/// stays refused when that has left the value, and a new `Hoister` might move it.
pub struct Hoister {
    generation: u32,
    nodes: usize,
    blocks: Vec<Block>,
    regions: Vec<Region>,
    /// By variable.
    homes: SideTable<ExprId, Option<Home>>,
    /// By Let.
    places: SideTable<ExprId, Place>,
    purity: BodyPurity,
    fails: IdSet<ExprId>,
    chooses: IdSet<ExprId>,
    /// What binds a symbol: a `match_cast`, or the parameters of a `fn`.
    symbols: FxHashMap<SymbolId, Home>,
    /// By Let: whether it may leave its block.
    leaves_block: SideTable<ExprId, Verdict>,
    /// By Let: whether it may leave its region.
    leaves_region: SideTable<ExprId, Verdict>,
    refusals: Vec<Refusal>,
}

/// How many Lets before one are looked at, to see whether it is where it was left.
const LOOK_BACK: usize = 16;

/// Whether a Let may be moved with all that it needs, as far as that is known.
#[derive(Copy, Clone)]
struct Verdict {
    /// That of its block when it was found.
    epoch: u32,
    answer: Answer,
}

#[derive(Copy, Clone)]
enum Answer {
    Unknown,
    /// What it needs is being looked at.
    Open,
    Free,
    /// The number of the refusal.
    Refused(u32),
}

const UNKNOWN: Verdict = Verdict { epoch: 0, answer: Answer::Unknown };

/// What keeps a binding where it is.
#[derive(Copy, Clone)]
enum Refusal {
    Impure(VarId),
    MayFail(VarId),
    NotVisible { binding: VarId, needs: VarId },
    Symbol(VarId),
    ControlFlow(VarId),
}

impl Refusal {
    fn error(self, editor: &Editor<'_>) -> HoistError {
        match self {
            Refusal::Impure(var) => HoistError::Impure(name(editor, var)),
            Refusal::MayFail(var) => HoistError::MayFail(name(editor, var)),
            Refusal::NotVisible { binding, needs } => {
                HoistError::NotVisible { binding: name(editor, binding), needs: name(editor, needs) }
            }
            Refusal::Symbol(var) => HoistError::Symbol(name(editor, var)),
            Refusal::ControlFlow(var) => HoistError::ControlFlow(name(editor, var)),
        }
    }
}

/// What bindings would be moved out of.
#[derive(Copy, Clone)]
enum Scope {
    Block {
        block: u32,
        /// Whether it is evaluated whenever what encloses it is.
        always: bool,
        /// Whether what encloses it is evaluated as part of a dataflow region, and it is not.
        in_region: bool,
    },
    Region {
        block: u32,
        region: u32,
    },
}

/// Where a variable or symbol is bound.
#[derive(Copy, Clone)]
enum Home {
    Param { block: u32 },
    Let(ExprId),
}

#[derive(Copy, Clone)]
struct Place {
    link: Link,
    block: u32,
    region: Option<u32>,
    /// Lets of a block, and what is moved among them, are in this order.
    order: u32,
}

struct Region {
    first: ExprId,
    len: u32,
}

#[derive(Copy, Clone)]
struct Block {
    kind: BlockKind,
    /// The Let that it is in the value of; `None` if it is in the tail of its parent.
    statement: Option<ExprId>,
    /// The block that it was in when the body was looked at.
    parent: u32,
    /// Whether it is the block of that value itself.
    direct: bool,
    /// While the body is looked at, where the next Let hangs; afterwards the tail.
    end: Link,
    region: Option<u32>,
    current: Option<ExprId>,
    fails: bool,
    chooses: bool,
    /// Goes up when what was found out about its Lets may not hold any more.
    epoch: u32,
    /// Whether that was found out for a `fn` whose `if`s may not go where they would be part of a dataflow region.
    in_region: bool,
}

impl Hoister {
    /// Looks at a body. Linear in its size, and constant stack.
    pub fn new(cx: &Context, body: &Body, purity: &Purity) -> Hoister {
        let nowhere = Place { link: Link::Root, block: 0, region: None, order: 0 };
        let mut hoister = Hoister {
            generation: body.generation(),
            nodes: body.len(),
            blocks: Vec::new(),
            regions: Vec::new(),
            homes: body.side_table(None),
            places: body.side_table(nowhere),
            purity: BodyPurity::new(cx, body, purity),
            fails: IdSet::with_capacity(body.len()),
            chooses: IdSet::with_capacity(0),
            symbols: FxHashMap::default(),
            leaves_block: body.side_table(UNKNOWN),
            leaves_region: body.side_table(UNKNOWN),
            refusals: Vec::new(),
        };
        for &param in body.params() {
            hoister.homes.set(param.expr(), Some(Home::Param { block: 0 }));
        }
        hoister.look(cx, body);
        hoister
    }

    fn look(&mut self, cx: &Context, body: &Body) {
        let mut cursor = Cursor::new(body);
        let (mut open, mut nodes): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut order = 0;
        while let Some(step) = cursor.next(body) {
            let top = open.last().copied().unwrap_or(0);
            match step {
                Step::EnterBlock(start, kind) => {
                    open.push(self.blocks.len() as u32);
                    self.enter(body, top, start, kind, nodes.last_mut());
                }
                Step::Let(id) => {
                    let Some(binding) = Binding::of(body, id) else { continue };
                    let block = &mut self.blocks[top as usize];
                    if binding.flags.starts_region() {
                        block.region = Some(self.regions.len() as u32);
                        self.regions.push(Region { first: id, len: 0 });
                    } else if !binding.flags.is_dataflow() {
                        block.region = None;
                    }
                    if let Some(region) = block.region {
                        self.regions[region as usize].len += 1;
                    }
                    block.current = Some(id);
                    self.places.set(id, Place { link: block.end, block: top, region: block.region, order: 0 });
                    // A recursive `fn` is in its own scope.
                    self.homes.set(binding.var.expr(), Some(Home::Let(id)));
                }
                Step::Bound(id) => {
                    let Some(binding) = Binding::of(body, id) else { continue };
                    // After what is in its value: a binding that leaves the value goes in front.
                    self.places.get_mut(id).order = order;
                    order += 1;
                    self.bind_symbols(cx, body, binding);
                    let block = &mut self.blocks[top as usize];
                    block.fails |= self.fails.contains(binding.value);
                    block.chooses |= self.chooses.contains(binding.value);
                    (block.end, block.current) = (Link::Rest(id), None);
                }
                Step::Flat(id) => self.note(cx, body, id),
                Step::Enter(_) => nodes.push(0),
                Step::Exit(id) => {
                    nodes.pop();
                    self.note(cx, body, id);
                }
                Step::ExitBlock(start, _) => {
                    open.pop();
                    let block = &self.blocks[top as usize];
                    let tail = block.end.target(body);
                    if block.fails || self.fails.contains(tail) {
                        self.fails.insert(start);
                    }
                    if block.chooses || self.chooses.contains(tail) {
                        self.chooses.insert(start);
                    }
                }
                Step::Atom(_) | Step::Seen(_) => {}
            }
        }
    }

    fn enter(&mut self, body: &Body, parent: u32, start: ExprId, kind: BlockKind, operand: Option<&mut u32>) {
        let number = self.blocks.len() as u32;
        let (statement, value) = match self.blocks.get(parent as usize) {
            Some(outer) => match outer.current {
                Some(let_) => (Some(let_), Link::Value(let_).target(body)),
                None => (None, outer.end.target(body)),
            },
            None => (None, start),
        };
        let (end, direct) = match kind {
            BlockKind::Root => (Link::Root, false),
            BlockKind::Then(id) => (Link::Then(id), id == value),
            BlockKind::Else(id) => (Link::Else(id), id == value),
            BlockKind::Lambda(id) => (Link::Lambda(id), id == value),
            BlockKind::Value(id) => (Link::Value(id), true),
            BlockKind::Operand(id) => {
                let link = operand.and_then(|from| operand_link(body, id, start, from));
                (link.expect("a block that is an operand is one of its node's operands"), false)
            }
        };
        if let BlockKind::Lambda(id) = kind
            && let Expr::Lambda { lambda, .. } = body.expr(id)
        {
            let home = Home::Param { block: number };
            for param in body.lambda_params(lambda) {
                self.homes.set(param.expr(), Some(home));
            }
            for &symbol in body.lambda_symbols(lambda) {
                self.symbols.insert(symbol, home);
            }
        }
        self.blocks.push(Block {
            kind,
            parent,
            statement,
            direct,
            end,
            region: None,
            current: None,
            fails: false,
            chooses: false,
            epoch: 0,
            in_region: false,
        });
    }

    /// Notes whether a node may fail, or chooses between branches, when it is evaluated.
    fn note(&mut self, cx: &Context, body: &Body, id: ExprId) {
        let parts: &[ExprId] = match body.expr(id) {
            Expr::Lambda { .. } => return,
            Expr::If { cond, then_block, else_block } => {
                self.chooses.insert(id);
                &[cond, then_block, else_block]
            }
            Expr::Proj { tuple, .. } => &[tuple],
            Expr::Call { .. } => {
                // Whatever it calls, it may not return.
                self.fails.insert(id);
                body.operands_of(id)
            }
            Expr::CallOp { op, .. } => {
                let (row, operands) = (cx.ops.get(op), body.operands_of(id));
                if row.may_fail || !row.has_known_extents(body, operands) {
                    self.fails.insert(id);
                }
                operands
            }
            _ => body.operands_of(id),
        };
        if parts.iter().any(|&p| self.fails.contains(p)) {
            self.fails.insert(id);
        }
        if parts.iter().any(|&p| self.chooses.contains(p)) {
            self.chooses.insert(id);
        }
    }

    /// The symbols that a `match_cast` names first are those that it binds.
    fn bind_symbols(&mut self, cx: &Context, body: &Body, binding: Binding) {
        let ty = body.ty(binding.var.expr());
        if !cx.types.is_symbolic(ty) {
            return;
        }
        let Expr::CallOp { op, .. } = body.expr(binding.value) else { return };
        if cx.ops.get(op).name != "match_cast" {
            return;
        }
        for_each_symbol(cx, ty, &mut |symbol| {
            self.symbols.entry(symbol).or_insert(Home::Let(binding.id));
        });
    }

    // ---- Moving ----

    /// Moves a binding out of the branch, `fn` or block as a value that it is in, to before the binding (or tail) that this is the value of, together with the bindings of
    /// the same block that it needs, in their order.
    ///
    /// It is legal if all of them are pure, and what they use is visible there. Out of a branch or a `fn`, which may not be evaluated, goes only what cannot
    /// fail: no call of a function value, and no operator that may fail. A binding in front of one in a dataflow region becomes part of the region,
    /// in front of any other it is outside of any.
    ///
    /// Takes time linear in the bindings that are moved and their values. A refusal takes time linear in the bindings that were looked at for it, and their
    /// values, and none of these is looked at for another refusal; see [`Hoister`].
    ///
    /// # Errors
    /// If it is not legal; nothing is then changed. Of several reasons it is the one that was found first. [`HoistError::Moved`] if
    /// somebody else edited the chains that are concerned, or the body was compacted.
    pub fn hoist(&mut self, editor: &mut Editor<'_>, var: VarId) -> Result<(), HoistError> {
        let id = self.let_of(editor, var)?;
        let number = self.places[id].block;
        let block = &self.blocks[number as usize];
        if block.kind == BlockKind::Root {
            return Err(HoistError::Outermost(name(editor, var)));
        }
        if !block.direct {
            return Err(HoistError::NotANormalForm(name(editor, var)));
        }
        let statement = block.statement;
        // The statement may have been moved itself, with the block.
        let parent = statement.map_or(block.parent, |let_| self.places[let_].block);
        let always = matches!(block.kind, BlockKind::Value(_));
        let region = statement.and_then(|let_| self.places[let_].region);
        let kind = block.kind;
        // Control flow that a region evaluates can only come out of a `fn`.
        let in_region = block.chooses
            && !self.regions.is_empty()
            && matches!(kind, BlockKind::Lambda(_))
            && (region.is_some() || self.is_in_region(parent));
        if block.in_region != in_region {
            let block = &mut self.blocks[number as usize];
            (block.in_region, block.epoch) = (in_region, block.epoch + 1);
        }
        let moved = self.gather(editor, id, Scope::Block { block: number, always, in_region })?;
        if !self.are_in_place(editor.body, &moved) || !self.is_goal_in_place(editor.body, kind, parent, statement) {
            return Err(HoistError::Moved);
        }
        if let Some(let_) = statement
            && matches!(self.leaves_block[let_].answer, Answer::Refused(_))
        {
            // What leaves it may have been the reason.
            self.leaves_block.set(let_, UNKNOWN);
        }
        for id in moved {
            self.unlink(editor.body, id);
            let mut flags = LetFlags::PLAIN;
            if let (Some(number), Some(next)) = (region, statement) {
                let region = &mut self.regions[number as usize];
                region.len += 1;
                flags = LetFlags::DATAFLOW;
                if region.first == next {
                    region.first = id;
                    set_let_flags(editor.body, next, LetFlags::DATAFLOW);
                    flags = LetFlags::REGION_START;
                }
            }
            self.insert(editor.body, id, parent, statement, flags, region);
        }
        Ok(())
    }

    /// Moves a binding out of the dataflow region that it is in, to before the region, together with the bindings of the region that it needs, in their order.
    ///
    /// Whatever a region holds is evaluated whenever the region is, so that only what can be observed stays.
    ///
    /// Takes time as [`Hoister::hoist`] does.
    ///
    /// # Errors
    /// If it is not in a region, or not legal; nothing is then changed. [`HoistError::Moved`] as for [`Hoister::hoist`].
    pub fn hoist_from_region(&mut self, editor: &mut Editor<'_>, var: VarId) -> Result<(), HoistError> {
        let id = self.let_of(editor, var)?;
        let Place { block, region: Some(number), .. } = self.places[id] else {
            return Err(HoistError::NotInRegion(name(editor, var)));
        };
        let moved = self.gather(editor, id, Scope::Region { block, region: number })?;
        let first = self.regions[number as usize].first;
        if !self.are_in_place(editor.body, &moved) || !self.is_in_place(editor.body, first) {
            return Err(HoistError::Moved);
        }
        let link = self.places[first].link;
        for &id in &moved {
            self.unlink(editor.body, id);
        }
        // What is left of the region, or what came after it.
        let next = Binding::of(editor.body, link.target(editor.body)).map(|b| b.id);
        for id in moved {
            self.insert(editor.body, id, block, next, LetFlags::PLAIN, None);
        }
        Ok(())
    }

    fn let_of(&self, editor: &Editor<'_>, var: VarId) -> Result<ExprId, HoistError> {
        if editor.body.generation() != self.generation || editor.body.len() < self.nodes {
            return Err(HoistError::Moved);
        }
        match self.homes[var.expr()] {
            Some(Home::Let(id)) => Ok(id),
            _ => Err(HoistError::NotBound(name(editor, var))),
        }
    }

    /// Whether a block is evaluated as part of a dataflow region. Takes time linear in the blocks around it, up to that of a `fn`.
    fn is_in_region(&self, mut block: u32) -> bool {
        loop {
            let Block { kind, statement, parent, .. } = self.blocks[block as usize];
            if matches!(kind, BlockKind::Root | BlockKind::Lambda(_)) {
                return false;
            }
            let place = statement.map(|let_| self.places[let_]);
            if place.is_some_and(|p| p.region.is_some()) {
                return true;
            }
            block = place.map_or(parent, |p| p.block);
        }
    }

    /// Whether each of these Lets is where it was left, and so is what comes after it.
    fn are_in_place(&self, body: &Body, lets: &[ExprId]) -> bool {
        lets.iter().all(|&id| {
            let Some(binding) = Binding::of(body, id) else { return false };
            let after = match body.expr(binding.rest) {
                Expr::Let { .. } => self.places[binding.rest].link,
                _ => self.blocks[self.places[id].block as usize].end,
            };
            after == Link::Rest(id) && self.is_in_place(body, id)
        })
    }

    /// Whether a Let hangs where it was left, as far as can be seen from it and those before it.
    fn is_in_place(&self, body: &Body, mut id: ExprId) -> bool {
        for _ in 0..LOOK_BACK {
            let link = self.places[id].link;
            if hangs_at(body, link) != Some(id) {
                return false;
            }
            match link {
                Link::Rest(before) => id = before,
                _ => return true,
            }
        }
        true
    }

    /// Whether the Let, or the tail, in front of which what leaves a block would go is where it was left, and still has the block.
    fn is_goal_in_place(&self, body: &Body, kind: BlockKind, parent: u32, statement: Option<ExprId>) -> bool {
        let (value, in_place) = match statement {
            Some(let_) => (hangs_at(body, Link::Value(let_)), self.is_in_place(body, let_)),
            None => {
                let end = self.blocks[parent as usize].end;
                let before = match end {
                    Link::Rest(id) => self.is_in_place(body, id),
                    _ => true,
                };
                (hangs_at(body, end), before)
            }
        };
        in_place
            && match kind {
                BlockKind::Then(id) | BlockKind::Else(id) | BlockKind::Lambda(id) => value == Some(id),
                BlockKind::Root | BlockKind::Value(_) | BlockKind::Operand(_) => true,
            }
    }

    fn verdicts(&mut self, scope: Scope) -> &mut SideTable<ExprId, Verdict> {
        match scope {
            Scope::Block { .. } => &mut self.leaves_block,
            Scope::Region { .. } => &mut self.leaves_region,
        }
    }

    fn answer(&self, id: ExprId, scope: Scope) -> Answer {
        let (table, block) = match scope {
            Scope::Block { block, .. } => (&self.leaves_block, block),
            Scope::Region { block, .. } => (&self.leaves_region, block),
        };
        let verdict = table[id];
        if verdict.epoch == self.blocks[block as usize].epoch { verdict.answer } else { Answer::Unknown }
    }

    fn set_answer(&mut self, id: ExprId, scope: Scope, answer: Answer) {
        let (Scope::Block { block, .. } | Scope::Region { block, .. }) = scope;
        let epoch = self.blocks[block as usize].epoch;
        self.verdicts(scope).set(id, Verdict { epoch, answer });
    }

    /// The Let with those that it needs of its block, or of a region of its block, in order, if each of them may be moved.
    fn gather(&mut self, editor: &Editor<'_>, id: ExprId, scope: Scope) -> Result<Vec<ExprId>, HoistError> {
        // Each is looked at after what it needs: then it is free, or all that are open are refused.
        let mut open: Vec<(ExprId, usize)> = Vec::new();
        let (mut needs, mut moved, mut known) = (vec![id], Vec::new(), Vec::new());
        let refused = loop {
            let mark = open.last().map_or(0, |&(_, mark)| mark);
            if needs.len() == mark {
                let Some((id, _)) = open.pop() else { break None };
                self.set_answer(id, scope, Answer::Free);
                moved.push(id);
                continue;
            }
            let Some(of) = needs.pop() else { break None };
            match self.answer(of, scope) {
                Answer::Open => {}
                Answer::Free => known.push(of),
                Answer::Refused(number) => break Some(number),
                Answer::Unknown => {
                    let Some(binding) = Binding::of(editor.body, of) else {
                        open.iter().for_each(|&(id, _)| self.set_answer(id, scope, Answer::Unknown));
                        return Err(HoistError::Moved);
                    };
                    open.push((of, needs.len()));
                    self.set_answer(of, scope, Answer::Open);
                    if let Err(refusal) = self.needs(editor, binding, scope, &mut needs) {
                        self.refusals.push(refusal);
                        break Some(self.refusals.len() as u32 - 1);
                    }
                }
            }
        };
        if let Some(number) = refused {
            open.iter().for_each(|&(id, _)| self.set_answer(id, scope, Answer::Refused(number)));
            return Err(self.refusals[number as usize].error(editor));
        }
        // What was known to be free is moved with all that it needs, too.
        if !known.is_empty() {
            let mut found: FxHashSet<ExprId> = moved.iter().copied().collect();
            while let Some(of) = known.pop() {
                if !found.insert(of) {
                    continue;
                }
                let Some(binding) = Binding::of(editor.body, of) else { return Err(HoistError::Moved) };
                moved.push(of);
                self.needs(editor, binding, scope, &mut known).map_err(|refusal| refusal.error(editor))?;
            }
        }
        moved.sort_unstable_by_key(|&id| self.places[id].order);
        Ok(moved)
    }

    /// Appends the Lets of the block or region that a binding needs, the first last, unless it has to stay for a reason of its own.
    fn needs(
        &self,
        editor: &Editor<'_>,
        binding: Binding,
        scope: Scope,
        found: &mut Vec<ExprId>,
    ) -> Result<(), Refusal> {
        let Binding { id, var, value, .. } = binding;
        if self.purity.is_impure(value) {
            return Err(Refusal::Impure(var));
        }
        if let Scope::Block { always, in_region, .. } = scope {
            if !always && self.fails.contains(value) {
                return Err(Refusal::MayFail(var));
            }
            if in_region && self.chooses.contains(value) {
                return Err(Refusal::ControlFlow(var));
            }
        }
        let from = found.len();
        let mut is_visible = |home: Option<Home>| match (home, scope) {
            (Some(Home::Let(of)), Scope::Block { block, .. }) => {
                if self.places[of].block == block && of != id {
                    found.push(of);
                }
                Some(of) != self.blocks[block as usize].statement
            }
            (Some(Home::Param { block: of }), Scope::Block { block, .. }) => of != block,
            (Some(Home::Let(of)), Scope::Region { block, region }) => {
                let place = self.places[of];
                if place.block == block && place.region == Some(region) && of != id {
                    found.push(of);
                }
                true
            }
            (Some(Home::Param { .. }), Scope::Region { .. }) | (None, _) => true,
        };
        for needs in uses(editor.body, value) {
            if !is_visible(self.homes[needs.expr()]) {
                return Err(Refusal::NotVisible { binding: var, needs });
            }
        }
        if !self.symbols.is_empty() {
            let mut visible = true;
            for_each_symbol_within(editor.cx, editor.body, binding, &mut |symbol| {
                if let Some(&home) = self.symbols.get(&symbol) {
                    visible &= is_visible(Some(home));
                }
            });
            if !visible {
                return Err(Refusal::Symbol(var));
            }
        }
        found[from..].reverse();
        Ok(())
    }

    fn unlink(&mut self, body: &mut Body, id: ExprId) {
        let place = self.places[id];
        let rest = unlink_let(body, place.link);
        let next = Binding::of(body, rest).map(|b| b.id);
        self.set_link(place.block, next, place.link);
        if let Some(number) = place.region {
            let region = &mut self.regions[number as usize];
            region.len -= 1;
            if region.first == id
                && region.len > 0
                && let Some(next) = next
            {
                region.first = next;
            }
        }
    }

    /// Hangs a Let in front of another of a block, or of its tail.
    fn insert(
        &mut self,
        body: &mut Body,
        id: ExprId,
        block: u32,
        next: Option<ExprId>,
        flags: LetFlags,
        region: Option<u32>,
    ) {
        let Some(binding) = Binding::of(body, id) else { return };
        let link = match next {
            Some(next) => self.places[next].link,
            None => self.blocks[block as usize].end,
        };
        set_let_flags(body, id, flags);
        set_var_flags(body, binding.var, if flags.is_dataflow() { VarFlags::DATAFLOW } else { VarFlags::PLAIN });
        body.set_let_body(id, link.target(body));
        link.set(body, id);
        self.set_link(block, next, Link::Rest(id));
        let place = self.places.get_mut(id);
        (place.link, place.block, place.region) = (link, block, region);
        self.leaves_block.set(id, UNKNOWN);
        self.leaves_region.set(id, UNKNOWN);
        if self.chooses.contains(binding.value) {
            // What needs it may have been free while it was in a `fn` in this block.
            let into = &mut self.blocks[block as usize];
            (into.chooses, into.epoch) = (true, into.epoch + u32::from(into.in_region));
        }
    }

    fn set_link(&mut self, block: u32, of: Option<ExprId>, link: Link) {
        match of {
            Some(let_) => self.places.get_mut(let_).link = link,
            None => self.blocks[block as usize].end = link,
        }
    }
}

/// What hangs at a link, if there still is such a link.
fn hangs_at(body: &Body, link: Link) -> Option<ExprId> {
    match (
        link,
        body.expr(match link {
            Link::Root => return Some(body.root()),
            Link::Rest(id) | Link::Value(id) | Link::Cond(id) | Link::Then(id) | Link::Else(id) | Link::Lambda(id) => {
                id
            }
            Link::Operand(id, _) => id,
        }),
    ) {
        (Link::Rest(_), Expr::Let { body: rest, .. }) => Some(rest),
        (Link::Value(_), Expr::Let { value, .. }) => Some(value),
        (Link::Cond(_), Expr::If { cond, .. }) => Some(cond),
        (Link::Then(_), Expr::If { then_block, .. }) => Some(then_block),
        (Link::Else(_), Expr::If { else_block, .. }) => Some(else_block),
        (Link::Lambda(_), Expr::Lambda { body: block, .. }) => Some(block),
        (Link::Operand(_, 0), Expr::Proj { tuple, .. }) => Some(tuple),
        (Link::Operand(_, i), expr) => {
            let list = expr.operand_list()?;
            ((i as usize) < list.len()).then(|| body.operand(list, i as usize))
        }
        _ => None,
    }
}

fn name(editor: &Editor<'_>, var: VarId) -> String {
    name_for_error(editor.cx, editor.body, var)
}

/// The variables that are free in a value.
fn uses(body: &Body, value: ExprId) -> Vec<VarId> {
    let flat = match body.expr(value) {
        Expr::Proj { tuple, .. } => body.expr(tuple).is_atom().then(|| body.as_var(tuple).into_iter().collect()),
        expr if expr.is_atom() => Some(body.as_var(value).into_iter().collect()),
        Expr::Let { .. } | Expr::If { .. } | Expr::Lambda { .. } => None,
        _ => {
            let operands = body.operands_of(value);
            let atoms = operands.iter().all(|&o| body.expr(o).is_atom());
            atoms.then(|| operands.iter().filter_map(|&o| body.as_var(o)).collect())
        }
    };
    flat.unwrap_or_else(|| free_variables(body, value))
}

fn for_each_symbol(cx: &Context, ty: TypeId, each: &mut impl FnMut(SymbolId)) {
    cx.types.for_each_symbol(ty, |dim| {
        if let Dim::Symbol(symbol) = *cx.types.dims.get(dim) {
            each(symbol);
        }
    });
}

/// The symbols that types and attributes in the value of a binding name.
fn for_each_symbol_within(cx: &Context, body: &Body, binding: Binding, each: &mut impl FnMut(SymbolId)) {
    for_each_symbol(cx, body.ty(binding.var.expr()), each);
    let mut look = |id: ExprId| {
        for_each_symbol(cx, body.ty(id), each);
        match body.expr(id) {
            Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => for_each_symbol_of_attrs(cx, attrs, each),
            Expr::Lambda { lambda, .. } => {
                for param in body.lambda_params(lambda) {
                    for_each_symbol(cx, body.ty(param.expr()), each);
                }
            }
            _ => {}
        }
    };
    if matches!(body.expr(binding.value), Expr::CallOp { .. } | Expr::Call { .. } | Expr::Tuple(_) | Expr::Proj { .. })
        && body.operands_of(binding.value).iter().all(|&o| body.expr(o).is_atom())
    {
        return look(binding.value);
    }
    let mut cursor = Cursor::at(body, binding.value);
    while let Some(step) = cursor.next(body) {
        if let Step::Flat(id) | Step::Enter(id) = step {
            look(id);
        }
    }
}

fn for_each_symbol_of_attrs(cx: &Context, attrs: AttrsId, each: &mut impl FnMut(SymbolId)) {
    let mut stack: Vec<_> = cx.attrs.list(attrs).iter().map(|&(_, value)| value).collect();
    let mut seen = FxHashSet::default();
    while let Some(value) = stack.pop() {
        match cx.attrs.get(value) {
            Attr::List(items) if seen.insert(value) => stack.extend(items.iter()),
            Attr::Shape(dims) => {
                for &dim in dims {
                    cx.types.dims.for_each_symbol(dim, |leaf| {
                        if let Dim::Symbol(symbol) = *cx.types.dims.get(leaf) {
                            each(symbol);
                        }
                    });
                }
            }
            Attr::Type(ty) => for_each_symbol(cx, *ty, each),
            _ => {}
        }
    }
}

anfora_ir::brief_debug! { Hoister; }
