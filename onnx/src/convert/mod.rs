//! The table of conversions between operators of ONNX and operators of ours, with one row each. An
//! embedder may add rows.
//!
//! A row holds for a range of versions of the ONNX operators. Its import rule expresses a node in
//! our operators, or returns the reason why that cannot be done exactly; such a node is kept
//! unchanged. Its export rule writes a call of our operator as nodes.

mod row;
mod table;
pub(crate) mod node_import;
pub(crate) mod node_export;
mod draft;
mod direct;
mod same;

mod activation;
mod attention;
mod cast;
mod constant;
mod control;
pub(crate) mod element_types;
mod elementwise;
mod extents;
mod image;
mod index;
mod loss;
mod matrix;
mod normalization;
mod order;
mod pad;
mod pooling;
mod quantization;
mod recurrent;
mod reduction;
mod sampling;
mod scan;
mod scatter;
mod shape;
mod softmax;
mod version_6;
mod window;
mod written_out;

use std::sync::LazyLock;

pub use crate::attributes::{
    float_attribute, floats_attribute, int_attribute, ints_attribute, str_attribute, strs_attribute, tensor_attribute,
};
pub use row::{Conversion, ExportRule, ImportRule, Lowered, Operands};
pub use table::Conversions;
pub use written_out::missing_operators;

pub(crate) use constant::{FILL_SINCE, constant_attribute};
pub(crate) use draft::{WritableCalls, check_call};
pub(crate) use node_export::{CallView, NodeExport, OperandView, SymbolPlace, Unwritable, Writer, write_call};
pub(crate) use node_import::{MAX_RANK, NodeImport, float_meant};
pub(crate) use row::{BRANCHES, NEWEST, OPSETS};

pub(crate) use direct::{
    FLOAT, as_indices, as_int64, exact_float, export_direct, import_direct, with_indices, with_int64, with_rank,
};

impl Default for Conversions {
    /// Returns a table with the rows of this crate.
    fn default() -> Conversions {
        static ROWS: LazyLock<Conversions> = LazyLock::new(rows_of_this_crate);
        ROWS.clone()
    }
}

fn rows_of_this_crate() -> Conversions {
    let mut table = Conversions::empty();
    elementwise::register(&mut table);
    extents::register(&mut table);
    activation::register(&mut table);
    cast::register(&mut table);
    reduction::register(&mut table);
    scan::register(&mut table);
    order::register(&mut table);
    shape::register(&mut table);
    index::register(&mut table);
    image::register(&mut table);
    sampling::register(&mut table);
    scatter::register(&mut table);
    pad::register(&mut table);
    constant::register(&mut table);
    control::register(&mut table);
    matrix::register(&mut table);
    attention::register(&mut table);
    recurrent::register(&mut table);
    window::register(&mut table);
    pooling::register(&mut table);
    quantization::register(&mut table);
    normalization::register(&mut table);
    softmax::register(&mut table);
    loss::register(&mut table);
    version_6::register(&mut table);
    written_out::register(&mut table);
    table
}
