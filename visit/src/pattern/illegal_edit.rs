//! The refusal of a replacement that is not allowed at its place.

/// The reason why the result of a rule is not allowed at its place.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IllegalEdit {
    /// A part of it is an `if`, a `fn` or a block of another place of the program, or an expression
    /// of another place that has no name.
    #[error("the replacement must consist of atoms, captures and new expressions, without other parts of the program")]
    Elsewhere,
    /// A part of it is a variable that nothing binds.
    #[error("the replacement uses a variable that nothing binds")]
    Unbound,
    /// A part of it is a variable that is bound in another block, or later.
    #[error("the replacement uses a variable that is not visible at its place")]
    NotVisible,
    /// It contains a call with observable effects, but its place is in a dataflow region.
    #[error("the replacement contains an impure call, but its place is in a dataflow region")]
    Impure,
    /// A part of it contains the replaced node: in a graph, the part would contain itself.
    #[error("the replacement shares a part of the program that contains the replaced expression")]
    Cyclic,
    /// It contains a `fn` that would have several parents.
    #[error("a `fn` in the replacement would have several parents")]
    Shared,
}
