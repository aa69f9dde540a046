//! Writes the steps of decompositions and adjoints as expressions.

use smallvec::SmallVec;

use crate::core::entity::ExprId;
use crate::core::expr::{LetFlags, VarFlags, VarId};
use crate::edit::editor::Editor;
use crate::ops::adjoint::Adjoint;
use crate::ops::decomposition::{Decomposition, DecompositionPart, Parts, Step};
use crate::ops::op::TypeError;

impl Decomposition {
    /// Writes the steps as a block: a chain of bindings in the order of the steps, without the
    /// steps that the result does not need, and the result as its tail. If the inferred type of the
    /// result is not as specific as that of the call, the tail is a `match_cast` to the type of the
    /// call, with `proved=true`: the result is of that type as that of the call is.
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If an operator does not exist or does not take its operands: the rule is wrong.
    pub fn write(&self, editor: &mut Editor<'_>) -> Result<ExprId, TypeError> {
        let faulty = |error: TypeError| {
            TypeError::new(format!("its decomposition is wrong: {error}")).of_op(self.operator.clone())
        };
        let mut lets: Vec<(VarId, ExprId)> = Vec::new();
        let made = write_steps(&self.steps, &[self.result], editor, |editor, i, value| {
            if i == self.result { value } else { bind(editor, &mut lets, value) }
        });
        let Some(mut tail) = made.map_err(faulty)?[self.result.index()] else {
            return Err(faulty(TypeError::new("it has no result")));
        };
        if !editor.cx.types.accepts(self.ty, editor.body.ty(tail)) {
            let value = if editor.body.expr(tail).is_atom() { tail } else { bind(editor, &mut lets, tail) };
            let attrs = [("to", self.ty.into()), ("proved", true.into())];
            tail = editor.op("match_cast", &[value], &attrs).map_err(faulty)?;
        }
        Ok(lets.into_iter().rev().fold(tail, |rest, (var, value)| editor.let_(var, value, rest, LetFlags::PLAIN)))
    }
}

impl Adjoint {
    /// Writes the steps, and returns the adjoints of operands with their numbers. `bind` receives
    /// each value, with the number of the operand whose adjoint it is if it is one, and binds it to
    /// a variable, which it returns. An adjoint whose inferred type is less specific than that of
    /// its operand is cast (`match_cast`).
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If an operator does not exist or does not take its operands: the rule is wrong.
    pub fn write(
        &self,
        editor: &mut Editor<'_>,
        mut bind: impl FnMut(&mut Editor<'_>, Option<usize>, ExprId) -> ExprId,
    ) -> Result<SmallVec<[(usize, ExprId); 2]>, TypeError> {
        let faulty =
            |error: TypeError| TypeError::new(format!("its adjoint is wrong: {error}")).of_op(self.operator.clone());
        let operands: SmallVec<[ExprId; 4]> = editor.body.operands_of(self.call).into();
        let mut operand_of: Vec<Option<usize>> = vec![None; self.steps.len()];
        for &(operand, part) in self.given.iter().rev() {
            operand_of[part.index()] = Some(operand);
        }
        let results: SmallVec<[DecompositionPart; 4]> = self.given.iter().map(|&(_, part)| part).collect();
        let made = write_steps(&self.steps, &results, editor, |editor, part, value| {
            bind(editor, operand_of[part.index()], value)
        });
        let made = made.map_err(faulty)?;
        let mut adjoints = SmallVec::new();
        for &(operand, part) in &self.given {
            let mut adjoint = made[part.index()].expect("a result is needed");
            let wanted = editor.body.ty(operands[operand]);
            if !editor.cx.types.accepts(wanted, editor.body.ty(adjoint)) {
                let cast = editor.match_cast(adjoint, wanted).map_err(faulty)?;
                adjoint = bind(editor, Some(operand), cast);
            }
            adjoints.push((operand, adjoint));
        }
        Ok(adjoints)
    }
}

/// Makes the expressions of the steps that the given results need, in order, and returns the
/// expression of each step. `place` receives each expression that is no atom and returns the one
/// that later steps use instead, usually a variable that it binds.
///
/// # Errors
/// If an operator does not exist or does not take its operands.
fn write_steps(
    steps: &[Step],
    results: &[DecompositionPart],
    editor: &mut Editor<'_>,
    mut place: impl FnMut(&mut Editor<'_>, DecompositionPart, ExprId) -> ExprId,
) -> Result<Vec<Option<ExprId>>, TypeError> {
    let is_needed = needed(steps, results);
    let mut made: Vec<Option<ExprId>> = vec![None; steps.len()];
    for (i, step) in steps.iter().enumerate().filter(|(i, _)| is_needed[*i]) {
        let value = write_step(editor, step, &made)?;
        let is_atom = editor.body.expr(value).is_atom();
        made[i] = Some(if is_atom { value } else { place(editor, DecompositionPart(i as u32), value) });
    }
    Ok(made)
}

/// Returns true for each step that the results need.
fn needed(steps: &[Step], results: &[DecompositionPart]) -> Vec<bool> {
    let mut is_needed = vec![false; steps.len()];
    for result in results {
        is_needed[result.index()] = true;
    }
    for i in (0..steps.len()).rev() {
        if is_needed[i] {
            steps[i].uses().iter().for_each(|part| is_needed[part.index()] = true);
        }
    }
    is_needed
}

/// Makes the expression of a step.
fn write_step(editor: &mut Editor<'_>, step: &Step, made: &[Option<ExprId>]) -> Result<ExprId, TypeError> {
    let missing = || TypeError::new("a step uses a part of another decomposition");
    let part = |part: &DecompositionPart| made.get(part.index()).copied().flatten().ok_or_else(missing);
    let parts = |parts: &Parts| parts.iter().map(part).collect::<Result<SmallVec<[ExprId; 4]>, TypeError>>();
    Ok(match step {
        Step::Given(operand) => *operand,
        Step::Constant(literal) => editor.literal(literal.clone()),
        Step::Omitted => editor.none(),
        Step::Call { op, operands, attrs } => editor.op(op, &parts(operands)?, attrs)?,
        Step::Tuple(fields) => editor.tuple(&parts(fields)?),
        Step::Field(of, index) => editor.proj(part(of)?, *index)?,
    })
}

/// Binds a value to a new variable, and returns the variable.
fn bind(editor: &mut Editor<'_>, lets: &mut Vec<(VarId, ExprId)>, value: ExprId) -> ExprId {
    let var = editor.var(None, VarFlags::PLAIN, editor.body.ty(value));
    lets.push((var, value));
    var.expr()
}
