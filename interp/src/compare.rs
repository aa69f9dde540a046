//! Comparison of the results of two programs.

use std::fmt;

use anfora_ir::{DType, Literal};
use half::{bf16, f16};
use rustc_hash::FxHashSet;

use crate::interpreter::Outcome;
use crate::value::{Value, ValueId, Values, element_bytes, element_text};

/// The tolerance of a comparison of the outcomes of two programs.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Agreement {
    /// Bit for bit.
    Exact,
    /// Floats agree if they differ by at most this, relative to the larger magnitude, or absolutely
    /// if both magnitudes are below 1. Any two NaNs agree. Floats of 16 bits also agree within two
    /// units in the last place of their significand. Everything else must agree bit for bit.
    Within(f64),
    /// As `Within`; besides, a float that is infinite or NaN agrees with any float. Where two
    /// programs round differently, only one of them may leave the range of a type.
    WithinRange(f64),
}

impl Agreement {
    /// Returns the agreement that can be asked for if numbers may leave the range of their type.
    pub fn within_range(self) -> Agreement {
        match self {
            Agreement::Within(tolerance) => Agreement::WithinRange(tolerance),
            Agreement::Exact | Agreement::WithinRange(_) => self,
        }
    }
}

/// The first difference between the outcomes of two programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The part of the outcomes that differs.
    pub part: DifferentPart,
    /// The indices of the tuple fields that lead to the difference, from the outermost.
    pub path: Vec<usize>,
    /// The index of the element, if tensors differ in an element.
    pub element: Option<Vec<usize>>,
    /// The text of the value before.
    pub before: String,
    /// The text of the value after.
    pub after: String,
}

/// The part of two outcomes that differs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DifferentPart {
    /// The result.
    Result,
    /// The effect with this number in the trace, counted from 0: its operator, its text or its
    /// number of operands differ, or only one trace has it.
    Effect(usize),
    /// An operand of an effect, both counted from 0.
    Operand(usize, usize),
}

/// `field .1 of the result, element [2, 3]: 1 before, 2 after`
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            f.write_str("field ")?;
            for field in self.path.iter().take(SHOWN_FIELDS) {
                write!(f, ".{field}")?;
            }
            f.write_str(if self.path.len() > SHOWN_FIELDS { "… of " } else { " of " })?;
        }
        match self.part {
            DifferentPart::Result => f.write_str("the result")?,
            DifferentPart::Effect(n) => write!(f, "effect {n}")?,
            DifferentPart::Operand(n, operand) => write!(f, "operand {operand} of effect {n}")?,
        }
        if let Some(element) = self.element.as_ref().filter(|e| !e.is_empty()) {
            write!(f, ", element {element:?}")?;
        }
        write!(f, ": {} before, {} after", self.before, self.after)
    }
}

/// The most fields of a path that are shown.
const SHOWN_FIELDS: usize = 16;
/// The most characters of a value that are shown.
const SHOWN: usize = 120;

impl Agreement {
    /// Returns true if the results and the effects of two programs agree. Any two functions agree.
    pub fn holds(self, before: &Outcome, after: &Outcome) -> bool {
        self.first_difference(before, after).is_none()
    }

    /// Returns the first difference between two outcomes. Effects come first, in order, then the
    /// result. Fields of tuples are compared in order.
    pub fn first_difference(self, before: &Outcome, after: &Outcome) -> Option<Difference> {
        for (n, effects) in before.trace.iter().zip(&after.trace).enumerate() {
            let (a, b) = effects;
            if (&a.op, &a.text, a.operands.len()) != (&b.op, &b.text, b.operands.len()) {
                let show = |effect: &crate::Effect| {
                    format!("{} of {} operands {}", effect.op, effect.operands.len(), effect.text)
                        .trim_end()
                        .to_string()
                };
                return Some(whole(DifferentPart::Effect(n), show(a), show(b)));
            }
            for (operand, (&x, &y)) in a.operands.iter().zip(&b.operands).enumerate() {
                let part = DifferentPart::Operand(n, operand);
                if let Some(found) = self.in_values(part, (&before.values, x), (&after.values, y)) {
                    return Some(found);
                }
            }
        }
        let common = before.trace.len().min(after.trace.len());
        if before.trace.len() != after.trace.len() {
            let show =
                |outcome: &Outcome| outcome.trace.get(common).map_or_else(|| "nothing".to_string(), |e| e.op.clone());
            return Some(whole(DifferentPart::Effect(common), show(before), show(after)));
        }
        self.in_values(DifferentPart::Result, (&before.values, before.result), (&after.values, after.result))
    }

    /// Returns the first difference between two values. The time is linear in the number of
    /// different pairs of parts, as for [`Values::same`].
    fn in_values(
        self,
        part: DifferentPart,
        (before, a): (&Values, ValueId),
        (after, b): (&Values, ValueId),
    ) -> Option<Difference> {
        // For each pair on the stack, its parent and its field index. A path is built only when a
        // difference is found.
        let mut steps: Vec<(usize, usize)> = Vec::new();
        let path_of = |steps: &[(usize, usize)], mut at: Option<usize>| {
            let mut path = Vec::new();
            while let Some(step) = at.and_then(|i| steps.get(i)) {
                path.push(step.1);
                at = step.0.checked_sub(1);
            }
            path.reverse();
            path
        };
        let mut seen = FxHashSet::default();
        let mut stack: Vec<(ValueId, ValueId, Option<usize>)> = vec![(a, b, None)];
        while let Some((a, b, from)) = stack.pop() {
            if !seen.insert((a, b)) {
                continue;
            }
            let element = match (before.get(a), after.get(b)) {
                (Value::Tensor(x), Value::Tensor(y)) => match self.in_tensors(x, y) {
                    None => continue,
                    Some(element) => element,
                },
                (Value::Tuple(x), Value::Tuple(y)) if x.len() == y.len() => {
                    for (field, (&x, &y)) in x.iter().zip(y).enumerate().rev() {
                        steps.push((from.map_or(0, |i| i + 1), field));
                        stack.push((x, y, Some(steps.len() - 1)));
                    }
                    continue;
                }
                (Value::Function, Value::Function) | (Value::Absent, Value::Absent) => continue,
                _ => None,
            };
            let found = match (element, before.as_tensor(a), after.as_tensor(b)) {
                (Some(at), Some(x), Some(y)) => Difference {
                    element: Some(index_of(at, x.shape())),
                    ..whole(part, element_text(x, at), element_text(y, at))
                },
                _ => whole(part, before.text(a, SHOWN), after.text(b, SHOWN)),
            };
            return Some(Difference { path: path_of(&steps, from), ..found });
        }
        None
    }

    /// Returns the index of the first element in which tensors differ. `Some(None)` if they differ
    /// in type or have elements that cannot be compared one by one; `None` if they agree.
    fn in_tensors(self, x: &Literal, y: &Literal) -> Option<Option<usize>> {
        if x == y {
            return None;
        }
        if x.dtype() != y.dtype() || x.shape() != y.shape() {
            return Some(None);
        }
        // One element stands for all if both are splats.
        let count = if x.as_splat().is_some() && y.as_splat().is_some() { 1 } else { x.element_count() };
        let differs = |n: &usize| match (element_bytes(x, *n), element_bytes(y, *n)) {
            (Some(a), Some(b)) => a != b && !self.is_near(x.dtype(), a, b),
            _ => false,
        };
        match x.dtype().bits() {
            8.. => (0..count).find(differs).map(Some),
            0 => {
                let (a, b) = (x.as_strings().unwrap_or(&[]), y.as_strings().unwrap_or(&[]));
                Some(a.iter().zip(b).position(|(a, b)| a != b))
            }
            _ => Some(None),
        }
    }

    fn is_near(self, dtype: DType, a: &[u8], b: &[u8]) -> bool {
        let (Agreement::Within(tolerance) | Agreement::WithinRange(tolerance)) = self else { return false };
        let (Some(x), Some(y)) = (float(dtype, a), float(dtype, b)) else { return false };
        if matches!(self, Agreement::WithinRange(_)) && !(x.is_finite() && y.is_finite()) {
            return true;
        }
        let tolerance = match dtype {
            DType::Float16 => tolerance.max(2.0 * f64::from(f16::EPSILON)),
            DType::BFloat16 => tolerance.max(2.0 * f64::from(bf16::EPSILON)),
            _ => tolerance,
        };
        (x.is_nan() && y.is_nan()) || x == y || (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1.0)
    }
}

fn whole(part: DifferentPart, before: String, after: String) -> Difference {
    Difference { part, path: Vec::new(), element: None, before, after }
}

fn float(dtype: DType, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::Float16 => f16::from_le_bytes(bytes.try_into().ok()?).into(),
        DType::BFloat16 => bf16::from_le_bytes(bytes.try_into().ok()?).into(),
        DType::Float32 => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        DType::Float64 => f64::from_le_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

/// Returns the index in each axis of the n-th element of a shape.
fn index_of(mut n: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let i = n % extent.max(1);
            n /= extent.max(1);
            i
        })
        .collect();
    index.reverse();
    index
}
