//! What can be said of the form of a whole module: the invariants that phases begin with.

use crate::core::body::Body;
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::core::module::Module;
use crate::report::diagnostic::Diagnostic;
use crate::verify::Place;
use crate::walk::cursor::{Cursor, Step};

/// The attribute of functions that is their symbol for a linker. A function that has it is
/// external, be it public or private ([`Function::is_external`]), and no other definition of the
/// module has the same symbol.
pub const GLOBAL_SYMBOL: &str = "global_symbol";

/// The attribute of functions that are groups of operators: see
/// [`Context::is_primitive`](crate::Context::is_primitive).
pub const PRIMITIVE: &str = "Primitive";

/// Something that holds of every definition of a module, or does not.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Invariant {
    /// A-normal form: every operand and condition is an atom, every value is one step, nothing is
    /// shared.
    ANormalForm,
    /// No function holds a `fn`.
    NoNestedFunctions,
    /// There are no dataflow regions.
    NoDataflowRegions,
    /// Each function has a `global_symbol`.
    GlobalSymbols,
}

impl Invariant {
    /// All of them.
    pub const ALL: &[Invariant] =
        &[Invariant::ANormalForm, Invariant::NoNestedFunctions, Invariant::NoDataflowRegions, Invariant::GlobalSymbols];

    /// As passes name it that need, establish or break it.
    pub fn name(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "anf",
            Invariant::NoNestedFunctions => "no-nested-functions",
            Invariant::NoDataflowRegions => "no-dataflow",
            Invariant::GlobalSymbols => "global-symbols",
        }
    }

    /// What holds, in a line.
    pub fn doc(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "every operand and condition is an atom, every value is one step",
            Invariant::NoNestedFunctions => "no function holds a `fn`",
            Invariant::NoDataflowRegions => "there are no dataflow regions",
            Invariant::GlobalSymbols => "each function has the attribute `global_symbol`",
        }
    }

    /// What does not hold of a function of which this does not.
    fn broken(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "the function is not in A-normal form",
            Invariant::NoNestedFunctions => "the function holds a `fn`",
            Invariant::NoDataflowRegions => "the function has a dataflow region",
            Invariant::GlobalSymbols => "the function has no `global_symbol`",
        }
    }

    /// Returns the pass of the standard set that sees to it.
    fn help(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "run `ToANormalForm`",
            Invariant::NoNestedFunctions => "run `LambdaLifting`",
            Invariant::NoDataflowRegions => "run `ToNonDataflow`",
            Invariant::GlobalSymbols => "run `AttachGlobalSymbol`",
        }
    }

    /// Where a well-formed module breaks it: an error for each definition that does, in program
    /// order, about the first place in it. Empty if it holds. A walk of the module.
    pub fn violations(self, module: &Module) -> Vec<Diagnostic> {
        let definitions = module.functions().map(|(_, f)| f).filter(|f| f.is_definition());
        definitions.filter_map(|f| self.violation(module, f)).collect()
    }

    /// Where a definition of a module breaks it, if it does.
    pub(crate) fn violation(self, module: &Module, function: &Function) -> Option<Diagnostic> {
        let at = match self {
            Invariant::GlobalSymbols if function.global_symbol(&module.cx).is_some() => return None,
            Invariant::GlobalSymbols => Place::default(),
            in_body => in_body.first_breach(&function.body)?,
        };
        let diagnostic = Diagnostic::error(self.broken()).with_help(self.help());
        let name = function.global().map_or("", |global| module.cx.global_name(global));
        Some(at.locate(module, &function.body, name, diagnostic))
    }

    /// Returns true if nothing in a body breaks it.
    pub fn holds_in(self, body: &Body) -> bool {
        self.first_breach(body).is_none()
    }

    fn first_breach(self, body: &Body) -> Option<Place> {
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let (Step::EnterBlock(id, _) | Step::Let(id) | Step::Enter(id) | Step::Seen(id)) = step else { continue };
            let breaks = match (self, step) {
                (Invariant::ANormalForm, _) => step.breaks_anf(body),
                (Invariant::NoNestedFunctions, _) => matches!(body.expr(id), Expr::Lambda { .. }),
                (Invariant::NoDataflowRegions, Step::Let(_)) => {
                    matches!(body.expr(id), Expr::Let { flags, .. } if flags.is_dataflow())
                }
                _ => false,
            };
            if breaks {
                return Some(Place { node: Some(id), link: cursor.binding() });
            }
        }
        None
    }
}
