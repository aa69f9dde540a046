//! The variables that an expression uses and binds.

use std::convert::Infallible;

use anfora_ir::{Body, ExprId, SparseSet, VarId};

use crate::visitor::{Visit, Visitor, walk_from};

/// Definitions and uses in program order, each variable once.
struct Variables {
    defined: SparseSet<ExprId>,
    definitions: Vec<VarId>,
    used: SparseSet<ExprId>,
    uses: Vec<VarId>,
}

impl Visitor for Variables {
    type Break = Infallible;

    #[inline]
    fn visit_def(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        if self.defined.insert(var.expr()) {
            self.definitions.push(var);
        }
        Visit::Continue
    }

    #[inline]
    fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        if self.used.insert(var.expr()) {
            self.uses.push(var);
        }
        Visit::Continue
    }
}

fn variables(body: &Body, id: ExprId) -> Variables {
    let nodes = body.len();
    let set = || if id == body.root() { SparseSet::of_whole(nodes) } else { SparseSet::of_part(nodes) };
    let mut variables = Variables { defined: set(), definitions: Vec::new(), used: set(), uses: Vec::new() };
    let _ = walk_from(body, id, &mut variables);
    variables
}

/// Returns the variables that an expression uses but does not bind, in the order of their first
/// uses. Walks the expression once.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let (a, b) = (f.param("a", unit), f.param("b", unit));
/// # let pair = f.tuple(&[b, b]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // %a, %b -> let %x = (%b, %b); %x
/// let body = &module.get(key).unwrap().body;
/// assert_eq!(anfora_visit::free_variables(body, body.root()), [body.params()[1]]);
/// assert_eq!(anfora_visit::bound_variables(body, body.root()).len(), 1);
/// ```
pub fn free_variables(body: &Body, id: ExprId) -> Vec<VarId> {
    let Variables { defined, mut uses, .. } = variables(body, id);
    uses.retain(|var| !defined.contains(var.expr()));
    uses
}

/// Returns the variables that an expression binds, by Lets and as parameters of Lambdas, in the
/// order in which they come into scope. Walks the expression once.
pub fn bound_variables(body: &Body, id: ExprId) -> Vec<VarId> {
    variables(body, id).definitions
}
