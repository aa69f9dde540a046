//! The verifier: checks the rules that every pass may rely on and must keep.
//!
//! The rules, by number:
//!
//! 1. *Ids.* Every id in a node, an operand list, a `fn` or a function names an entry of its table.
//!    The node that a Let binds is a variable, and so are the parameters of functions and of `fn`s.
//! 2. *One parent.* A Let, an If and a Lambda have exactly one parent. Only nodes that bind nothing
//!    may be shared.
//! 3. *No cycles.* No expression is part of itself.
//! 4. *Binding.* A variable is bound once: by a Let, or as a parameter.
//! 5. *Scope.* A variable is used only where it is visible: after its Let to the end of the block,
//!    or in the whole `fn` whose parameter it is. If the value of a Let is a `fn`, the variable is
//!    visible in that `fn` too. A shared node is used only where every variable in it is visible.
//! 6. *Regions.* A Let in a dataflow region either starts the region or follows another Let of it.
//!    A variable that is visible only in its region is bound in a region and used in that same
//!    region. A region ends at the next Let that starts a region or is in none, or at the tail of
//!    the block.
//! 7. *What regions hold.* Nothing that is evaluated in a region, including blocks as values, is an
//!    If or has an observable effect. Defining a `fn` in a region evaluates nothing of its block,
//!    so the block may contain both, and has regions of its own.
//! 8. *Sharing and effects.* An expression with an observable effect is evaluated at one place: a
//!    shared node is pure.
//! 9. *Calls.* The number of operands and the attributes agree with the operator's row. The
//!    attributes have the form that [`Context::check_op_attrs`](crate::Context::check_op_attrs)
//!    gives them.
//! 10. *Types.* The stored type of every node is the result of [`infer_expr`](crate::infer_expr) on
//!     the stored types of its parts. An opaque call may have any type. Hence conditions are rank-0
//!     bool tensors, branches have a common type, arguments fit, and constants have the types of
//!     their shapes. The type of a variable accepts that of its value. The stated result type of a
//!     function or `fn` accepts the type that its block returns.
//! 11. *Symbols.* Types and attributes name a symbolic dimension only where it is bound. It is
//!     bound where a parameter or a `match_cast` has it alone as a dimension, from there to the end
//!     of the enclosing function, `fn` or branch. It belongs to one global function.
//! 12. *Globals.* A global that is named resolves. The signature of a function has the types of its
//!     parameters and result, and its name resolves to it. The attribute `global_symbol` of a
//!     function is a string that is not empty, and no two definitions have the same one.
//! 13. *Phase.* If the module has the attribute `phase`: from 0 on, every function is in A-normal
//!     form and contains no `fn`; from 2.1 on, there are no dataflow regions; from 2.3 on, every
//!     function has the attribute `global_symbol`.
//!
//! If rule 1, 2 or 3 fails in a function, the other rules are not checked in it, since a walk might
//! not end. The verifier takes linear time and memory and uses explicit stacks. There is one
//! exception: if a program in graph form nests many shared nodes that have a `fn` or an `if` among
//! their operands, each of these nodes is walked separately.

mod ids;
mod module_rules;
mod others;
mod symbols;
mod types;
mod walk;

use crate::core::body::Body;
use crate::core::entity::{ExprId, FunctionKey};
use crate::core::module::Module;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::Diagnostics;
use crate::text::extent::token_extent;

/// The most errors that are described. Further errors are only counted.
pub const MAX_VERIFY_ERRORS: usize = 100;

/// The arrangement of the expressions of a body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// A-normal form: every operand and condition is an atom, every value is one step, nothing is
    /// shared.
    Anf,
    /// Anything else: nested calls, blocks as values, shared nodes.
    Graph,
}

impl Form {
    /// Returns the form in one word, as tools print it.
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

/// The result of verifying a valid module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyReport {
    /// [`Form::Anf`] if all functions are in A-normal form.
    pub form: Form,
    /// The definitions in program order, each with its form.
    pub functions: Vec<(FunctionKey, Form)>,
}

impl VerifyReport {
    /// Returns [`Form::Anf`] if all functions are in A-normal form.
    pub fn form(&self) -> Form {
        self.form
    }
}

/// Checks a module against all rules. Linear.
///
/// # Errors
/// All violations, with functions in program order. At most [`MAX_VERIFY_ERRORS`] are described; a
/// last message says how many more there are.
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

/// Checks one function against all rules. The other functions are assumed to be valid.
///
/// Copies the module's tables, because inference adds types to them. Checking all functions with
/// this function takes time in the number of functions times the size of the tables.
/// [`verify_module`] copies the tables once.
///
/// # Errors
/// All violations. At most [`MAX_VERIFY_ERRORS`] are described; a last message says how many more
/// there are.
pub fn verify_function(module: &Module, key: FunctionKey) -> Result<Form, Diagnostics> {
    verify_functions(module, &[key])
}

/// Checks some functions against all rules, with one copy of the module's tables. The other
/// functions are assumed to be valid. If a checked function has the attribute `global_symbol`, no
/// other definition of the module may have the same one. Returns [`Form::Anf`] if all checked
/// functions are in A-normal form.
///
/// Linear in the tables and in the checked functions. Linear in the module if a checked function
/// has a possible side effect where none is allowed, or binds symbolic dimensions, which no other
/// definition may name.
///
/// # Errors
/// All violations, with functions in the given order. At most [`MAX_VERIFY_ERRORS`] are described;
/// a last message says how many more there are.
pub fn verify_functions(module: &Module, keys: &[FunctionKey]) -> Result<Form, Diagnostics> {
    let mut verifier = module_rules::Verifier::new(module);
    let form = keys.iter().filter_map(|&key| verifier.function(key)).max().unwrap_or(Form::Anf);
    verifier.others(keys);
    verifier.function_attrs();
    verifier.effects();
    verifier.errors.finish(module).map(|()| form)
}

/// The place of an error in a function.
#[derive(Copy, Clone, Default)]
pub(crate) struct Place {
    /// The node.
    pub(crate) node: Option<ExprId>,
    /// The innermost Let that contains the node.
    pub(crate) link: Option<ExprId>,
}

impl Place {
    /// Returns the diagnostic with the function `name`, and the binding and position of the place.
    /// The ids of the body must be in range.
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

/// Returns the diagnostic with the function `name`. Functions that are values of attributes have no
/// name; for these the diagnostic stays as it is.
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
