//! The refusal of a replacement that cannot stand in the program.

/// The reason why the result of a rule cannot stand in the program.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IllegalEdit {
    /// A part of it is an `if`, a `fn` or a block of another place of the program, or an expression
    /// of another place that has no name.
    #[error(
        "what a rule returns is made of atoms, of what was captured and of new expressions, not of a part of the program that stands elsewhere"
    )]
    Elsewhere,
    /// A part of it is a variable that nothing binds.
    #[error("what a rule returns uses a variable that nothing binds")]
    Unbound,
    /// A part of it is a variable that is bound in another block, or later.
    #[error("what a rule returns uses a variable that is not visible where it is to stand")]
    NotVisible,
    /// It contains a call with observable effects, and it is to stand in a dataflow region.
    #[error("what a rule returns has an impure call in it, and what it replaces stands in a dataflow region")]
    Impure,
    /// A part of it contains the replaced node: in a graph, the part would contain itself.
    #[error("what a rule returns shares a part of the program that is made of what it replaces")]
    Cyclic,
    /// It contains a `fn` that would have to stand in several places.
    #[error("a `fn` that a rule returns would have to stand in several places")]
    Shared,
}
