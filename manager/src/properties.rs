//! What passes say of the modules that they take and leave: properties by name.

use std::fmt;
use std::sync::Arc;

use anfora_ir::{Diagnostics, IntoDiagnostics, Invariant, Module};

use crate::names::UnknownName;
use crate::phases::PhaseEntry;

type Check = dyn Fn(&Module) -> Result<(), Diagnostics> + Send + Sync;

/// Something that holds of a module or does not, such as `anf`. Passes name the properties that they need, establish and break
/// ([`PassInfo::needing`](crate::PassInfo::needing)); phases, those that hold from them on.
///
/// ```
/// use anfora_ir::Diagnostic;
/// use anfora_manager::{PassRegistry, Property};
///
/// let mut registry = PassRegistry::new();
/// registry.register_property(Property::new("one-function", "there is one function at most").checked_by(|module| {
///     if module.order().len() <= 1 { Ok(()) } else { Err(vec![Diagnostic::error("there is more than one function")]) }
/// }))?;
/// assert!(registry.property("one-function")?.is_checkable());
/// assert_eq!(registry.property("one-funktion").unwrap_err().suggestion.as_deref(), Some("one-function"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Property {
    name: String,
    doc: String,
    excludes: Vec<String>,
    check: Option<Arc<Check>>,
    invariant: Option<Invariant>,
}

impl Property {
    /// A property that cannot be checked: passes are taken at their word.
    ///
    /// Cost: linear in the text.
    pub fn new(name: impl Into<String>, doc: impl Into<String>) -> Property {
        Property { name: name.into(), doc: doc.into(), excludes: Vec::new(), check: None, invariant: None }
    }

    /// With others that do not hold of a module that was made to have this one, nor this one of a module that was made to have them. It is enough that
    /// one of two says so.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn excluding<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Property {
        self.excludes.extend(names.into_iter().map(Into::into));
        self
    }

    /// With how to see whether it holds of a well-formed module: an error for each place where it does not, with function and binding, in program order.
    #[must_use]
    pub fn checked_by<E: IntoDiagnostics>(
        mut self,
        check: impl Fn(&Module) -> Result<(), E> + Send + Sync + 'static,
    ) -> Property {
        self.check = Some(Arc::new(move |module| check(module).map_err(E::into_diagnostics)));
        self
    }

    /// A property that the verifier knows too.
    fn of(invariant: Invariant) -> Property {
        let check = move |module: &Module| {
            Diagnostics::in_source(invariant.violations(module), module.source().cloned()).into_result()
        };
        Property { invariant: Some(invariant), ..Property::new(invariant.name(), invariant.doc()).checked_by(check) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What holds, in a line.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// The properties that it says it excludes.
    pub fn excludes(&self) -> &[String] {
        &self.excludes
    }

    /// Whether [`Property::check`] can tell.
    pub fn is_checkable(&self) -> bool {
        self.check.is_some()
    }

    /// Looks whether it holds of a module. One that cannot be checked is taken to hold.
    ///
    /// # Errors
    /// If it does not: where, and what to do about it.
    pub fn check(&self, module: &Module) -> Result<(), Diagnostics> {
        self.check.as_ref().map_or(Ok(()), |check| check(module))
    }

    /// The invariant of the verifier that it is.
    pub(crate) fn invariant(&self) -> Option<Invariant> {
        self.invariant
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Property")
            .field("name", &self.name)
            .field("excludes", &self.excludes)
            .field("checkable", &self.is_checkable())
            .finish_non_exhaustive()
    }
}

/// The properties and phases of a registry. The standard ones are always there.
#[derive(Clone)]
pub(crate) struct Properties {
    pub(crate) list: Vec<Property>,
    /// Earliest first.
    pub(crate) phases: Vec<PhaseEntry>,
}

impl Properties {
    pub(crate) fn standard() -> Properties {
        let mut list: Vec<Property> = Invariant::ALL.iter().map(|&i| Property::of(i)).collect();
        list.push(
            Property::new("dataflow", "pure bindings that were grouped stand in dataflow regions")
                .excluding([Invariant::NoDataflowRegions.name()]),
        );
        Properties { list, phases: PhaseEntry::standard() }
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Property, UnknownName> {
        self.list
            .iter()
            .find(|p| p.name == name)
            .ok_or_else(|| UnknownName::new("property", name, self.list.iter().map(Property::name)))
    }

    /// Whether one of two properties says that it excludes the other.
    pub(crate) fn exclude(&self, one: &str, other: &str) -> bool {
        let says = |a: &str, b: &str| self.list.iter().any(|p| p.name == a && p.excludes.iter().any(|e| e == b));
        says(one, other) || says(other, one)
    }

    /// The properties that one excludes, or that exclude it.
    pub(crate) fn excluded_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.list.iter().map(Property::name).filter(move |other| self.exclude(name, other))
    }
}
