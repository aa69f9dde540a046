//! Running a function of a module.

use std::fmt;

use anfora_ir::{DType, Literal, Module, element_count};
use anfora_ops::{RandomStream, draw_uniform};

use crate::effect::Effect;
use crate::error::{EvalError, EvalErrorKind};
use crate::externals::Externals;
use crate::limits::{Cost, Limits};
use crate::machine::Machine;
use crate::mirror::ValueMirror;
use crate::value::{ValueId, Values};

/// The outcome of a run.
#[derive(Clone)]
pub struct Outcome {
    /// The arena of the result and of the operands in the trace.
    pub values: Values,
    /// The result.
    pub result: ValueId,
    /// The impure operators that ran, in order.
    pub trace: Vec<Effect>,
    /// The number of expressions that were evaluated, not counting atoms.
    pub steps: u64,
}

/// Prints one line: the result as text, cut short, the names of the effects, and the number of
/// steps.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 200;
        let effects: Vec<&str> = self.trace.iter().take(16).map(|effect| effect.op.as_str()).collect();
        f.debug_struct("Outcome")
            .field("result", &format_args!("{}", self.values.text(self.result, SHOWN)))
            .field("effects", &effects)
            .field("more_effects", &self.trace.len().saturating_sub(effects.len()))
            .field("steps", &self.steps)
            .finish()
    }
}

impl Outcome {
    /// Returns true if two runs have the same result and the same effects, bit for bit. Any two
    /// functions are the same.
    pub fn same(&self, other: &Outcome) -> bool {
        self.values.same(self.result, &other.values, other.result)
            && self.trace.len() == other.trace.len()
            && self.trace.iter().zip(&other.trace).all(|(a, b)| a.same(&self.values, b, &other.values))
    }

    /// Returns the result if it is a tensor.
    pub fn tensor(&self) -> Option<&Literal> {
        self.values.as_tensor(self.result)
    }
}

/// Runs functions of a module.
#[derive(Copy, Clone)]
pub struct Interpreter<'m> {
    module: &'m Module,
    limits: Limits,
    seed: u64,
    externals: Option<&'m Externals>,
}

impl<'m> Interpreter<'m> {
    /// Returns an interpreter of a module, with the default limits and seed 0.
    pub fn new(module: &'m Module) -> Interpreter<'m> {
        Interpreter { module, limits: Limits::default(), seed: 0, externals: None }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Interpreter<'m> {
        Interpreter { limits, ..self }
    }

    /// Sets the seed of the random operators. The n-th number that a run draws depends only on the
    /// seed and n.
    #[must_use]
    pub fn seed(self, seed: u64) -> Interpreter<'m> {
        Interpreter { seed, ..self }
    }

    /// Sets the closures of functions without a body. Without a closure, a call of such a function
    /// fails.
    #[must_use]
    pub fn externals(self, externals: &'m Externals) -> Interpreter<'m> {
        Interpreter { externals: Some(externals), ..self }
    }

    /// Calls the function `function` (without `@`) with tensors.
    ///
    /// # Errors
    /// If there is no such function, the arguments do not fit it, an operator fails, or a limit is
    /// reached.
    pub fn run(&self, function: &str, arguments: &[Literal]) -> Result<Outcome, EvalError> {
        let mut values = Values::new();
        arguments.iter().try_for_each(Literal::load).map_err(EvalErrorKind::from)?;
        let arguments: Vec<ValueId> = arguments.iter().map(|l| values.tensor(l.clone())).collect();
        self.call(function, values, &arguments)
    }

    /// Calls the function `function` (without `@`) with values of an arena. The arena of the
    /// outcome keeps only the values that the result and the trace need. All other ids become
    /// invalid.
    ///
    /// # Errors
    /// If there is no such function, the arguments do not fit it, an operator fails, or a limit is
    /// reached.
    pub fn call(&self, function: &str, values: Values, arguments: &[ValueId]) -> Result<Outcome, EvalError> {
        self.call_counting(function, values, arguments).0
    }

    /// Calls a function as [`call`](Interpreter::call) does. Also returns the cost of the run, even
    /// if the run failed.
    pub fn call_counting(
        &self,
        function: &str,
        values: Values,
        arguments: &[ValueId],
    ) -> (Result<Outcome, EvalError>, Cost) {
        self.call_with(function, values, arguments, None)
    }

    /// Calls a function as [`call`](Interpreter::call) does, with a mirror of the values of
    /// variables.
    ///
    /// # Errors
    /// Those of [`call`](Interpreter::call), and those of the mirror.
    pub fn call_mirrored(
        &self,
        function: &str,
        values: Values,
        arguments: &[ValueId],
        mirror: &mut dyn ValueMirror,
    ) -> Result<Outcome, EvalError> {
        self.call_with(function, values, arguments, Some(mirror)).0
    }

    fn call_with<'r>(
        &self,
        function: &str,
        values: Values,
        arguments: &[ValueId],
        mirror: Option<&'r mut (dyn ValueMirror + 'r)>,
    ) -> (Result<Outcome, EvalError>, Cost)
    where
        'm: 'r,
    {
        let Some(global) = self.module.cx.find_global(function) else {
            return (Err(EvalErrorKind::NoFunction(function.to_string()).into()), Cost::default());
        };
        let mut machine = Machine::new(self.module, self.limits, self.seed, values, self.externals, mirror);
        let result = machine.run(global, arguments).and_then(|result| Ok(machine.export(result)?));
        let Machine { values, trace, steps, work, .. } = machine;
        let result = result.map(|result| Outcome { values, result: ValueId::from_ref(result), trace, steps });
        (result, Cost { steps, work })
    }
}

/// Returns a tensor for a test run: floats in [-1, 1), integers in 0..8, or booleans. The tensor
/// for a seed is the same on every machine. `None` for element types without kernels, and for a
/// shape that is too large.
pub fn random_tensor(dtype: DType, shape: &[usize], seed: u64) -> Option<Literal> {
    let mut stream = RandomStream::new(seed);
    if dtype.is_float() {
        return draw_uniform(shape, dtype, -1.0, 1.0, &mut stream).ok();
    }
    if !dtype.is_integer() && dtype != DType::Bool {
        return None;
    }
    /// The number of elements that are drawn at a time.
    const PART: usize = 1 << 16;
    let (count, size) = (element_count(shape)?, dtype.bits() / 8);
    let range = if dtype == DType::Bool { 2.0 } else { 8.0 };
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(dtype.byte_len(count)?).ok()?;
    for first in (0..count).step_by(PART) {
        let part = PART.min(count - first);
        let drawn = draw_uniform(&[part], DType::Float32, 0.0, range, &mut stream).ok()?;
        for &number in drawn.elements::<f32>()?.iter() {
            // The lowest byte comes first, and the other bytes are zero.
            bytes.push(number as u8);
            bytes.resize(bytes.len() + size - 1, 0);
        }
    }
    Literal::from_bytes(dtype, shape, bytes.into()).ok()
}

anfora_ir::brief_debug! { Interpreter<'_>; }
