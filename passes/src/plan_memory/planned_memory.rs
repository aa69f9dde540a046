//! The memory of a plan, in which the interpreter runs a program.

use anfora_interp::{MirroredCall, MirroredValue, ValueMirror};
use anfora_ir::{Body, Expr, ExprId, FunctionKey, Literal, Module, VarId};
use anfora_visit::bindings;
use rustc_hash::{FxHashMap, FxHashSet};

use super::memory_plan::{FunctionPlan, MemoryPlan, Storage, ValuePlace};

/// One buffer that has the arenas of all calls that run, as a plan lays them out.
///
/// As the mirror of a run, with [`call_mirrored`](anfora_interp::Interpreter::call_mirrored), it
/// stores each value that an operator, a call or an If gives at the place that the plan has for
/// it, and overwrites places whose values are not used any more. At each use of a variable, the
/// bytes at its place must be those of the value; if not, the run ends with an error. So a run that
/// succeeds has the results that it would have with no other memory than the buffer.
///
/// ```
/// use anfora_interp::{Interpreter, Values};
/// use anfora_ir::{Literal, Source, parse_module};
/// use anfora_passes::{MemoryOptions, PlannedMemory, plan_memory};
///
/// let text = "def @main(%x: Tensor[(2,), float32]) {
///   let %y = add(%x, %x);
///   let %z = exp(%y);
///   multiply(%z, %z)
/// }";
/// let module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let plan = plan_memory(&module, &MemoryOptions::default())?;
/// let mut values = Values::new();
/// let x = values.tensor(Literal::from_elements(&[2], &[1.5f32, -2.0])?);
/// let mut memory = PlannedMemory::new(&module, &plan);
/// let outcome = Interpreter::new(&module).call_mirrored("main", values, &[x], &mut memory)?;
/// assert!(outcome.tensor().is_some());
/// assert_eq!(memory.bytes(), 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PlannedMemory<'p> {
    module: &'p Module,
    plan: &'p MemoryPlan,
    buffer: Vec<u8>,
    frames: FxHashMap<u32, ArenaFrame>,
    functions: FxHashMap<FunctionKey, RunFunction>,
}

/// The arena of an activation in the buffer.
struct ArenaFrame {
    function: FunctionKey,
    scope: u32,
    /// The activation in which the `fn` was evaluated.
    parent: Option<u32>,
    base: usize,
    /// The end of the arenas of this activation and of its callers.
    top: usize,
    /// The number of storages that are overwritten already, in the order of their last uses.
    dead: usize,
}

/// The parts of a function that a run needs beside its plan.
struct RunFunction {
    /// The scopes of `fn`s.
    scopes: FxHashMap<ExprId, u32>,
    /// The storages of each scope in the order of their last uses.
    by_last: Vec<Vec<u32>>,
    /// The value of the Let of each variable.
    values: FxHashMap<VarId, ExprId>,
}

/// The byte that overwrites dead storages.
const POISON: u8 = 0xA5;

/// The largest buffer.
const MAX_BUFFER: usize = 4 << 30;

impl<'p> PlannedMemory<'p> {
    /// Returns the memory of a plan of this module, with an empty buffer.
    ///
    /// Cost: one entry.
    pub fn new(module: &'p Module, plan: &'p MemoryPlan) -> PlannedMemory<'p> {
        let (frames, functions) = (FxHashMap::default(), FxHashMap::default());
        PlannedMemory { module, plan, buffer: Vec::new(), frames, functions }
    }

    /// Returns the bytes of the buffer so far.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    fn plan_of(&self, function: FunctionKey) -> Result<&'p FunctionPlan, String> {
        self.plan.function(function).ok_or_else(|| "a function without a plan is called".to_string())
    }

    /// Returns the frame of an activation, and the plan of its function.
    fn frame(&self, activation: u32) -> Result<(&ArenaFrame, &'p FunctionPlan), String> {
        let frame = self.frames.get(&activation).ok_or("an activation has not begun")?;
        Ok((frame, self.plan_of(frame.function)?))
    }

    /// Returns the base of the arena of a scope, for a variable of an activation. The variable may
    /// be another name of a value in the arena of a scope around its own.
    fn base_of(&self, activation: u32, scope: u32) -> Result<usize, String> {
        let mut at = activation;
        loop {
            let (frame, _) = self.frame(at)?;
            if frame.scope == scope {
                return Ok(frame.base);
            }
            at = frame.parent.ok_or("a storage is in a scope that is not open")?;
        }
    }

    fn poison(&mut self, start: usize, bytes: usize) {
        self.buffer[start..start + bytes].fill(POISON);
    }

    /// Overwrites the storages of an activation that are not used from a position on.
    fn poison_before(&mut self, activation: u32, position: u32) -> Result<(), String> {
        let (frame, plan) = self.frame(activation)?;
        let (base, scope, function, mut dead) = (frame.base, frame.scope as usize, frame.function, frame.dead);
        while let Some(&id) = self.functions[&function].by_last[scope].get(dead)
            && plan.storages()[id as usize].last < position
        {
            if let Some((offset, bytes)) = place_in_arena(&plan.storages()[id as usize]) {
                self.poison(base + offset, bytes);
            }
            dead += 1;
        }
        if let Some(frame) = self.frames.get_mut(&activation) {
            frame.dead = dead;
        }
        Ok(())
    }

    fn store(&mut self, activation: u32, id: u32, literal: &Literal) -> Result<(), String> {
        let (frame, plan) = self.frame(activation)?;
        let base = frame.base;
        let storage = plan.storages()[id as usize];
        let Some((offset, room)) = place_in_arena(&storage) else { return Ok(()) };
        let bytes = literal.to_bytes();
        if bytes.len() > room {
            return Err(format!("a value of {} bytes is in a storage of {room}", bytes.len()));
        }
        self.poison_before(activation, storage.first)?;
        self.buffer[base + offset..base + offset + bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }
}

/// Returns the offset and the bytes of a storage that is in the arena.
fn place_in_arena(storage: &Storage) -> Option<(usize, usize)> {
    Some((usize::try_from(storage.offset()?).ok()?, usize::try_from(storage.bytes?).ok()?))
}

impl RunFunction {
    fn of(plan: &FunctionPlan, body: &Body) -> RunFunction {
        let mut by_last = vec![Vec::new(); plan.scopes().len()];
        for (id, storage) in (0..).zip(plan.storages()) {
            by_last[storage.scope as usize].push(id);
        }
        for list in &mut by_last {
            list.sort_by_key(|&id: &u32| plan.storages()[id as usize].last);
        }
        let scopes = (0..).zip(plan.scopes()).filter_map(|(i, scope)| Some((scope.lambda?, i))).collect();
        let values = bindings(body, body.root()).map(|b| (b.var, b.value)).collect();
        RunFunction { scopes, by_last, values }
    }
}

impl ValueMirror for PlannedMemory<'_> {
    fn enter(&mut self, call: MirroredCall) -> Result<(), String> {
        let plan = self.plan_of(call.function)?;
        if let Some(function) = self.module.get(call.function) {
            self.functions.entry(call.function).or_insert_with(|| RunFunction::of(plan, &function.body));
        }
        let scope = match call.lambda {
            None => 0,
            Some(lambda) => {
                *self.functions[&call.function].scopes.get(&lambda).ok_or("a `fn` without a plan is called")?
            }
        };
        let arena = usize::try_from(plan.scopes()[scope as usize].arena).map_err(|e| e.to_string())?;
        let (mut base, mut below) = (0, 0);
        if let Some((activation, call)) = call.caller {
            let (caller, plan) = self.frame(activation)?;
            (base, below) = (caller.top, caller.top);
            if let Some(id) = plan.workspace(call)
                && let Some((offset, room)) = place_in_arena(&plan.storages()[id as usize])
            {
                if arena > room {
                    return Err(format!("an arena of {arena} bytes is in a storage of {room}"));
                }
                let first = plan.storages()[id as usize].first;
                base = caller.base + offset;
                self.poison_before(activation, first)?;
            }
        }
        let top = below.max(base.saturating_add(arena));
        if top > MAX_BUFFER {
            return Err(format!("the arenas of the calls take more than {MAX_BUFFER} bytes"));
        }
        if top > self.buffer.len() {
            self.buffer.resize(top, POISON);
        }
        self.poison(base, arena);
        self.frames.insert(
            call.activation,
            ArenaFrame { function: call.function, scope, parent: call.parent, base, top, dead: 0 },
        );
        Ok(())
    }

    fn write(&mut self, activation: u32, var: VarId, value: MirroredValue<'_>) -> Result<(), String> {
        let (frame, plan) = self.frame(activation)?;
        let module = self.module;
        let Some(function) = module.get(frame.function) else { return Ok(()) };
        // A parameter has no Let.
        let Some(&computed) = self.functions[&frame.function].values.get(&var) else { return Ok(()) };
        let mut forwards: &[(u32, u32)] = &[];
        match function.body.expr(computed) {
            Expr::CallOp { op, .. } => {
                let row = module.cx.ops.get(op);
                if row.relabels || module.cx.ops.facts(op).is_match_cast() {
                    return Ok(());
                }
                forwards = row.forwards;
            }
            Expr::Call { .. } | Expr::If { .. } => {}
            // Other values are names of values that are stored already.
            _ => return Ok(()),
        }
        let is_forwarded = |field: usize| forwards.iter().any(|&(result, _)| result as usize == field);
        match plan.place_of(var) {
            ValuePlace::Storage(id) => match value.tensor().filter(|_| !is_forwarded(0)) {
                Some(literal) => self.store(activation, id, literal),
                None => Ok(()),
            },
            ValuePlace::Tuple(places) => {
                for (i, field) in value.fields().enumerate().filter(|&(i, _)| !is_forwarded(i)) {
                    if let (ValuePlace::Storage(id), Some(literal)) = (places.field(i), field.tensor()) {
                        self.store(activation, id, literal)?;
                    }
                }
                Ok(())
            }
            ValuePlace::Outside | ValuePlace::Within(_) | ValuePlace::Held => Ok(()),
        }
    }

    fn read(&mut self, activation: u32, var: VarId, value: MirroredValue<'_>) -> Result<(), String> {
        let (frame, plan) = self.frame(activation)?;
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut stack = vec![(plan.place_of(var), value)];
        while let Some((place, value)) = stack.pop() {
            match place {
                ValuePlace::Storage(id) => {
                    let storage = &plan.storages()[id as usize];
                    let (Some((offset, _)), Some(literal)) = (place_in_arena(storage), value.tensor()) else {
                        continue;
                    };
                    let bytes = literal.to_bytes();
                    let start = self.base_of(activation, storage.scope)? + offset;
                    if self.buffer.get(start..start + bytes.len()) != Some(&bytes[..]) {
                        let body = self.module.get(frame.function).map(|f| &f.body);
                        let name = body.and_then(|b| b.var_name(var)).map_or("", |n| self.module.cx.names.get(n));
                        return Err(format!("the memory of `%{name}` has been overwritten ({storage:?})"));
                    }
                }
                ValuePlace::Tuple(places) => {
                    // A tuple of tuples may have very many parts if they are shared.
                    for (i, field) in value.fields().enumerate() {
                        if places.number(i).is_some_and(|number| seen.insert(number)) {
                            stack.push((places.field(i), field));
                        }
                    }
                }
                ValuePlace::Outside | ValuePlace::Within(_) | ValuePlace::Held => {}
            }
        }
        Ok(())
    }
}

anfora_ir::brief_debug! { PlannedMemory<'_>; }
