//! Passes written in Python, by name: those that other passes may require.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use anfora::manager::{self, PassRegistry};

use crate::author::AuthorPass;

/// The passes by name. A later pass takes the place of an earlier one of the same name.
static PASSES: Mutex<BTreeMap<String, AuthorPass>> = Mutex::new(BTreeMap::new());

/// Makes a pass known by its name, as long as its object exists.
pub(crate) fn note(pass: &AuthorPass) {
    let name = manager::Pass::info(pass).name.clone();
    crate::registry::note_authored(&name);
    PASSES.lock().unwrap_or_else(PoisonError::into_inner).insert(name, pass.clone());
}

/// Returns the registry of a new context: the registered passes, and those written in Python that
/// exist. A registered pass has precedence over one of Python with its name.
pub(crate) fn registry() -> Arc<PassRegistry> {
    let mut passes = PASSES.lock().unwrap_or_else(PoisonError::into_inner);
    passes.retain(|_, pass| pass.is_alive());
    let registry = crate::registry::registry();
    if passes.is_empty() {
        return registry;
    }
    let mut registry = (*registry).clone();
    for pass in passes.values() {
        // A name that is taken, or that no pipeline could contain, cannot be required.
        let _ = registry.register_pass(pass.clone(), "written in Python");
    }
    Arc::new(registry)
}

/// Returns true if a pass, or one that it runs or requires, requires a pass of Python that a
/// registry does not have.
pub(crate) fn lacks(registry: &PassRegistry, pass: &Arc<dyn manager::Pass>) -> bool {
    let (mut open, mut seen) = (vec![pass.clone()], HashSet::new());
    while let Some(pass) = open.pop() {
        open.extend(pass.passes().iter().cloned());
        for name in &pass.info().required {
            if !seen.insert(name.clone()) {
                continue;
            }
            let passes = PASSES.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(found) = passes.get(name).filter(|pass| pass.is_alive()) else { continue };
            if !registry.contains(name) {
                return true;
            }
            open.push(Arc::new(found.clone()));
        }
    }
    false
}
