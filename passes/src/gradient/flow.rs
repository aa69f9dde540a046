//! The flow of derivatives through a function: the values that depend on what is differentiated by,
//! and those on which the result depends.
//!
//! The flow is a graph of variables. An edge leads from an operand to the variable that its value
//! is bound to. The graph has only the variables on which the result may depend. When a variable
//! becomes active, the variables that its edges lead to become active, too. Each edge is followed
//! once, even if the parameters of a function become active one after another.

use anfora_ir::{Body, Context, Expr, ExprId, FunctionKey, SideTable};
use anfora_manager::PassError;
use anfora_visit::{Binding, bindings};

use super::Target;
use super::tangents::has_derivative;

/// A function that is called, and the arguments after those of the call.
pub(super) struct Callee {
    pub(super) function: FunctionKey,
    pub(super) captures: Vec<ExprId>,
}

/// A function that is called, and the number of its parameter that has become active; `None` for
/// the call itself.
pub(super) type ReachedParameter = (FunctionKey, Option<usize>);

/// The place of a variable in the flow of derivatives.
#[derive(Copy, Clone, Default)]
struct FlowFacts {
    /// The variable is differentiated by, or depends on a variable that is.
    is_active: bool,
    /// The value of the variable uses an active variable.
    uses_active: bool,
    /// The result may depend on the variable.
    is_needed: bool,
    /// The value that the variable is bound to; `None` for a parameter.
    value: Option<ExprId>,
    /// The last edge from the variable.
    last_edge: Option<u32>,
}

/// A use of a variable by the value of a binding.
struct FlowEdge {
    /// The variable of the binding.
    user: ExprId,
    /// If the value is a call of a known function: what becomes active in that.
    reaches: Option<ReachedParameter>,
    /// Another edge from the same variable.
    before: Option<u32>,
}

/// The variables that derivatives flow through.
pub(super) struct Flow {
    vars: SideTable<ExprId, FlowFacts>,
    edges: Vec<FlowEdge>,
    /// The variables of fns, which may use anything, until they have been made active.
    lambdas: Vec<ExprId>,
}

impl Flow {
    /// Finds the variables on which a result may depend. None is active yet.
    pub(super) fn of(cx: &Context, body: &Body, target: Target) -> Flow {
        let vars = body.side_table(FlowFacts::default());
        let mut flow = Flow { vars, edges: Vec::new(), lambdas: Vec::new() };
        let all: Vec<Binding> = bindings(body, body.root()).collect();
        for binding in &all {
            flow.vars.get_mut(binding.var.expr()).value = Some(binding.value);
        }
        // From the last binding to the first: a branch comes before its If.
        flow.need(cx, body, target.tail);
        for binding in all.iter().rev() {
            let var = binding.var.expr();
            if !flow.vars[var].is_needed {
                continue;
            }
            match body.expr(binding.value) {
                Expr::If { then_block, else_block, .. } => {
                    for block in [then_block, else_block] {
                        flow.lead(cx, body, body.tail(block), var, None);
                    }
                }
                Expr::Lambda { .. } => flow.lambdas.push(var),
                Expr::Call { .. } => flow.lead_to_call(cx, body, *binding),
                Expr::Tuple(fields) if var == target.tail && target.field.is_some() => {
                    let field = target.field.and_then(|i| body.operands(fields).get(i).copied());
                    field.into_iter().for_each(|field| flow.lead(cx, body, field, var, None));
                }
                _ => inputs(body, &binding.value).iter().for_each(|&input| flow.lead(cx, body, input, var, None)),
            }
        }
        flow
    }

    fn need(&mut self, cx: &Context, body: &Body, var: ExprId) {
        if may_have_derivative(cx, body, var) {
            self.vars.get_mut(var).is_needed = true;
        }
    }

    /// Adds an edge from an operand to the variable that its value is bound to.
    fn lead(&mut self, cx: &Context, body: &Body, from: ExprId, user: ExprId, reaches: Option<ReachedParameter>) {
        if !may_have_derivative(cx, body, from) {
            return;
        }
        let edge = self.edges.len() as u32;
        let facts = self.vars.get_mut(from);
        facts.is_needed = true;
        let before = facts.last_edge.replace(edge);
        self.edges.push(FlowEdge { user, reaches, before });
    }

    /// Adds the edges of a call. Arguments of a function that is not known lead to the result
    /// alone.
    fn lead_to_call(&mut self, cx: &Context, body: &Body, call: Binding) {
        let var = call.var.expr();
        let (operands, callee) = (body.operands_of(call.value), self.callee(cx, body, call.value).ok());
        let function = callee.as_ref().map(|callee| callee.function);
        self.lead(cx, body, operands[0], var, function.map(|function| (function, None)));
        let captures = callee.map_or(Vec::new(), |callee| callee.captures);
        for (i, &argument) in operands[1..].iter().chain(&captures).enumerate() {
            self.lead(cx, body, argument, var, function.map(|function| (function, Some(i))));
        }
    }

    /// Makes variables active, and those that depend on them. Returns what becomes active in the
    /// functions that are called.
    pub(super) fn activate(&mut self, vars: &[ExprId]) -> Vec<ReachedParameter> {
        let mut reached = Vec::new();
        let mut stack = std::mem::take(&mut self.lambdas);
        stack.extend(vars.iter().rev());
        while let Some(var) = stack.pop() {
            let facts = self.vars.get_mut(var);
            if std::mem::replace(&mut facts.is_active, true) {
                continue;
            }
            let mut edge = facts.last_edge;
            while let Some(FlowEdge { user, reaches, before }) = edge.map(|edge| &self.edges[edge as usize]) {
                reached.extend(*reaches);
                self.vars.get_mut(*user).uses_active = true;
                stack.push(*user);
                edge = *before;
            }
        }
        reached
    }

    /// Returns true if a variable depends on a value that is differentiated by, and is such a value
    /// or one that the result may depend on.
    pub(super) fn is_active(&self, var: ExprId) -> bool {
        self.vars[var].is_active
    }

    /// Returns true if the result may depend on a variable, and the variable on a value that is
    /// differentiated by.
    pub(super) fn is_useful(&self, var: ExprId) -> bool {
        let facts = &self.vars[var];
        facts.is_active && facts.is_needed
    }

    /// Returns true if the value of a variable depends on a value that is differentiated by. This
    /// is false for a variable that is active only because it is differentiated by itself.
    pub(super) fn uses_active(&self, var: ExprId) -> bool {
        self.vars[var].uses_active
    }

    /// Finds the function that a call calls: a global, or one with captures.
    pub(super) fn callee(&self, cx: &Context, body: &Body, call: ExprId) -> Result<Callee, PassError> {
        let mut at = body.operands_of(call)[0];
        let mut captures = Vec::new();
        loop {
            match body.expr(at) {
                Expr::Global(global) => {
                    let function = cx.globals.get(global).target.function();
                    let function = function.ok_or_else(|| PassError::new("the function that it calls is missing"))?;
                    return Ok(Callee { function, captures });
                }
                Expr::Var { .. } => at = self.vars[at].value.ok_or_else(unknown_callee)?,
                Expr::CallOp { operands, .. } if captures.is_empty() => {
                    let operands = body.operands(operands);
                    let global = operands.first().filter(|&&first| matches!(body.expr(first), Expr::Global(_)));
                    at = *global.ok_or_else(unknown_callee)?;
                    captures = operands[1..].to_vec();
                }
                Expr::Lambda { .. } => {
                    return Err(PassError::new("it calls a `fn`, which is not differentiated")
                        .with_help("run LambdaLifting before Gradient: it makes functions of them"));
                }
                _ => return Err(unknown_callee()),
            }
        }
    }
}

fn unknown_callee() -> PassError {
    PassError::new("the function that it calls is not known here")
        .with_help("call it by its name, or run InlineFunctions before Gradient")
}

/// Returns the expressions that a flat value uses: its operands, or itself.
pub(super) fn inputs<'a>(body: &'a Body, value: &'a ExprId) -> &'a [ExprId] {
    if body.expr(*value).is_atom() { std::slice::from_ref(value) } else { body.inputs(*value) }
}

/// Returns false if a variable is a tensor of booleans, integers or strings.
fn may_have_derivative(cx: &Context, body: &Body, var: ExprId) -> bool {
    cx.types.as_tensor(body.ty(var)).is_none_or(|tensor| has_derivative(tensor.dtype))
}
