//! The functions that groups of bindings become, and the comparison of groups.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use anfora_ir::{
    AttrsId, Body, BodyRoom, Context, DimId, Editor, EntityId, Expr, ExprId, FreeSymbols, Function, FunctionKind,
    GlobalId, LetFlags, Literal, Module, NameSupply, Operand, SymbolId, SymbolSubstitution, SymbolWalk, Transplant,
    TypeId, VarFlags, Visibility, infer_call, infer_op, signature_type,
};
use anfora_visit::{Binding, chain};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;

/// The greatest length of the part of a function's name that lists operators.
const NAME_LENGTH: usize = 64;

/// The largest number of elements of a literal that counts as small.
const SMALL_LITERAL: usize = 16;

/// Returns true if a literal is large: it is neither a scalar, nor a splat, nor has at most 16
/// elements.
pub(crate) fn is_large(literal: &Literal) -> bool {
    literal.rank() > 0 && literal.element_count() > SMALL_LITERAL && literal.as_splat().is_none()
}

/// The literals that become parameters of outlined functions. Literals that a type rule reads stay
/// inside.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum PassedLiterals {
    /// No literals.
    None,
    /// Large literals.
    Large,
    /// All but scalars.
    Tensors,
}

impl PassedLiterals {
    fn has(self, literal: &Literal) -> bool {
        match self {
            PassedLiterals::None => false,
            PassedLiterals::Large => is_large(literal),
            PassedLiterals::Tensors => literal.rank() > 0,
        }
    }
}

/// A function that was made for a group or found in the module.
struct Entry {
    hash: u64,
    /// The range of its key in the list of words.
    start: usize,
    end: usize,
    function: Outlined,
}

/// A function whose call replaces a group.
#[derive(Copy, Clone)]
pub(crate) struct Outlined {
    global: GlobalId,
    signature: TypeId,
}

/// The reason why a group cannot become a function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotOutlined {
    /// A symbol of a type in the group is bound by no argument, and by no variable that could be
    /// one more argument.
    #[error("no argument of the function would bind `{symbol}`")]
    FreeSymbol {
        /// The name of the symbol.
        symbol: String,
    },
    /// The function would have more parameters than allowed.
    #[error("the function would have more than {limit} parameters (FuseOps.max_function_args)")]
    TooManyParameters {
        /// The greatest number of parameters.
        limit: usize,
    },
    /// The type that follows from a function's signature is not that of the group.
    #[error("a call of the function would have another type")]
    OtherType,
}

/// The parameters of a function that bind its symbols.
pub(crate) struct SymbolBinders {
    /// The first parameter that binds a symbol.
    binders: FxHashMap<SymbolId, ExprId>,
}

impl SymbolBinders {
    /// Finds the first parameter that binds each symbol of a function.
    pub(crate) fn of(cx: &Context, function: &Function) -> SymbolBinders {
        let mut binders = FxHashMap::default();
        for param in function.body.params() {
            let param = param.expr();
            cx.types
                .for_each_binding_symbol(function.body.ty(param), |symbol| _ = binders.entry(symbol).or_insert(param));
        }
        SymbolBinders { binders }
    }

    /// Returns the first parameter that binds a symbol.
    pub(crate) fn binder(&self, symbol: SymbolId) -> Option<ExprId> {
        self.binders.get(&symbol).copied()
    }
}

/// Returns the names that are free in a module, for the outliners of a pass.
pub(crate) fn names_of(module: &Module) -> Rc<RefCell<NameSupply>> {
    Rc::new(RefCell::new(NameSupply::new(module)))
}

/// Makes functions from groups, one for equal groups.
///
/// A group is written as a list of words, with variables and symbols numbered in order of
/// appearance. Equal groups have equal words.
pub(crate) struct Outliner {
    /// The names of all functions that a pass makes.
    names: Rc<RefCell<NameSupply>>,
    attrs: AttrsId,
    /// The end of the names of functions.
    suffix: String,
    passed: PassedLiterals,
    max_function_args: usize,
    entries: HashTable<Entry>,
    words: Vec<u32>,
    /// By expression: the last group that contained it, and its word there.
    slots: Vec<(u32, u32)>,
    group: u32,
    /// Symbols that replace the first, second, … symbol of a group.
    pool: Vec<DimId>,
    symbolic_attrs: FxHashMap<AttrsId, Box<[SymbolId]>>,
    /// The atoms that the current group needs from outside, in the order of first use.
    params: Vec<ExprId>,
    /// The symbols of the current group, in order of appearance.
    symbols: Vec<SymbolId>,
    numbers: FxHashSet<SymbolId>,
    /// Maps the symbols of groups to the symbols of the pool. Entries of earlier groups do no harm:
    /// only types with numbered symbols are looked up.
    numbering: SymbolSubstitution,
    free: FreeSymbols,
    /// Copies groups into functions.
    transplant: Transplant<'static>,
    /// The size of the current group, without parameters.
    room: BodyRoom,
    /// The name of the current function.
    name: String,
    /// The functions that are to be added to the module.
    made: Vec<(GlobalId, Function, TypeId)>,
}

const MEMBER: u32 = 0;
const PARAM: u32 = 1 << 31;

#[derive(Copy, Clone)]
#[repr(u32)]
enum Word {
    CallOp,
    Call,
    Tuple,
    Proj,
    Member,
    Param,
    NewParam,
    Literal,
    Global,
    Op,
    None,
    Extra,
}

impl Outliner {
    /// Returns an outliner that gives functions these attributes, which include
    /// [`PRIMITIVE`](anfora_ir::PRIMITIVE), and at most `max_function_args` parameters (0 for no
    /// limit). It knows the private functions of a module that have the attributes. Outliners of
    /// one pass share `names`, so that their functions have different names.
    pub(crate) fn new(
        module: &mut Module,
        names: Rc<RefCell<NameSupply>>,
        attrs: AttrsId,
        passed: PassedLiterals,
        max_function_args: usize,
    ) -> Outliner {
        let mut outliner = Outliner {
            names,
            attrs,
            suffix: String::new(),
            passed,
            max_function_args,
            entries: HashTable::new(),
            words: Vec::new(),
            slots: Vec::new(),
            group: 0,
            pool: Vec::new(),
            symbolic_attrs: FxHashMap::default(),
            params: Vec::new(),
            symbols: Vec::new(),
            numbers: FxHashSet::default(),
            numbering: SymbolSubstitution::new(),
            free: FreeSymbols::new(),
            transplant: Transplant::moving(),
            room: BodyRoom::default(),
            name: String::new(),
            made: Vec::new(),
        };
        for key in module.order().to_vec() {
            if let Some((function, cx)) = module.get_mut(key)
                && function.visibility == Visibility::Private
                && function.attrs == outliner.attrs
            {
                outliner.learn(cx, function);
            }
        }
        outliner
    }

    /// Records a function of the module, if a group could have become it.
    fn learn(&mut self, cx: &mut Context, function: &mut Function) {
        let (Some(global), FunctionKind::Definition) = (function.global(), function.kind) else { return };
        let Some(signature) = cx.globals.get(global).signature else { return };
        let body = &mut function.body;
        let members: Vec<Binding> = chain(body, body.root()).collect();
        let is_flat = |b: &Binding| {
            b.flags == LetFlags::PLAIN
                && matches!(
                    body.expr(b.value),
                    Expr::CallOp { .. } | Expr::Call { .. } | Expr::Tuple(_) | Expr::Proj { .. }
                )
                && body.is_flat(b.value)
        };
        let Some(last) = members.last() else { return };
        if last.rest != last.var.expr()
            || !members.iter().all(is_flat)
            || function.ret.is_some_and(|ret| ret != body.ty(last.value))
        {
            return;
        }
        let start = self.words.len();
        self.write(cx, body, &members);
        let params: SmallVec<[ExprId; 8]> = body.params().iter().map(|p| p.expr()).collect();
        if !params.starts_with(&self.params) {
            self.words.truncate(start);
            return;
        }
        for &extra in &params[self.params.len()..] {
            self.write_extra(cx, body, extra);
        }
        if self.find(start).is_none() {
            self.enter(start, Outlined { global, signature });
        } else {
            self.words.truncate(start);
        }
    }

    /// Returns the function that a group becomes, which [`Outliner::call`] calls. `binder` returns
    /// a variable, visible at the group, that has the symbol alone as a dimension of its type.
    ///
    /// # Errors
    /// If the group cannot become a function.
    pub(crate) fn outline(
        &mut self,
        cx: &mut Context,
        body: &mut Body,
        members: &[Binding],
        binder: impl Fn(SymbolId) -> Option<ExprId>,
    ) -> Result<Outlined, NotOutlined> {
        let start = self.words.len();
        self.write(cx, body, members);
        let known = self.made.len();
        let outlined = self.function(cx, body, members, start, binder);
        // The words of a new function are its key.
        if self.made.len() == known {
            self.words.truncate(start);
        }
        outlined
    }

    /// Returns the function of the group whose words begin at `start`.
    ///
    /// # Errors
    /// If the group cannot become a function.
    fn function(
        &mut self,
        cx: &mut Context,
        body: &mut Body,
        members: &[Binding],
        start: usize,
        binder: impl Fn(SymbolId) -> Option<ExprId>,
    ) -> Result<Outlined, NotOutlined> {
        self.bind_symbols(cx, body, binder)?;
        if self.max_function_args > 0 && self.params.len() > self.max_function_args {
            return Err(NotOutlined::TooManyParameters { limit: self.max_function_args });
        }
        let result = members.last().map(|last| body.ty(last.value));
        if let Some(found) = self.find(start) {
            self.check_type(cx, body, found.signature, result)?;
            return Ok(found);
        }
        let (function, signature) = self.build(cx, body, members);
        self.check_type(cx, body, signature, result)?;
        write_name(&mut self.name, cx, body, members);
        self.name.push_str(&self.suffix);
        let global = self.names.borrow_mut().fresh(cx, &self.name);
        self.made.push((global, function, signature));
        self.enter(start, Outlined { global, signature });
        Ok(Outlined { global, signature })
    }

    /// Ends the names of new functions with an underscore and `suffix`.
    pub(crate) fn with_suffix(mut self, suffix: &str) -> Outliner {
        self.suffix = format!("_{suffix}");
        self
    }

    /// Returns a call of the last outlined function, which replaces the value of the group's last
    /// binding.
    pub(crate) fn call(&self, cx: &Context, body: &mut Body, outlined: Outlined, last: Binding) -> ExprId {
        let callee = body.global(outlined.global, outlined.signature);
        let mut operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(&[callee]);
        operands.extend_from_slice(&self.params);
        let operands = body.push_operands(&operands);
        let (ty, span) = (body.ty(last.value), body.span(last.value));
        body.push(Expr::Call { operands, attrs: cx.attrs.empty() }, ty, span)
    }

    /// Adds the functions that were made to the module, and returns their number.
    pub(crate) fn add_made(&mut self, module: &mut Module) -> usize {
        let count = self.made.len();
        module.reserve(count);
        for (global, function, signature) in self.made.drain(..) {
            let added = module.add(global, function);
            assert!(added.is_ok(), "a fresh name has no function");
            module.set_signature(global, signature);
        }
        count
    }

    /// Checks that a call with the current arguments has exactly the type `wanted`. This holds
    /// without symbols, since the parameters have the types of the arguments.
    ///
    /// # Errors
    /// If the call has another type.
    fn check_type(
        &self,
        cx: &mut Context,
        body: &Body,
        signature: TypeId,
        wanted: Option<TypeId>,
    ) -> Result<(), NotOutlined> {
        if self.symbols.is_empty() {
            return Ok(());
        }
        let types: SmallVec<[TypeId; 8]> = self.params.iter().map(|&p| body.ty(p)).collect();
        if infer_call(cx, signature, &types).ok() == wanted { Ok(()) } else { Err(NotOutlined::OtherType) }
    }

    // ---- Words ----

    fn find(&self, start: usize) -> Option<Outlined> {
        let key = &self.words[start..];
        self.entries.find(hash(key), |e| &self.words[e.start..e.end] == key).map(|e| e.function)
    }

    /// Stores the words from `start` on as the key of a function.
    fn enter(&mut self, start: usize, function: Outlined) {
        let hash = hash(&self.words[start..]);
        let entry = Entry { hash, start, end: self.words.len(), function };
        self.entries.insert_unique(hash, entry, |e| e.hash);
    }

    /// Writes a group as words, and finds its parameters and symbols.
    fn write(&mut self, cx: &mut Context, body: &Body, members: &[Binding]) {
        self.group += 1;
        self.params.clear();
        self.symbols.clear();
        self.numbers.clear();
        // A variable, a value and a Let for each member.
        self.room = BodyRoom { nodes: 3 * members.len(), operands: 0, params: 0 };
        if self.slots.len() < body.len() {
            self.slots.resize(body.len(), (0, 0));
        }
        for (i, member) in members.iter().enumerate() {
            let value = member.value;
            let inputs = body.inputs(value);
            let is_list = !matches!(body.expr(value), Expr::Proj { .. });
            self.room.operands += if is_list { inputs.len() } else { 0 };
            match body.expr(value) {
                Expr::CallOp { op, attrs, .. } => {
                    let attrs = self.attrs_word(cx, attrs);
                    self.words.extend([Word::CallOp as u32, op.index() as u32, attrs, inputs.len() as u32]);
                }
                Expr::Call { attrs, .. } => {
                    let attrs = self.attrs_word(cx, attrs);
                    self.words.extend([Word::Call as u32, attrs, inputs.len() as u32]);
                }
                Expr::Proj { index, .. } => self.words.extend([Word::Proj as u32, index]),
                _ => self.words.extend([Word::Tuple as u32, inputs.len() as u32]),
            }
            let lifts = lifts_literals(cx, body, value, self.passed);
            for &input in inputs {
                self.operand(cx, body, input, lifts);
            }
            let types = [body.ty(value), body.ty(member.var.expr())];
            for ty in types {
                let ty = self.type_word(cx, ty);
                self.words.push(ty);
            }
            self.slots[member.var.index()] = (self.group, MEMBER | i as u32);
        }
    }

    fn operand(&mut self, cx: &mut Context, body: &Body, operand: ExprId, lifts: bool) {
        let words = match body.expr(operand) {
            Expr::Literal(literal) if !(lifts && self.passed.has(cx.literals.get(literal))) => {
                [Word::Literal as u32, literal.index() as u32]
            }
            Expr::Global(global) => [Word::Global as u32, global.index() as u32],
            Expr::Op(op) => [Word::Op as u32, op.index() as u32],
            Expr::None => [Word::None as u32, 0],
            _ => match self.slots[operand.index()] {
                (group, slot) if group == self.group && slot & PARAM != 0 => [Word::Param as u32, slot & !PARAM],
                (group, slot) if group == self.group => [Word::Member as u32, slot],
                _ => {
                    self.slots[operand.index()] = (self.group, PARAM | self.params.len() as u32);
                    self.params.push(operand);
                    let ty = param_type(cx, body, operand);
                    [Word::NewParam as u32, self.type_word(cx, ty)]
                }
            },
        };
        // Each of these is a node of the function, or one that the function has already.
        self.room.nodes += usize::from(words[0] >= Word::Literal as u32);
        self.words.extend(words);
    }

    fn write_extra(&mut self, cx: &mut Context, body: &Body, extra: ExprId) {
        let ty = body.ty(extra);
        let ty = self.type_word(cx, ty);
        self.words.extend([Word::Extra as u32, ty]);
    }

    fn type_word(&mut self, cx: &mut Context, ty: TypeId) -> u32 {
        if !cx.types.is_symbolic(ty) {
            return ty.index() as u32;
        }
        let found = self.free.of(&cx.types, ty);
        self.meet(cx, &found);
        self.numbering.ty(cx, ty).index() as u32
    }

    fn attrs_word(&mut self, cx: &mut Context, attrs: AttrsId) -> u32 {
        if attrs == cx.attrs.empty() || cx.types.dims.symbol_count() == 0 {
            return attrs.index() as u32;
        }
        let found = self.symbolic_attrs.entry(attrs).or_insert_with(|| symbols_of_attrs(cx, attrs)).clone();
        if found.is_empty() {
            return attrs.index() as u32;
        }
        self.meet(cx, &found);
        self.numbering.attrs(cx, attrs).index() as u32
    }

    /// Numbers symbols in order of appearance.
    fn meet(&mut self, cx: &mut Context, found: &[SymbolId]) {
        for &symbol in found {
            if !self.numbers.insert(symbol) {
                continue;
            }
            if self.symbols.len() == self.pool.len() {
                let name = cx.names.intern("n");
                let fresh = cx.types.dims.new_symbol(name);
                self.pool.push(cx.types.dims.symbol(fresh));
            }
            let number = self.pool[self.symbols.len()];
            self.numbering.set(symbol, number);
            self.symbols.push(symbol);
        }
    }

    /// Adds parameters for the symbols that the other parameters do not bind.
    ///
    /// # Errors
    /// If `binder` has no variable for a symbol.
    fn bind_symbols(
        &mut self,
        cx: &mut Context,
        body: &mut Body,
        binder: impl Fn(SymbolId) -> Option<ExprId>,
    ) -> Result<(), NotOutlined> {
        if self.symbols.is_empty() {
            return Ok(());
        }
        let mut bound = FxHashSet::default();
        for &param in &self.params {
            cx.types.for_each_binding_symbol(body.ty(param), |symbol| bound.extend([symbol]));
        }
        // The list grows by the symbols of the added parameters.
        let mut i = 0;
        while let Some(&symbol) = self.symbols.get(i) {
            i += 1;
            if bound.contains(&symbol) {
                continue;
            }
            let Some(var) = binder(symbol) else {
                let symbol = cx.names.get(cx.types.dims.symbol_name(symbol)).to_string();
                return Err(NotOutlined::FreeSymbol { symbol });
            };
            self.params.push(var);
            cx.types.for_each_binding_symbol(body.ty(var), |symbol| bound.extend([symbol]));
            self.write_extra(cx, body, var);
        }
        Ok(())
    }

    // ---- Functions ----

    /// Returns the function of the last written group, and its signature.
    fn build(&mut self, cx: &mut Context, from: &Body, members: &[Binding]) -> (Function, TypeId) {
        let params = self.params.len();
        let room = BodyRoom { nodes: self.room.nodes + params, params, ..self.room };
        let mut function = Function::with_room(&cx.types, cx.attrs.empty(), room);
        function.visibility = Visibility::Private;
        function.attrs = self.attrs;
        // A symbol belongs to one function.
        let transplant = &mut self.transplant;
        transplant.begin(SymbolSubstitution::new());
        self.symbols.iter().for_each(|&symbol| _ = transplant.symbols.rename(cx, symbol));
        let mut editor = Editor::new(cx, &mut function.body);
        let mut literals = 0;
        for &param in &self.params {
            let name = match from.as_var(param) {
                Some(var) => from.var_name(var),
                None => {
                    literals += 1;
                    Some(editor.cx.names.intern(&format!("param_{}", literals - 1)))
                }
            };
            let ty = param_type(editor.cx, from, param);
            let ty = transplant.symbols.ty(editor.cx, ty);
            let var = editor.body.push_var(name, VarFlags::PLAIN, ty, from.span(param));
            editor.body.push_param(var);
            transplant.replace(param, var.expr());
        }
        let mut previous: Option<ExprId> = None;
        for member in members {
            // The same literal may be a parameter for one call and a part of another.
            let passed: SmallVec<[(ExprId, ExprId); 2]> =
                match literals == 0 || lifts_literals(editor.cx, from, member.value, self.passed) {
                    true => SmallVec::new(),
                    false => from
                        .inputs(member.value)
                        .iter()
                        .filter_map(|&input| from.as_literal(input).and(transplant.copied(input)).map(|by| (input, by)))
                        .collect(),
                };
            passed.iter().for_each(|&(literal, _)| transplant.forget(literal));
            let link = transplant.binding(&mut editor, Some(from), member.id, LetFlags::PLAIN);
            passed.iter().for_each(|&(literal, by)| transplant.replace(literal, by));
            match previous.replace(link) {
                Some(previous) => editor.body.set_let_body(previous, link),
                None => editor.body.set_root(link),
            }
        }
        let types: SmallVec<[TypeId; 8]> = function.body.params().iter().map(|p| function.body.ty(p.expr())).collect();
        let ret = function.body.type_of(function.body.root());
        let signature = signature_type(cx, &types, ret);
        (function, signature)
    }
}

fn hash(words: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    words.hash(&mut hasher);
    hasher.finish()
}

/// Returns the type of the parameter for an operand. The type of a literal omits its elements, so
/// that functions do not differ in them.
fn param_type(cx: &mut Context, body: &Body, operand: ExprId) -> TypeId {
    match body.expr(operand) {
        Expr::Literal(_) => cx.types.without_elements(body.ty(operand)),
        _ => body.ty(operand),
    }
}

/// Returns true if the type of a call does not change when its passed literals become parameters.
fn lifts_literals(cx: &mut Context, body: &Body, call: ExprId, passed: PassedLiterals) -> bool {
    if let Expr::Call { .. } = body.expr(call) {
        return lifts_literals_of_call(cx, body, call);
    }
    let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return false };
    let literal = |o: ExprId| body.as_literal(o);
    let is_passed = |cx: &Context, o: ExprId| literal(o).is_some_and(|l| passed.has(cx.literals.get(l)));
    if !body.operands(operands).iter().any(|&o| is_passed(cx, o)) {
        return false;
    }
    let operands: SmallVec<[Operand; 4]> = body
        .operands(operands)
        .iter()
        .map(|&o| Operand {
            ty: if is_passed(cx, o) { param_type(cx, body, o) } else { body.ty(o) },
            literal: literal(o).filter(|_| !is_passed(cx, o)),
            absent: matches!(body.expr(o), Expr::None),
        })
        .collect();
    infer_op(cx, op, &operands, attrs, body.ty(call)) == Ok(body.ty(call))
}

/// [`lifts_literals`] for the call of a function.
fn lifts_literals_of_call(cx: &mut Context, body: &Body, call: ExprId) -> bool {
    let Some((&callee, operands)) = body.inputs(call).split_first() else { return false };
    let types: SmallVec<[TypeId; 8]> = operands.iter().map(|&o| param_type(cx, body, o)).collect();
    infer_call(cx, body.ty(callee), &types) == Ok(body.ty(call))
}

fn symbols_of_attrs(cx: &Context, attrs: AttrsId) -> Box<[SymbolId]> {
    let mut found: Vec<SymbolId> = Vec::new();
    SymbolWalk::new().in_attrs(cx, attrs, |symbol| found.push(symbol));
    found.into()
}

/// Writes the name `fused_` and the operators and functions without their namespaces and numbers,
/// as many as fit.
fn write_name(name: &mut String, cx: &Context, body: &Body, members: &[Binding]) {
    name.clear();
    name.push_str("fused");
    for member in members {
        let op: &str = match body.expr(member.value) {
            Expr::CallOp { op, .. } => &cx.ops.get(op).name,
            Expr::Call { .. } => match body.expr(body.inputs(member.value)[0]) {
                Expr::Global(global) => cx.names.get(cx.globals.get(global).name),
                _ => continue,
            },
            _ => continue,
        };
        let op = op.split('#').next().unwrap_or(op);
        let op = op.rsplit('.').next().unwrap_or(op);
        // The names of outlined functions begin in this way already.
        let op = op.strip_prefix("fused_").unwrap_or(op);
        if name.len() + 1 + op.len() > NAME_LENGTH {
            name.push_str("_etc");
            break;
        }
        name.push('_');
        name.push_str(op);
    }
}
