//! The names of operators that are kept as they are, and which of them are pure.
//!
//! `Op` of the standard domain is `onnx.Op`, that of another domain `onnx.<domain>.Op`. In an operator's own name, `%`, `.` and `!`
//! are written `%25`, `%2E` and `%21`, so that the last dot separates domain and operator. A `!` at the end marks a call whose
//! subgraphs do something that can be observed.

use std::sync::{Arc, OnceLock};

use anfora_ir::{OpPurity, OpRegistry, RegisterError};

/// The namespace of the operators that are kept as they are.
pub(crate) const NAMESPACE: &str = "onnx";

/// Tells a registry about the operators that an imported module may contain besides the standard ones: those named `onnx.…`. Needed to
/// read the text of such a module again.
///
/// # Errors
/// If the registry has an operator named so.
pub fn register(registry: &mut OpRegistry) -> Result<(), RegisterError> {
    registry.declare_opaque_with(NAMESPACE, purity)
}

/// The standard operators and those that an imported module may contain besides them, made once.
pub fn registry() -> Arc<OpRegistry> {
    static REGISTRY: OnceLock<Arc<OpRegistry>> = OnceLock::new();
    let registry = REGISTRY.get_or_init(|| {
        let mut registry = OpRegistry::clone(&anfora_ops::standard());
        register(&mut registry).expect("no standard operator is in that namespace");
        Arc::new(registry)
    });
    Arc::clone(registry)
}

/// Whether an operator of ours gives the elements of its first operand as they are, under another shape.
pub(crate) fn is_view(name: &str) -> bool {
    matches!(name, "reshape" | "expand_dims" | "squeeze" | "nn.flatten")
}

/// Whether the domain is the standard one, which has two names.
pub(crate) fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

/// The name of an operator that is kept as it is.
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

/// Domain and operator behind a name; `None` if the name is not of the namespace.
pub(crate) fn decode(name: &str) -> Option<(&str, String)> {
    let rest = name.strip_prefix(NAMESPACE)?.strip_prefix('.')?;
    let rest = rest.strip_suffix('!').unwrap_or(rest);
    let (domain, op) = rest.rsplit_once('.').unwrap_or(("", rest));
    Some((domain, op.replace("%2E", ".").replace("%21", "!").replace("%25", "%")))
}

/// Whether an operator that is kept as it is is pure, by its name.
///
/// Operators of the standard domains are, but for those that draw random numbers (`Dropout` among them, which is kept only where it may
/// be training). Nothing is known of other domains, so theirs are not.
pub(crate) fn purity(name: &str) -> OpPurity {
    let Some((domain, op)) = decode(name) else { return OpPurity::Impure };
    let known = is_standard(domain) || domain == "ai.onnx.ml";
    let random = matches!(op.as_str(), "Multinomial" | "Bernoulli" | "Dropout") || op.contains("Random");
    if known && !random && !name.ends_with('!') { OpPurity::Pure } else { OpPurity::Impure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (domain, op) in [("", "Relu"), ("com.microsoft", "Gelu"), ("a", "b.c"), ("", "x!"), ("d", "%2E"), ("d", "")]
        {
            for subgraphs in [OpPurity::Pure, OpPurity::Impure] {
                let name = encode(domain, op, subgraphs);
                assert_eq!(decode(&name), Some((domain, op.to_string())), "{name}");
            }
        }
    }

    #[test]
    fn randomness_and_unknown_domains_are_impure() {
        for (domain, op, expected) in [
            ("", "Relu", OpPurity::Pure),
            ("ai.onnx", "Relu", OpPurity::Pure),
            ("ai.onnx.ml", "Scaler", OpPurity::Pure),
            ("", "RandomNormalLike", OpPurity::Impure),
            ("", "Bernoulli", OpPurity::Impure),
            ("com.example", "Relu", OpPurity::Impure),
        ] {
            assert_eq!(purity(&encode(domain, op, OpPurity::Pure)), expected, "{domain}.{op}");
        }
        assert_eq!(purity("onnx.If!"), OpPurity::Impure);
    }
}
