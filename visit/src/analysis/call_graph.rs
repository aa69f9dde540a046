//! The references between the functions of a module.

use anfora_ir::{Components, FunctionKey, Module};
use rustc_hash::FxHashMap;

use crate::analysis::flow_graph::FlowGraph;
use crate::global_walk::GlobalWalk;

/// The references of the functions of a module to globals, in their attributes and in the
/// expressions that their bodies' roots reach, with the strongly connected components.
///
/// A function that names another counts as its caller, since it may have it called. A declaration
/// names only the globals in its attributes.
///
/// Making it takes one walk of every body that names a global or has attributes that do, and time
/// linear in the references. It holds no expression ids, and describes the module at the time it
/// was made; a function that was added later has no relations.
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
/// let components = graph.components().map(|c| c.collect::<Vec<_>>());
/// assert_eq!(components.collect::<Vec<_>>(), [[callee], [main]]);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct CallGraph {
    /// The functions in program order.
    keys: Vec<FunctionKey>,
    positions: FxHashMap<FunctionKey, u32>,
    callees: FlowGraph<u32>,
    callers: FlowGraph<u32>,
    components: Components,
}

impl CallGraph {
    /// Returns the call graph of a module.
    pub fn of(module: &Module) -> CallGraph {
        let keys = module.order().to_vec();
        let positions: FxHashMap<FunctionKey, u32> = keys.iter().enumerate().map(|(i, &k)| (k, i as u32)).collect();
        let unused = GlobalWalk::new(&module.cx);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        // By position: the last function that names it, counted from 1.
        let mut last = vec![0; keys.len()];
        for (from, (_, function)) in (0..).zip(module.functions()) {
            let mut name = |global| {
                let target = module.cx.globals.get(global).target.function();
                let Some(&to) = target.and_then(|key| positions.get(&key)) else { return };
                if std::mem::replace(&mut last[to as usize], from + 1) != from + 1 {
                    edges.push((from, to));
                }
            };
            let mut walk = unused.clone();
            walk.in_attrs(&module.cx, function.attrs, &mut name);
            walk.in_body(&module.cx, &function.body, &mut name);
        }
        let callees = FlowGraph::new(keys.len(), &edges);
        edges.iter_mut().for_each(|edge| *edge = (edge.1, edge.0));
        let callers = FlowGraph::new(keys.len(), &edges);
        let components = Components::of(keys.len(), |v| callees.edges(v));
        CallGraph { keys, positions, callees, callers, components }
    }

    fn keys<'g>(
        &'g self,
        positions: &'g [u32],
    ) -> impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator + 'g {
        positions.iter().map(|&p| self.keys[p as usize])
    }

    /// Returns the functions that a function names, each once: first those in its attributes, then
    /// those in its body, in order. Includes the function itself if it names itself. Globals that
    /// do not resolve to a function are not included.
    pub fn callees(
        &self,
        function: FunctionKey,
    ) -> impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator + '_ {
        self.keys(self.positions.get(&function).map_or(&[], |&p| self.callees.edges(p)))
    }

    /// Returns the functions that name a function, in program order.
    pub fn callers(
        &self,
        function: FunctionKey,
    ) -> impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator + '_ {
        self.keys(self.positions.get(&function).map_or(&[], |&p| self.callers.edges(p)))
    }

    /// Returns the strongly connected components, callees first, each in program order. Functions
    /// that can reach each other are in one component.
    pub fn components(
        &self,
    ) -> impl DoubleEndedIterator<Item = impl DoubleEndedIterator<Item = FunctionKey> + ExactSizeIterator> + ExactSizeIterator
    {
        self.components.iter().map(|members| self.keys(members))
    }

    /// Returns the functions, callees before their callers unless they are in a cycle.
    pub fn callees_first(&self) -> impl DoubleEndedIterator<Item = FunctionKey> + '_ {
        self.components().flatten()
    }

    /// Returns the number of a function's component. Callees have smaller numbers, unless they are
    /// in the same component.
    pub fn component(&self, function: FunctionKey) -> Option<usize> {
        self.positions.get(&function).map(|&p| self.components.component(p))
    }

    /// Returns true if a function can reach itself.
    pub fn is_recursive(&self, function: FunctionKey) -> bool {
        self.positions.get(&function).is_some_and(|&p| self.components.is_cyclic(p))
    }

    /// Returns the functions that `roots` can reach, including the roots themselves, in program
    /// order. Takes time linear in the module's functions and their references.
    pub fn reachable(&self, roots: impl IntoIterator<Item = FunctionKey>) -> Vec<FunctionKey> {
        let mut reached = vec![false; self.keys.len()];
        let mut work: Vec<u32> = roots.into_iter().filter_map(|key| self.positions.get(&key).copied()).collect();
        while let Some(p) = work.pop() {
            if !std::mem::replace(&mut reached[p as usize], true) {
                work.extend(self.callees.edges(p).iter().filter(|&&c| !reached[c as usize]));
            }
        }
        self.keys.iter().zip(reached).filter_map(|(&key, reached)| reached.then_some(key)).collect()
    }
}
