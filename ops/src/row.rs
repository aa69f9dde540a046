//! Rows as they are written down: what most operators have in common is filled in.

use std::borrow::Cow;

use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, FusionPattern, Kernel, OpDef, OpPurity, TypeRule};

/// A pure operator without attributes that is not fused and cannot fail.
pub(crate) fn row(name: &'static str, doc: &'static str, arity: Arity, infer: TypeRule, kernel: Kernel) -> OpDef {
    OpDef {
        name: Cow::Borrowed(name),
        doc: Cow::Borrowed(doc),
        arity,
        attrs: Cow::Borrowed(&[]),
        infer,
        purity: OpPurity::Pure,
        fusion: FusionPattern::Opaque,
        kernel: Some(kernel),
        commutative: false,
        may_fail: false,
        forwards: &[],
        shape_operand: None,
    }
}

/// What else a row may say.
pub(crate) trait With {
    fn attrs(self, attrs: &'static [AttrDef]) -> Self;
    fn fusion(self, pattern: FusionPattern) -> Self;
    fn commutative(self) -> Self;
    fn may_fail(self) -> Self;
    fn impure(self) -> Self;
    fn without_kernel(self) -> Self;
    fn forwards(self, pairs: &'static [(u32, u32)]) -> Self;
    fn shape_operand(self, operand: u32) -> Self;
}

impl With for OpDef {
    fn attrs(self, attrs: &'static [AttrDef]) -> OpDef {
        OpDef { attrs: Cow::Borrowed(attrs), ..self }
    }
    fn fusion(self, fusion: FusionPattern) -> OpDef {
        OpDef { fusion, ..self }
    }
    fn commutative(self) -> OpDef {
        OpDef { commutative: true, ..self }
    }
    fn may_fail(self) -> OpDef {
        OpDef { may_fail: true, ..self }
    }
    fn impure(self) -> OpDef {
        OpDef { purity: OpPurity::Impure, may_fail: true, ..self }
    }
    fn without_kernel(self) -> OpDef {
        OpDef { kernel: None, ..self }
    }
    fn forwards(self, forwards: &'static [(u32, u32)]) -> OpDef {
        OpDef { forwards, ..self }
    }
    fn shape_operand(self, operand: u32) -> OpDef {
        OpDef { shape_operand: Some(operand), ..self }
    }
}

/// An attribute.
pub(crate) const fn attr(name: &'static str, kind: AttrKind, default: AttrDefault, doc: &'static str) -> AttrDef {
    AttrDef { name, kind, default, doc }
}
