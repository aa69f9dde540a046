//! The types of the results of ONNX operators, as their specifications say, for nodes that are kept
//! unchanged. The data covers the domains of the PyPI package `onnx` 1.23 and the usual operators
//! of `com.microsoft`.
//!
//! A row is for a list of operators and a range of versions. It says how many outputs there are and
//! gives for each the element type and what is known of the extents, in terms of the operands and
//! attributes ([`row`]). If a row cannot express something, the type says less; it is never wrong
//! for a node that the specification allows. The rows also say which operators are pure.

mod row;
mod node_types;
mod subgraphs;
mod rules;

mod elementwise;
mod shapes;
mod reductions;
mod windows;
mod quantization;
mod sequences;
mod random;
mod machine_learning;
mod training;
mod microsoft;

use std::sync::LazyLock;

use anfora_ir::{Context, OpPurity, Operand, TypeId};
use rustc_hash::FxHashMap;

use crate::convert::NEWEST;
use crate::domains::is_standard;
use crate::proto::NodeProto;
use node_types::NodeTypes;
use row::{OutputType, Signature};

/// Rows for operators of a domain.
struct Family {
    domain: &'static str,
    /// The newest version of the domain for which the rows are known to hold.
    newest: i64,
    rows: &'static [Signature],
}

const fn standard(rows: &'static [Signature]) -> Family {
    Family { domain: "", newest: NEWEST, rows }
}

static FAMILIES: &[Family] = &[
    standard(elementwise::ROWS),
    standard(shapes::ROWS),
    standard(reductions::ROWS),
    standard(windows::ROWS),
    standard(quantization::ROWS),
    standard(sequences::ROWS),
    standard(random::ROWS),
    standard(subgraphs::ROWS),
    Family { domain: "ai.onnx.ml", newest: 5, rows: machine_learning::ROWS },
    Family { domain: "ai.onnx.preview", newest: 1, rows: training::PREVIEW },
    Family { domain: "ai.onnx.preview.training", newest: 1, rows: training::ROWS },
    Family { domain: "com.microsoft", newest: 1, rows: microsoft::ROWS },
];

/// The rows of each operator.
static BY_OPERATOR: LazyLock<FxHashMap<&'static str, Vec<(&'static Family, &'static Signature)>>> =
    LazyLock::new(|| {
        let mut rows: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for family in FAMILIES {
            for row in family.rows {
                row.operators.iter().for_each(|&operator| rows.entry(operator).or_default().push((family, row)));
            }
        }
        rows
    });

/// Returns the rows of an operator.
fn rows_of(domain: &str, op_type: &str) -> impl Iterator<Item = (&'static Family, &'static Signature)> {
    let domain = if is_standard(domain) { "" } else { domain };
    let rows = BY_OPERATOR.get(op_type).map_or(&[][..], Vec::as_slice);
    rows.iter().copied().filter(move |(family, _)| family.domain == domain)
}

/// Returns the purity of an operator in all versions; `None` if it has no row.
pub(crate) fn purity_of(domain: &str, op_type: &str) -> Option<OpPurity> {
    let mut rows = rows_of(domain, op_type).peekable();
    rows.peek()?;
    Some(if rows.all(|(_, row)| row.purity == OpPurity::Pure) { OpPurity::Pure } else { OpPurity::Impure })
}

/// Returns the types of the outputs of a node in a version of its domain, as far as its operands
/// determine them. `elements` has for each operand that is a sequence the type of its elements, if
/// it is known. An output of an unknown operator or version is of type `Any`; one that is left out,
/// of type `()`.
pub(crate) fn result_types(
    cx: &mut Context,
    node: &NodeProto,
    version: Option<i64>,
    operands: &[Operand],
    elements: &[Option<TypeId>],
) -> Vec<ResultType> {
    let row = row_of(node, version);
    let types = node.output.iter().enumerate().map(|(output, name)| {
        let of_row = row.and_then(|row| match row.outputs.get(output) {
            None if row.repeats => row.outputs.last(),
            found => found,
        });
        let mut node = NodeTypes { cx: &mut *cx, node, operands, elements, output };
        match of_row {
            _ if name.is_empty() => ResultType::Known(node.cx.types.unit()),
            None => ResultType::Known(node.cx.types.any()),
            Some(OutputType::Kind(_, elements)) => ResultType::NoTensor(elements(&mut node)),
            Some(of_row) => ResultType::Known(node.type_of(of_row)),
        }
    });
    types.collect()
}

/// Returns the types that the parameters of a node's subgraph have in every call, as far as the
/// operands of the node determine them. Another parameter is of type `Any`, or not in the list.
pub(crate) fn parameter_types(
    cx: &mut Context,
    node: &NodeProto,
    version: Option<i64>,
    operands: &[Operand],
    elements: &[Option<TypeId>],
) -> Vec<TypeId> {
    // In version 8, the operands of `Scan` have an axis for the batch.
    let is_known = row_of(node, version).is_some_and(|row| row.until > 8);
    match is_known {
        true => subgraphs::parameters(&mut NodeTypes { cx, node, operands, elements, output: 0 }),
        false => Vec::new(),
    }
}

/// Returns the row of a node's operator in a version of its domain.
fn row_of(node: &NodeProto, version: Option<i64>) -> Option<&'static Signature> {
    let version = version.filter(|_| node.overload().is_empty())?;
    let mut rows = rows_of(node.domain(), node.op_type());
    Some(rows.find(|(f, row)| (row.since..=row.until.min(f.newest)).contains(&version))?.1)
}

/// The type of a result of a node.
#[derive(Copy, Clone)]
pub(crate) enum ResultType {
    /// As far as it is known.
    Known(TypeId),
    /// A sequence or another value that is no tensor, with the type of its elements, if known.
    NoTensor(Option<TypeId>),
}

/// An operator of ONNX whose result types are known, for a range of versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownOperator {
    /// The domain; empty for the standard domain.
    pub domain: &'static str,
    /// The operator.
    pub op_type: &'static str,
    /// The first version.
    pub since: i64,
    /// The last version.
    pub until: i64,
    /// False if equal calls may have different results.
    pub is_pure: bool,
    /// The element type of each output: a choice of forms such as `of 0` for that of the first
    /// input, `int64`, or `attribute dtype`, the first of which that applies to a node is meant.
    /// For outputs that are no tensors, their kind, such as `a sequence`; `same as 0` for the type
    /// of the first input, `by the node` for other types.
    pub outputs: Vec<String>,
    /// True if there may be more outputs, all like the last one.
    pub repeats: bool,
}

/// Returns the operators of ONNX whose result types are known, by domain. Nodes with such an
/// operator have types even if they are kept unchanged.
pub fn known_operators() -> impl Iterator<Item = KnownOperator> {
    FAMILIES.iter().flat_map(|family| {
        family.rows.iter().flat_map(move |row| {
            row.operators.iter().map(move |&op_type| KnownOperator {
                domain: family.domain,
                op_type,
                since: row.since,
                until: row.until.min(family.newest),
                is_pure: row.purity == OpPurity::Pure,
                outputs: row.outputs.iter().map(ToString::to_string).collect(),
                repeats: row.repeats,
            })
        })
    })
}
