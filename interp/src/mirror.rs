//! Mirrors: a second memory that is written and read along with the variables of a run.

use anfora_ir::{Context, ExprId, FunctionKey, Literal, VarId};

use crate::value::{Entry, Ref, Target, Values};

/// A memory beside that of the interpreter. It is told of each value that is bound to a variable,
/// and of each use of a variable. [`Interpreter::call_mirrored`](crate::Interpreter::call_mirrored)
/// runs a program with one.
///
/// An error ends the run. Activations have numbers; the number of one that has ended may be used
/// again, after another [`ValueMirror::enter`].
pub trait ValueMirror {
    /// Records that a call begins.
    ///
    /// # Errors
    /// The reason why the run ends.
    fn enter(&mut self, call: MirroredCall) -> Result<(), String>;

    /// Records that a value is bound to a variable of an activation.
    ///
    /// # Errors
    /// The reason why the run ends.
    fn write(&mut self, activation: u32, var: VarId, value: MirroredValue<'_>) -> Result<(), String>;

    /// Records that the value of a variable of an activation is used: as an operand of an operator
    /// or a call, as a condition, or as the result of a block.
    ///
    /// # Errors
    /// The reason why the run ends.
    fn read(&mut self, activation: u32, var: VarId, value: MirroredValue<'_>) -> Result<(), String>;
}

/// The beginning of a call of a function or a `fn`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MirroredCall {
    /// The new activation.
    pub activation: u32,
    /// The function that is called, or that the `fn` is in.
    pub function: FunctionKey,
    /// The `fn` that is called; `None` for a function.
    pub lambda: Option<ExprId>,
    /// The activation in which the `fn` was evaluated; `None` for a function.
    pub parent: Option<u32>,
    /// The activation of the caller and the call in it; `None` for the first call.
    pub caller: Option<(u32, ExprId)>,
}

/// A value of a run.
#[derive(Copy, Clone)]
pub struct MirroredValue<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) values: &'a Values,
    pub(crate) value: Ref,
}

impl<'a> MirroredValue<'a> {
    /// Returns the tensor if the value is a tensor.
    pub fn tensor(self) -> Option<&'a Literal> {
        match self.value.target() {
            Target::Value(at) => match self.values.entry(at) {
                Some(Entry::Tensor(literal)) => Some(literal),
                _ => None,
            },
            Target::Literal(id) => Some(self.cx.literals.get(id)),
            Target::Global(_) | Target::Operator | Target::Absent => None,
        }
    }

    /// Returns the fields if the value is a tuple; none if it is not.
    pub fn fields(self) -> impl ExactSizeIterator<Item = MirroredValue<'a>> {
        let fields = match self.value.target() {
            Target::Value(at) => match self.values.entry(at) {
                Some(Entry::Tuple(fields)) => &fields[..],
                _ => &[],
            },
            _ => &[],
        };
        fields.iter().map(move |field| MirroredValue { value: field.as_ref(), ..self })
    }
}

anfora_ir::brief_debug! { MirroredValue<'_>; }
