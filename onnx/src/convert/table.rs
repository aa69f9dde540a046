//! The table of conversions.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::{Conversion, ExportRule};
use crate::error::ExportProblem;
use crate::opaque::is_standard;

/// The table of conversions.
#[derive(Clone, Debug)]
pub struct Conversions {
    pub(super) rows: Vec<Conversion>,
    by_onnx: FxHashMap<String, Vec<usize>>,
    by_native: FxHashMap<String, Vec<usize>>,
}

impl Conversions {
    /// Returns a table without rows; it keeps every node unchanged.
    pub fn empty() -> Conversions {
        Conversions { rows: Vec::new(), by_onnx: FxHashMap::default(), by_native: FxHashMap::default() }
    }

    /// Adds a row, which takes precedence over the rows that are already there.
    pub fn register(&mut self, mut row: Conversion) {
        if is_standard(&row.domain) {
            row.domain = Cow::Borrowed("");
        }
        let index = self.rows.len();
        self.by_onnx.entry(row.onnx.to_string()).or_default().push(index);
        self.by_native.entry(row.native.to_string()).or_default().push(index);
        self.rows.push(row);
    }

    /// Returns the rows in the order in which they were added.
    pub fn rows(&self) -> &[Conversion] {
        &self.rows
    }

    /// Returns the row that imports an operator.
    ///
    /// # Errors
    /// If no row does; the error is the reason.
    pub(crate) fn for_node(&self, domain: &str, op_type: &str, opset: i64) -> Result<&Conversion, String> {
        let indices = self.by_onnx.get(op_type).map_or(&[][..], Vec::as_slice);
        let mut rows =
            indices.iter().rev().map(|&i| &self.rows[i]).filter(|r| r.import.is_some() && r.domain == domain);
        let Some(first) = rows.clone().next() else { return Err("there is no operator of ours for it".to_owned()) };
        rows.find(|r| r.opsets.contains(&opset)).ok_or_else(|| {
            let rows = rows.clone().chain([first]);
            let (from, to) =
                rows.fold((i64::MAX, i64::MIN), |(from, to), r| (from.min(*r.opsets.start()), to.max(*r.opsets.end())));
            format!("its meaning is known in versions {from} to {to}")
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
        let indices = self.by_native.get(native).map_or(&[][..], Vec::as_slice);
        let rows = indices.iter().rev().map(|&i| &self.rows[i]);
        let mut other = None;
        for row in rows {
            let Some(rule) = row.export else { continue };
            let present = opset_of(&row.domain);
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
