//! The meaning of a function's attributes.

use crate::core::attr_names::{GLOBAL_SYMBOL, PURE};
use crate::core::context::Context;
use crate::core::entity::NameId;
use crate::core::function::{Function, Visibility};
use crate::tables::attrs::Attr;

impl Function {
    /// Returns true if the function can be called from outside of the module: if it is public, or
    /// if it has a symbol for a linker, the attribute [`GLOBAL_SYMBOL`], even if its name is
    /// private.
    ///
    /// This is the linkage that passes respect. An external function is a root of its module: it
    /// keeps its signature, and no pass removes it because the module itself does not call it. A
    /// private function with a symbol may still be renamed, since other modules know it by its
    /// symbol.
    ///
    /// Cost: one entry.
    pub fn is_external(&self, cx: &Context) -> bool {
        self.visibility == Visibility::Public
            || self.attrs != cx.attrs.empty() && cx.find_attr(self.attrs, GLOBAL_SYMBOL).is_some()
    }

    /// Returns true if the function is primitive: see [`Context::is_primitive`].
    ///
    /// Cost: one entry.
    #[inline]
    pub fn is_primitive(&self, cx: &Context) -> bool {
        cx.is_primitive(self.attrs)
    }

    /// Returns true if the function has the attribute `Pure=1`. This is the promise of a
    /// declaration; the purity of other functions follows from their bodies.
    ///
    /// Cost: one entry.
    pub fn states_pure(&self, cx: &Context) -> bool {
        cx.find_attr(self.attrs, PURE).is_some_and(|v| matches!(cx.attrs.get(v), Attr::Int(1) | Attr::Bool(true)))
    }

    /// Returns the symbol that the function has for a linker: the attribute [`GLOBAL_SYMBOL`], if
    /// it is a string.
    ///
    /// Cost: one entry.
    pub fn global_symbol(&self, cx: &Context) -> Option<NameId> {
        match *cx.attrs.get(cx.find_attr(self.attrs, GLOBAL_SYMBOL)?) {
            Attr::Str(symbol) => Some(symbol),
            _ => None,
        }
    }
}
