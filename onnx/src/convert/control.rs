//! `If`. The importer and the exporter know by themselves how blocks become graphs; the row says for which versions.

use super::{BRANCHES, Conversion, Conversions, OPSETS};
use crate::import::Kept;

pub(super) fn register(table: &mut Conversions) {
    table.register(
        Conversion::new("If", OPSETS, BRANCHES).any_operands().import(|_| Err(Kept::because("it has no branches"))),
    );
}
