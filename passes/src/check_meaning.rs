//! An instrument that checks whether passes keep the results of programs.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anfora_interp::{
    Agreement, ArgumentGenerator, Arguments, Cost, EvalError, EvalErrorKind, Interpreter, Limits, Numbers,
    Outcome as Evaluated,
};
use anfora_ir::{Context, Diagnostic, Function, FunctionKey, Module, Severity, Visibility};
use anfora_manager::{Instrument, OpenRuns, Outcome, PassError, PassFailure, PassRun, RunRole};
use rustc_hash::FxHashMap;

/// Interprets the external functions of a module before the first pass and after each pass that
/// changes it, on arguments generated from a seed, and compares the results. A pass that changes a
/// result fails, and its changes are rolled back.
///
/// Results and effects must agree bit for bit or, after a pass that declares a tolerance, as far as
/// [`PassInfo::tolerance`](anfora_manager::PassInfo::tolerance) says. On numbers at the ends of
/// their types, such a pass may also make a number infinite or NaN, or the other way round. After a
/// pass whose tolerance is infinite, nothing is compared, and the passes behind it are compared
/// with its results. If the program fails before the pass, anything may happen after it. A private
/// function with a symbol may get another name. Each function is run on ordinary numbers and on
/// numbers at the ends of their types, with `true` and with `false` for a boolean, and with several
/// extents for symbolic dimensions.
///
/// If a function cannot be checked, this is reported as a note, not as an error: its arguments
/// cannot be generated, it calls an operator without a kernel, it takes too much work or memory, or
/// a pass changes its parameters. A pass that is run by another pass, other than a sequence, is
/// checked together with that pass.
///
/// Cost: interpreting all external functions about three times, once for each pass that changes
/// something.
pub struct CheckMeaning {
    seed: u64,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The open runs, with the known results of their module.
    runs: OpenRuns<Known>,
    checked: Checked,
    noted: BTreeSet<String>,
}

/// Counts of what was checked.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// The number of passes that changed something.
    pub passes: u64,
    /// The number of runs of functions that were compared with runs before a pass.
    pub runs: u64,
    /// The number of notes about what could not be checked.
    pub notes: u64,
}

#[derive(Default)]
struct Known {
    /// The results of the current module, once computed.
    meaning: Option<Meaning>,
    /// The results of the module if the changes of the last pass are kept.
    next: Option<Meaning>,
}

/// Compares the results of two modules: interprets the external functions of the first on arguments
/// generated from a seed, as [`CheckMeaning`] does. Where the first fails, the second may do
/// anything.
///
/// Returns the number of compared runs, and the number of notes about functions that could not be
/// checked.
///
/// # Errors
/// If the second module has other results, fails where the first does not, or lacks an external
/// function of the first.
pub fn same_meaning(first: &Module, second: &Module, agreement: Agreement) -> Result<Checked, PassError> {
    let check = CheckMeaning::new();
    let (mut noted, mut checked) = (BTreeSet::new(), Checked::default());
    let mut notes = Notes { tell: &|_| {}, noted: &mut noted, checked: &mut checked };
    let mut meaning = check.meaning_of(first, &mut notes);
    meaning.iter_mut().for_each(|entry| entry.function.key = None);
    check.compare(second, &meaning, agreement, &mut notes)?;
    Ok(checked)
}

/// The results of the external functions of a module.
type Meaning = Vec<Entry>;

struct Entry {
    function: External,
    cases: Vec<Case>,
}

/// An external function of a module that was interpreted.
struct External {
    /// Its key in that module; `None` if it must be looked up in another module.
    key: Option<FunctionKey>,
    name: String,
    /// The symbol by which linkers know it, if the function is private. Passes may rename such a
    /// function.
    symbol: Option<String>,
    /// Types of the parameters.
    signature: Vec<String>,
}

impl External {
    fn new(module: &Module, key: FunctionKey, function: &Function) -> External {
        let (cx, body) = (&module.cx, &function.body);
        External {
            key: Some(key),
            name: module.name(key).to_string(),
            symbol: private_symbol(cx, function).map(str::to_string),
            signature: body.params().iter().map(|p| cx.type_text(body.ty(p.expr()))).collect(),
        }
    }

    /// Returns this function in a later state of the module, as linkers know it.
    fn find(&self, module: &Module, symbols: &FxHashMap<&str, FunctionKey>) -> Option<FunctionKey> {
        let by_symbol = self.symbol.as_ref().and_then(|symbol| {
            // A function whose symbol a pass changed still has its key.
            let same = self.key.filter(|&key| module.get(key).is_some_and(|f| f.is_external(&module.cx)));
            same.or_else(|| symbols.get(symbol.as_str()).copied())
        });
        by_symbol.or_else(|| module.find(&self.name))
    }
}

/// Returns the symbol of a private function.
fn private_symbol<'c>(cx: &'c Context, function: &Function) -> Option<&'c str> {
    let symbol = function.global_symbol(cx).filter(|_| function.visibility == Visibility::Private);
    symbol.map(|symbol| cx.names.get(symbol))
}

#[derive(Clone)]
struct Input {
    /// A description of the generated arguments.
    what: String,
    /// True if they are numbers at the ends of their types.
    is_extreme: bool,
    arguments: Arguments,
}

struct Case {
    input: Input,
    result: Result<Evaluated, EvalError>,
}

/// The default limits of a run.
const LIMITS: Limits = Limits { steps: 1 << 22, work: 1 << 36, bytes: 1 << 30 };
/// The limit of the steps and work of all runs of one module, as a multiple of the limit of one
/// run.
const RUNS_OF_ONE: u64 = 16;
/// A run after a pass may take this many times the steps and work, a few steps more, and this many
/// times the bytes that a run before it may take.
const SLOWER: u64 = 16;
const FEW_STEPS: u64 = 1 << 16;
const LARGER: usize = 2;
/// The generated arguments: the offset of the seed, the kind of numbers, and the extents of
/// symbolic dimensions. The first two together have both values of every boolean.
const CASES: [(u64, Numbers, &[usize]); 3] =
    [(0, Numbers::Ordinary, &[2]), (0, Numbers::Extreme, &[3]), (1, Numbers::Ordinary, &[4, 1, 3, 2])];

impl Default for CheckMeaning {
    fn default() -> CheckMeaning {
        CheckMeaning { seed: 0, limits: LIMITS, state: Mutex::default() }
    }
}

impl CheckMeaning {
    /// Returns an instrument with seed 0; a run takes at most 2^22 steps and 1 GiB.
    pub fn new() -> CheckMeaning {
        CheckMeaning::default()
    }

    /// Uses another seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> CheckMeaning {
        CheckMeaning { seed, ..self }
    }

    /// Sets the limits of each run. All functions together take at most sixteen times the steps and
    /// the work.
    #[must_use]
    pub fn limits(self, limits: Limits) -> CheckMeaning {
        CheckMeaning { limits, ..self }
    }

    /// Returns the counts of what was checked so far.
    pub fn checked(&self) -> Checked {
        self.lock().checked
    }

    /// Returns the messages about what could not be checked so far: each once, sorted.
    pub fn notes(&self) -> Vec<String> {
        self.lock().noted.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Results are stored as a whole, so the state is valid after a panic of another holder.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the results of a module, with a run for each generated input.
    fn meaning_of(&self, module: &Module, notes: &mut Notes<'_>) -> Meaning {
        let mut left = self.limits_of_all();
        let mut meaning = Meaning::new();
        for (key, function) in module.functions() {
            if !function.is_external(&module.cx) || !function.is_definition() {
                continue;
            }
            let name = module.name(key);
            if left.steps == 0 || left.work == 0 {
                notes.note(name, "all functions together take too many steps");
                continue;
            }
            let inputs = match self.inputs(module, function) {
                Ok(inputs) => inputs,
                Err(why) => {
                    notes.note(name, &why);
                    continue;
                }
            };
            let external = External::new(module, key, function);
            let cases = inputs.into_iter().map(|i| self.run(module, &external, i, self.limits, &mut left)).collect();
            let entry = Entry { function: external, cases };
            entry.note_failures(notes);
            meaning.push(entry);
        }
        meaning
    }

    fn inputs(&self, module: &Module, function: &Function) -> Result<Vec<Input>, String> {
        let has_symbols =
            function.body.params().iter().any(|p| module.cx.types.is_symbolic(function.body.ty(p.expr())));
        let cases = if has_symbols { &CASES[..] } else { &CASES[..2] };
        let mut inputs = Vec::new();
        let mut failed = None;
        for &(later, numbers, extents) in cases {
            let seed = self.seed.wrapping_add(later);
            let draw = ArgumentGenerator::new(seed).numbers(numbers).extents(extents).most_bytes(self.limits.bytes / 4);
            let extents = match extents {
                _ if !has_symbols => String::new(),
                extents => {
                    let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
                    format!(", symbolic extents {}", extents.join(", "))
                }
            };
            let is_extreme = numbers == Numbers::Extreme;
            let numbers = if is_extreme { "extreme" } else { "ordinary" };
            match draw.arguments(&module.cx, function) {
                Ok(arguments) => {
                    let what = format!("{numbers} numbers of seed {seed}{extents}");
                    inputs.push(Input { what, is_extreme, arguments });
                }
                // Other extents may work.
                Err(e) => failed = failed.or(Some(e.to_string())),
            }
        }
        match failed {
            Some(why) if inputs.is_empty() => Err(why),
            _ => Ok(inputs),
        }
    }

    /// Returns the limits of all runs of one module together.
    fn limits_of_all(&self) -> Cost {
        let Limits { steps, work, .. } = self.limits;
        Cost { steps: steps.saturating_mul(RUNS_OF_ONE), work: work.saturating_mul(RUNS_OF_ONE) }
    }

    /// Runs a function, within its limits and the remaining ones of all runs.
    fn run(&self, module: &Module, function: &External, input: Input, limits: Limits, left: &mut Cost) -> Case {
        let limits = Limits { steps: limits.steps.min(left.steps), work: limits.work.min(left.work), ..limits };
        let Arguments { values, list } = input.arguments.clone();
        let interpreter = Interpreter::new(module).limits(limits).seed(self.seed);
        let (result, cost) = interpreter.call_counting(&function.name, values, &list);
        left.steps = left.steps.saturating_sub(cost.steps);
        let is_spent =
            limits.work == left.work && matches!(&result, Err(e) if matches!(e.kind, EvalErrorKind::Work(_)));
        left.work = if is_spent { 0 } else { left.work.saturating_sub(cost.work) };
        Case { input, result }
    }

    /// Runs the module after a pass, and compares the results with those before.
    fn compare(
        &self,
        module: &Module,
        before: &Meaning,
        agreement: Agreement,
        notes: &mut Notes<'_>,
    ) -> Result<Meaning, PassError> {
        let mut after: Meaning = Vec::new();
        // The limits of the runs that are not compared, and of the compared ones.
        let mut free = self.limits_of_all();
        let mut left = Cost { steps: u64::MAX, work: free.work.saturating_mul(SLOWER) };
        let symbols = module.functions().filter_map(|(key, f)| Some((private_symbol(&module.cx, f)?, key))).collect();
        for entry in before {
            let External { name, signature, .. } = &entry.function;
            let found = entry.function.find(module, &symbols);
            let found = found.and_then(|key| Some((key, module.get(key).filter(|f| f.is_definition())?)));
            let Some((key, function)) = found else {
                return Err(PassError::new(format!("the external function `@{name}` is gone")).in_function(name));
            };
            let external = External::new(module, key, function);
            let name = module.name(key);
            if external.signature != *signature {
                notes.note(name, "the pass changes its parameters, so that its results cannot be compared");
                let inputs = self.inputs(module, function).unwrap_or_default().into_iter();
                let cases = inputs.map(|i| self.run(module, &external, i, self.limits, &mut free)).collect();
                after.push(Entry { function: external, cases });
                continue;
            }
            let again = |case: &Case| match &case.result {
                // A pass may make programs slower and larger, within limits.
                Ok(ran) => {
                    let limits = Limits {
                        steps: ran.steps.saturating_mul(SLOWER).saturating_add(FEW_STEPS),
                        work: self.limits.work.saturating_mul(SLOWER),
                        bytes: self.limits.bytes.saturating_mul(LARGER),
                    };
                    self.run(module, &external, case.input.clone(), limits, &mut left)
                }
                Err(_) => self.run(module, &external, case.input.clone(), self.limits, &mut free),
            };
            let cases = entry.cases.iter().map(again).collect();
            let ran = Entry { function: external, cases };
            for (old, new) in entry.cases.iter().zip(&ran.cases) {
                let Ok(expected) = &old.result else { continue };
                notes.checked.runs += 1;
                let on = &old.input.what;
                let agreement = if old.input.is_extreme { agreement.within_range() } else { agreement };
                match &new.result {
                    Ok(found) => {
                        if let Some(difference) = agreement.first_difference(expected, found) {
                            let message = format!("`@{name}` computes something else on {on}: {difference}");
                            return Err(PassError::new(message).in_function(name));
                        }
                    }
                    Err(error) => {
                        let place = error.function.as_deref().unwrap_or(name);
                        let mut failed =
                            PassError::new(format!("`@{name}` fails on {on}: {}", error.kind)).in_function(place);
                        if let Some(binding) = &error.binding {
                            failed = failed.on_binding(binding);
                        }
                        return Err(failed);
                    }
                }
            }
            after.push(ran);
        }
        Ok(after)
    }
}

impl Entry {
    fn note_failures(&self, notes: &mut Notes<'_>) {
        let errors: Vec<&EvalError> = self.cases.iter().filter_map(|c| c.result.as_ref().err()).collect();
        let Some(first) = errors.first() else { return };
        let unknown =
            |e: &&&EvalError| is_limit(e) || matches!(e.kind, EvalErrorKind::NoKernel(_) | EvalErrorKind::External(_));
        match errors.iter().find(unknown) {
            Some(error) => notes.note_error(&self.function.name, "", error),
            None if errors.len() == self.cases.len() => {
                notes.note_error(&self.function.name, "it fails on everything that was drawn: ", first);
            }
            None => {}
        }
    }
}

fn is_limit(error: &EvalError) -> bool {
    matches!(error.kind, EvalErrorKind::Steps(_) | EvalErrorKind::Work(_) | EvalErrorKind::Memory(_))
}

/// Collects notes about what could not be checked, each once.
struct Notes<'a> {
    tell: &'a dyn Fn(Diagnostic),
    noted: &'a mut BTreeSet<String>,
    checked: &'a mut Checked,
}

impl Notes<'_> {
    fn note(&mut self, function: &str, why: &str) {
        self.add(Diagnostic::new(Severity::Note, message(function, why)).in_function(function));
    }

    /// Adds a note with the place of the error.
    fn note_error(&mut self, function: &str, what: &str, error: &EvalError) {
        let mut note = Diagnostic::new(Severity::Note, message(function, &format!("{what}{}", error.kind)));
        note.function = Some(error.function.as_deref().unwrap_or(function).to_string());
        note.binding.clone_from(&error.binding);
        self.add(note);
    }

    fn add(&mut self, note: Diagnostic) {
        if self.noted.insert(note.message.clone()) {
            self.checked.notes += 1;
            (self.tell)(note);
        }
    }
}

fn message(function: &str, why: &str) -> String {
    format!("the meaning of `@{function}` is not checked: {why}")
}

impl Instrument for CheckMeaning {
    fn name(&self) -> &str {
        "CheckMeaning"
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let mut state = self.lock();
        let State { runs, checked, noted } = &mut *state;
        let role = runs.begin(run, Known::default());
        if role == RunRole::Whole
            && let Some(known) = runs.outermost()
            && known.meaning.is_none()
        {
            let mut notes = Notes { tell: &|note| run.context().remark(note), noted, checked };
            known.meaning = Some(self.meaning_of(module, &mut notes));
        }
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let mut state = self.lock();
        let State { runs, checked, noted } = &mut *state;
        if runs.role_of_innermost() == Some(RunRole::Whole)
            && let Some(known) = runs.outermost()
            && let Some(before) = &known.meaning
            && outcome.is_changed()
        {
            let agreement = match run.info().tolerance {
                0.0 => Some(Agreement::Exact),
                tolerance if tolerance.is_finite() => Some(Agreement::Within(tolerance)),
                _ => None,
            };
            checked.passes += 1;
            let mut notes = Notes { tell: &|note| run.context().remark(note), noted, checked };
            known.next = Some(match agreement {
                Some(agreement) => self.compare(module, before, agreement, &mut notes)?,
                None => self.meaning_of(module, &mut notes),
            });
        }
        Ok(())
    }

    fn on_end(&self, _: &Module, _: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let mut state = self.lock();
        if state.runs.role_of_innermost() == Some(RunRole::Whole)
            && let Some(known) = state.runs.outermost()
            && let Some(next) = known.next.take()
            && result.is_ok()
        {
            known.meaning = Some(next);
        }
        state.runs.end();
    }
}

anfora_ir::brief_debug! { CheckMeaning { checked }; }
