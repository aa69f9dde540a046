//! The verifier: what every pass may rely on, and has to leave behind.
//!
//! The rules, by number:
//!
//! 1. *Ids.* Every id in a node, an operand list, a `fn` or a function is one of an entry of its
//!    table. What stands as a variable is one. The parameters of a function and of a `fn` are
//!    variables.
//! 2. *One parent.* A Let, an If and a Lambda have one link to them. Only what binds nothing may be
//!    shared.
//! 3. *No cycles.* No expression is part of itself.
//! 4. *Binding.* A variable is bound once: by a Let, or as a parameter.
//! 5. *Scope.* A variable is used only where it is visible: after its Let to the end of the block,
//!    in the whole `fn` whose parameter it is. The variable of a Let whose value is a `fn` is
//!    visible in that `fn` too. A shared node is used only where every variable in it is visible.
//! 6. *Regions.* A Let in a dataflow region that does not start one follows another of the region.
//!    A variable that is visible only in its region is bound in one and used in that one, before
//!    the region ends: at the next Let that starts one or is in none, or at the block's tail.
//! 7. *What regions hold.* What is evaluated in a region, blocks as values included, is no If, and
//!    nothing that can be observed. To define a `fn` in a region is to evaluate nothing of its
//!    block, so the block may hold both, and has regions of its own.
//! 8. *Sharing and effects.* What can be observed is evaluated at one place: a shared node is pure.
//! 9. *Calls.* The number of operands agrees with the operator's row, and so do the attributes,
//!    which are in the form that [`Context::check_op_attrs`](crate::Context::check_op_attrs) gives
//!    them.
//! 10. *Types.* The stored type of every node is what [`infer_expr`](crate::infer_expr) gives from
//!     the stored types of its parts; that of an opaque call is what it is. So conditions are
//!     rank-0 bool tensors, branches have something in common, arguments fit, constants have the
//!     types of their shapes. The type of a variable accepts that of its value. The result that a
//!     function or `fn` states accepts what its block returns.
//! 11. *Symbols.* A symbolic dimension is named, in types and attributes, only where it is bound:
//!     from the parameter or `match_cast` on where it stands alone, to the end of the function,
//!     `fn` or branch that this is in. It belongs to one global function.
//! 12. *Globals.* A global that is named resolves. The signature of a function is that of its
//!     parameters and result, and its name leads back to it. The attribute `global_symbol` of a
//!     function is a string that is not empty, and no two definitions have the same.
//! 13. *Phase.* If the module has the attribute `phase`: from 0 on every function is in A-normal
//!     form and holds no `fn`; from 2.1 on there are no dataflow regions; from 2.3 on every
//!     function has the attribute `global_symbol`.
//!
//! Where rules 1 to 3 fail in a function, the others are not looked at in it, since looking would
//! not end. Linear time and memory, explicit stacks; the one exception is a program in graph form
//! in which many shared nodes with a `fn` or `if` among their operands stand inside each other:
//! each is walked for itself.

mod ids;
mod module_rules;
mod others;
mod symbols;
mod types;
mod walk;

use crate::core::body::Body;
use crate::core::entity::ExprId;
use crate::core::module::{FunctionKey, Module};
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::Diagnostics;
use crate::text::extent::token_extent;

/// The most errors that are described; of the others there is a count.
pub const MAX_VERIFY_ERRORS: usize = 100;

/// How the expressions of a body are arranged.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// A-normal form: every operand and condition is an atom, every value is one step, nothing is
    /// shared.
    Anf,
    /// Anything else: nested calls, blocks as values, shared nodes.
    Graph,
}

impl Form {
    /// In one word, as tools print it.
    pub fn name(self) -> &'static str {
        match self {
            Form::Anf => "ANF",
            Form::Graph => "graph",
        }
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Form::Anf => "A-normal form",
            Form::Graph => "graph form",
        })
    }
}

/// What a module that passed is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyReport {
    /// [`Form::Anf`] if all functions are.
    pub form: Form,
    /// The definitions in program order.
    pub functions: Vec<(FunctionKey, Form)>,
}

impl VerifyReport {
    /// [`Form::Anf`] if all functions are.
    pub fn form(&self) -> Form {
        self.form
    }
}

/// Checks a module against all rules. Linear.
///
/// # Errors
/// All violations, at most [`MAX_VERIFY_ERRORS`] of them and how many more there are, functions in
/// program order.
pub fn verify_module(module: &Module) -> Result<VerifyReport, Diagnostics> {
    let mut verifier = module_rules::Verifier::new(module);
    let mut functions = Vec::new();
    for &key in module.order() {
        if let Some(form) = verifier.function(key) {
            functions.push((key, form));
        }
    }
    verifier.function_attrs();
    verifier.effects();
    let form = functions.iter().map(|f| f.1).max().unwrap_or(Form::Anf);
    verifier.errors.finish(module).map(|()| VerifyReport { form, functions })
}

/// Checks one function against all rules, the others being taken to be in order.
///
/// Copies the module's tables, in which inference makes types: to check all functions one by one
/// takes time in the number of functions times the size of the tables. [`verify_module`] copies
/// them once.
///
/// # Errors
/// All violations, at most [`MAX_VERIFY_ERRORS`] of them and how many more there are.
pub fn verify_function(module: &Module, key: FunctionKey) -> Result<Form, Diagnostics> {
    verify_functions(module, &[key])
}

/// Checks some functions against all rules, the others being taken to be in order, with one copy of
/// the module's tables. Linear in the tables and in the functions that are checked; in the module,
/// where one of these has an effect in a place that may have none, or binds symbolic dimensions,
/// which no other definition may name. If one of them has the attribute `global_symbol`, no other
/// definition of the module may have the same. The form is [`Form::Anf`] if they all are in
/// A-normal form.
///
/// # Errors
/// All violations, at most [`MAX_VERIFY_ERRORS`] of them and how many more there are, functions in
/// the order given.
pub fn verify_functions(module: &Module, keys: &[FunctionKey]) -> Result<Form, Diagnostics> {
    let mut verifier = module_rules::Verifier::new(module);
    let form = keys.iter().filter_map(|&key| verifier.function(key)).max().unwrap_or(Form::Anf);
    verifier.others(keys);
    verifier.function_attrs();
    verifier.effects();
    verifier.errors.finish(module).map(|()| form)
}

/// A place in a function, where something is wrong.
#[derive(Copy, Clone, Default)]
pub(crate) struct Place {
    /// The node.
    pub(crate) node: Option<ExprId>,
    /// The innermost Let that it is in.
    pub(crate) link: Option<ExprId>,
}

impl Place {
    /// Returns a diagnostic with the function `name`, the binding and the position of the place.
    /// The ids of the body have to be in range.
    #[cold]
    pub(crate) fn locate(self, module: &Module, body: &Body, name: &str, diagnostic: Diagnostic) -> Diagnostic {
        let mut diagnostic = in_function(diagnostic, name);
        if let Some(name) = self.link.and_then(|link| body.binding_name(&module.cx, link)) {
            diagnostic = diagnostic.on_binding(name);
        }
        let start_of = |id: Option<ExprId>| body.span(id?).map(|start| start as usize);
        let Some(start) = start_of(self.node).or_else(|| start_of(self.link)) else { return diagnostic };
        diagnostic.at(match module.source() {
            Some(source) => token_extent(source.text(), start),
            None => start..start + 1,
        })
    }
}

/// Returns a diagnostic about a function of this name. Functions that are values of attributes have
/// none.
pub(crate) fn in_function(diagnostic: Diagnostic, name: &str) -> Diagnostic {
    if name.is_empty() { diagnostic } else { diagnostic.in_function(name) }
}

/// The errors found so far.
struct Errors {
    list: Vec<Diagnostic>,
    more: usize,
}

impl Errors {
    fn new() -> Errors {
        Errors { list: Vec::new(), more: 0 }
    }

    fn report(&mut self, make: impl FnOnce() -> Diagnostic) {
        if self.list.len() < MAX_VERIFY_ERRORS {
            self.list.push(make());
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self, module: &Module) -> Result<(), Diagnostics> {
        if self.list.is_empty() {
            return Ok(());
        }
        if self.more > 0 {
            let noun = if self.more == 1 { "error is" } else { "errors are" };
            self.list.push(Diagnostic::error(format!("{} more {noun} not shown", self.more)));
        }
        Err(Diagnostics::in_source(self.list, module.source().cloned()))
    }
}
