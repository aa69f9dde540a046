//! The registry of contexts that were given none.

use std::sync::{Arc, OnceLock};

use crate::registry::PassRegistry;

static DEFAULT: OnceLock<Arc<PassRegistry>> = OnceLock::new();

/// The error that the process has another default registry already.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the process has another default registry already")]
pub struct DefaultRegistryError;

/// Sets the registry of the contexts that were given none: the contexts that
/// [`PassContext::new`](crate::PassContext::new) makes, those built without
/// [`registry`](crate::PassContextBuilder::registry), and the first context of each thread. A
/// process should call this once, best at its beginning: until then such contexts know no names.
/// The call also reaches contexts that were made before it; their settings have their defaults.
///
/// `anfora_passes::install_default_registry` sets the registry of the reference passes.
///
/// # Errors
/// If another registry was set before.
///
/// ```
/// use std::sync::Arc;
/// use anfora_ir::{Module, OpRegistry};
/// use anfora_manager::{ModulePass, Pass, PassContext, PassRegistry, set_default_registry};
///
/// let mut registry = PassRegistry::new();
/// registry.register_pass(ModulePass::new("Prepare", 0, |_, _| Ok(())), "comes first")?;
/// let registry = Arc::new(registry);
/// let cx = PassContext::current();
/// set_default_registry(registry.clone())?;
/// let pass = ModulePass::new("Mine", 0, |_, _| Ok(())).requiring(["Prepare"]);
/// pass.apply(&mut Module::new(Arc::new(OpRegistry::new())), &cx)?;
/// assert!(PassContext::builder().disable("Prepair").build().is_err());
///
/// assert!(set_default_registry(registry).is_ok());
/// assert!(set_default_registry(Arc::new(PassRegistry::new())).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_default_registry(registry: Arc<PassRegistry>) -> Result<(), DefaultRegistryError> {
    let set = DEFAULT.get_or_init(|| registry.clone());
    if Arc::ptr_eq(set, &registry) { Ok(()) } else { Err(DefaultRegistryError) }
}

/// Returns the default registry, or an empty one if none was set.
pub(crate) fn default_registry() -> &'static Arc<PassRegistry> {
    static EMPTY: OnceLock<Arc<PassRegistry>> = OnceLock::new();
    DEFAULT.get().unwrap_or_else(|| EMPTY.get_or_init(Arc::default))
}
