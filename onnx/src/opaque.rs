//! The names of operators that are kept unchanged, and their purity.
//!
//! `Op` of the standard domain is named `onnx.Op`; `Op` of another domain is named
//! `onnx.<domain>.Op`. In the operator's own name, `%`, `.` and `!` are written `%25`, `%2E` and
//! `%21`, so that the last dot separates domain and operator. A trailing `!` marks a call whose
//! subgraphs have observable effects.

use std::sync::{Arc, OnceLock};

use anfora_ir::{OpPurity, OpRegistry, RegisterError};

use crate::signatures::purity_of;

/// The namespace of the operators that are kept unchanged.
pub(crate) const NAMESPACE: &str = "onnx";

/// Declares the operators `onnx.…` in a registry. An imported module may contain them besides the
/// standard operators, so the registry needs them to parse the text of such a module.
///
/// # Errors
/// If the registry already has an operator in this namespace.
pub fn register(registry: &mut OpRegistry) -> Result<(), RegisterError> {
    registry.declare_opaque_with(NAMESPACE, purity)
}

/// Returns a shared registry of the standard operators and of those that an imported module may
/// contain besides.
pub fn registry() -> Arc<OpRegistry> {
    static REGISTRY: OnceLock<Arc<OpRegistry>> = OnceLock::new();
    let registry = REGISTRY.get_or_init(|| {
        let mut registry = OpRegistry::clone(&anfora_ops::standard());
        register(&mut registry).expect("no standard operator is in that namespace");
        Arc::new(registry)
    });
    Arc::clone(registry)
}

/// Returns true if one of our operators returns the elements of its first operand unchanged in
/// another shape.
pub(crate) fn is_view(name: &str) -> bool {
    matches!(name, "reshape" | "expand_dims" | "squeeze" | "nn.flatten")
}

/// Returns the name of an operator that is kept unchanged.
pub(crate) fn encode(domain: &str, op_type: &str, subgraphs: OpPurity) -> String {
    let mut name = String::from(NAMESPACE);
    name.push('.');
    if !domain.is_empty() {
        name.push_str(domain);
        name.push('.');
    }
    for c in op_type.chars() {
        match c {
            '%' => name.push_str("%25"),
            '.' => name.push_str("%2E"),
            '!' => name.push_str("%21"),
            c => name.push(c),
        }
    }
    if subgraphs == OpPurity::Impure {
        name.push('!');
    }
    name
}

/// Returns the domain and the operator of a name; `None` if the name is not in the namespace.
pub(crate) fn decode(name: &str) -> Option<(&str, String)> {
    let rest = name.strip_prefix(NAMESPACE)?.strip_prefix('.')?;
    let rest = rest.strip_suffix('!').unwrap_or(rest);
    let (domain, op) = rest.rsplit_once('.').unwrap_or(("", rest));
    Some((domain, op.replace("%2E", ".").replace("%21", "!").replace("%25", "%")))
}

/// Returns the purity of an operator that is kept unchanged, by its name.
///
/// Operators with a row in the table of result types are pure if the row says so. `Dropout` is not,
/// since it is only kept where it may be training. Other operators are impure, since nothing is
/// known about them.
pub(crate) fn purity(name: &str) -> OpPurity {
    match decode(name) {
        Some((domain, op)) if !name.ends_with('!') => purity_of(domain, &op).unwrap_or(OpPurity::Impure),
        _ => OpPurity::Impure,
    }
}
