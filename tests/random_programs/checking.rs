//! Checks that passes keep their promises on programs. The harness is the same for registered
//! passes and for passes that are broken on purpose.

use std::fmt;
use std::sync::{Arc, OnceLock};

use anfora::interp::{Agreement, Outcome};
use anfora::ir::{Form, Function, FunctionKey, Literal, Module, verify_module};
use anfora::manager::{Pass, PassContext, PassRegistry, Verification, parse_pipeline};
use anfora_testing::programs::{Random, Vocabulary};

use super::inputs::{arguments, call_main, extreme_arguments};
use super::widened::widened;

/// A random program, with results that are needed again and again.
pub(crate) struct Program {
    pub(crate) size: usize,
    pub(crate) seed: u64,
    /// The program as it was made, in any form.
    pub(crate) original: Module,
    /// The program in A-normal form.
    pub(crate) normal: Module,
    /// Inputs on which the program succeeds, with the outcomes.
    pub(crate) runs: Vec<(Vec<Literal>, Outcome)>,
}

impl Program {
    pub(crate) fn new(size: usize, seed: u64) -> Program {
        let original = Random { vocabulary: Vocabulary::Whole, size, seed }.module();
        let mut normal = original.clone();
        let registry = anfora::passes::registry();
        let passes = parse_pipeline(&registry, "ToANormalForm").expect("a pass");
        if let Err(e) = passes.apply(&mut normal, &context(&registry)) {
            panic!("ToANormalForm: {e}\n{original}");
        }
        let inputs = [arguments(&original, seed), extreme_arguments(&original, seed)];
        let run = |input: Vec<Literal>| call_main(&original, &input).ok().map(|outcome| (input, outcome));
        let runs = inputs.into_iter().filter_map(run).collect();
        Program { size, seed, original, normal, runs }
    }
}

/// Returns the programs that all tests share: as many as `ANFORA_CASES` says (70 by default, which
/// show each mistake of the broken passes), or the one program of `ANFORA_SEED` and `ANFORA_SIZE`.
pub(crate) fn pool() -> &'static [Program] {
    static POOL: OnceLock<Vec<Program>> = OnceLock::new();
    POOL.get_or_init(|| {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        if let Some(seed) = number("ANFORA_SEED") {
            return vec![Program::new(number("ANFORA_SIZE").unwrap_or(60) as usize, seed)];
        }
        (0..anfora_testing::cases(70) as u64).map(|seed| Program::new(size_of(seed), seed)).collect()
    })
}

/// Returns the size of the program of a seed. Successive seeds give small and large sizes in turn.
fn size_of(seed: u64) -> usize {
    1 + (seed as usize * 37) % 120
}

/// The form of programs that a pass needs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    AnyForm,
    ANormalForm,
}

/// The effect that a second run may have on the result of the first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    Idempotent,
    MayChange,
}

/// The promises of a pass.
#[derive(Clone)]
pub(crate) struct Promise {
    pub(crate) needs: Needs,
    pub(crate) again: Again,
    pub(crate) agreement: Agreement,
    /// The properties that hold after the pass.
    pub(crate) establishes: Vec<String>,
    /// The element type of 16 bits in which the pass computes. Results agree bit for bit if it is
    /// read as `float32`.
    pub(crate) low: Option<&'static str>,
}

/// The ways in which a pass can break its promises.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// The pass ends with an error.
    Fails,
    /// The result of the pass does not verify.
    IllFormed,
    /// The pass changes the program and reports that it did not.
    ClaimsUnchanged,
    /// A function that may be called from outside is gone.
    Unlinked,
    /// The program has another result, or none.
    OtherResult,
    /// The results agree, and the effects do not.
    OtherEffects,
    /// A property that the pass establishes does not hold.
    NotEstablished,
    /// Two runs on one program differ.
    NotDeterministic,
    /// A run on the result of the pass changes it.
    NotIdempotent,
}

/// A program on which a pass broke a promise.
pub(crate) struct Caught {
    pub(crate) why: Why,
    size: usize,
    seed: u64,
    detail: String,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Caught { why, size, seed, detail } = self;
        write!(f, "{why:?} on the random program of ANFORA_SIZE={size} ANFORA_SEED={seed}\n{detail}")
    }
}

pub(crate) fn context(registry: &Arc<PassRegistry>) -> PassContext {
    PassContext::builder()
        .registry(Arc::clone(registry))
        .opt_level(3)
        .verification(Verification::Off)
        // The output of the pass `PrintIR` is dropped.
        .print_to(std::io::sink())
        .build()
        .expect("an empty context")
}

/// Runs a pass on programs until one of them shows that it breaks a promise. Returns the number of
/// programs that it changed, or the program that shows the broken promise.
pub(crate) fn check_pass(pass: &dyn Pass, promise: &Promise, programs: &[Program]) -> Result<usize, Caught> {
    let registry = anfora::passes::registry();
    let cx = context(&registry);
    let mut changed = 0;
    for program in programs {
        let done = check_on(pass, promise, program, &cx).map_err(|(why, detail)| {
            let (size, seed) = (program.size, program.seed);
            Caught { why, size, seed, detail }
        })?;
        changed += usize::from(done);
        // Remarks are dropped.
        cx.take_remarks();
    }
    Ok(changed)
}

/// Does the same as [`check_pass`], for a pass that should keep its promises. The program that
/// shows a broken promise is the smallest of its seed.
pub(crate) fn check_pass_and_shrink(pass: &dyn Pass, promise: &Promise, programs: &[Program]) -> Result<usize, Caught> {
    let caught = match check_pass(pass, promise, programs) {
        Ok(changed) => return Ok(changed),
        Err(caught) => caught,
    };
    let smaller = (1..caught.size).find_map(|size| {
        let program = Program::new(size, caught.seed);
        check_pass(pass, promise, std::slice::from_ref(&program)).err().filter(|c| c.why == caught.why)
    });
    Err(smaller.unwrap_or(caught))
}

fn check_on(pass: &dyn Pass, promise: &Promise, program: &Program, cx: &PassContext) -> Result<bool, (Why, String)> {
    let Program { original, normal, .. } = program;
    let mut changed = check_module(pass, promise, program, normal, cx)?;
    let is_normal = verify_module(original).is_ok_and(|report| report.form() == Form::Anf);
    if promise.needs == Needs::AnyForm && !is_normal {
        changed |= check_module(pass, promise, program, original, cx)?;
    }
    Ok(changed)
}

fn check_module(
    pass: &dyn Pass,
    promise: &Promise,
    program: &Program,
    before: &Module,
    cx: &PassContext,
) -> Result<bool, (Why, String)> {
    let text = before.to_text();
    let apply = |module: &mut Module| {
        let done = pass.apply(module, cx);
        done.map(|outcome| outcome.is_changed()).map_err(|e| (Why::Fails, format!("{e}\n{text}")))
    };
    let mut after = before.clone();
    let changed = apply(&mut after)?;
    if let Err(errors) = verify_module(&after) {
        return Err((Why::IllFormed, format!("{}\n{text}\n{after}", errors[0])));
    }
    let result = after.to_text();
    if let Some(gone) = unlinked(before, &after) {
        return Err((Why::Unlinked, format!("`@{gone}` is gone\n{text}\n{result}")));
    }
    if !changed && result != text {
        return Err((Why::ClaimsUnchanged, format!("{text}\n{result}")));
    }
    if changed {
        let (runs, judged, agreement) = match promise.low.map(|low| widened_runs(program, before, &after, low)) {
            None => (program.runs.clone(), after.clone(), promise.agreement),
            Some(Ok((runs, judged))) => (runs, judged, Agreement::Exact),
            Some(Err(why)) => return Err((Why::OtherResult, format!("{why}\n{text}\n{result}"))),
        };
        for (input, expected) in &runs {
            let found = match call_main(&judged, input) {
                Ok(found) => found,
                Err(e) => return Err((Why::OtherResult, format!("the program fails: {e}\n{text}\n{result}"))),
            };
            if agreement.holds(expected, &found) {
                continue;
            }
            let agree = expected.values.same(expected.result, &found.values, found.result);
            let why = if agree { Why::OtherEffects } else { Why::OtherResult };
            return Err((why, format!("{text}\n{result}")));
        }
    }
    for name in &promise.establishes {
        let registry = anfora::passes::registry();
        if let Err(found) = registry.property(name).expect("a registered property").check(&after) {
            return Err((Why::NotEstablished, format!("`{name}`: {}\n{text}\n{result}", found[0])));
        }
    }
    let mut again = before.clone();
    if apply(&mut again)? != changed || again.to_text() != result {
        return Err((Why::NotDeterministic, format!("{text}\n{result}\n{again}")));
    }
    if promise.again == Again::Idempotent && apply(&mut again)? {
        return Err((Why::NotIdempotent, format!("{text}\n{result}\n{again}")));
    }
    Ok(changed)
}

/// The inputs on which a program succeeds, with the outcomes.
type Runs = Vec<(Vec<Literal>, Outcome)>;

/// Returns the runs of a program before a pass, and the program after it, both with `float32` in
/// the place of an element type of 16 bits. Returns no runs if the program before has no such form.
fn widened_runs(program: &Program, before: &Module, after: &Module, low: &str) -> Result<(Runs, Module), String> {
    let Some(before) = widened(before, low) else { return Ok((Vec::new(), after.clone())) };
    let after = widened(after, low).ok_or("the result is ill-typed with float32 for 16 bits")?;
    let inputs = [arguments(&before, program.seed), extreme_arguments(&before, program.seed)];
    let run = |input: Vec<Literal>| call_main(&before, &input).ok().map(|outcome| (input, outcome));
    Ok((inputs.into_iter().filter_map(run).collect(), after))
}

/// Returns the name of an external function that exists before a pass, and that exists after it
/// neither by its name nor by its symbol.
fn unlinked(before: &Module, after: &Module) -> Option<String> {
    let symbol = |module: &Module, function: &Function| {
        function.global_symbol(&module.cx).map(|symbol| module.cx.names.get(symbol).to_string())
    };
    let is_external =
        |module: &Module, function: &Function| function.is_definition() && function.is_external(&module.cx);
    let left: Vec<(&str, Option<String>)> = after
        .functions()
        .filter(|(_, f)| is_external(after, f))
        .map(|(key, f)| (after.name(key), symbol(after, f)))
        .collect();
    let is_gone = |&(key, function): &(FunctionKey, &Function)| {
        let (name, own) = (before.name(key), symbol(before, function));
        !left.iter().any(|(other, linked)| *other == name || own.is_some() && own == *linked)
    };
    let external = before.functions().filter(|(_, f)| is_external(before, f));
    external.into_iter().find(is_gone).map(|(key, _)| before.name(key).to_string())
}
