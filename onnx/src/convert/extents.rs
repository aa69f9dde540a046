//! Extents that are computed from symbolic dimensions: nodes that read the shapes of the inputs and
//! compute with them.

use anfora_ir::{Attr, Dim, DimId, DimOp, EntityId, Literal, Term};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Conversion, Conversions, NodeExport, OPSETS, int_attribute};
use crate::error::ExportProblem;
use crate::tensor::TensorError;

pub(super) fn register(table: &mut Conversions) {
    table.register(Conversion::new("Concat", OPSETS, "shape_to_tensor").export(export_shape_to_tensor));
}

fn export_shape_to_tensor(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let entries = entries(n)?;
    match <[String; 1]>::try_from(entries) {
        Ok(one) => n.emit("Identity", one.into(), Vec::new()),
        Err(entries) => n.emit("Concat", entries, vec![int_attribute("axis", 0)]),
    }
    Ok(())
}

/// Returns the name of the tensor of the extents in the attribute `shape`.
pub(super) fn shape_tensor(n: &mut NodeExport<'_>) -> Result<String, ExportProblem> {
    let entries = entries(n)?;
    Ok(match <[String; 1]>::try_from(entries) {
        Ok([one]) => one,
        Err(entries) => n.step("Concat", entries, vec![int_attribute("axis", 0)]),
    })
}

/// Returns the names of at least one tensor; their concatenation is the attribute `shape`.
fn entries(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let cx = n.cx();
    let Some(Attr::Shape(dims)) = n.attrs().raw("shape") else {
        return Err(ExportProblem::Unsupported(format!("`{}` without a shape", n.native())));
    };
    let mut computed = Computed { of_dim: FxHashMap::default(), of_number: FxHashMap::default() };
    let mut entries = Vec::new();
    // Adjacent numbers become one constant.
    let mut numbers: Vec<i64> = Vec::new();
    for &dim in dims {
        match cx.types.dims.as_constant(dim) {
            Some(number) => numbers.push(number),
            None => {
                if !numbers.is_empty() {
                    entries.push(constant(n, &std::mem::take(&mut numbers))?);
                }
                entries.push(computed.dimension(n, dim)?);
            }
        }
    }
    if !numbers.is_empty() || entries.is_empty() {
        entries.push(constant(n, &numbers)?);
    }
    Ok(entries)
}

fn constant(n: &mut NodeExport<'_>, numbers: &[i64]) -> Result<String, ExportProblem> {
    n.own_constant(&Literal::from_elements(&[numbers.len()], numbers).map_err(TensorError::from)?)
}

/// The names of the tensors that were computed for one call. Each tensor holds one int64.
struct Computed {
    of_dim: FxHashMap<DimId, String>,
    of_number: FxHashMap<i64, String>,
}

impl Computed {
    /// Returns the name of the tensor for a dimension. The parts of a dimension have smaller ids,
    /// so they are computed first.
    fn dimension(&mut self, n: &mut NodeExport<'_>, dim: DimId) -> Result<String, ExportProblem> {
        let dims = &n.cx().types.dims;
        let mut parts: FxHashSet<DimId> = FxHashSet::default();
        let mut stack = vec![dim];
        while let Some(part) = stack.pop() {
            if self.of_dim.contains_key(&part) || !parts.insert(part) {
                continue;
            }
            match dims.get(part) {
                Dim::Sum(terms) => stack.extend(terms.iter().flat_map(|t| &t.factors)),
                Dim::Op { lhs, rhs, .. } => stack.extend([*lhs, *rhs]),
                _ => {}
            }
        }
        let mut parts: Vec<DimId> = parts.into_iter().collect();
        parts.sort_unstable_by_key(|part| part.index());
        for part in parts {
            let name = match dims.get(part) {
                Dim::Const(number) => self.number(n, *number)?,
                Dim::Symbol(symbol) => n.symbol(*symbol)?,
                Dim::Sum(terms) => self.sum(n, terms)?,
                Dim::Op { op, lhs, rhs } => {
                    let (a, b) = (self.of_dim[lhs].clone(), self.of_dim[rhs].clone());
                    operation(n, *op, a, b)?
                }
                Dim::Unknown | Dim::Bound { .. } => {
                    return Err(ExportProblem::Unsupported("an extent that is not known".to_owned()));
                }
            };
            self.of_dim.insert(part, name);
        }
        Ok(self.of_dim[&dim].clone())
    }

    fn number(&mut self, n: &mut NodeExport<'_>, number: i64) -> Result<String, ExportProblem> {
        if let Some(name) = self.of_number.get(&number) {
            return Ok(name.clone());
        }
        let name = constant(n, &[number])?;
        self.of_number.insert(number, name.clone());
        Ok(name)
    }

    fn sum(&mut self, n: &mut NodeExport<'_>, terms: &[Term]) -> Result<String, ExportProblem> {
        let mut sum: Option<String> = None;
        for term in terms {
            let mut product: Option<String> = None;
            if term.coefficient != 1 || term.factors.is_empty() {
                product = Some(self.number(n, term.coefficient)?);
            }
            for factor in &term.factors {
                let factor = self.of_dim[factor].clone();
                product = Some(match product {
                    Some(product) => n.step("Mul", vec![product, factor], Vec::new()),
                    None => factor,
                });
            }
            let product = product.expect("a term has a coefficient or a factor");
            sum = Some(match sum {
                Some(sum) => n.step("Add", vec![sum, product], Vec::new()),
                None => product,
            });
        }
        sum.ok_or_else(|| ExportProblem::Unsupported("a sum of nothing".to_owned()))
    }
}

/// Writes an operation on two dimensions. `Div` truncates, so the dividend is first made a multiple
/// of the divisor; `Mod` has the sign of the divisor.
fn operation(n: &mut NodeExport<'_>, op: DimOp, a: String, b: String) -> Result<String, ExportProblem> {
    Ok(match op {
        DimOp::Mod => {
            n.needs_opset(10)?;
            n.step("Mod", vec![a, b], Vec::new())
        }
        DimOp::FloorDiv => {
            n.needs_opset(10)?;
            let rest = n.step("Mod", vec![a.clone(), b.clone()], Vec::new());
            let multiple = n.step("Sub", vec![a, rest], Vec::new());
            n.step("Div", vec![multiple, b], Vec::new())
        }
        DimOp::CeilDiv => {
            n.needs_opset(10)?;
            let negative = n.step("Neg", vec![a.clone()], Vec::new());
            let missing = n.step("Mod", vec![negative, b.clone()], Vec::new());
            let multiple = n.step("Add", vec![a, missing], Vec::new());
            n.step("Div", vec![multiple, b], Vec::new())
        }
        DimOp::Min | DimOp::Max => {
            n.needs_opset(12)?;
            n.step(if op == DimOp::Min { "Min" } else { "Max" }, vec![a, b], Vec::new())
        }
    })
}
