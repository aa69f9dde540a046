//! A row of the table of conversions.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use anfora_ir::{AttrId, ExprId, Literal};

use super::{NodeExport, NodeImport};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeType;

/// Converts a node to our operators, or returns the reason why the node has to be kept unchanged.
pub type ImportRule = fn(&mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason>;

/// Writes a call as nodes.
pub type ExportRule = fn(&mut NodeExport<'_>) -> Result<(), ExportProblem>;

/// The result of importing a node.
#[derive(Clone, Debug)]
pub enum Lowered {
    /// A call of one of our operators. If it returns a tuple, the fields are the node's outputs.
    Call {
        /// The operator.
        op: Cow<'static, str>,
        /// Its operands.
        operands: Vec<ExprId>,
        /// Its attributes.
        attrs: Vec<(&'static str, AttrId)>,
    },
    /// An existing value.
    Operand(ExprId),
    /// A constant.
    Constant(Literal),
}

/// The kinds of operands that a row takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Operands {
    /// Tensors of element types that the kernels compute with.
    Computed,
    /// Tensors of these types, or of small numbers, which kernels only convert.
    Numbers,
    /// Any values.
    Any,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The domain of the ONNX operator; empty for the standard domain.
    pub domain: Cow<'static, str>,
    /// The ONNX operator.
    pub onnx: Cow<'static, str>,
    /// The versions of the domain for which the row holds.
    pub opsets: RangeInclusive<i64>,
    /// The attributes that the import rule understands. A node with any other attribute, or with
    /// one of another type, is kept unchanged.
    pub attributes: &'static [(&'static str, AttributeType)],
    /// Attributes that do not affect the result and are preserved in the metadata.
    pub carried: &'static [&'static str],
    /// The operands that a node must have. A node with other operands is kept unchanged.
    pub operands: Operands,
    /// The rule that imports a node, if nodes are imported.
    pub import: Option<ImportRule>,
    /// Our operator.
    pub native: Cow<'static, str>,
    /// The rule that exports a call, if calls are exported.
    pub export: Option<ExportRule>,
}

impl Conversion {
    /// Returns a row between an operator of the standard domain and one of ours that converts
    /// nothing yet. The methods below add the rules:
    ///
    /// Cost: one node.
    ///
    /// ```
    /// use anfora_onnx::convert::{Conversion, Conversions};
    /// use anfora_onnx::proto::AttributeType;
    ///
    /// let mut table = Conversions::default();
    /// let row = Conversion::new("Squareplus", 1..=3, "acme.squareplus");
    /// table.register(row.domain("com.acme").same(&[("b", AttributeType::Float)]));
    /// ```
    pub const fn new(onnx: &'static str, opsets: RangeInclusive<i64>, native: &'static str) -> Conversion {
        Conversion {
            domain: Cow::Borrowed(""),
            onnx: Cow::Borrowed(onnx),
            opsets,
            attributes: &[],
            carried: &[],
            operands: Operands::Computed,
            import: None,
            native: Cow::Borrowed(native),
            export: None,
        }
    }

    /// Sets the domain of the ONNX operator, such as `com.acme`.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn domain(self, domain: impl Into<Cow<'static, str>>) -> Conversion {
        Conversion { domain: domain.into(), ..self }
    }

    /// Sets the import rule.
    #[must_use]
    pub fn import(mut self, rule: ImportRule) -> Conversion {
        self.import = Some(rule);
        self
    }

    /// Sets the export rule.
    #[must_use]
    pub fn export(mut self, rule: ExportRule) -> Conversion {
        self.export = Some(rule);
        self
    }

    /// Sets the attributes that the import rule understands.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn attributes(mut self, attributes: &'static [(&'static str, AttributeType)]) -> Conversion {
        self.attributes = attributes;
        self
    }

    /// Sets the attributes that are preserved in the metadata.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn carried(mut self, carried: &'static [&'static str]) -> Conversion {
        self.carried = carried;
        self
    }

    /// Lets the row take operands of small numbers too.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn number_operands(mut self) -> Conversion {
        self.operands = Operands::Numbers;
        self
    }

    /// Lets the row take operands of any type.
    #[must_use]
    pub fn any_operands(mut self) -> Conversion {
        self.operands = Operands::Any;
        self
    }
}

/// The name in the table for our `if`, which is not an operator.
pub(crate) const BRANCHES: &str = "if";

/// The versions of the standard operators that the rows of this crate cover by default. Most rows
/// hold for version 6, too ([`version_6`]).
pub(crate) const OPSETS: RangeInclusive<i64> = 7..=NEWEST;
pub(crate) const NEWEST: i64 = 28;
