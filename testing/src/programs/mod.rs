//! Programs of any size for benches, stress tests and properties. They are exactly reproducible.
//!
//! Every shape is a function from a size (and, for random programs, a seed) to a [`Module`] with a
//! public `@main`.

mod chain;
mod element_types;
mod loss;
mod models;
mod nests;
mod random;
mod regions;
mod wide;

pub use element_types::with_type;
pub use loss::{LOSS, add_loss};
pub use models::{mlp, residual};
pub use random::{Random, Vocabulary};

use std::str::FromStr;

use anfora_ir::{BuildError, DType, ExprId, FunctionBuilder, Module, did_you_mean};

/// A shape of program.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shape(&'static Row);

struct Row {
    name: &'static str,
    doc: &'static str,
    build: fn(usize, u64) -> Result<Module, BuildError>,
    max_size: Option<usize>,
}

/// The largest size of a program. Ids have four bytes, and a binding takes several ids.
pub const LARGEST_SIZE: usize = 100_000_000;

/// The largest size of shapes whose types or attributes nest as deep as the program. Each level is
/// a type or attribute of its own, which the text has to name.
const DEEPEST_TYPE: Option<usize> = Some(100_000);

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The names of rows are unique, so rows with equal names are equal.
impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.name == other.name
    }
}

impl Eq for Row {}

const SHAPES: &[Row] = &[
    Row {
        name: "chain",
        doc: "the benchmark program: live, dead, duplicate and constant bindings",
        build: chain::chain,
        max_size: None,
    },
    Row { name: "dead", doc: "a chain of bindings that nobody uses", build: wide::dead, max_size: None },
    Row { name: "dup", doc: "the same two bindings over and over", build: wide::dup, max_size: None },
    Row { name: "const", doc: "a chain that folds to one constant", build: wide::constant, max_size: None },
    Row {
        name: "many-consts",
        doc: "calls on constants that differ, each of which folds to one of its own",
        build: wide::constants,
        max_size: None,
    },
    Row { name: "diamond", doc: "each binding uses the one before it twice", build: wide::diamond, max_size: None },
    Row {
        name: "skip",
        doc: "each binding uses the one before it and an early one",
        build: wide::skip,
        max_size: None,
    },
    Row {
        name: "parallel",
        doc: "three products of one value, each with a sum and an activation",
        build: wide::parallel,
        max_size: None,
    },
    Row {
        name: "images",
        doc: "convolutions with shifts and activations, each behind a branch",
        build: wide::images,
        max_size: None,
    },
    Row {
        name: "weights",
        doc: "computations on a weight, each used by one on the input",
        build: wide::weights,
        max_size: None,
    },
    Row { name: "nested-if", doc: "an if in the branch of an if", build: nests::nested_if, max_size: None },
    Row { name: "nested-fn", doc: "a fn in the block of a fn", build: nests::nested_fn, max_size: None },
    Row {
        name: "nested-closure",
        doc: "a fn in the block of a fn, the innermost of which captures something",
        build: nests::nested_closure,
        max_size: None,
    },
    Row { name: "nested-call", doc: "a call as the operand of a call", build: nests::nested_call, max_size: None },
    Row {
        name: "nested-tuple",
        doc: "a tuple in a tuple, projected again",
        build: nests::nested_tuple,
        max_size: DEEPEST_TYPE,
    },
    Row {
        name: "nested-type",
        doc: "a parameter whose type is a tuple in a tuple",
        build: nests::nested_type,
        max_size: DEEPEST_TYPE,
    },
    Row {
        name: "nested-attribute",
        doc: "an attribute that is a list in a list",
        build: nests::nested_attribute,
        max_size: DEEPEST_TYPE,
    },
    Row {
        name: "let-in-value",
        doc: "a let whose value is a block, whose let's value is a block",
        build: nests::let_in_value,
        max_size: None,
    },
    Row { name: "if-in-value", doc: "an if whose branch binds an if", build: nests::if_in_value, max_size: None },
    Row { name: "siblings", doc: "lambdas side by side, each called", build: wide::siblings, max_size: None },
    Row {
        name: "region-chain",
        doc: "a dataflow region of elementwise operators, each on the one before it",
        build: regions::elementwise,
        max_size: None,
    },
    Row {
        name: "region-fibonacci",
        doc: "a dataflow region in which each binding uses the two before it",
        build: regions::fibonacci,
        max_size: None,
    },
    Row {
        name: "region-fan-in",
        doc: "a dataflow region of operators side by side, joined by 62",
        build: regions::fan_in,
        max_size: None,
    },
    Row {
        name: "region-skips",
        doc: "a dataflow region in which each binding is used by the next and by a join of 62",
        build: regions::skips,
        max_size: None,
    },
    Row { name: "random", doc: "a well-typed program of the whole language", build: random::random, max_size: None },
];

impl Shape {
    /// Returns every shape.
    pub fn all() -> impl ExactSizeIterator<Item = Shape> {
        SHAPES.iter().map(Shape)
    }

    /// Returns the name from which the shape is parsed.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns a description of the programs, in one line.
    pub fn doc(self) -> &'static str {
        self.0.doc
    }

    /// Returns the largest size with which the shape can be built, if it is limited.
    pub fn max_size(self) -> Option<usize> {
        self.0.max_size
    }

    /// Builds the program of about `size` bindings or, for the nests, of depth `size`. Only
    /// `random` uses the seed.
    ///
    /// # Errors
    /// If the size exceeds [`LARGEST_SIZE`], or the registry of standard operators lacks an
    /// operator that the program needs, which is a defect.
    pub fn build(self, size: usize, seed: u64) -> Result<Module, BuildError> {
        if size > LARGEST_SIZE {
            return Err(BuildError::TooLarge { size, largest: LARGEST_SIZE });
        }
        (self.0.build)(size, seed)
    }
}

/// The error for a name that no shape has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownShape {
    name: String,
}

impl std::fmt::Display for UnknownShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no shape `{}`", self.name)?;
        match did_you_mean(&self.name, SHAPES.iter().map(|r| r.name)) {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => write!(f, "; there are {}", SHAPES.iter().map(|r| r.name).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl std::error::Error for UnknownShape {}

impl FromStr for Shape {
    type Err = UnknownShape;
    fn from_str(s: &str) -> Result<Shape, UnknownShape> {
        SHAPES.iter().find(|r| r.name == s).map(Shape).ok_or_else(|| UnknownShape { name: s.to_string() })
    }
}

/// Returns a module with a public `@main(%x: Tensor[(8,), float32])` whose tail is the result of
/// `build`.
fn main_of(
    build: impl FnOnce(&mut FunctionBuilder<'_>, ExprId) -> Result<ExprId, BuildError>,
) -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut b = FunctionBuilder::new(&mut module, "main");
    let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
    let x = b.param("x", ty);
    let tail = build(&mut b, x)?;
    b.finish(tail)?;
    Ok(module)
}
