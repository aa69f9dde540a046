//! Blocks that return a fn beside their result: branches, and the functions that are called.

use anfora_ir::{ExprId, TypeId, VarFlags, VarId};
use anfora_manager::PassError;
use anfora_visit::{LetList, Link, insert_before};
use rustc_hash::FxHashMap;

use super::adjoints::{AdjointId, AdjointValue};
use super::backward::{DifferentiatedBinding, Differentiator, type_error};

/// A block after its backward walk: the bindings of its fn, without a tail.
pub(super) struct DifferentiatedBranch {
    /// The place of the tail.
    end: Link,
    /// The parameter of the fn: the adjoint of the result.
    parameter: VarId,
    list: LetList,
    zeros: FxHashMap<TypeId, ExprId>,
    /// The variables from outside of the block that have an adjoint, in order.
    adjoints: Vec<(ExprId, AdjointId)>,
}

impl Differentiator<'_, '_> {
    /// Goes back through a branch whose result is that of `result`.
    pub(super) fn differentiate_branch(
        &mut self,
        result: VarId,
        end: Link,
        records: Vec<DifferentiatedBinding>,
    ) -> Result<DifferentiatedBranch, PassError> {
        let ty = self.editor.body.ty(result.expr());
        let parameter = self.seed_block(ty, end)?;
        self.backward(records)?;
        Ok(self.leave_block(end, parameter))
    }

    /// Makes the parameter of the fn of a block with a result of the type `ty`: it is the adjoint
    /// of the tail.
    ///
    /// # Errors
    /// If a derivative may flow through a part of the type that has no adjoint, and the tail has
    /// another type.
    pub(super) fn seed_block(&mut self, ty: TypeId, end: Link) -> Result<VarId, PassError> {
        let (result, tail) = (ty, self.editor.body.ty(end.target(self.editor.body)));
        let [ty, of_tail] = [result, tail].map(|ty| self.types.of(self.editor.cx, ty));
        let no_adjoint = self.editor.cx.types.unit();
        if ty != no_adjoint && ty != of_tail && self.types.hides_derivatives(self.editor.cx, result) {
            let [result, tail] = [result, tail].map(|ty| self.editor.cx.type_text(ty));
            return Err(PassError::new(format!("its result is {result}, which hides derivatives of {tail}"))
                .with_help("state the type of the value that is returned"));
        }
        let name = self.editor.cx.names.intern("adjoint");
        let parameter = self.editor.var(Some(name), VarFlags::PLAIN, ty);
        if ty != no_adjoint {
            let tail = end.target(self.editor.body);
            let seed = self.store(AdjointValue::value(parameter.expr()));
            self.contribute(tail, seed).map_err(type_error)?;
        }
        Ok(parameter)
    }

    /// Takes the results of the walk back through a block.
    pub(super) fn leave_block(&mut self, end: Link, parameter: VarId) -> DifferentiatedBranch {
        let reached = std::mem::take(&mut self.reached);
        let adjoints = reached.into_iter().filter_map(|var| Some((var, self.take_adjoint(var)?))).collect();
        let (list, zeros) = (std::mem::take(&mut self.list), std::mem::take(&mut self.zeros));
        DifferentiatedBranch { end, parameter, list, zeros, adjoints }
    }

    /// Makes both branches of an If return a fn beside their result. Returns the If, and the values
    /// whose adjoints the fns return: those that one of the branches uses.
    pub(super) fn finish_branches(
        &mut self,
        choice: ExprId,
        branches: [DifferentiatedBranch; 2],
    ) -> Result<(ExprId, Vec<ExprId>), PassError> {
        // The adjoints of a branch are entries of the table while its fn is finished.
        let mut values: Vec<ExprId> = Vec::new();
        for branch in &branches {
            for &(var, _) in &branch.adjoints {
                if self.adjoints[var].is_none() {
                    self.adjoints.set(var, Some(0));
                    values.push(var);
                }
            }
        }
        values.iter().for_each(|&var| self.adjoints.set(var, None));
        for branch in branches {
            self.finish_block(branch, &values)?;
        }
        self.editor.refresh_type(choice).map_err(type_error)?;
        Ok((choice, values))
    }

    /// Makes a block return a fn beside its result, which returns the adjoints of `values`.
    pub(super) fn finish_block(&mut self, branch: DifferentiatedBranch, values: &[ExprId]) -> Result<(), PassError> {
        let DifferentiatedBranch { end, parameter, list, zeros, adjoints } = branch;
        (self.list, self.zeros) = (list, zeros);
        for &(var, adjoint) in &adjoints {
            self.adjoints.set(var, Some(adjoint));
        }
        let (mut results, mut types) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
        for &value in values {
            let adjoint = self.take_adjoint(value);
            let ty = self.editor.body.ty(value);
            results.push(self.make(adjoint, ty, value).map_err(type_error)?);
            types.push(self.types.of(self.editor.cx, ty));
        }
        let results = self.editor.tuple(&results);
        self.zeros.clear();
        let block = std::mem::take(&mut self.list).finish(self.editor, results);
        let ret = self.editor.cx.types.tuple(&types);
        let no_attrs = self.editor.cx.attrs.empty();
        let lambda = self.editor.body.push_lambda(&[parameter], Some(ret), no_attrs);
        let back = self.editor.lambda(lambda, block);
        let ty = self.editor.body.ty(back);
        let var = self.editor.var(None, VarFlags::PLAIN, ty);
        let tail = end.target(self.editor.body);
        let end = insert_before(self.editor, end, &[(var, back)]);
        let pair = self.editor.tuple(&[tail, var.expr()]);
        end.set(self.editor.body, pair);
        Ok(())
    }
}
