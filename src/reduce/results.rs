//! Shrinks the results of external functions, and everything that is computed only for them.

use std::ops::Range;

use anfora_ir::{Editor, Expr, ExprId, FunctionKey, Module, VarFlags};
use anfora_visit::{Binding, Link, bindings, link_counts, set_var_flags, tail_link, unlink_let};

use super::size::ProgramSize;
use super::{Reduction, Shrink};

/// Returns the external functions that have a body.
fn entries(module: &Module) -> Vec<FunctionKey> {
    let is_entry = |f: &anfora_ir::Function| f.is_definition() && f.is_external(&module.cx);
    module.functions().filter(|(_, f)| is_entry(f)).map(|(key, _)| key).collect()
}

impl Reduction<'_> {
    /// Ends each external function after the first binding whose value shows the fault. The binding
    /// is searched for by halving.
    pub(super) fn shorten_results(&mut self) {
        for key in entries(&self.best) {
            let bindings_of = |module: &Module| match module.get(key) {
                Some(f) => bindings(&f.body, f.body.root()).count(),
                None => 0,
            };
            let (mut short, mut long) = (0, bindings_of(&self.best));
            while short < long && !self.is_over {
                self.count_try();
                let middle = short + (long - short) / 2;
                let mut module = Module::clone(&self.best);
                let is_made = end_after(&mut module, key, middle).and_then(|()| self.tidy(&mut module));
                if is_made.is_some() && ProgramSize::of(&module) < self.size && self.try_module(module, "results") {
                    // What the result does not need is gone, so there are fewer bindings.
                    long = bindings_of(&self.best).saturating_sub(1).min(middle);
                    short = short.min(long);
                } else {
                    short = middle + 1;
                }
            }
        }
    }
}

/// Makes the variable of a binding of the outermost block the result of a function.
fn end_after(module: &mut Module, key: FunctionKey, number: usize) -> Option<()> {
    let (function, _) = module.get_mut(key)?;
    let body = &mut function.body;
    let last = bindings(body, body.root()).nth(number)?;
    body.set_let_body(last.id, last.var.expr());
    set_var_flags(body, last.var, VarFlags::PLAIN);
    function.ret = None;
    Some(())
}

/// Removes fields of the tuples that external functions return.
pub(super) struct Fields;

/// Returns the fields of the tuple that a function returns.
fn fields_of(module: &Module, key: FunctionKey) -> Vec<ExprId> {
    let Some(body) = module.get(key).map(|f| &f.body) else { return Vec::new() };
    let tail = body.tail(body.root());
    let bound = bindings(body, body.root()).find(|binding| binding.var.expr() == tail).map(|binding| binding.value);
    let value = bound.unwrap_or(tail);
    match body.expr(value) {
        Expr::Tuple(fields) if fields.len() > 1 => body.operands(fields).to_vec(),
        _ => Vec::new(),
    }
}

impl Shrink for Fields {
    const PART: &'static str = "results";

    fn sites(&self, module: &Module) -> usize {
        entries(module).into_iter().map(|key| fields_of(module, key).len()).sum()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let mut number = 0;
        for key in entries(module) {
            let fields = fields_of(module, key);
            let kept: Vec<ExprId> = fields
                .iter()
                .enumerate()
                .filter(|(i, _)| !sites.contains(&(number + i)))
                .map(|(_, &field)| field)
                .collect();
            number += fields.len();
            if kept.len() == fields.len() {
                continue;
            }
            let (function, cx) = module.get_mut(key)?;
            function.ret = None;
            let mut editor = Editor::new(cx, &mut function.body);
            for &field in &kept {
                if let Some(var) = editor.body.as_var(field) {
                    set_var_flags(editor.body, var, VarFlags::PLAIN);
                }
            }
            let tail = match kept[..] {
                [] => return None,
                [only] => only,
                _ => editor.tuple(&kept),
            };
            tail_link(editor.body, Link::Root).set(editor.body, tail);
        }
        Some(true)
    }
}

/// Makes the value of the last binding the tail of a function, if the tail is its variable.
pub(super) struct Tails;

impl Shrink for Tails {
    const PART: &'static str = "tails";

    fn sites(&self, module: &Module) -> usize {
        module.order().len()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let mut is_changed = false;
        let keys = module.order()[sites].to_vec();
        for key in keys {
            let (function, _) = module.get_mut(key)?;
            let body = &mut function.body;
            let (mut last, mut next) = (None, Link::Root);
            while let Some(binding) = Binding::of(body, next.target(body)) {
                last = Some((next, binding));
                next = Link::Rest(binding.id);
            }
            let Some((link, Binding { var, value, rest, .. })) = last else { continue };
            if rest == var.expr() && link_counts(body)[rest] == 1 {
                is_changed = true;
                unlink_let(body, link);
                link.set(body, value);
            }
        }
        Some(is_changed)
    }
}
