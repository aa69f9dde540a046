//! A function: a body with what is known about it from outside.

use crate::body::{Body, BodyRoom};
use crate::entity::{AttrsId, GlobalId, TypeId};
use crate::types::Types;

/// A function of a module, or a closed one that is the value of an attribute.
#[derive(Clone, Debug)]
pub struct Function {
    /// The global that names it; `None` for the value of an attribute.
    pub(crate) global: Option<GlobalId>,
    /// Whether it may be removed, renamed and specialised.
    pub visibility: Visibility,
    /// The result type, where it is annotated.
    pub ret: Option<TypeId>,
    /// Attributes of the signature, such as `Primitive=1`.
    pub attrs: AttrsId,
    /// What tools carry along.
    pub meta: AttrsId,
    /// Parameters and expressions. A declaration has parameters only.
    pub body: Body,
    /// Whether there is a body, or only a declaration.
    pub kind: FunctionKind,
    /// Byte offset of the definition in the source.
    pub span: Option<u32>,
}

/// Who may call a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Visibility {
    /// Anyone: it is a root of the module and keeps its name and signature.
    Public,
    /// Only this module: it may be removed, renamed and specialised.
    Private,
}

/// Whether a function has a body.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    /// `def`
    Definition,
    /// `declare`: external.
    Declaration,
}

impl Function {
    /// A public function without parameters that returns `()`; `attrs` is the list for its attributes and meta, usually the empty one.
    pub fn new(types: &Types, attrs: AttrsId) -> Function {
        Function::with_room(types, attrs, BodyRoom::default())
    }

    /// The same, whose body has room for what is going to be appended to it.
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

    /// The global that names it.
    pub fn global(&self) -> Option<GlobalId> {
        self.global
    }

    /// Whether it has a body.
    pub fn is_definition(&self) -> bool {
        self.kind == FunctionKind::Definition
    }
}
