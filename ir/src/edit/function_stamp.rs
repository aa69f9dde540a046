//! Stamps of functions and modules.

use crate::core::entity::{AttrsId, FunctionKey};
use crate::core::function::Function;
use crate::core::module::{FunctionHead, Module};
use crate::edit::stamp::Stamp;

/// A state of a function: its body, and its head (name, visibility, stated result, attributes,
/// metadata, kind).
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionStamp {
    head: FunctionHead,
    body: Stamp,
}

impl FunctionStamp {
    /// Returns the stamp of the body.
    pub fn body(&self) -> Stamp {
        self.body
    }

    /// Returns true if the heads of both functions are equal.
    pub fn has_head_of(&self, other: &FunctionStamp) -> bool {
        self.head == other.head
    }
}

/// A state of a module: its functions in their order, its attributes, and its globals with their
/// signatures. Entries of its tables that nothing names are not part of it.
#[derive(Clone, PartialEq, Debug)]
pub struct ModuleStamp {
    functions: Vec<(FunctionKey, FunctionStamp)>,
    attrs: AttrsId,
    globals: Stamp,
}

impl ModuleStamp {
    /// Returns the functions and their stamps, in program order.
    pub fn functions(&self) -> &[(FunctionKey, FunctionStamp)] {
        &self.functions
    }

    /// Returns the stamp of the globals.
    pub fn globals(&self) -> Stamp {
        self.globals
    }

    /// Returns true if the module is in this state. Linear in the number of functions.
    ///
    /// Cost: one loop.
    pub fn is_of(&self, module: &Module) -> bool {
        self.globals == module.cx.globals.stamp()
            && self.attrs == module.attrs()
            && self.functions.len() == module.order().len()
            && self.functions.iter().zip(module.functions()).all(|((k, s), (key, f))| *k == key && *s == f.stamp())
    }
}

impl Function {
    /// Returns the stamp of the function's current state.
    ///
    /// Cost: one loop.
    pub fn stamp(&self) -> FunctionStamp {
        FunctionStamp { head: FunctionHead::of(self), body: self.body.stamp() }
    }
}

impl Module {
    /// Returns the stamp of the module's current state. Linear in the number of functions.
    ///
    /// Cost: one loop.
    pub fn stamp(&self) -> ModuleStamp {
        ModuleStamp {
            functions: self.functions().map(|(key, f)| (key, f.stamp())).collect(),
            attrs: self.attrs(),
            globals: self.cx.globals.stamp(),
        }
    }
}
