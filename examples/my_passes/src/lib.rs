//! A template for passes and operators of your own, with a command line that has them.
//!
//! - [`soft_cap`](mod@soft_cap): an operator, with its type, kernel, decomposition and counterpart
//!   in ONNX;
//! - [`divisions_to_products`](mod@divisions_to_products): a pass of rules;
//! - [`fuse_soft_cap`](mod@fuse_soft_cap): a function pass;
//! - `tests`: files with programs before and after the passes, deep and random programs, and the
//!   command line.
//!
//! The program has every command of anfora:
//!
//! ```text
//! cargo run -- passes
//! cargo run -- opt model.onnx -o smaller.onnx --passes my_O2
//! cargo run -- stress --operation FuseSoftCap
//! ```

pub mod divisions_to_products;
pub mod fuse_soft_cap;
pub mod soft_cap;

use anfora::ir::OpRegistry;
use anfora::manager::PassRegistry;
use anfora::onnx::convert::Conversions;
use anfora_cli::CommandLine;

use crate::divisions_to_products::divisions_to_products;

/// The error of a registration, such as a name that is taken.
pub type SetupError = Box<dyn std::error::Error>;

/// Returns the standard passes and those of this package.
///
/// # Errors
/// If the name of a pass or pipeline is taken.
pub fn passes() -> Result<PassRegistry, SetupError> {
    let mut registry = PassRegistry::clone(&anfora::passes::registry());
    registry.register_pass(divisions_to_products(), "Replaces divisions of floats by powers of two by products")?;
    registry.register(fuse_soft_cap::FUSE_SOFT_CAP)?;
    registry.register_pipeline(
        "my_O2",
        "ToANormalForm,FuseSoftCap,DivisionsToProducts,O2",
        "The passes of this package, then O2",
    )?;
    Ok(registry)
}

/// Returns the standard operators, those that ONNX files bring, and those of this package.
///
/// # Errors
/// If the name of an operator is taken, or a row contradicts itself.
pub fn operators() -> Result<OpRegistry, SetupError> {
    let mut registry = OpRegistry::clone(&anfora::onnx::registry());
    registry.register(soft_cap::operator())?;
    Ok(registry)
}

/// Returns the conversions of operators from and to ONNX: the standard ones and those of this
/// package.
pub fn conversions() -> Conversions {
    let mut table = Conversions::default();
    table.register(soft_cap::conversion());
    table
}

/// Returns the command line with all of them.
///
/// # Errors
/// If a name is taken.
pub fn command_line() -> Result<CommandLine, SetupError> {
    Ok(CommandLine::new("my-passes", env!("CARGO_PKG_VERSION"))
        .about("The passes and operators of this package")
        .passes(passes()?)
        .operators(operators()?)
        .conversions(conversions()))
}
