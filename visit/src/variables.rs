//! Which variables an expression uses and binds.

use std::convert::Infallible;

use anfora_ir::{Body, ExprId, PartSet, SideTable, VarId};

use crate::visitor::{Visit, Visitor, walk, walk_from};

/// Counts uses of each node, see [`use_counts`].
struct Uses(SideTable<ExprId, u32>);

impl Visitor for Uses {
    type Break = Infallible;

    #[inline(always)]
    fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        *self.0.get_mut(var.expr()) += 1;
        Visit::Continue
    }
}

/// How often each variable of a function is used, by its id: as an operand, condition, value or tail of what can be reached from the body's root.
/// The operands of a shared node count once. One walk.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let pair = f.tuple(&[a, a]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // %a -> let %x = (%a, %a); %x
/// let body = &module.get(key).unwrap().body;
/// let uses = anfora_visit::use_counts(body);
/// assert_eq!(uses[body.params()[0].expr()], 2);
/// ```
pub fn use_counts(body: &Body) -> SideTable<ExprId, u32> {
    let mut uses = Uses(body.side_table(0));
    let _ = walk(body, &mut uses);
    uses.0
}

/// Definitions and uses in program order, each variable once.
struct Variables {
    defined: PartSet<ExprId>,
    definitions: Vec<VarId>,
    used: PartSet<ExprId>,
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
    let set = || if id == body.root() { PartSet::of_whole(nodes) } else { PartSet::of_part(nodes) };
    let mut variables = Variables { defined: set(), definitions: Vec::new(), used: set(), uses: Vec::new() };
    let _ = walk_from(body, id, &mut variables);
    variables
}

/// The variables that an expression uses and does not bind, in the order of their first uses. One walk of the expression.
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

/// The variables that an expression binds, by Lets and as parameters of Lambdas, in the order in which they come into scope. One walk of the
/// expression.
pub fn bound_variables(body: &Body, id: ExprId) -> Vec<VarId> {
    variables(body, id).definitions
}
