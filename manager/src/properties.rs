//! Properties of modules, which passes declare by name.

use std::sync::Arc;

use anfora_ir::{Diagnostics, IntoDiagnostics, Invariant, Module, STANDARD_PHASES, StandardPhase};

use crate::names::UnknownName;
use crate::phases::PhaseEntry;

type Check = dyn Fn(&Module) -> Result<(), Diagnostics> + Send + Sync;

/// A condition that holds for a module or does not, such as `anf`. Passes name the properties that
/// they need, establish and break ([`Declare::needing`](crate::Declare::needing)); phases name
/// those that hold from them on.
///
/// ```
/// use anfora_ir::Diagnostic;
/// use anfora_manager::{PassRegistry, Property};
///
/// let mut registry = PassRegistry::new();
/// let property = Property::new("one-function", "there is one function at most");
/// registry.register_property(property.checked_by(|module| match module.order().len() {
///     0 | 1 => Ok(()),
///     _ => Err(vec![Diagnostic::error("there is more than one function")]),
/// }))?;
/// assert!(registry.property("one-function")?.is_checkable());
/// let error = registry.property("one-funktion").unwrap_err();
/// assert_eq!(error.suggestion.as_deref(), Some("one-function"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Property {
    name: String,
    doc: String,
    excludes: Vec<String>,
    check: Option<Arc<Check>>,
    is_observed: bool,
    /// The invariant of the verifier that the property stands for.
    pub(crate) invariant: Option<Invariant>,
}

impl Property {
    /// Makes a property that cannot be checked: the declarations of passes are trusted.
    ///
    /// Cost: linear in the text.
    pub fn new(name: impl Into<String>, doc: impl Into<String>) -> Property {
        Property {
            name: name.into(),
            doc: doc.into(),
            excludes: Vec::new(),
            check: None,
            is_observed: false,
            invariant: None,
        }
    }

    /// Adds properties that exclude this one: establishing one of the two breaks the other. It is
    /// enough to declare this for one of the two.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn excluding<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Property {
        self.excludes.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the check for well-formed modules. It returns an error for each place where the
    /// property does not hold, with function and binding, in program order.
    #[must_use]
    pub fn checked_by<E: IntoDiagnostics>(
        mut self,
        check: impl Fn(&Module) -> Result<(), E> + Send + Sync + 'static,
    ) -> Property {
        self.check = Some(Arc::new(move |module| check(module).map_err(E::into_diagnostics)));
        self
    }

    /// Sets the check, as [`Property::checked_by`] does, and makes the manager rely on the check
    /// instead of on declarations: passes need not declare that they break the property. If a pass
    /// has changed a module whose claimed phase promises the property, and does not establish it,
    /// the property is checked. It is also checked before a pass that needs it.
    ///
    /// This is for properties that almost every change breaks, such as that a record about a
    /// function is up to date. The check runs before the verifier, which needs the claim that is
    /// left, so it may be given an ill-formed module. If it panics then, the pass fails.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn observed_by<E: IntoDiagnostics>(
        self,
        check: impl Fn(&Module) -> Result<(), E> + Send + Sync + 'static,
    ) -> Property {
        Property { is_observed: true, ..self.checked_by(check) }
    }

    /// Makes the property of an invariant of the verifier.
    fn of(invariant: Invariant) -> Property {
        let check = move |module: &Module| {
            Diagnostics::in_source(invariant.violations(module), module.source().cloned()).into_result()
        };
        Property { invariant: Some(invariant), ..Property::new(invariant.name(), invariant.doc()).checked_by(check) }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a line of documentation.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// Returns the properties that this one declares to exclude.
    pub fn excludes(&self) -> &[String] {
        &self.excludes
    }

    /// Returns true if [`Property::check`] can check the property.
    pub fn is_checkable(&self) -> bool {
        self.check.is_some()
    }

    /// Returns true if passes need not declare that they break the property: see
    /// [`Property::observed_by`].
    pub fn is_observed(&self) -> bool {
        self.is_observed
    }

    /// Returns true if the manager observes the property, and it does not hold for a module.
    pub(crate) fn is_lost(&self, module: &Module) -> bool {
        self.is_observed && self.check(module).is_err()
    }

    /// Checks that the property holds for a module. A property that cannot be checked is assumed to
    /// hold.
    ///
    /// # Errors
    /// If the property does not hold: with places, and help.
    pub fn check(&self, module: &Module) -> Result<(), Diagnostics> {
        self.check.as_ref().map_or(Ok(()), |check| check(module))
    }
}

/// The properties and phases of a registry, including the standard ones.
#[derive(Clone)]
pub(crate) struct Properties {
    pub(crate) list: Vec<Property>,
    /// The phases, earliest first.
    pub(crate) phases: Vec<PhaseEntry>,
}

impl Default for Properties {
    /// Returns the standard properties and phases.
    fn default() -> Properties {
        let mut list: Vec<Property> = Invariant::ALL.iter().map(|&i| Property::of(i)).collect();
        list.push(
            Property::new("dataflow", "pure bindings have been grouped into dataflow regions")
                .excluding([Invariant::NoDataflowRegions.name()]),
        );
        let entry = |p: &StandardPhase| PhaseEntry::new(p.phase, p.doc).holding(p.invariants.iter().map(|i| i.name()));
        Properties { list, phases: STANDARD_PHASES.iter().map(entry).collect() }
    }
}

impl Properties {
    pub(crate) fn find(&self, name: &str) -> Result<&Property, UnknownName> {
        self.list
            .iter()
            .find(|p| p.name == name)
            .ok_or_else(|| UnknownName::new("property", name, self.list.iter().map(Property::name)))
    }

    /// Returns true if one of two properties declares to exclude the other.
    pub(crate) fn exclude(&self, one: &str, other: &str) -> bool {
        let says = |a: &str, b: &str| self.list.iter().any(|p| p.name == a && p.excludes.iter().any(|e| e == b));
        says(one, other) || says(other, one)
    }

    /// Returns the properties that exclude a property or are excluded by it.
    pub(crate) fn excluded_by<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.list.iter().map(Property::name).filter(move |other| self.exclude(name, other))
    }
}

anfora_ir::brief_debug! { Property { name, excludes, is_checkable, is_observed }; }
