//! Which functions of a module name which.

use anfora_ir::{
    Attr, AttrId, AttrsId, Body, Components, Context, Cursor, EntityId, Expr, ExprId, FunctionAttrId, FunctionKey,
    GlobalId, Module, Step,
};
use rustc_hash::FxHashMap;

/// How a function names a global.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MentionKind {
    /// Only otherwise than by calling it: as an operand, a value or a tail, or in an attribute
    /// (also within a function that is the value of one).
    Value,
    /// It calls it, in a `fn` or not.
    Call,
}

/// A global that a function names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mention {
    /// The global.
    pub global: GlobalId,
    /// How it is named.
    pub kind: MentionKind,
    /// The position of the function that it resolves to, or `NO_FUNCTION`.
    callee: u32,
}

/// The position of what a global that resolves to nothing resolves to.
const NO_FUNCTION: u32 = u32::MAX;

/// Which functions of a module name which globals, in what can be reached from their bodies' roots
/// and in their attributes; the strongly connected components of that.
///
/// Naming a function is enough to be its caller here: who names it may have it called.
/// [`Mention::kind`] says whether it is a call. A declaration names nothing but what its attributes
/// do.
///
/// To be made takes one walk of every body that names a global or has attributes that do, and time
/// linear in the mentions. It holds no expression ids, and speaks of the module as it was when it
/// was made; a function that was added since is in no relation to others.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::CallGraph;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "callee");
/// # let empty = f.tuple(&[]);
/// # let callee = f.finish(empty).unwrap();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let function = f.global("callee");
/// # let call = f.call(function, &[]).unwrap();
/// # let main = f.finish(call).unwrap();
/// // def @callee() { () }  def @main() { @callee() }
/// let graph = CallGraph::of(&module);
/// assert_eq!(graph.callees(main).collect::<Vec<_>>(), [callee]);
/// assert_eq!(graph.callers(callee).collect::<Vec<_>>(), [main]);
/// assert!(!graph.is_recursive(main));
/// assert_eq!(graph.components().map(|c| c.collect::<Vec<_>>()).collect::<Vec<_>>(), [[callee], [main]]);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct CallGraph {
    /// The functions in program order.
    keys: Vec<FunctionKey>,
    positions: FxHashMap<FunctionKey, u32>,
    /// Where the mentions of each function begin, and where the last one's end.
    starts: Vec<u32>,
    mentions: Vec<Mention>,
    callees: Adjacency,
    callers: Adjacency,
    components: Components,
}

/// For each function, others, by their positions.
#[derive(Clone, PartialEq, Debug)]
struct Adjacency {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Adjacency {
    fn of(&self, position: u32) -> &[u32] {
        let at = position as usize;
        &self.targets[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    fn reversed(&self) -> Adjacency {
        let vertices = self.starts.len() - 1;
        let mut starts = vec![0u32; vertices + 1];
        for &target in &self.targets {
            starts[target as usize + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut targets = vec![0u32; self.targets.len()];
        for from in 0..vertices as u32 {
            for &to in self.of(from) {
                let at = &mut next[to as usize];
                targets[*at as usize] = from;
                *at += 1;
            }
        }
        Adjacency { starts, targets }
    }
}

impl CallGraph {
    /// The call graph of a module.
    pub fn of(module: &Module) -> CallGraph {
        let keys = module.order().to_vec();
        let positions: FxHashMap<FunctionKey, u32> = keys.iter().enumerate().map(|(i, &k)| (k, i as u32)).collect();
        let mut collector = Collector::new(&module.cx);
        let mut starts = Vec::with_capacity(keys.len() + 1);
        let mut callees = Adjacency { starts: Vec::with_capacity(keys.len() + 1), targets: Vec::new() };
        for (_, function) in module.functions() {
            starts.push(collector.mentions.len() as u32);
            collector.function();
            collector.attrs(function.attrs);
            collector.body(&function.body);
        }
        starts.push(collector.mentions.len() as u32);
        let mut mentions = collector.mentions;
        for range in starts.windows(2) {
            callees.starts.push(callees.targets.len() as u32);
            for mention in &mut mentions[range[0] as usize..range[1] as usize] {
                let target = module.cx.globals.get(mention.global).target.function();
                if let Some(&position) = target.and_then(|key| positions.get(&key)) {
                    mention.callee = position;
                    callees.targets.push(position);
                }
            }
        }
        callees.starts.push(callees.targets.len() as u32);
        let components = Components::of(keys.len(), |v| callees.of(v));
        let callers = callees.reversed();
        CallGraph { keys, positions, starts, mentions, callees, callers, components }
    }

    fn keys<'g>(
        &'g self,
        positions: &'g [u32],
    ) -> impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator + 'g {
        positions.iter().map(|&p| self.keys[p as usize])
    }

    /// The globals that a function names, each once, those of its attributes first, then in the
    /// order in which its body names them.
    pub fn mentions(&self, function: FunctionKey) -> &[Mention] {
        match self.positions.get(&function) {
            Some(&p) => &self.mentions[self.starts[p as usize] as usize..self.starts[p as usize + 1] as usize],
            None => &[],
        }
    }

    /// The functions that a function names, as [`CallGraph::mentions`] has them: itself too, if it
    /// does. Globals that resolve to nothing are left out.
    pub fn callees(
        &self,
        function: FunctionKey,
    ) -> impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator + '_ {
        self.keys(self.positions.get(&function).map_or(&[], |&p| self.callees.of(p)))
    }

    /// The functions that name a function, in program order.
    pub fn callers(
        &self,
        function: FunctionKey,
    ) -> impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator + '_ {
        self.keys(self.positions.get(&function).map_or(&[], |&p| self.callers.of(p)))
    }

    /// The function that a mention resolves to.
    pub fn resolve(&self, mention: Mention) -> Option<FunctionKey> {
        self.keys.get(mention.callee as usize).copied()
    }

    /// The strongly connected components, callees first, each in program order: functions that can
    /// reach each other are in one.
    pub fn components(
        &self,
    ) -> impl DoubleEndedIterator<Item = impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator> + ExactSizeIterator
    {
        self.components.iter().map(|members| self.keys(members))
    }

    /// The functions, callees before their callers where they are not in a cycle.
    pub fn callees_first(&self) -> impl DoubleEndedIterator<Item = FunctionKey> + '_ {
        self.components().flatten()
    }

    /// The number of a function's component: callees have smaller ones, unless they are in the
    /// same.
    pub fn component(&self, function: FunctionKey) -> Option<usize> {
        self.positions.get(&function).map(|&p| self.components.component(p))
    }

    /// Returns true if a function can reach itself.
    pub fn is_recursive(&self, function: FunctionKey) -> bool {
        self.positions.get(&function).is_some_and(|&p| self.components.is_cyclic(p))
    }

    /// The functions that can be reached from some, these included, in program order. Linear in the
    /// module's functions and mentions.
    pub fn reachable(&self, roots: impl IntoIterator<Item = FunctionKey>) -> Vec<FunctionKey> {
        let mut reached = vec![false; self.keys.len()];
        let mut work: Vec<u32> = roots.into_iter().filter_map(|key| self.positions.get(&key).copied()).collect();
        while let Some(p) = work.pop() {
            if !std::mem::replace(&mut reached[p as usize], true) {
                work.extend(self.callees.of(p).iter().filter(|&&c| !reached[c as usize]));
            }
        }
        self.keys.iter().zip(reached).filter_map(|(&key, reached)| reached.then_some(key)).collect()
    }
}

/// Collects the mentions of one function after the other.
struct Collector<'m> {
    cx: &'m Context,
    mentions: Vec<Mention>,
    /// For each global, one more than where the last mention of it is.
    last: Vec<u32>,
    /// Where the mentions of the present function begin.
    start: u32,
    /// True if some attribute value is or names a function.
    attrs_name_functions: bool,
    /// The present function, counted from 1.
    function: u32,
    /// The function that was the last to have an attribute list, an attribute value, a function as
    /// the value of an attribute. Empty if no attribute names a function.
    list_seen: Vec<u32>,
    value_seen: Vec<u32>,
    function_seen: Vec<u32>,
}

impl<'m> Collector<'m> {
    fn new(cx: &'m Context) -> Collector<'m> {
        let attrs_name_functions = cx.attrs.iter().any(|(_, a)| matches!(a, Attr::Global(_) | Attr::Function(_)));
        let stamps = |len: usize| vec![0; if attrs_name_functions { len } else { 0 }];
        Collector {
            cx,
            mentions: Vec::new(),
            last: vec![0; cx.globals.len()],
            start: 0,
            attrs_name_functions,
            function: 0,
            list_seen: stamps(cx.attrs.list_count()),
            value_seen: stamps(cx.attrs.len()),
            function_seen: stamps(cx.function_attrs.len()),
        }
    }

    /// The next function begins.
    fn function(&mut self) {
        self.start = self.mentions.len() as u32;
        self.function += 1;
    }

    /// Returns true if the present function comes to an attribute list that may name functions for
    /// the first time.
    fn is_new_list(&mut self, attrs: AttrsId) -> bool {
        self.attrs_name_functions
            && attrs != self.cx.attrs.empty()
            && std::mem::replace(&mut self.list_seen[attrs.index()], self.function) != self.function
    }

    fn mention(&mut self, global: GlobalId, kind: MentionKind) {
        let last = &mut self.last[global.index()];
        if *last > self.start {
            let mention = &mut self.mentions[*last as usize - 1];
            mention.kind = mention.kind.max(kind);
            return;
        }
        self.mentions.push(Mention { global, kind, callee: NO_FUNCTION });
        *last = self.mentions.len() as u32;
    }

    fn atom(&mut self, body: &Body, id: ExprId, kind: MentionKind) {
        if let Expr::Global(global) = body.expr(id) {
            self.mention(global, kind);
        }
    }

    fn body(&mut self, body: &Body) {
        if !self.attrs_name_functions && body.global_leaves().is_empty() {
            return;
        }
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Flat(id) => {
                    for (i, &input) in body.inputs(id).iter().enumerate() {
                        let is_callee = i == 0 && matches!(body.expr(id), Expr::Call { .. });
                        self.atom(body, input, if is_callee { MentionKind::Call } else { MentionKind::Value });
                    }
                    self.attrs_of(body, id);
                }
                Step::Enter(id) => {
                    if let Expr::Call { operands, .. } = body.expr(id)
                        && let Some(&callee) = body.operands(operands).first()
                    {
                        self.atom(body, callee, MentionKind::Call);
                    }
                    self.attrs_of(body, id);
                }
                Step::Atom(id) => self.atom(body, id, MentionKind::Value),
                Step::Let(_) | Step::Bound(_) | Step::Exit(_) | Step::Seen(_) => {}
                Step::EnterBlock(..) | Step::ExitBlock(..) => {}
            }
        }
    }

    fn attrs_of(&mut self, body: &Body, id: ExprId) {
        match body.expr(id) {
            Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => self.attrs(attrs),
            Expr::Lambda { lambda, .. } => self.attrs(body.lambda(lambda).attrs),
            _ => {}
        }
    }

    fn attrs(&mut self, attrs: AttrsId) {
        if !self.is_new_list(attrs) {
            return;
        }
        let cx = self.cx;
        let mut stack: Vec<AttrId> = cx.attrs.list(attrs).iter().rev().map(|&(_, value)| value).collect();
        while let Some(value) = stack.pop() {
            if std::mem::replace(&mut self.value_seen[value.index()], self.function) == self.function {
                continue;
            }
            match cx.attrs.get(value) {
                Attr::List(items) => stack.extend(items.iter().rev()),
                Attr::Global(global) => self.mention(*global, MentionKind::Value),
                Attr::Function(function) => self.function_attr(*function, &mut stack),
                _ => {}
            }
        }
    }

    /// What a function that is the value of an attribute names; its own attributes are put on the
    /// stack.
    fn function_attr(&mut self, function: FunctionAttrId, stack: &mut Vec<AttrId>) {
        if std::mem::replace(&mut self.function_seen[function.index()], self.function) == self.function {
            return;
        }
        let cx = self.cx;
        let function = &cx.function_attrs[function];
        let mut lists = vec![function.attrs];
        for (_, expr) in function.body.exprs() {
            match expr {
                Expr::Global(global) => self.mention(global, MentionKind::Value),
                Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => lists.push(attrs),
                Expr::Lambda { lambda, .. } => lists.push(function.body.lambda(lambda).attrs),
                _ => {}
            }
        }
        for attrs in lists.into_iter().rev() {
            if self.is_new_list(attrs) {
                stack.extend(cx.attrs.list(attrs).iter().rev().map(|&(_, value)| value));
            }
        }
    }
}
