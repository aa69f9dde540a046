//! A cache of analysis results about functions and modules, kept for as long as they are valid.

use std::any::{Any, TypeId, type_name};
use std::sync::{Arc, Mutex};

use anfora_ir::{Body, Context, FunctionKey, Module, ModuleStamp, Stamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::PassError;
use crate::function_edit::FunctionEdit;
use crate::sync::lock;

/// A cache of analysis results, kept from pass to pass of a sequence.
///
/// An analysis is a plain function of a body, of the tables and a body, or of a module. It runs
/// when its result is asked for and is not cached. The type of its result identifies it, so each
/// analysis needs a result type of its own. A result is valid only for the state that it was
/// computed for: after an edit the analysis runs again, and once that edit is rolled back the
/// earlier result is valid again.
///
/// This is a handle: clones share the results. Workers may ask at the same time; an analysis may
/// ask for other analyses.
///
/// ```
/// use anfora_ir::{Body, Module};
/// use anfora_manager::{FunctionPass, ModulePass};
///
/// struct NodeCount(usize);
///
/// impl NodeCount {
///     fn of(body: &Body) -> NodeCount {
///         NodeCount(body.len())
///     }
/// }
///
/// struct Definitions(usize);
///
/// fn definitions(module: &Module) -> Definitions {
///     Definitions(module.functions().filter(|(_, f)| f.is_definition()).count())
/// }
///
/// FunctionPass::new("CountNodes", 0, |func, _module, cx| {
///     cx.count("nodes", cx.analyses().get(func, NodeCount::of).0 as u64);
///     Ok(())
/// });
/// ModulePass::new("CountFunctions", 0, |module, cx| {
///     cx.count("functions", cx.analyses().of_module(module, definitions).0 as u64);
///     for &key in module.order() {
///         let nodes = cx.analyses().of_function(module, key, NodeCount::of);
///         cx.count("nodes", nodes.map_or(0, |n| n.0 as u64));
///     }
///     Ok(())
/// });
/// ```
#[derive(Clone, Default)]
pub struct Analyses {
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    /// Results by the identity of the body. For each result type there is one for every state of
    /// the body that a rollback can restore, and one for its present state.
    functions: FxHashMap<(u64, TypeId), Vec<FunctionResult>>,
    /// Results by the identity of the table of globals.
    modules: FxHashMap<(u64, TypeId), Vec<ModuleResult>>,
}

type Shared = Arc<dyn Any + Send + Sync>;
type BodyAnalysis = dyn Fn(&Context, &Body) -> Shared + Send + Sync;
type ModuleAnalysis = dyn Fn(&Module) -> Shared + Send + Sync;

struct FunctionResult {
    stamp: Stamp,
    /// The state of the globals, for an analysis that may read them.
    globals: Option<Stamp>,
    value: Shared,
    again: Arc<BodyAnalysis>,
}

struct ModuleResult {
    stamp: ModuleStamp,
    /// The number of open edits, not counting an innermost edit without changes.
    depth: usize,
    value: Shared,
    again: Arc<ModuleAnalysis>,
}

/// An analysis that reads the body alone, `Fn(&Body) -> T`.
#[derive(Copy, Clone, Debug)]
pub struct OfBody;

/// An analysis that reads the tables too, `Fn(&Context, &Body) -> T`.
#[derive(Copy, Clone, Debug)]
pub struct OfBodyAndTables;

/// An analysis of a function: a function of its body ([`OfBody`]), or of the tables and the body
/// ([`OfBodyAndTables`]). A result of the second kind becomes invalid when the signature of any
/// global changes.
pub trait FunctionAnalysis<Form>: Send + Sync + 'static {
    /// The type of the result.
    type Result: Send + Sync + 'static;

    /// True if the analysis may read the signatures of globals.
    const READS_TABLES: bool;

    /// Computes the result.
    ///
    /// Cost: that of the author's code.
    fn run(&self, cx: &Context, body: &Body) -> Self::Result;
}

impl<F: Fn(&Body) -> T + Send + Sync + 'static, T: Send + Sync + 'static> FunctionAnalysis<OfBody> for F {
    type Result = T;
    const READS_TABLES: bool = false;

    fn run(&self, _: &Context, body: &Body) -> T {
        self(body)
    }
}

impl<F: Fn(&Context, &Body) -> T + Send + Sync + 'static, T: Send + Sync + 'static> FunctionAnalysis<OfBodyAndTables>
    for F
{
    type Result = T;
    const READS_TABLES: bool = true;

    fn run(&self, cx: &Context, body: &Body) -> T {
        self(cx, body)
    }
}

impl Analyses {
    /// Makes an empty cache.
    pub fn new() -> Analyses {
        Analyses::default()
    }

    /// Returns the result of an analysis for the current state of a function that a pass is given.
    pub fn get<Form, A: FunctionAnalysis<Form>>(&self, func: &FunctionEdit<'_>, analysis: A) -> Arc<A::Result> {
        self.of_body(func.cx, &func.function.body, analysis)
    }

    /// Returns the result of an analysis for the current state of a function of a module; `None` if
    /// the function was removed.
    ///
    /// Cost: that of the analysis.
    pub fn of_function<Form, A: FunctionAnalysis<Form>>(
        &self,
        module: &Module,
        key: FunctionKey,
        analysis: A,
    ) -> Option<Arc<A::Result>> {
        Some(self.of_body(&module.cx, &module.get(key)?.body, analysis))
    }

    /// Returns the result of an analysis for the current state of a body.
    ///
    /// Cost: that of the analysis.
    pub fn of_body<Form, A: FunctionAnalysis<Form>>(&self, cx: &Context, body: &Body, analysis: A) -> Arc<A::Result> {
        let stamp = body.stamp();
        let slot = (stamp.identity(), TypeId::of::<A::Result>());
        let globals = A::READS_TABLES.then(|| cx.globals.stamp());
        if let Some(results) = lock(&self.cache).functions.get(&slot)
            && let Some(result) = results.iter().find(|r| r.stamp == stamp && r.globals == globals)
        {
            return typed(&result.value);
        }
        let value = Arc::new(analysis.run(cx, body));
        let again = Arc::new(move |cx: &Context, body: &Body| Arc::new(analysis.run(cx, body)) as Shared);
        lock(&self.cache).keep_function(slot, body, FunctionResult { stamp, globals, value: value.clone(), again });
        value
    }

    /// Returns the result of an analysis for the current state of a module. The lookup compares the
    /// state of each function and so takes time linear in the number of functions: callers that
    /// need the result for many functions should ask for it once.
    ///
    /// Cost: that of the analysis.
    pub fn of_module<T: Send + Sync + 'static>(
        &self,
        module: &Module,
        analysis: impl Fn(&Module) -> T + Send + Sync + 'static,
    ) -> Arc<T> {
        let slot = module_slot(module, TypeId::of::<T>());
        if let Some(results) = lock(&self.cache).modules.get(&slot)
            && let Some(result) = results.iter().find(|r| r.stamp.is_of(module))
        {
            return typed(&result.value);
        }
        let value = Arc::new(analysis(module));
        let depth = module.edit_depth() - usize::from(module.has_edit() && !module.has_changes());
        let again = Arc::new(move |module: &Module| Arc::new(analysis(module)) as Shared);
        let stamp = module.stamp();
        lock(&self.cache).keep_module(slot, ModuleResult { stamp, depth, value: value.clone(), again });
        value
    }
}

fn module_slot(module: &Module, id: TypeId) -> (u64, TypeId) {
    (module.cx.globals.stamp().identity(), id)
}

impl Cache {
    /// Keeps a result, and drops those whose states no rollback can restore.
    fn keep_function(&mut self, slot: (u64, TypeId), body: &Body, result: FunctionResult) {
        let results = self.functions.entry(slot).or_default();
        results.retain(|r| r.stamp != result.stamp && body.can_restore(r.stamp));
        results.push(result);
    }

    /// Keeps a result, and drops those whose states no rollback can restore: those inside of as
    /// many edits or more.
    fn keep_module(&mut self, slot: (u64, TypeId), result: ModuleResult) {
        let results = self.modules.entry(slot).or_default();
        results.retain(|r| r.depth < result.depth);
        results.push(result);
    }
}

fn typed<T: Send + Sync + 'static>(value: &Shared) -> Arc<T> {
    value.clone().downcast().expect("results are kept by their type")
}

// ---- Results that stay valid after a pass ----

/// An analysis whose results a pass keeps valid, identified by the type of its result.
#[derive(Copy, Clone)]
pub struct PreservedAnalysis {
    id: TypeId,
    name: &'static str,
    same: fn(&dyn Any, &dyn Any) -> bool,
}

impl PreservedAnalysis {
    /// Returns the preserved analysis with the result type `T`.
    pub fn of<T: PartialEq + Send + Sync + 'static>() -> PreservedAnalysis {
        fn same<T: PartialEq + 'static>(a: &dyn Any, b: &dyn Any) -> bool {
            a.downcast_ref::<T>().is_some_and(|a| b.downcast_ref::<T>() == Some(a))
        }
        PreservedAnalysis { id: TypeId::of::<T>(), name: type_name::<T>(), same: same::<T> }
    }

    /// Returns the name of the result type.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the analysis again under debug assertions, and returns an error if its result differs
    /// from `kept`.
    fn check(&self, kept: &Shared, again: impl FnOnce() -> Shared) -> Result<(), PassError> {
        if cfg!(debug_assertions) && !(self.same)(&**kept, &*again()) {
            return Err(PassError::new(format!("it declares that it preserves {}, but does not", self.name)));
        }
        Ok(())
    }
}

impl PartialEq for PreservedAnalysis {
    fn eq(&self, other: &PreservedAnalysis) -> bool {
        self.id == other.id
    }
}

impl Eq for PreservedAnalysis {}

impl std::fmt::Debug for PreservedAnalysis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Analyses {
    /// Returns true if the cache has no results.
    pub(crate) fn is_empty(&self) -> bool {
        let cache = lock(&self.cache);
        cache.functions.is_empty() && cache.modules.is_empty()
    }

    /// Makes the results of preserved analyses that were valid before a pass valid after it, too.
    /// Linear in the number of functions.
    ///
    /// # Errors
    /// Under debug assertions, if running a preserved analysis again gives another result.
    pub(crate) fn carry(
        &self,
        module: &Module,
        before: &ModuleStamp,
        preserved: &[PreservedAnalysis],
    ) -> Result<(), PassError> {
        let globals = module.cx.globals.stamp();
        let was_right = |r: &&FunctionResult| r.globals.is_none_or(|globals| globals == before.globals());
        for analysis in preserved {
            for (key, old) in before.functions() {
                let Some(body) = module.get(*key).map(|f| &f.body) else { continue };
                let (old, stamp) = (old.body(), body.stamp());
                let found = lock(&self.cache).functions.get(&(old.identity(), analysis.id)).and_then(|results| {
                    let result = results.iter().filter(|r| r.stamp == old).find(was_right)?;
                    Some((result.globals.map(|_| globals), result.value.clone(), result.again.clone()))
                });
                let Some((globals, value, again)) = found else { continue };
                let checked = analysis.check(&value, || again(&module.cx, body));
                checked.map_err(|e| e.in_function(module.name(*key)))?;
                let slot = (stamp.identity(), analysis.id);
                lock(&self.cache).keep_function(slot, body, FunctionResult { stamp, globals, value, again });
            }
            let slot = module_slot(module, analysis.id);
            let found = lock(&self.cache).modules.get(&slot).and_then(|results| {
                results.iter().find(|r| r.stamp == *before).map(|r| (r.value.clone(), r.again.clone()))
            });
            let Some((value, again)) = found else { continue };
            analysis.check(&value, || again(module))?;
            let (stamp, depth) = (module.stamp(), module.edit_depth());
            lock(&self.cache).keep_module(slot, ModuleResult { stamp, depth, value, again });
        }
        Ok(())
    }

    /// Drops the results that are not valid for the current state of the module.
    pub(crate) fn sweep(&self, module: &Module) {
        let live: FxHashSet<Stamp> = module.functions().map(|(_, f)| f.body.stamp()).collect();
        let globals = module.cx.globals.stamp();
        let mut cache = lock(&self.cache);
        cache.functions.retain(|_, results| {
            results.retain(|r| live.contains(&r.stamp) && r.globals.is_none_or(|g| g == globals));
            !results.is_empty()
        });
        cache.modules.retain(|_, results| {
            results.retain_mut(|r| {
                r.depth = 0;
                r.stamp.is_of(module)
            });
            !results.is_empty()
        });
    }
}

anfora_ir::brief_debug! { Analyses; }
