//! Comparison of two modules.

use std::fmt;

use super::bodies::{Mismatch, clip, compare_bodies};
use super::tables::{Tables, is_private};
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, ExprId, FunctionAttrId, GlobalId};
use crate::core::function::{Function, FunctionKind};
use crate::core::module::Module;

/// The policy for the metadata of tools in `#[…]`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum MetaPolicy {
    /// The metadata does not count.
    #[default]
    Ignore,
    /// Corresponding functions, bindings and graph nodes must have equal metadata.
    Compare,
}

/// The properties that count when modules are compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AlphaOptions {
    /// The policy for the metadata of tools.
    pub meta: MetaPolicy,
}

/// The first place, in the left module's program order, at which two modules differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The function that contains the place, on the left, without `@`; `None` if it is not in a
    /// function.
    pub left_function: Option<String>,
    /// The corresponding function of the right module.
    pub right_function: Option<String>,
    /// The bindings that contain the place, on the left, outermost first, without `%`. In deep
    /// nests, only the innermost few.
    pub left_path: Vec<String>,
    /// The bindings that contain the place, on the right.
    pub right_path: Vec<String>,
    /// The difference, in words.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        let side = |f: &mut fmt::Formatter<'_>, name: &str, function: &Option<String>, path: &[String]| {
            let Some(function) = function else { return Ok(()) };
            write!(f, "\n  {name}: in @{function}")?;
            for (i, binding) in path.iter().enumerate() {
                let joint = if i == 0 { ", at " } else { " > " };
                let sign = if binding == "…" { "" } else { "%" };
                write!(f, "{joint}{sign}{binding}")?;
            }
            Ok(())
        };
        side(f, "left", &self.left_function, &self.left_path)?;
        side(f, "right", &self.right_function, &self.right_path)
    }
}

/// Returns true if two modules are equal modulo the names of variables, symbolic dimensions and
/// private functions.
///
/// These count: the shape of every body with its sharing, the order of bindings, dataflow regions,
/// operators, attributes, constants by their bits, types that inference does not give (of
/// parameters, results, `fn`s and opaque calls), attributes of functions and of the module, and the
/// names of public functions, of declarations and of globals that resolve to nothing. These do not
/// count: the order of functions, source positions and the metadata of tools in `#[…]`. Private
/// functions correspond by their uses; private functions that nothing names correspond in program
/// order. Linear in the size of the modules.
pub fn alpha_equal(left: &Module, right: &Module) -> bool {
    first_difference(left, right).is_none()
}

/// Returns the first difference of two modules, if they are not alpha-equal; metadata in `#[…]`
/// does not count. Linear in their size.
pub fn first_difference(left: &Module, right: &Module) -> Option<Difference> {
    first_difference_with(left, right, AlphaOptions::default())
}

/// Returns the first difference of two modules under the given options. Linear in their size.
pub fn first_difference_with(left: &Module, right: &Module, options: AlphaOptions) -> Option<Difference> {
    Modules::new(left, right, options.meta).compare().err().map(|d| *d)
}

/// A comparison of two modules.
pub(crate) struct Modules<'a> {
    pub(crate) left: &'a Module,
    pub(crate) right: &'a Module,
    pub(crate) tables: Tables<'a>,
    pub(crate) meta: MetaPolicy,
}

type Compared = Result<(), Box<Difference>>;

impl<'a> Modules<'a> {
    pub(crate) fn new(left: &'a Module, right: &'a Module, meta: MetaPolicy) -> Modules<'a> {
        Modules { left, right, tables: Tables::between(left, right), meta }
    }

    fn compare(mut self) -> Compared {
        if !self.tables.attrs(self.left.attrs(), self.right.attrs()) {
            return Err(outside("the attributes of the modules differ".to_string()));
        }
        for (_, f) in self.left.functions() {
            let Some(l) = f.global() else { continue };
            if is_private(self.left, l) {
                continue;
            }
            let name = self.left.cx.global_name(l);
            let found =
                self.right.cx.find_global(name).filter(|&r| {
                    self.right.cx.globals.get(r).target.function().is_some() && !is_private(self.right, r)
                });
            let Some(r) = found else {
                return Err(outside(format!("only the left module has @{}", clip(name))));
            };
            if !self.tables.globals(l, r) {
                return Err(outside(format!("@{} stands for different functions", clip(name))));
            }
            self.functions(l, r)?;
            self.pending()?;
        }
        for (_, f) in self.right.functions() {
            let Some(r) = f.global() else { continue };
            if !is_private(self.right, r) && !self.tables.has_right_global(r) {
                return Err(outside(format!("only the right module has @{}", clip(self.right.cx.global_name(r)))));
            }
        }
        self.unnamed_privates()
    }

    /// Compares the private functions that nothing compared so far names, in program order.
    fn unnamed_privates(&mut self) -> Compared {
        let private = |m: &'a Module| m.functions().filter_map(|(_, f)| f.global()).filter(move |&g| is_private(m, g));
        let (left, right) = (self.left, self.right);
        let mut others = private(right);
        for l in private(left) {
            if self.tables.global_of_left(l).is_some() {
                continue;
            }
            let Some(r) = others.find(|&r| !self.tables.has_right_global(r)) else {
                let name = clip(left.cx.global_name(l));
                return Err(outside(format!("the right module has nothing for the private function @{name}")));
            };
            self.tables.globals(l, r);
            self.pending()?;
        }
        match others.find(|&r| !self.tables.has_right_global(r)) {
            Some(r) => {
                let name = clip(right.cx.global_name(r));
                Err(outside(format!("the left module has nothing for the private function @{name}")))
            }
            None => Ok(()),
        }
    }

    /// Compares the functions that the functions compared so far name.
    fn pending(&mut self) -> Compared {
        loop {
            if let Some((l, r)) = self.tables.pending_globals.pop() {
                self.functions(l, r)?;
            } else if self.tables.pending_functions.is_empty() {
                return Ok(());
            } else {
                self.function_attrs()?;
            }
        }
    }

    /// Compares the functions in attributes that were named so far. A function differs if one that
    /// its attributes name does.
    pub(crate) fn function_attrs(&mut self) -> Compared {
        // The functions whose parts are being compared, each with the height of the stack of
        // pending functions below its parts.
        let mut open: Vec<(usize, (FunctionAttrId, FunctionAttrId))> = Vec::new();
        while let Some((l, r)) = self.tables.pending_functions.pop() {
            let height = self.tables.pending_functions.len();
            while open.last().is_some_and(|&(below, _)| below > height) {
                open.pop();
            }
            open.push((height, (l, r)));
            let (left, right) = (self.left, self.right);
            let pair = (&*left.cx.function_attrs[l], &*right.cx.function_attrs[r]);
            if let Err(difference) = self.bodies(pair, None, "a function in an attribute") {
                open.iter().for_each(|&(_, (l, r))| self.tables.functions_differ(l, r));
                return Err(difference);
            }
        }
        Ok(())
    }

    fn functions(&mut self, l: GlobalId, r: GlobalId) -> Compared {
        let function = |m: &'a Module, g: GlobalId| m.cx.globals.get(g).target.function().and_then(|k| m.get(k));
        match (function(self.left, l), function(self.right, r)) {
            (Some(f), Some(g)) => self.bodies((f, g), Some((l, r)), "the function"),
            (None, None) => Ok(()),
            _ => Err(outside(format!("@{} is on one side only", clip(self.left.cx.global_name(l))))),
        }
    }

    /// Compares two functions.
    pub(crate) fn bodies(
        &mut self,
        (f, g): (&Function, &Function),
        names: Option<(GlobalId, GlobalId)>,
        what: &str,
    ) -> Compared {
        let result = self.heads(f, g).and_then(|()| {
            if f.kind == FunctionKind::Declaration {
                return Ok(());
            }
            compare_bodies(&mut self.tables, &f.body, &g.body, self.meta)
        });
        let result = result.and_then(|()| match self.tables.settle() {
            Some((l, r)) => {
                let (l, r) = (self.left.cx.dim_text(l), self.right.cx.dim_text(r));
                Err(flat(format!("dimensions differ: {l} and {r}")))
            }
            None => Ok(()),
        });
        result.map_err(|Mismatch { path, what: difference }| {
            let (left_function, right_function) = match names {
                Some((l, r)) => (clip(self.left.cx.global_name(l)), clip(self.right.cx.global_name(r))),
                None => (what.to_string(), what.to_string()),
            };
            Box::new(Difference {
                left_function: Some(left_function),
                right_function: Some(right_function),
                left_path: path_names(&self.left.cx, &f.body, path.iter().map(|p| p.0)),
                right_path: path_names(&self.right.cx, &g.body, path.iter().map(|p| p.1)),
                what: difference,
            })
        })
    }

    /// Compares two functions except for their bodies.
    fn heads(&mut self, f: &Function, g: &Function) -> Result<(), Mismatch> {
        if f.kind != g.kind {
            return Err(flat("one is declared, the other defined".to_string()));
        }
        if f.visibility != g.visibility {
            return Err(flat("one is public, the other private".to_string()));
        }
        let (n, m) = (f.body.params().len(), g.body.params().len());
        if n != m {
            return Err(flat(format!("the numbers of parameters differ: {n} and {m}")));
        }
        for (i, (p, q)) in f.body.params().iter().zip(g.body.params()).enumerate() {
            let (l, r) = (f.body.ty(p.expr()), g.body.ty(q.expr()));
            if !self.tables.types(l, r) {
                let (l, r) = (self.left.cx.type_text(l), self.right.cx.type_text(r));
                return Err(flat(format!("parameter {i} has different types: {l} and {r}")));
            }
            if self.meta == MetaPolicy::Compare && !self.same_meta((f.body.meta(p.expr()), g.body.meta(q.expr()))) {
                return Err(flat(format!("the `#[…]` of parameter {i} differs")));
            }
        }
        match (f.known_result_type(), g.known_result_type()) {
            (Some(l), Some(r)) if !self.tables.types(l, r) => {
                let (l, r) = (self.left.cx.type_text(l), self.right.cx.type_text(r));
                return Err(flat(format!("the results have different types: {l} and {r}")));
            }
            (Some(_), None) | (None, Some(_)) => return Err(flat("one states a result type".to_string())),
            _ => {}
        }
        if !self.tables.attrs(f.attrs, g.attrs) {
            return Err(flat("the attributes of the functions differ".to_string()));
        }
        if self.meta == MetaPolicy::Compare && !self.tables.attrs(f.meta, g.meta) {
            return Err(flat("the `#[…]` of the functions differ".to_string()));
        }
        Ok(())
    }

    fn same_meta(&mut self, (l, r): (Option<AttrsId>, Option<AttrsId>)) -> bool {
        self.tables.attrs(l.unwrap_or(self.left.cx.attrs.empty()), r.unwrap_or(self.right.cx.attrs.empty()))
    }
}

fn flat(what: String) -> Mismatch {
    Mismatch { path: Vec::new(), what }
}

fn outside(what: String) -> Box<Difference> {
    Box::new(Difference {
        left_function: None,
        right_function: None,
        left_path: Vec::new(),
        right_path: Vec::new(),
        what,
    })
}

/// Returns the names of the variables that the innermost few Lets bind.
fn path_names(cx: &Context, body: &Body, lets: impl ExactSizeIterator<Item = ExprId>) -> Vec<String> {
    const LONGEST: usize = 8;
    let skip = lets.len().saturating_sub(LONGEST);
    let mut names = if skip > 0 { vec!["…".to_string()] } else { Vec::new() };
    names.extend(lets.skip(skip).map(|id| body.binding_name(cx, id).map_or("(unnamed)".to_string(), clip)));
    names
}
