//! # RemoveUnusedParameters
//!
//! ```text
//! Notation   @g a private function, %p one of its parameters, %a arguments.
//! Needs      A-normal form of the functions that name private functions.
//! Effect     def private @g(…, %p, …) { B }   =>   def private @g(…, …) { B }
//!            @g(…, %a, …)                     =>   @g(…, …), in all functions
//!              if B does not use %p, or only passes it on as an argument for a parameter that is
//!              removed too, in calls of itself and of other functions.
//!            Callers are typed again, and their callers.
//! Symbols    A parameter that alone binds a symbol stays if the function names the symbol: in
//!            another parameter, the result or the body. If several do, the first stays.
//! Stays      Parameters of functions that are public, external, declared or primitive, that are
//!            used as values (by `make_closure` too), or that an attribute names.
//! Not done   Unused bindings stay: the arguments that were passed, and values that only they use.
//!            DeadCodeElimination removes them; another run may then find more.
//! Cost       Two walks of each function, one more of each function with an unused parameter whose
//!            type is symbolic, and the calls that are typed again. Idempotent.
//!
//! before     def @f(%x: int32, %y: int32) {    after   def @f(%x: int32, %y: int32) {
//!              @g(%x, %y)                                @g(%x)
//!            }                                         }
//!            def private @g(%p: int32, %q: int32) {    def private @g(%p: int32) {
//!              negative(%p)                              negative(%p)
//!            }                                         }
//! ```

use anfora_ir::{Cursor, ExprId, FunctionKey, GlobalId, Module, SignatureChange, Step, SymbolId, change_signatures};
use anfora_manager::{PassError, register_pass};
use anfora_visit::RewriteError;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::parameter_symbols::{only_binders, symbols_named_by};
use crate::private_functions::{callee_of, only_called};

register_pass! {
    /// Removes parameters of private functions that nothing uses, and their arguments
    pub REMOVE_UNUSED_PARAMETERS = ModulePass("RemoveUnusedParameters", 1).needing(["anf"]);
    run |module, cx| {
        cx.count("removed", remove_unused_parameters(module)? as u64);
        Ok(())
    }
}

/// Removes the parameters of private functions that nothing uses, and returns their number.
///
/// # Errors
/// If a function that names a private function is not in A-normal form, or if a caller cannot be
/// typed again.
pub fn remove_unused_parameters(module: &mut Module) -> Result<usize, PassError> {
    let functions = only_called(module)?;
    let mut needs = ParameterNeeds::of(module, &functions)?;
    needs.spread();
    let mut named = FxHashMap::default();
    while needs.keep_for_symbols(module, &mut named) {
        needs.spread();
    }
    let mut changes = Vec::new();
    let mut removed = 0;
    for &(key, first, count) in &needs.functions {
        let is_needed = &needs.is_needed[first..first + count];
        let unused = is_needed.iter().filter(|is_needed| !**is_needed).count();
        if unused > 0 {
            removed += unused;
            let change = SignatureChange::new().no_parameters();
            changes.push((key, change.keep_all((0..count).filter(|&i| is_needed[i]))));
        }
    }
    if !changes.is_empty() {
        change_signatures(module, changes)?;
    }
    Ok(removed)
}

/// The parameters that are needed, by numbers that are unique in the module.
struct ParameterNeeds {
    /// The functions whose parameters may be removed, with the number of their first parameter and
    /// the count of their parameters, in the order of the module.
    functions: Vec<(FunctionKey, usize, usize)>,
    is_needed: Vec<bool>,
    /// The parameters whose need has not been spread.
    waiting: Vec<usize>,
    /// Pairs of a parameter of a callee and the parameter of a caller that is passed for it,
    /// sorted.
    passed: Vec<(usize, usize)>,
}

impl ParameterNeeds {
    /// Returns the parameters that bodies use, other than by passing them to these functions.
    fn of(module: &Module, functions: &FxHashMap<GlobalId, FunctionKey>) -> Result<ParameterNeeds, RewriteError> {
        let mut needs =
            ParameterNeeds { functions: Vec::new(), is_needed: Vec::new(), waiting: Vec::new(), passed: Vec::new() };
        let mut first_of: FxHashMap<FunctionKey, usize> = FxHashMap::default();
        for (key, function) in module.functions() {
            if function.global().is_some_and(|global| functions.contains_key(&global)) {
                let (first, count) = (needs.is_needed.len(), function.body.params().len());
                first_of.insert(key, first);
                needs.functions.push((key, first, count));
                needs.is_needed.resize(first + count, false);
            }
        }
        for &(key, first, _) in &needs.functions.clone() {
            let Some(function) = module.get(key) else { continue };
            let body = &function.body;
            let own: FxHashMap<ExprId, usize> =
                body.params().iter().enumerate().map(|(i, param)| (param.expr(), first + i)).collect();
            let mut cursor = Cursor::new(body);
            while let Some(step) = cursor.next(body) {
                RewriteError::unless_anf(&module.cx, body, &cursor, step)?;
                match step {
                    Step::Atom(id) => own.get(&id).into_iter().for_each(|&param| needs.need(param)),
                    Step::Flat(id) => {
                        let callee = callee_of(functions, body, id).and_then(|callee| first_of.get(&callee));
                        for (i, input) in body.inputs(id).iter().enumerate() {
                            match (own.get(input), callee) {
                                (Some(&param), Some(&first)) if i > 0 => needs.passed.push((first + i - 1, param)),
                                (Some(&param), _) => needs.need(param),
                                (None, _) => {}
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        needs.passed.sort_unstable();
        Ok(needs)
    }

    fn need(&mut self, param: usize) {
        if !std::mem::replace(&mut self.is_needed[param], true) {
            self.waiting.push(param);
        }
    }

    /// Marks what is passed for needed parameters as needed.
    fn spread(&mut self) {
        while let Some(param) = self.waiting.pop() {
            let start = self.passed.partition_point(|&(callee, _)| callee < param);
            for i in start..self.passed.len() {
                let (callee, caller) = self.passed[i];
                if callee != param {
                    break;
                }
                self.need(caller);
            }
        }
    }

    /// Marks unused parameters as needed that alone bind a symbol which their function names.
    /// Returns true if there are any. `named` has the symbols that the bodies name.
    fn keep_for_symbols(&mut self, module: &Module, named: &mut FxHashMap<FunctionKey, FxHashSet<SymbolId>>) -> bool {
        for &(key, first, count) in &self.functions.clone() {
            let Some(function) = module.get(key) else { continue };
            let is_needed = &self.is_needed[first..first + count];
            let in_body = || named.entry(key).or_insert_with(|| symbols_named_by(&module.cx, function)).clone();
            for i in only_binders(&module.cx, &function.body, is_needed, in_body) {
                self.need(first + i);
            }
        }
        !self.waiting.is_empty()
    }
}
