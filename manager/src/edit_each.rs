//! Edits of many functions by a module pass, on the threads of the context.

use anfora_ir::{Context, Function, FunctionKey, Module};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::PassContext;
use crate::function_pass::Frozen;
use crate::parallel::Job;
use crate::scope::inherit;

impl PassContext {
    /// Edits functions of a module, and returns each key with the result of `edit`, in the order of
    /// the keys. Keys of removed functions, and keys that occur again, are left out.
    ///
    /// This is for a module pass that does the same to many functions. `edit` gets the tables for
    /// reading, so it cannot intern. The functions are edited on the threads of the context
    /// ([`PassContextBuilder::threads`](crate::PassContextBuilder::threads)) if they are a large
    /// part of the module and large enough that it pays, and the ledger of rewrites is off.
    /// Otherwise, they are edited one after the other, and rewrites count as those of the function.
    /// `edit` returns its messages and counts: those that it left in a context would come in
    /// the order of the threads.
    ///
    /// Cost: that of the author's code.
    ///
    /// ```
    /// use anfora_ir::{Source, parse_module};
    /// use anfora_manager::PassContext;
    ///
    /// let text = "def @f(%x: float32) { %x } def @g(%x: int64, %y: int64) { %y }";
    /// let mut module = parse_module(Source::new("example", text), Default::default())?;
    /// let keys = module.order().to_vec();
    /// let counts = PassContext::new().edit_each(&mut module, &keys, |_tables, function| {
    ///     function.body.params().len()
    /// });
    /// assert_eq!(counts, [(keys[0], 1), (keys[1], 2)]);
    /// # Ok::<(), anfora_ir::Diagnostics>(())
    /// ```
    pub fn edit_each<R: Send>(
        &self,
        module: &mut Module,
        keys: &[FunctionKey],
        edit: impl Fn(&Context, &mut Function) -> R + Sync,
    ) -> Vec<(FunctionKey, R)> {
        // To collect all functions of a module for editing takes a step for each of them.
        let nodes = match keys.len() >= module.order().len() / 8 {
            true => keys.iter().filter_map(|&key| module.get(key)).map(|f| f.body.len()).sum(),
            false => 0,
        };
        let Some(workers) = self.workers_for(&module.cx.rewrites, keys.len(), nodes) else {
            let mut edited = FxHashSet::default();
            let mut edit_one = |key| {
                let (function, tables) = module.get_mut(key).filter(|_| edited.insert(key))?;
                tables.rewrites.enter_function(function.global().map(|global| tables.global_name(global)));
                Some((key, edit(tables, function)))
            };
            return keys.iter().filter_map(|&key| edit_one(key)).collect();
        };
        module.cx.freeze();
        let (functions, tables) = module.get_all_mut();
        let frozen = Frozen(tables);
        let mut functions: FxHashMap<FunctionKey, &mut Function> = functions.into_iter().collect();
        let job = |key| {
            let function = functions.remove(&key)?;
            Some(Job { size: function.body.len(), what: (key, function) })
        };
        let jobs = keys.iter().copied().filter_map(job).collect();
        // Each thread has arenas of its own for scratch memory, in an overlay.
        let own = || (frozen.0.overlay(), self.fork());
        let edit_all = |tables: &Context, functions: Vec<(FunctionKey, &mut Function)>| -> Vec<(FunctionKey, R)> {
            functions.into_iter().map(|(key, function)| (key, edit(tables, function))).collect()
        };
        let edited = workers.map(workers.chunks(jobs), own, |(tables, handle), _, functions| {
            inherit(handle, || edit_all(tables, functions))
        });
        edited.into_iter().flatten().collect()
    }
}
