//! # PlanMemory
//!
//! ```text
//! Notation   a value: the result of an operator, a call or an If. A storage: memory for values.
//!            A storage is live from the position at which its first value is written to the last
//!            use of its last value.
//! Needs      A-normal form.
//! Effect     def @f(…) { B }   =>   #["memory.arena"=b, "memory.live"=l, "memory.values"=v]
//!                                   def @f(…) { B }
//!            The plan itself is the result of `plan_memory`: a storage for each value, and an
//!            offset for each storage, in one arena of b bytes. l is the largest sum of bytes that
//!            are live at once, v the sum of the bytes of all values.
//! Sharing    Storages that are not live together may overlap. A row with `relabels` (reshape,
//!            squeeze), `forwards`, a tuple and a projection make no storage. An elementwise
//!            operator writes its result over an operand of the same shape that dies there. The
//!            branches of an If share memory, and write their results to the storage of the
//!            result, or copy them.
//! Functions  Each function, and each fn, has an arena. While a call runs, the arena of the callee
//!            is a storage of the caller, which copies the result. A fn holds what it captures:
//!            that lives as long as it does.
//! Sizes      Are rounded up to `alignment`. A symbol has at most the value of the option of its
//!            name, `n=128`. A tensor whose extents have no bound has a storage outside of the
//!            arena, and so does a value that a fn holds which leaves the function.
//! Outside    Parameters and constants have no storage, since the caller or the program has them.
//! Not done   Calls of recursive, declared and unknown functions are counted, not planned. An
//!            operator is not moved to need less: the order of the bindings is kept.
//! Cost       A walk, a sort of the storages, and a search in an ordered set for each of them. A
//!            program of few live values is placed in other orders too, and the smallest arena is
//!            taken. Idempotent.
//!
//! before     def @f(%x: Tensor[(256,), float32]) {
//!              let %a = exp(%x);
//!              let %b = tanh(%a);
//!              let %c = matmul(%b, %b);
//!              add(%c, 1.0f)
//!            }
//! after      #["memory.arena"=1032, "memory.live"=1032, "memory.values"=2064]
//!            def @f(%x: Tensor[(256,), float32]) { … }
//! ```

mod flow;
mod memory_plan;
mod offsets;
#[cfg(feature = "interp")]
mod planned_memory;
mod sizes;
mod storages;

use std::ops::ControlFlow;

use anfora_ir::{Attr, AttrsId, Context, Diagnostic, EntityId, FunctionKey, Module, SymbolId, did_you_mean};
use anfora_manager::{PassError, Property, register_pass};
use anfora_visit::CallGraph;
use rustc_hash::{FxHashMap, FxHashSet};

use self::flow::Flow;
use self::sizes::Sizes;

#[cfg(feature = "interp")]
pub use self::planned_memory::PlannedMemory;

pub use self::memory_plan::{
    FunctionPlan, LivePoint, MemoryPlan, PlannedScope, Storage, StorageHome, TuplePlaces, ValuePlace,
};

register_pass! {
    /// Plans the memory of values: a storage for each, and an offset for each storage
    pub PLAN_MEMORY = ModulePass("PlanMemory", 0).needing(["anf"]).establishing([MEMORY_PLANNED]);
    options {
        /// sizes and offsets are multiples of it
        alignment: u64 [1..=65536] = 8,
        /// upper bounds of symbols by name, each an option of its own: `n=128`
        bounds: Vec<(String, i64)> [0..=i64::MAX] = [],
    }
    run {
        let options = MemoryOptions { alignment, bounds };
        move |module, cx| {
            cx.count("planned", record_plans(module, &options)? as u64);
            Ok(())
        }
    }
}

/// The name of the property [`memory_planned`].
pub const MEMORY_PLANNED: &str = "memory-planned";

/// The keys of the record in the metadata of a function.
const ARENA: &str = "memory.arena";
const LIVE: &str = "memory.live";
const VALUES: &str = "memory.values";
const ALIGNMENT: &str = "memory.alignment";
const BOUNDS: &str = "memory.bounds";

/// The options of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryOptions {
    /// Sizes and offsets are multiples of it. 0 counts as 1.
    pub alignment: u64,
    /// Upper bounds of symbolic dimensions by name.
    pub bounds: Vec<(String, i64)>,
}

impl Default for MemoryOptions {
    /// Returns an alignment of 8 bytes, which is enough for every element type, and no bounds.
    fn default() -> MemoryOptions {
        MemoryOptions { alignment: 8, bounds: Vec::new() }
    }
}

/// Plans the memory of the functions of a module.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_passes::{MemoryOptions, ValuePlace, plan_memory};
///
/// let text = "def @main(%x: Tensor[(4, 4), float32]) {
///   let %a = matmul(%x, %x);
///   let %b = reshape(%a, dense<Tensor[(1,), int64]>[16]);
///   let %c = exp(%b);
///   let %d = matmul(%x, %x);
///   (%c, %d)
/// }";
/// let module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let plan = plan_memory(&module, &MemoryOptions::default())?;
/// let main = plan.function(module.find("main").expect("it is defined")).expect("it has a body");
/// // `%b` is `%a` under another shape, and `%c` is written over it.
/// assert_eq!(main.storages().len(), 2);
/// assert_eq!(main.own_scope().arena, 128);
/// assert_eq!(main.own_scope().separate, 4 * 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a function is not in A-normal form, or no symbol has the name of a bound.
pub fn plan_memory(module: &Module, options: &MemoryOptions) -> Result<MemoryPlan, PassError> {
    let mut plan = MemoryPlan { functions: Vec::new(), index: FxHashMap::default() };
    visit_flows(module, options, |key, flow| {
        let planned = storages::plan_values(key, flow);
        let arena = planned.own_scope().arena;
        plan.index.insert(key, plan.functions.len());
        plan.functions.push(planned);
        ControlFlow::Continue(arena)
    })?;
    Ok(plan)
}

/// Passes the values of the functions of a module to `each`, callees before their callers, until it
/// returns `Break`. It returns the bytes of the function's arena otherwise.
fn visit_flows(
    module: &Module,
    options: &MemoryOptions,
    mut each: impl FnMut(FunctionKey, Flow) -> ControlFlow<(), u64>,
) -> Result<(), PassError> {
    check_bounds(&module.cx, &options.bounds)?;
    let graph = CallGraph::of(module);
    let mut sizes = Sizes::new(&module.cx, &options.bounds, options.alignment.max(1));
    let mut arenas: FxHashMap<FunctionKey, u64> = FxHashMap::default();
    for key in graph.callees_first() {
        let Some(function) = module.get(key).filter(|f| f.is_definition()) else { continue };
        let flow = Flow::of(&module.cx, &function.body, &mut sizes, &arenas)
            .map_err(|error| PassError::from(error).in_function(module.name(key)))?;
        let ControlFlow::Continue(arena) = each(key, flow) else { break };
        if !graph.is_recursive(key) {
            arenas.insert(key, arena);
        }
    }
    Ok(())
}

/// Returns an error if no symbol has the name of a bound.
fn check_bounds(cx: &Context, bounds: &[(String, i64)]) -> Result<(), PassError> {
    if bounds.is_empty() {
        return Ok(());
    }
    let dims = &cx.types.dims;
    let names = || (0..dims.symbol_count()).map(|i| cx.names.get(dims.symbol_name(SymbolId::from_index(i))));
    let known: FxHashSet<&str> = names().collect();
    let Some((name, _)) = bounds.iter().find(|(name, _)| !known.contains(name.as_str())) else { return Ok(()) };
    let error = PassError::new(format!("no symbolic dimension is called `{name}`"));
    Err(match did_you_mean(name, names()) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error,
    })
}

/// Records the summary of its plan in the metadata of each function with a body. Returns the number
/// of functions that had another record or none.
fn record_plans(module: &mut Module, options: &MemoryOptions) -> Result<usize, PassError> {
    let mut planned: Vec<(FunctionKey, [i64; 3])> = Vec::new();
    visit_flows(module, options, |key, flow| {
        let scope = storages::plan_own_scope(flow);
        planned.push((key, summary(&scope)));
        ControlFlow::Continue(scope.arena)
    })?;
    let mut changed = 0;
    for (key, summary) in planned {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        let meta = recorded(cx, function.meta, summary, options);
        if meta != function.meta {
            function.meta = meta;
            changed += 1;
        }
    }
    Ok(changed)
}

/// Returns the bytes of the arena, those that are live at once, and those of all values.
fn summary(scope: &PlannedScope) -> [i64; 3] {
    [scope.arena, scope.live, scope.separate].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Returns metadata with the record of a plan.
fn recorded(cx: &mut Context, meta: AttrsId, summary: [i64; 3], options: &MemoryOptions) -> AttrsId {
    let mut meta = meta;
    for (key, value) in [ARENA, LIVE, VALUES].into_iter().zip(summary) {
        let value = cx.int_attr(value);
        meta = cx.with_attr(meta, key, Some(value));
    }
    let defaults = MemoryOptions::default();
    let alignment = (options.alignment != defaults.alignment).then(|| cx.int_attr(options.alignment as i64));
    meta = cx.with_attr(meta, ALIGNMENT, alignment);
    let bounds = (!options.bounds.is_empty()).then(|| {
        let bounds: Vec<_> = options.bounds.iter().map(|(n, bound)| (cx.str_attr(n), cx.int_attr(*bound))).collect();
        let pairs: Vec<_> = bounds.into_iter().map(|(n, bound)| cx.attr(Attr::List([n, bound].into()))).collect();
        cx.attr(Attr::List(pairs.into()))
    });
    cx.with_attr(meta, BOUNDS, bounds)
}

/// Returns the property of modules that PlanMemory establishes: each function with a body has the
/// record of the plan that PlanMemory would make, with the options in the record. Its check plans
/// the memory again, so the record holds for a text too. A registry of PlanMemory needs the
/// property; [`register`](crate::register) registers both.
pub fn memory_planned() -> Property {
    Property::new(MEMORY_PLANNED, "each function with a body has the record of the plan of its memory")
        .observed_by(check_records)
}

fn check_records(module: &Module) -> Result<(), Vec<Diagnostic>> {
    let in_function = |key: FunctionKey, what: &str| {
        vec![
            Diagnostic::error(what)
                .in_function(module.name(key))
                .with_help("run PlanMemory after the passes that change functions"),
        ]
    };
    let definitions = || module.functions().filter(|(_, f)| f.is_definition());
    let record = |meta| [ARENA, LIVE, VALUES].map(|name| recorded_int(&module.cx, meta, name));
    let Some((_, first)) = definitions().next() else { return Ok(()) };
    let options = recorded_options(&module.cx, first.meta);
    for (key, function) in definitions() {
        if record(function.meta).contains(&None) {
            return Err(in_function(key, "the memory of the function is not planned"));
        }
        if recorded_options(&module.cx, function.meta) != options {
            return Err(in_function(key, "the memory of the function is planned with other options"));
        }
    }
    let mut outdated = None;
    visit_flows(module, &options, |key, flow| {
        let scope = storages::plan_own_scope(flow);
        if module.get(key).is_some_and(|function| record(function.meta) == summary(&scope).map(Some)) {
            return ControlFlow::Continue(scope.arena);
        }
        outdated = Some(key);
        ControlFlow::Break(())
    })
    .map_err(|error| vec![Diagnostic::error(format!("the memory cannot be planned: {}", error.message()))])?;
    match outdated {
        Some(key) => Err(in_function(key, "the plan of the memory is not that of the function")),
        None => Ok(()),
    }
}

fn recorded_int(cx: &Context, meta: AttrsId, key: &str) -> Option<i64> {
    match cx.find_attr(meta, key).map(|id| cx.attrs.get(id)) {
        Some(&Attr::Int(value)) => Some(value),
        _ => None,
    }
}

/// Returns the options in the record of a function; the defaults for those that it does not have.
fn recorded_options(cx: &Context, meta: AttrsId) -> MemoryOptions {
    let mut options = MemoryOptions::default();
    if let Some(alignment) = recorded_int(cx, meta, ALIGNMENT).and_then(|value| u64::try_from(value).ok()) {
        options.alignment = alignment;
    }
    if let Some(Attr::List(pairs)) = cx.find_attr(meta, BOUNDS).map(|id| cx.attrs.get(id)) {
        options.bounds = pairs
            .iter()
            .filter_map(|&pair| {
                let Attr::List(pair) = cx.attrs.get(pair) else { return None };
                match (cx.attrs.get(*pair.first()?), cx.attrs.get(*pair.get(1)?)) {
                    (&Attr::Str(name), &Attr::Int(bound)) => Some((cx.names.get(name).to_string(), bound)),
                    _ => None,
                }
            })
            .collect();
    }
    options
}
