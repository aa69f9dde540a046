//! The call graph of a module: an edge from each function to those that it names.

use rustc_hash::FxHashMap;

use crate::core::entity::FunctionKey;
use crate::core::module::Module;
use crate::walk::components::Components;

/// The definitions that each definition names, by their positions in program order.
pub(crate) struct CallGraph {
    /// The position in `callees` at which the callees of each function start.
    starts: Vec<u32>,
    callees: Vec<u32>,
}

impl CallGraph {
    pub(crate) fn of(module: &Module, keys: &[FunctionKey]) -> CallGraph {
        let positions: FxHashMap<FunctionKey, u32> = keys.iter().enumerate().map(|(i, &k)| (k, i as u32)).collect();
        let mut graph = CallGraph { starts: Vec::with_capacity(keys.len() + 1), callees: Vec::new() };
        for &key in keys {
            graph.starts.push(graph.callees.len() as u32);
            let Some(function) = module.get(key) else { continue };
            for (_, global) in function.body.global_leaves() {
                let target = module.cx.globals.get(global).target.function();
                if let Some(&i) = target.and_then(|t| positions.get(&t)) {
                    graph.callees.push(i);
                }
            }
        }
        graph.starts.push(graph.callees.len() as u32);
        graph
    }

    pub(crate) fn callees(&self, i: u32) -> &[u32] {
        &self.callees[self.starts[i as usize] as usize..self.starts[i as usize + 1] as usize]
    }

    pub(crate) fn components(&self) -> Components {
        Components::of(self.starts.len() - 1, |i| self.callees(i))
    }
}
