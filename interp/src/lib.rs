//! The reference interpreter of anfora. It defines the meaning of programs.
//!
//! [`Interpreter`] calls a function of a module and returns its result and the trace of its
//! effects. [`evaluate_op`] evaluates one call of an operator on constants, for constant folding.
//! Results have the same bits on every machine.
//!
//! - A program may be in any form that the IR can represent. A shared node is evaluated once per
//!   activation.
//! - Nothing recurses over the program: pending work is on an explicit stack, values are in an
//!   arena, and a tail call takes no room. [`Limits`] bounds the resources of a program.
//! - Symbolic dimensions are bound and checked at calls and by `match_cast`. All other statements
//!   of the types are taken as true.
//! - [`ArgumentGenerator`] draws arguments for test runs, and [`Agreement`] finds the first
//!   difference between the outcomes of two programs. [`digest()`] is a short text by which tensors
//!   are compared.
//! - A [`ValueMirror`] is a second memory that is written and read along with the variables.
//! - `print` appends to the trace, `assert` fails, and `random.…` draw from a stream that depends
//!   only on the seed.
//!
//! # Example
//! ```
//! use anfora_ir::{Literal, Source, parse_module};
//! use anfora_interp::Interpreter;
//!
//! let text = "def @main(%x: Tensor[(2,), float32]) { let %y = add(%x, %x); multiply(%y, 0.5f) }";
//! let module = parse_module(Source::new("example", text), anfora_ops::standard()).unwrap();
//! let x = Literal::from_elements(&[2], &[1.5f32, -2.0]).unwrap();
//! let outcome = Interpreter::new(&module).run("main", &[x.clone()]).unwrap();
//! assert_eq!(outcome.tensor(), Some(&x));
//! ```

mod argument_generator;
mod check;
mod compare;
mod digest;
mod effect;
mod error;
mod externals;
mod interpreter;
mod limits;
mod machine;
mod memory;
mod mirror;
mod operator;
mod prepare;
mod value;

pub use argument_generator::{ArgumentGenerator, Arguments, CannotDraw, Numbers};
pub use compare::{Agreement, Difference, DifferentPart};
pub use digest::digest;
pub use effect::Effect;
pub use error::{EvalError, EvalErrorKind};
pub use externals::Externals;
pub use interpreter::{Interpreter, Outcome, random_tensor};
pub use limits::{Cost, Limits};
pub use mirror::{MirroredCall, MirroredValue, ValueMirror};
pub use operator::{Evaluated, OpError, OpLimits, evaluate_op};
pub use value::{Value, ValueId, Values};
