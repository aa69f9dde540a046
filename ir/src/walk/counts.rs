//! Counts of the parts of a program.

use crate::core::body::Body;
use crate::core::expr::Expr;
use crate::core::module::Module;
use crate::walk::cursor::{Cursor, Step};

/// The counts of the parts of a program, without unreachable nodes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Functions with a body.
    pub functions: usize,
    /// Functions declared without a body.
    pub declarations: usize,
    /// Lets.
    pub bindings: usize,
    /// Calls of operators and of functions.
    pub calls: usize,
    /// Ifs.
    pub ifs: usize,
    /// `fn` expressions.
    pub lambdas: usize,
    /// Dataflow regions.
    pub regions: usize,
    /// The deepest nesting of blocks; 1 for a body without branches, lambdas and blocks as values.
    pub depth: usize,
}

impl Counts {
    /// Returns the counts of a module: sums over its functions, and the largest depth. Linear.
    pub fn of_module(module: &Module) -> Counts {
        let mut counts = Counts::default();
        for (_, f) in module.functions() {
            if f.is_definition() {
                counts.functions += 1;
                counts.add_body(&f.body);
            } else {
                counts.declarations += 1;
            }
        }
        counts
    }

    /// Returns the counts of one body.
    pub fn of_body(body: &Body) -> Counts {
        let mut counts = Counts::default();
        counts.add_body(body);
        counts
    }

    fn add_body(&mut self, body: &Body) {
        let mut cursor = Cursor::with_regions(body);
        let mut depth = 0;
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(..) => {
                    depth += 1;
                    self.depth = self.depth.max(depth);
                }
                Step::ExitBlock(..) => depth -= 1,
                Step::EnterRegion(_) => self.regions += 1,
                Step::Let(_) => self.bindings += 1,
                Step::Flat(id) | Step::Enter(id) => match body.expr(id) {
                    Expr::CallOp { .. } | Expr::Call { .. } => self.calls += 1,
                    Expr::If { .. } => self.ifs += 1,
                    Expr::Lambda { .. } => self.lambdas += 1,
                    _ => {}
                },
                Step::ExitRegion(_) | Step::Bound(_) | Step::Atom(_) | Step::Seen(_) | Step::Exit(_) => {}
            }
        }
    }
}
