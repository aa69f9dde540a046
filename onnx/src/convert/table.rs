//! The table of conversions.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Conversion, ExportRule};
use crate::domains::is_standard;
use crate::error::ExportProblem;

/// The table of conversions. Clones share their rows until a row is added to one of them.
#[derive(Clone, Debug)]
pub struct Conversions {
    table: Arc<Table>,
}

/// Numbers of rows by a name, the oldest first.
type RowIndex = FxHashMap<Cow<'static, str>, SmallVec<[u32; 4]>>;

#[derive(Clone, Debug, Default)]
struct Table {
    rows: Vec<Conversion>,
    /// By the ONNX operator.
    by_onnx: RowIndex,
    /// By our operator.
    by_native: RowIndex,
}

impl Conversions {
    /// Returns a table without rows; it keeps every node unchanged.
    pub fn empty() -> Conversions {
        Conversions { table: Arc::default() }
    }

    /// Adds a row, which takes precedence over the rows that are already there.
    pub fn register(&mut self, mut row: Conversion) {
        if is_standard(&row.domain) {
            row.domain = Cow::Borrowed("");
        }
        let table = Arc::make_mut(&mut self.table);
        let index = table.rows.len() as u32;
        table.by_onnx.entry(row.onnx.clone()).or_default().push(index);
        table.by_native.entry(row.native.clone()).or_default().push(index);
        table.rows.push(row);
    }

    /// Returns the rows for edits. Callers must not change the names of operators, which are the
    /// keys of the indices.
    pub(super) fn rows_mut(&mut self) -> &mut [Conversion] {
        &mut Arc::make_mut(&mut self.table).rows
    }

    /// Returns the rows in the order in which they were added.
    pub fn rows(&self) -> &[Conversion] {
        &self.table.rows
    }

    /// Returns the rows that an index lists under a name, the newest first.
    fn named<'t>(&'t self, index: &'t RowIndex, name: &str) -> impl Iterator<Item = &'t Conversion> + Clone {
        let numbers = index.get(name).map_or(&[][..], SmallVec::as_slice);
        numbers.iter().rev().map(|&i| &self.table.rows[i as usize])
    }

    /// Returns the row that imports an operator.
    ///
    /// # Errors
    /// If no row does; the error is the reason.
    pub(crate) fn for_node(&self, domain: &str, op_type: &str, opset: i64) -> Result<&Conversion, String> {
        let rows = self.named(&self.table.by_onnx, op_type);
        // Versions are compared faster than domains.
        let is_of_domain = |r: &&Conversion| r.import.is_some() && r.domain == domain;
        if let Some(row) = rows.clone().find(|r| r.opsets.contains(&opset) && is_of_domain(r)) {
            return Ok(row);
        }
        let versions = rows.filter(is_of_domain).map(|r| (*r.opsets.start(), *r.opsets.end()));
        Err(match versions.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
            Some((from, to)) => format!("its meaning is known in versions {from} to {to}"),
            None => "there is no operator of ours for it".to_owned(),
        })
    }

    /// Returns the row that exports an operator of ours to the model's version of a domain, with
    /// its export rule.
    ///
    /// # Errors
    /// If there is no such row, or none for that version.
    pub(crate) fn for_call(
        &self,
        native: &str,
        opset_of: impl Fn(&str) -> i64,
    ) -> Result<(&Conversion, ExportRule), ExportProblem> {
        let rows = self.named(&self.table.by_native, native);
        let mut other = None;
        // Most rows of an operator are of one domain.
        let mut last: Option<(&str, i64)> = None;
        for row in rows {
            let Some(rule) = row.export else { continue };
            let present = match last {
                Some((domain, present)) if domain == row.domain => present,
                _ => opset_of(&row.domain),
            };
            last = Some((&row.domain, present));
            if row.opsets.contains(&present) {
                return Ok((row, rule));
            }
            other = Some((row, present));
        }
        let operator = native.to_owned();
        Err(match other {
            Some((row, present)) => {
                let domain = row.domain.to_string();
                ExportProblem::Opset { operator, domain, needed: *row.opsets.start(), present }
            }
            None => ExportProblem::Operator(operator),
        })
    }
}
