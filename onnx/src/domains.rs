//! The domains of operators, each of which has versions of its own.

use rustc_hash::FxHashMap;

/// Returns true if the domain is the standard domain, which has two names.
pub(crate) fn is_standard(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

/// Returns the version of a domain's operators among the versions that a model states; 1 if the
/// model does not state it.
pub(crate) fn version_of(versions: &FxHashMap<String, i64>, domain: &str) -> i64 {
    let domain = if is_standard(domain) { "" } else { domain };
    versions.get(domain).copied().unwrap_or(1)
}
