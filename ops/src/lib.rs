//! The standard operators of anfora, with a row for each operator.
//!
//! A row ([`OpDef`]) has all that passes need to know of an operator: arity, attributes with types
//! and defaults, type rule, purity, fusion pattern and kernel. Each family of rows has a file;
//! `OPS.md`, beside the sources, lists the rows. The row contains the computation on an element.
//! The iteration over elements is one of five kinds of loops that the kernels share.
//!
//! # Custom operators
//! An embedder's operator is a row too. One call ([`OpRegistry::register`]) adds it to a registry,
//! with or without the standard operators ([`register`]). [`typing`] has functions for type rules,
//! and [`loops`] has loops for kernels.
//!
//! # Numbers
//! Results have the same bits on every machine. Integers wrap around. float16 and bfloat16 are
//! computed in float32 and rounded once per operator. Sums add in ascending index order, and
//! operations are not fused. A NaN that an operator computes is the canonical NaN, while operators
//! that only move elements keep their bits. A splat stays a splat wherever all elements of the
//! result are equal by construction, and is never expanded on the way.
//!
//! # Example
//! ```
//! use anfora_ir::{Context, KernelCall, Literal, AttrReader, infer_op};
//!
//! let mut cx = Context::new(anfora_ops::standard());
//! let op = cx.ops.find("add").unwrap();
//! let (a, b) = (Literal::scalar(40i32), Literal::scalar(2i32));
//! let operands = [cx.constant_operand(Some(&a)), cx.constant_operand(Some(&b))];
//! let (attrs, annotated) = (cx.attrs.empty(), cx.types.any());
//! let ty = infer_op(&mut cx, op, &operands, attrs, annotated).unwrap();
//! let attrs = AttrReader { cx: &cx, op, attrs };
//! let call = KernelCall { operands: &[Some(&a), Some(&b)], attrs, ty };
//! let kernel = cx.ops.get(op).kernel.unwrap();
//! assert_eq!(kernel(&call).unwrap(), [Literal::scalar(42i32)]);
//! ```

use std::sync::{Arc, OnceLock};

use anfora_ir::{OpDef, OpRegistry, RegisterError};

mod adjoints;
mod attention;
mod axis_letters;
mod control;
mod creation;
mod decompositions;
mod dynamic_slice;
mod effects;
mod einsum;
mod elements;
mod elementwise;
mod search;
mod gather;
mod image;
mod kernels;
mod layout;
pub mod loops;
mod loss;
mod matrix;
mod normalisation;
mod order;
mod pad;
mod pooling;
mod precision;
mod quantization;
mod recurrent;
mod reduction;
mod relayouts;
mod reshape;
mod row;
mod sampling;
mod scan;
mod scatter;
mod shape;
mod softmax;
mod steps;
pub mod typing;
mod window;

pub use effects::{draw_normal, draw_uniform};
pub use kernels::Failure;
pub use kernels::random::RandomStream;

/// Returns the standard rows.
fn rows() -> impl Iterator<Item = OpDef> {
    [
        elementwise::rows().into_iter().map(|row| row.relayout(relayouts::elements)).collect(),
        reduction::rows(),
        scan::rows(),
        order::rows(),
        shape::rows(),
        dynamic_slice::rows(),
        gather::rows(),
        scatter::rows(),
        pad::rows(),
        search::rows(),
        layout::rows(),
        creation::rows(),
        matrix::rows(),
        attention::rows(),
        recurrent::rows(),
        einsum::rows(),
        window::rows(),
        pooling::rows(),
        quantization::rows(),
        image::rows(),
        sampling::rows(),
        normalisation::rows(),
        softmax::rows(),
        loss::rows(),
        control::rows(),
        effects::rows(),
    ]
    .into_iter()
    .flatten()
    .map(|row| match decompositions::rule_of(&row.name) {
        Some(rule) => row.decomposition(rule),
        None => row,
    })
    .map(|row| {
        let policy = precision::policy_of(&row.name);
        row.precision(policy)
    })
    .map(|row| match adjoints::rule_of(&row.name) {
        Some(rule) => row.adjoint(rule),
        None => row,
    })
    .map(|row| match relayouts::rule_of(&row.name) {
        Some(rule) => row.relayout(rule),
        None => row,
    })
}

/// Adds the standard operators to a registry, which may contain others.
///
/// # Errors
/// If one of the names is taken. The rows before it have been added then.
pub fn register(registry: &mut OpRegistry) -> Result<(), RegisterError> {
    rows().try_for_each(|row| registry.register(row).map(|_| ()))
}

/// Returns the registry of the standard operators. It is created once.
pub fn standard() -> Arc<OpRegistry> {
    static STANDARD: OnceLock<Arc<OpRegistry>> = OnceLock::new();
    let registry = STANDARD.get_or_init(|| {
        let mut registry = OpRegistry::new();
        register(&mut registry).expect("the standard names differ");
        Arc::new(registry)
    });
    Arc::clone(registry)
}
