//! Invariants: properties of the form of a whole module, with which phases begin.

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::core::module::Module;
use crate::ops::decomposition::Decomposition;
use crate::report::diagnostic::Diagnostic;
use crate::verify::Place;
use crate::walk::cursor::{Cursor, Step};

/// A property that holds for every definition of a module, or does not hold for the module.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Invariant {
    /// A-normal form: every operand and condition is an atom, every value is one step, and no node
    /// is shared.
    ANormalForm,
    /// No function holds a `fn`.
    NoNestedFunctions,
    /// There are no dataflow regions.
    NoDataflowRegions,
    /// No call can be written in other operators by the row of its operator. Operators without a
    /// row, such as nodes of a file that are kept as they are, count as primitive. Where a type
    /// becomes more exact, the row may be able to write a call that it could not write before.
    PrimitiveOperators,
    /// Each function has a `global_symbol`.
    GlobalSymbols,
}

impl Invariant {
    /// All invariants.
    pub const ALL: &[Invariant] = &[
        Invariant::ANormalForm,
        Invariant::NoNestedFunctions,
        Invariant::NoDataflowRegions,
        Invariant::PrimitiveOperators,
        Invariant::GlobalSymbols,
    ];

    /// Returns the name by which passes say that they need, establish or break the invariant.
    pub fn name(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "anf",
            Invariant::NoNestedFunctions => "no-nested-functions",
            Invariant::NoDataflowRegions => "no-dataflow",
            Invariant::PrimitiveOperators => "primitive-operators",
            Invariant::GlobalSymbols => "global-symbols",
        }
    }

    /// Returns a line of text that states the property.
    pub fn doc(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "every operand and condition is an atom, every value is one step",
            Invariant::NoNestedFunctions => "no function holds a `fn`",
            Invariant::NoDataflowRegions => "there are no dataflow regions",
            Invariant::PrimitiveOperators => "no call can be written in other operators by its row",
            Invariant::GlobalSymbols => "each function has the attribute `global_symbol`",
        }
    }

    /// Returns the message for a function that breaks the invariant.
    fn broken(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "the function is not in A-normal form",
            Invariant::NoNestedFunctions => "the function holds a `fn`",
            Invariant::NoDataflowRegions => "the function has a dataflow region",
            Invariant::PrimitiveOperators => "the function calls an operator that can be written in others",
            Invariant::GlobalSymbols => "the function has no `global_symbol`",
        }
    }

    /// Returns the advice to run the pass of the standard set that establishes the invariant.
    fn help(self) -> &'static str {
        match self {
            Invariant::ANormalForm => "run `ToANormalForm`",
            Invariant::NoNestedFunctions => "run `LambdaLifting`",
            Invariant::NoDataflowRegions => "run `ToNonDataflow`",
            Invariant::PrimitiveOperators => "run `DecomposeOps`",
            Invariant::GlobalSymbols => "run `AttachGlobalSymbol`",
        }
    }

    /// Returns the violations in a well-formed module: an error for each definition that breaks the
    /// invariant, in program order, about the first place that does. Empty if the invariant holds.
    /// Walks the module.
    pub fn violations(self, module: &Module) -> Vec<Diagnostic> {
        let definitions = module.functions().map(|(_, f)| f).filter(|f| f.is_definition());
        definitions.filter_map(|f| self.violation(module, f)).collect()
    }

    /// Returns the violation in a definition of a module, if there is one.
    pub(crate) fn violation(self, module: &Module, function: &Function) -> Option<Diagnostic> {
        let at = match self {
            Invariant::GlobalSymbols if function.global_symbol(&module.cx).is_some() => return None,
            Invariant::GlobalSymbols => Place::default(),
            in_body => in_body.first_breach(&module.cx, &function.body)?,
        };
        let diagnostic = Diagnostic::error(self.broken()).with_help(self.help());
        let name = function.global().map_or("", |global| module.cx.global_name(global));
        Some(at.locate(module, &function.body, name, diagnostic))
    }

    /// Returns true if the body does not break the invariant.
    pub fn holds_in(self, cx: &Context, body: &Body) -> bool {
        self.first_breach(cx, body).is_none()
    }

    fn first_breach(self, cx: &Context, body: &Body) -> Option<Place> {
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let (Step::EnterBlock(id, _) | Step::Let(id) | Step::Flat(id) | Step::Enter(id) | Step::Seen(id)) = step
            else {
                continue;
            };
            let breaks = match (self, step) {
                (Invariant::ANormalForm, _) => step.breaks_anf(body),
                (Invariant::NoNestedFunctions, _) => matches!(body.expr(id), Expr::Lambda { .. }),
                (Invariant::PrimitiveOperators, _) => matches!(Decomposition::of(cx, body, id), Ok(Some(_))),
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
