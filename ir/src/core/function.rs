//! A function: a body with its name, visibility, result type and attributes.

use crate::core::body::{Body, BodyRoom};
use crate::core::entity::{AttrsId, GlobalId, TypeId};
use crate::tables::types::Types;

/// A function of a module, or a closed function that is the value of an attribute.
#[derive(Clone, Debug)]
pub struct Function {
    /// The global that names the function; `None` for the value of an attribute.
    pub(crate) global: Option<GlobalId>,
    /// Public if the name is visible outside of the module. [`Function::is_external`] tells whether
    /// the function may be removed.
    pub visibility: Visibility,
    /// The annotated result type, if there is one.
    pub ret: Option<TypeId>,
    /// Attributes of the signature, such as `Primitive=1`.
    pub attrs: AttrsId,
    /// The metadata that tools attach to the function.
    pub meta: AttrsId,
    /// Parameters and expressions. A declaration has parameters only.
    pub body: Body,
    /// The kind: a definition with a body, or a declaration.
    pub kind: FunctionKind,
    /// The byte offset of the definition in the source.
    pub span: Option<u32>,
}

/// The callers that a function may have.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Visibility {
    /// Any caller: the function is a root of the module and keeps its name and signature.
    Public,
    /// Only callers in this module, by name: the function may be renamed. It may also be removed
    /// and specialised, unless it is external nevertheless ([`Function::is_external`]).
    Private,
}

/// The kind of a function: a definition with a body, or a declaration.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// `def`
    Definition,
    /// `declare`: external.
    Declaration,
}

impl Function {
    /// Returns a public function without parameters that returns `()`. `attrs` is the list for its
    /// attributes and metadata, usually the empty one.
    ///
    /// Cost: one entry.
    pub fn new(types: &Types, attrs: AttrsId) -> Function {
        Function::with_room(types, attrs, BodyRoom::default())
    }

    /// Returns a function as [`Function::new`] does, whose body has the given room for appending.
    ///
    /// Cost: one entry.
    pub fn with_room(types: &Types, attrs: AttrsId, room: BodyRoom) -> Function {
        Function {
            global: None,
            visibility: Visibility::Public,
            ret: None,
            attrs,
            meta: attrs,
            body: Body::with_room(types, room),
            kind: FunctionKind::Definition,
            span: None,
        }
    }

    /// Returns a function with this body, which is a part of the body of this function. Everything
    /// else is as in this function.
    pub(crate) fn part(&self, body: Body) -> Function {
        Function { body, ..*self }
    }

    /// Returns the global that names the function; `None` for the value of an attribute.
    ///
    /// Cost: one entry.
    pub fn global(&self) -> Option<GlobalId> {
        self.global
    }

    /// Returns the result type: the annotated one, or the type of the block.
    pub(crate) fn result_type(&self) -> TypeId {
        self.ret.unwrap_or_else(|| self.body.type_of(self.body.root()))
    }

    /// Returns the result type, if it is known: that of a declaration is known only if annotated.
    pub(crate) fn known_result_type(&self) -> Option<TypeId> {
        if self.is_definition() { Some(self.result_type()) } else { self.ret }
    }

    /// Returns true if the function has a body.
    ///
    /// Cost: one entry.
    pub fn is_definition(&self) -> bool {
        self.kind == FunctionKind::Definition
    }
}
