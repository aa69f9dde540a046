//! A function: a body with what is known about it from outside.

use crate::core::body::{Body, BodyRoom};
use crate::core::context::Context;
use crate::core::entity::{AttrsId, GlobalId, NameId, TypeId};
use crate::core::invariant::GLOBAL_SYMBOL;
use crate::infer::signature_type;
use crate::tables::attrs::Attr;
use crate::tables::types::Types;

/// A function of a module, or a closed one that is the value of an attribute.
#[derive(Clone, Debug)]
pub struct Function {
    /// The global that names it; `None` for the value of an attribute.
    pub(crate) global: Option<GlobalId>,
    /// True if its name is seen from outside of the module. Ask [`Function::is_external`] whether
    /// it may be removed.
    pub visibility: Visibility,
    /// The result type, where it is annotated.
    pub ret: Option<TypeId>,
    /// Attributes of the signature, such as `Primitive=1`.
    pub attrs: AttrsId,
    /// What tools carry along.
    pub meta: AttrsId,
    /// Parameters and expressions. A declaration has parameters only.
    pub body: Body,
    /// True if there is a body; false if there is only a declaration.
    pub kind: FunctionKind,
    /// Byte offset of the definition in the source.
    pub span: Option<u32>,
}

/// Who may call a function.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Visibility {
    /// Anyone: it is a root of the module and keeps its name and signature.
    Public,
    /// Only this module, by its name: it may be renamed, and, unless it is external all the same
    /// ([`Function::is_external`]), removed and specialised.
    Private,
}

/// True if a function has a body.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// `def`
    Definition,
    /// `declare`: external.
    Declaration,
}

impl Function {
    /// Returns a public function without parameters that returns `()`; `attrs` is the list for its
    /// attributes and meta, usually the empty one.
    ///
    /// Cost: one entry.
    pub fn new(types: &Types, attrs: AttrsId) -> Function {
        Function::with_room(types, attrs, BodyRoom::default())
    }

    /// The same, whose body has room for what is going to be appended to it.
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

    /// Returns the global that names it.
    ///
    /// Cost: one entry.
    pub fn global(&self) -> Option<GlobalId> {
        self.global
    }

    /// Returns true if the function can be called from outside of the module: it is public, or it
    /// has a symbol for a linker, the attribute [`GLOBAL_SYMBOL`], private though its name may be.
    ///
    /// This is the linkage that passes go by. An external function is a root of its module: it
    /// keeps its signature, and no pass removes it because the module itself does not call it. A
    /// private function with a symbol may still be renamed, since its symbol is what others know it
    /// by.
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

    /// Returns the symbol that the function has for a linker: the attribute [`GLOBAL_SYMBOL`], if
    /// that is a string.
    ///
    /// Cost: one entry.
    pub fn global_symbol(&self, cx: &Context) -> Option<NameId> {
        match *cx.attrs.get(cx.find_attr(self.attrs, GLOBAL_SYMBOL)?) {
            Attr::Str(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// Returns the type of the function's name if it returns `ret`: that of its parameters and
    /// result. Linear in the types.
    pub fn signature(&self, cx: &mut Context, ret: TypeId) -> TypeId {
        let params: Vec<TypeId> = self.body.params().iter().map(|p| self.body.ty(p.expr())).collect();
        signature_type(cx, &params, ret)
    }

    /// Returns the result type: the stated one, or that of the block.
    pub(crate) fn result_type(&self) -> TypeId {
        self.ret.unwrap_or_else(|| self.body.type_of(self.body.root()))
    }

    /// Returns the result type, if it is known: a declaration has one only if it states it.
    pub(crate) fn known_result_type(&self) -> Option<TypeId> {
        if self.is_definition() { Some(self.result_type()) } else { self.ret }
    }

    /// Returns true if it has a body.
    ///
    /// Cost: one entry.
    pub fn is_definition(&self) -> bool {
        self.kind == FunctionKind::Definition
    }
}
