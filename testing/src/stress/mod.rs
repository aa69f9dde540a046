//! Everything that is done with programs, over every shape of program, on a small stack.
//! `anfora stress` and the tests of depth and of linear work run it.
//!
//! An [`Operation`] is one thing that the toolkit does: an entry point of a crate with those that
//! belong to it, or a registered pass. A [`Subject`] is a program of some shape and size.
//! [`Operation::prepare`] makes a [`Trial`] of the two. Its run can be timed, counted, or made on a
//! thread with a stack of any size:
//!
//! ```
//! use anfora_testing::on_stack;
//! use anfora_testing::stress::{Operation, Subject};
//!
//! let shape = "nested-if".parse()?;
//! let mut operations = Operation::all().into_iter();
//! let print = operations.find(|o| o.name() == "print").expect("programs are printed");
//! on_stack(64, move || {
//!     let subject = Subject::new(shape, 1000)?;
//!     print.prepare(&subject)?.run()
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysing;
mod differentiating;
mod execution;
mod partitioning;
mod representation;
mod rewriting;
mod surgery;
mod visiting;

use std::io;
use std::sync::Arc;

use anfora::manager::{Pass, PassContext, PassRegistry, Verification, parse_pipeline};
use anfora_ir::{Module, OpRegistry};

use crate::programs::Shape;

/// The result of a trial. An error describes the mistake.
pub type Done = Result<(), String>;

/// One thing that is done with a program.
#[derive(Clone, Debug)]
pub struct Operation {
    name: String,
    covers: &'static [&'static str],
    kind: OperationKind,
}

#[derive(Clone, Debug)]
enum OperationKind {
    /// The row of an entry point.
    Row(Kind),
    /// The pass that the registry has under the name of the operation.
    Pass(Arc<PassRegistry>),
}

/// A row of the table of entry points.
struct Row {
    name: &'static str,
    /// The entry points that it calls, as `crate::function` or `crate::Type::method`.
    covers: &'static [&'static str],
    kind: Kind,
}

#[derive(Copy, Clone, Debug)]
enum Kind {
    /// Builds the program.
    Build,
    /// Runs a function on a clone of the module.
    Module(fn(Module) -> Done),
    /// Runs a function on the text of the module.
    Text(fn(String) -> Done),
    /// Runs a function on a size: it makes something that nests as deep.
    Size(fn(usize) -> Done),
}

/// The largest size that operations of sizes are passed. Some need kilobytes for each level.
const LARGEST_SIZE: usize = 100_000;

/// The pass that brings programs into the form that other passes accept.
const NORMAL_FORM: &str = "ToANormalForm";

impl Operation {
    /// Returns every entry point, then every standard pass.
    pub fn all() -> Vec<Operation> {
        Operation::all_with(&anfora::passes::registry())
    }

    /// Returns every entry point, then every pass of a registry. The passes run in contexts with
    /// that registry.
    pub fn all_with(passes: &Arc<PassRegistry>) -> Vec<Operation> {
        let tables = [
            representation::ROWS,
            visiting::ROWS,
            analysing::ROWS,
            rewriting::ROWS,
            partitioning::ROWS,
            differentiating::ROWS,
            execution::ROWS,
            surgery::ROWS,
        ];
        let rows = tables.into_iter().flatten();
        let rows =
            rows.map(|r| Operation { name: r.name.to_string(), covers: r.covers, kind: OperationKind::Row(r.kind) });
        let registered = passes.passes().iter().map(|p| Operation {
            name: p.name().to_string(),
            covers: &[],
            kind: OperationKind::Pass(Arc::clone(passes)),
        });
        rows.chain(registered).collect()
    }

    /// Returns the name of the operation. For a pass, this is the name of the pass.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the entry points that it runs, as `crate::function` or `crate::Type::method`.
    pub fn covers(&self) -> &'static [&'static str] {
        self.covers
    }

    /// Returns true if the operation is a registered pass.
    pub fn is_pass(&self) -> bool {
        matches!(self.kind, OperationKind::Pass(_))
    }

    /// Returns false if the operation depends on nothing but the size of the program, so that one
    /// shape of programs is enough.
    pub fn needs_program(&self) -> bool {
        !matches!(self.kind, OperationKind::Row(Kind::Size(_)))
    }

    /// Prepares a trial. Copies the module, prints its text, or makes the pass and brings the
    /// module into the form that the pass needs.
    ///
    /// # Errors
    /// If the preparation fails, which is a defect.
    pub fn prepare(&self, subject: &Subject) -> Result<Trial, String> {
        let run: Box<dyn FnOnce() -> Done + Send> = match &self.kind {
            OperationKind::Row(Kind::Build) => {
                let Subject { shape, size, .. } = *subject;
                Box::new(move || shape.build(size, SEED).map(drop).map_err(|e| e.to_string()))
            }
            &OperationKind::Row(Kind::Module(run)) => {
                let module = subject.module.clone();
                Box::new(move || run(module))
            }
            &OperationKind::Row(Kind::Text(run)) => {
                let text = subject.module.to_text();
                Box::new(move || run(text))
            }
            &OperationKind::Row(Kind::Size(run)) => {
                let size = subject.size.min(LARGEST_SIZE);
                Box::new(move || run(size))
            }
            OperationKind::Pass(registry) => {
                let mut module = subject.module.clone();
                if self.name != NORMAL_FORM {
                    run_pipeline(&mut module, NORMAL_FORM)?;
                }
                let (name, registry) = (self.name.clone(), Arc::clone(registry));
                Box::new(move || run_pipeline_of(&registry, &mut module, &name))
            }
        };
        Ok(Trial { run })
    }
}

/// An operation with the program that it runs on.
pub struct Trial {
    run: Box<dyn FnOnce() -> Done + Send>,
}

impl Trial {
    /// Runs the operation and drops its result.
    ///
    /// # Errors
    /// If the operation fails, or its result is wrong.
    pub fn run(self) -> Done {
        (self.run)()
    }
}

/// The seed of the random program.
const SEED: u64 = 1;

/// A program of some shape and size.
pub struct Subject {
    shape: Shape,
    size: usize,
    module: Module,
}

impl Subject {
    /// Builds the program. `size` is limited to the largest size of the shape
    /// ([`Shape::max_size`]).
    ///
    /// # Errors
    /// If the program cannot be built, which is a defect.
    pub fn new(shape: Shape, size: usize) -> Result<Subject, String> {
        Subject::with_seed(shape, size, SEED)
    }

    /// Builds a program of a seed, which matters for shapes that are random.
    ///
    /// # Errors
    /// As for [`Subject::new`].
    pub fn with_seed(shape: Shape, size: usize, seed: u64) -> Result<Subject, String> {
        let size = shape.max_size().map_or(size, |max| size.min(max));
        let module = shape.build(size, seed).map_err(|e| e.to_string())?;
        Ok(Subject { shape, size, module })
    }

    /// Returns the same program as a module of other operators. Passes that make calls of operators
    /// of their own need such a module.
    ///
    /// # Errors
    /// If the registry lacks an operator of the program.
    pub fn with_operators(self, registry: &Arc<OpRegistry>) -> Result<Subject, String> {
        let mut module = Module::new(Arc::clone(registry));
        module.replace_with(&self.module).map_err(|e| e.to_string())?;
        Ok(Subject { module, ..self })
    }

    /// Returns the size of the program: the number of bindings, or the depth.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the program.
    pub fn module(&self) -> &Module {
        &self.module
    }
}

/// Runs a pipeline of standard passes at level 3.
fn run_pipeline(module: &mut Module, pipeline: &str) -> Done {
    run_pipeline_of(&anfora::passes::registry(), module, pipeline)
}

/// Runs a pipeline of the passes of a registry at level 3.
fn run_pipeline_of(registry: &Arc<PassRegistry>, module: &mut Module, pipeline: &str) -> Done {
    let pipeline = parse_pipeline(registry, pipeline).map_err(|e| e.to_string())?;
    pipeline.apply(module, &pass_context(Arc::clone(registry))?).map(drop).map_err(|e| e.to_string())
}

/// Returns a context of level 3 that verifies nothing and prints nothing.
fn pass_context(registry: Arc<PassRegistry>) -> Result<PassContext, String> {
    let context = PassContext::builder().registry(registry).opt_level(3).verification(Verification::Off);
    context.print_to(io::sink()).build().map_err(|e| e.to_string())
}

/// Returns an error that says what should hold, if it does not hold.
fn ensure(holds: bool, what: &str) -> Done {
    if holds { Ok(()) } else { Err(format!("does not hold: {what}")) }
}

anfora_ir::brief_debug! { Trial; Subject; }
