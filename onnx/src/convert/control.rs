//! `If`. The importer and the exporter convert blocks and graphs themselves; the row only states
//! the versions.

use super::{BRANCHES, Conversion, Conversions, OPSETS};
use crate::error::because;

pub(super) fn register(table: &mut Conversions) {
    table.register(
        Conversion::new("If", OPSETS, BRANCHES).any_operands().import(|_| Err(because("it has no branches"))),
    );
}
