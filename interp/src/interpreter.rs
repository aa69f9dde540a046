//! Running a function of a module.

use std::fmt;

use anfora_ir::{DType, Literal, Module, element_count};
use anfora_ops::{RandomStream, draw_uniform};

use crate::effect::Effect;
use crate::error::{EvalError, EvalErrorKind};
use crate::machine::Machine;
use crate::value::{ValueId, Values};

/// How much a program may take.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Expressions evaluated, atoms not counted.
    pub steps: u64,
    /// Steps of kernels, all together: elements that they read, write or compute with, as
    /// [`KernelCall::steps`](anfora_ir::KernelCall::steps) counts them. A kernel that would take more is not begun.
    pub work: u64,
    /// Bytes of values, variables and pending work, garbage not counted. What is counted is an estimate, the same on every machine.
    pub bytes: usize,
}

impl Default for Limits {
    /// 2^40 steps, 2^38 steps of kernels, and 8 GiB.
    fn default() -> Limits {
        Limits { steps: 1 << 40, work: 1 << 38, bytes: 8 << 30 }
    }
}

/// What a program comes to.
#[derive(Clone)]
pub struct Outcome {
    /// The arena of the result and of what the trace shows.
    pub values: Values,
    /// The result.
    pub result: ValueId,
    /// The impure operators that ran, in order.
    pub trace: Vec<Effect>,
    /// Expressions that were evaluated, atoms not counted.
    pub steps: u64,
}

/// How much a run took, of what [`Limits`] allow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Expressions that were evaluated, atoms not counted.
    pub steps: u64,
    /// Steps of the kernels, as [`KernelCall::steps`](anfora_ir::KernelCall::steps) counts them.
    pub work: u64,
}

/// In a line: the result and the effects as text, cut short, and the steps.
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
    /// Whether two programs came to the same, bit for bit, with the same effects. Functions in results are not looked into.
    pub fn same(&self, other: &Outcome) -> bool {
        self.values.same(self.result, &other.values, other.result)
            && self.trace.len() == other.trace.len()
            && self.trace.iter().zip(&other.trace).all(|(a, b)| a.same(&self.values, b, &other.values))
    }

    /// The result, if it is a tensor.
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
}

impl<'m> Interpreter<'m> {
    /// An interpreter of a module, with the default limits and seed 0.
    pub fn new(module: &'m Module) -> Interpreter<'m> {
        Interpreter { module, limits: Limits::default(), seed: 0 }
    }

    /// With other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Interpreter<'m> {
        Interpreter { limits, ..self }
    }

    /// With another seed for the random operators. The n-th number that a run draws depends on the seed and n alone.
    #[must_use]
    pub fn seed(self, seed: u64) -> Interpreter<'m> {
        Interpreter { seed, ..self }
    }

    /// Calls the function of a name (without `@`) with tensors.
    ///
    /// # Errors
    /// If there is no such function, the arguments do not fit it, an operator fails, or a limit is reached.
    pub fn run(&self, function: &str, arguments: &[Literal]) -> Result<Outcome, EvalError> {
        let mut values = Values::new();
        let arguments: Vec<ValueId> = arguments.iter().map(|l| values.tensor(l.clone())).collect();
        self.call(function, values, &arguments)
    }

    /// Calls the function of a name (without `@`) with values of an arena. Of the arena, what the result and the trace need is in the
    /// outcome; other ids are not valid any more.
    ///
    /// # Errors
    /// If there is no such function, the arguments do not fit it, an operator fails, or a limit is reached.
    pub fn call(&self, function: &str, values: Values, arguments: &[ValueId]) -> Result<Outcome, EvalError> {
        self.call_counting(function, values, arguments).0
    }

    /// As [`call`](Interpreter::call), with what the run took, also if it failed.
    pub fn call_counting(
        &self,
        function: &str,
        values: Values,
        arguments: &[ValueId],
    ) -> (Result<Outcome, EvalError>, Cost) {
        let Some(global) = self.module.cx.find_global(function) else {
            return (Err(EvalErrorKind::NoFunction(function.to_string()).into()), Cost::default());
        };
        let mut machine = Machine::new(self.module, self.limits, self.seed, values);
        let result = machine.run(global, arguments).and_then(|result| Ok(machine.export(result)?));
        let Machine { values, trace, steps, work, .. } = machine;
        let result = result.map(|result| Outcome { values, result: ValueId::from_ref(result), trace, steps });
        (result, Cost { steps, work })
    }
}

/// A tensor for a test run: floats in [-1, 1), integers in 0..8, booleans. The same for the same seed, on every machine.
/// `None` for element types without kernels, and for a shape that is too large.
pub fn random_tensor(dtype: DType, shape: &[usize], seed: u64) -> Option<Literal> {
    let mut stream = RandomStream::new(seed);
    if dtype.is_float() {
        return draw_uniform(shape, dtype, -1.0, 1.0, &mut stream).ok();
    }
    if !dtype.is_integer() && dtype != DType::Bool {
        return None;
    }
    /// So many numbers are drawn before they become elements.
    const PART: usize = 1 << 16;
    let (count, size) = (element_count(shape)?, dtype.bits() / 8);
    let range = if dtype == DType::Bool { 2.0 } else { 8.0 };
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(dtype.byte_len(count)?).ok()?;
    for first in (0..count).step_by(PART) {
        let part = PART.min(count - first);
        let drawn = draw_uniform(&[part], DType::Float32, 0.0, range, &mut stream).ok()?;
        for &number in drawn.elements::<f32>()?.iter() {
            // The lowest byte comes first, and the others are zero.
            bytes.push(number as u8);
            bytes.resize(bytes.len() + size - 1, 0);
        }
    }
    Literal::from_bytes(dtype, shape, bytes.into()).ok()
}

anfora_ir::brief_debug! { Interpreter<'_>; }
