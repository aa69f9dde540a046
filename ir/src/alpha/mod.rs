//! Equality and hashing of programs modulo the names of bound variables, symbols and functions.
//!
//! Two programs are alpha-equal if renaming variables, symbolic dimensions and private functions
//! makes them equal. These count: the shape of every body with its sharing, the order of bindings,
//! dataflow regions, operators, attributes, constants by their bits, types that inference does not
//! give (of parameters, results, `fn`s and opaque calls), attributes of functions and of the
//! module, and the names of public functions, of declarations and of globals that resolve to
//! nothing. These do not count: names of variables, symbols and private functions, the order of
//! functions, source positions, and (unless requested) the metadata of tools in `#[…]`.
//!
//! Private functions correspond by their uses: the first pair of places that names two of them
//! determines that they correspond. Private functions that nothing compared so far has named
//! correspond in program order.
//!
//! - [`alpha_equal`], [`first_difference`]: two modules, each with its own tables. Linear.
//! - [`module_hash`]: a hash that is equal for alpha-equal modules. Linear.
//! - [`alpha_equal_exprs`]: two expressions of one body. Linear in the smaller of the two.
//! - [`AlphaHasher`]: hashes of the expressions of one body, bottom-up, near-linear over all of
//!   them.

mod bodies;
pub(crate) mod hash;
pub(crate) mod modules;
mod subtree;
pub(crate) mod tables;

pub use hash::module_hash;
pub use modules::{AlphaOptions, Difference, MetaPolicy, alpha_equal, first_difference, first_difference_with};
pub use subtree::AlphaHasher;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::{LetFlags, VarId};

/// Returns true if two expressions of one body are equal modulo the names of the variables that
/// they bind. Free variables are equal only if they are the same variable; free symbolic dimensions
/// only if they are the same symbol. Metadata in `#[…]` does not count.
///
/// Takes time and memory linear in the smaller of the two, however large the body is.
pub fn alpha_equal_exprs(cx: &Context, body: &Body, a: ExprId, b: ExprId) -> bool {
    bodies::equal_within(cx, body, a, b)
}

/// Returns the flags of a Let and of the variable that it binds, in three bits.
#[inline]
fn flags_word(body: &Body, var: VarId, flags: LetFlags) -> u64 {
    flags.is_dataflow() as u64 + flags.starts_region() as u64 * 2 + body.is_dataflow_var(var) as u64 * 4
}

/// Mixes a word into a hash: a folded multiplication, the same on every machine.
#[inline]
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15) * u128::from(word ^ 0xd6e8_feb8_6659_fd93);
    (product as u64) ^ ((product >> 64) as u64).rotate_left(29) ^ hash.rotate_left(17)
}

/// Returns the hash of a string of bytes, the same on every machine.
pub(crate) fn mix_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    hash = mix(hash, bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    hash
}
