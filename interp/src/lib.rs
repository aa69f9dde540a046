//! The reference interpreter of anfora: what a program means.
//!
//! [`Interpreter`] calls a function of a module and gives its result and the trace of its effects; [`evaluate_op`] evaluates one
//! call of an operator on constants, which is what constant folding wants. Results have the same bits on every machine.
//!
//! - A program may be in any form that the IR holds. A node that several others refer to is evaluated once an activation.
//! - Nothing recurses over the program: pending work lies on a stack of its own, values in an arena, and a call in tail position takes
//!   no room. How much a program may take is limited ([`Limits`]).
//! - Symbolic dimensions are bound at calls and by `match_cast`, and checked; whatever else the types promise is relied on.
//! - [`Draw`] draws arguments for test runs, and [`Agreement`] says where what two programs come to differs.
//! - `print` appends to the trace, `assert` fails, `random.…` draw from a stream that depends on the seed alone.
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

mod check;
mod compare;
mod draw;
mod effect;
mod error;
mod interpreter;
mod machine;
mod memory;
mod operator;
mod prepare;
mod value;

pub use compare::{Agreement, Difference, DifferentPart};
pub use draw::{Arguments, CannotDraw, Draw, Numbers};
pub use effect::Effect;
pub use error::{EvalError, EvalErrorKind};
pub use interpreter::{Cost, Interpreter, Limits, Outcome, random_tensor};
pub use operator::{Evaluated, OpError, OpLimits, evaluate_op};
pub use value::{Value, ValueId, Values};
