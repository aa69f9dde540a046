//! The flow of derivatives through a function: the values that depend on what is differentiated by,
//! and those on which the result depends.

use anfora_ir::{Body, Context, Expr, ExprId, SideTable};
use anfora_visit::{Binding, bindings};

use super::Target;

/// The place of a variable in the flow of derivatives.
#[derive(Copy, Clone, Default)]
struct FlowFacts {
    /// The variable depends on a value that is differentiated by.
    is_active: bool,
    /// The result may depend on the variable.
    is_useful: bool,
    /// The value that the variable is bound to; `None` for a parameter.
    value: Option<ExprId>,
}

/// The variables that derivatives flow through.
pub(super) struct Flow {
    vars: SideTable<ExprId, FlowFacts>,
}

impl Flow {
    /// Finds the variables on the way from `sources` to a result: the tail of the function, or a
    /// field of it.
    pub(super) fn of(cx: &Context, body: &Body, sources: &[ExprId], tail: ExprId, field: Option<usize>) -> Flow {
        let mut flow = Flow { vars: body.side_table(FlowFacts::default()) };
        for &source in sources {
            flow.vars.get_mut(source).is_active = may_have_derivative(cx, body, source);
        }
        // From the first binding to the last: does the value depend on a source?
        let all: Vec<Binding> = bindings(body, body.root()).collect();
        for binding in &all {
            let depends = match body.expr(binding.value) {
                // Its block may use anything.
                Expr::Lambda { .. } => true,
                Expr::If { then_block, else_block, .. } => {
                    [then_block, else_block].iter().any(|&block| flow.is_active(body.tail(block)))
                }
                _ => flow.inputs(body, &binding.value).iter().any(|&input| flow.is_active(input)),
            };
            let has_derivative = may_have_derivative(cx, body, binding.var.expr());
            let facts = flow.vars.get_mut(binding.var.expr());
            facts.is_active |= depends && has_derivative;
            facts.value = Some(binding.value);
        }
        // From the last binding to the first: does the result depend on the variable?
        flow.use_var(tail);
        for binding in all.iter().rev() {
            let var = binding.var.expr();
            if !flow.is_useful(var) {
                continue;
            }
            match body.expr(binding.value) {
                Expr::If { then_block, else_block, .. } => {
                    flow.use_var(body.tail(then_block));
                    flow.use_var(body.tail(else_block));
                }
                Expr::Tuple(fields) if var == tail && field.is_some() => {
                    let target = field.and_then(|i| body.operands(fields).get(i).copied());
                    target.into_iter().for_each(|target| flow.use_var(target));
                }
                _ => flow.inputs(body, &binding.value).iter().for_each(|&input| flow.use_var(input)),
            }
        }
        flow
    }

    /// Returns the expressions that a flat value uses: its operands, or itself.
    fn inputs<'a>(&self, body: &'a Body, value: &'a ExprId) -> &'a [ExprId] {
        if body.expr(*value).is_atom() { std::slice::from_ref(value) } else { body.inputs(*value) }
    }

    fn use_var(&mut self, var: ExprId) {
        if self.vars[var].is_active {
            self.vars.get_mut(var).is_useful = true;
        }
    }

    /// Returns true if a variable depends on a value that is differentiated by.
    pub(super) fn is_active(&self, var: ExprId) -> bool {
        self.vars[var].is_active
    }

    /// Returns true if the result may depend on a variable, and the variable on a value that is
    /// differentiated by.
    pub(super) fn is_useful(&self, var: ExprId) -> bool {
        self.vars[var].is_useful
    }

    /// Returns the value that a variable is bound to.
    pub(super) fn value_of(&self, var: ExprId) -> Option<ExprId> {
        self.vars[var].value
    }
}

/// Returns false if a variable is a tensor without floats.
fn may_have_derivative(cx: &Context, body: &Body, var: ExprId) -> bool {
    cx.types.as_tensor(body.ty(var)).is_none_or(|tensor| tensor.dtype.is_float())
}

impl Target {
    /// Returns the flow from `sources` to this result.
    pub(super) fn flow(self, cx: &Context, body: &Body, sources: &[ExprId]) -> Flow {
        Flow::of(cx, body, sources, self.tail, self.field)
    }
}
