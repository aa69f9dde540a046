//! Edits of programs: the editor, edits of dataflow regions, the journal for rollbacks, the ledger
//! of rewrites, stamps of states, and changes of types, signatures and whole functions.

pub(crate) mod editor;
pub(crate) mod journal;
pub(crate) mod region_writer;
mod regions;
pub(crate) mod region_edits;
pub(crate) mod stamp;
pub(crate) mod function_stamp;
pub(crate) mod retype;
pub(crate) mod rewrites;
pub(crate) mod near_misses;
mod rewrite_reports;
pub(crate) mod signature;
pub(crate) mod substitution;
pub(crate) mod name_supply;
pub(crate) mod transplant;
pub(crate) mod take_over;
