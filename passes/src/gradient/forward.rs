//! The walk forward.

use anfora_ir::{Expr, ExprId, VarFlags};
use anfora_manager::PassError;
use anfora_visit::{Binding, Link, insert_before};

use super::backward::{DifferentiatedBinding, Differentiator, ForwardEnd, PullbackUse, type_error};
use super::branches::DifferentiatedBranch;
use super::flow::Callee;

/// A block whose walk forward has begun.
struct OpenBlock {
    /// The place of the next Let, or of the tail.
    at: Link,
    records: Vec<DifferentiatedBinding>,
    /// The first branch of the If at `at`, if the walk is in the second one.
    first_branch: Option<DifferentiatedBranch>,
}

impl OpenBlock {
    fn new(at: Link) -> OpenBlock {
        OpenBlock { at, records: Vec::new(), first_branch: None }
    }
}

impl Differentiator<'_, '_> {
    /// Goes through the function. Calls and Ifs that matter get a fn that computes adjoints.
    pub(super) fn forward(&mut self) -> Result<ForwardEnd, PassError> {
        let mut blocks = vec![OpenBlock::new(Link::Root)];
        loop {
            let block = blocks.last_mut().expect("the block of the function ends the walk");
            let entered = self.advance(block)?;
            if let Some(choice) = entered {
                blocks.push(OpenBlock::new(Link::Then(choice)));
                continue;
            }
            let ended = blocks.pop().expect("it was the last one");
            let Some(around) = blocks.last_mut() else { return Ok((ended.at, ended.records)) };
            let choice = Binding::of(self.editor.body, around.at.target(self.editor.body));
            let choice = choice.expect("the walk has entered a branch of this binding");
            let branch = self.differentiate_branch(choice.var, ended.at, ended.records)?;
            match around.first_branch.take() {
                None => {
                    around.first_branch = Some(branch);
                    blocks.push(OpenBlock::new(Link::Else(choice.value)));
                }
                Some(first) => {
                    let pullback = self.finish_branches(choice.value, [first, branch]);
                    let (pair, values) = pullback.map_err(|error| self.at_binding(error, choice.var.expr()))?;
                    self.split(around, choice, pair, values).map_err(type_error)?;
                }
            }
        }
    }

    /// Goes on to the next If that matters, and returns it; `None` at the tail.
    fn advance(&mut self, block: &mut OpenBlock) -> Result<Option<ExprId>, PassError> {
        while let Some(binding) = Binding::of(self.editor.body, block.at.target(self.editor.body)) {
            let Binding { var, value, .. } = binding;
            if !self.flow.is_useful(var.expr()) {
                block.at = Link::Rest(binding.id);
                continue;
            }
            match self.editor.body.expr(value) {
                Expr::If { .. } if self.flow.uses_active(var.expr()) => return Ok(Some(value)),
                Expr::Call { .. } if self.flow.uses_active(var.expr()) => {
                    self.call_pullback(block, binding).map_err(|error| self.at_binding(error, var.expr()))?;
                    continue;
                }
                _ => block.records.push(DifferentiatedBinding { var, value, pullback: None }),
            }
            block.at = Link::Rest(binding.id);
        }
        Ok(None)
    }

    /// Calls the pullback of a function instead of the function.
    fn call_pullback(&mut self, block: &mut OpenBlock, binding: Binding) -> Result<(), PassError> {
        let Callee { function, captures } = self.flow.callee(self.editor.cx, self.editor.body, binding.value)?;
        let pullback = self.pullbacks.of(self.functions, self.editor.cx, &mut self.types, function)?;
        let mut arguments = self.editor.body.operands_of(binding.value)[1..].to_vec();
        arguments.extend(captures);
        let callee = self.editor.body.global(pullback.global, pullback.signature);
        let no_attrs = self.editor.cx.attrs.empty();
        let pair = self.editor.call(callee, &arguments, no_attrs).map_err(type_error)?;
        let wanted = arguments.into_iter().zip(pullback.wanted).filter(|&(_, is_wanted)| is_wanted);
        let values = wanted.map(|(argument, _)| argument).collect();
        self.split(block, binding, pair, values).map_err(type_error)
    }

    /// Binds a pair before a binding, its first field to the variable of the binding, and its other
    /// field, a fn that computes the adjoints of `values`, after that.
    fn split(
        &mut self,
        block: &mut OpenBlock,
        binding: Binding,
        pair: ExprId,
        values: Vec<ExprId>,
    ) -> Result<(), anfora_ir::TypeError> {
        let ty = self.editor.body.ty(pair);
        let both = self.editor.var(None, VarFlags::PLAIN, ty);
        insert_before(self.editor, block.at, &[(both, pair)]);
        let first = self.editor.proj(both.expr(), 0)?;
        Link::Value(binding.id).set(self.editor.body, first);
        let second = self.editor.proj(both.expr(), 1)?;
        let ty = self.editor.body.ty(second);
        let back = self.editor.var(None, VarFlags::PLAIN, ty);
        block.at = insert_before(self.editor, Link::Rest(binding.id), &[(back, second)]);
        let pullback = Some(Box::new(PullbackUse { back: back.expr(), values }));
        block.records.push(DifferentiatedBinding { var: binding.var, value: binding.value, pullback });
        Ok(())
    }
}
