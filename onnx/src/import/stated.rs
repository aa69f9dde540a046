//! The types of values that the file states.

use anfora_ir::{Attr, AttrId, ExprId, NameId, TypeId};

use super::importer::{Importer, OpenGraph, Stated};
use super::warnings::Warning;
use crate::attributes::encoded_attr;
use crate::error::ImportProblem;
use crate::keys;
use crate::proto::ValueInfoProto;
use crate::types::{Binding, contradict, other_kind, proto_of, says_no_more, type_of};

impl Importer<'_, '_> {
    /// Returns the type that a message states, in terms of the symbols of the inputs.
    pub(super) fn stated_type(&mut self, info: &ValueInfoProto) -> TypeId {
        let cx = self.builder.cx();
        match &info.r#type {
            Some(ty) => type_of(cx, &mut self.state.dims, ty, Binding::Uses),
            None => cx.types.any(),
        }
    }

    /// Warns, at the current node or graph, if the stated type of a value contradicts its type.
    /// Returns true if it does.
    pub(super) fn warn_of_contradiction(&mut self, info: &ValueInfoProto, stated: TypeId, found: TypeId) -> bool {
        let cx = self.builder.cx();
        let kind = info.r#type.as_ref().and_then(other_kind).filter(|_| cx.types.as_tensor(found).is_some());
        if kind.is_none() && !contradict(cx, stated, found) {
            return false;
        }
        let stated = kind.map_or_else(|| cx.type_text(stated), str::to_owned);
        self.warnings.push(Warning::contradiction(info.name(), &cx.type_text(found), &stated));
        true
    }

    /// Returns the encoded message of the file about a value, if it states more than the type here.
    /// A wrong stated type is replaced by the type here.
    pub(super) fn more_than(&mut self, info: &ValueInfoProto, found: TypeId, is_wrong: bool) -> Option<AttrId> {
        let has_text = info.doc_string.is_some() || !info.metadata_props.is_empty();
        let cx = self.builder.cx();
        let stated = info.r#type.as_ref().filter(|_| !is_wrong);
        if !has_text && says_no_more(cx, &self.state.dims.names, stated, found) {
            return None;
        }
        if !is_wrong {
            return Some(encoded_attr(cx, info));
        }
        let r#type = proto_of(cx, &self.state.dims.names, found);
        Some(encoded_attr(cx, &ValueInfoProto { r#type, ..info.clone() }))
    }

    /// Emits the pending warnings with their place.
    pub(super) fn say_warnings(&mut self, place: impl FnOnce() -> String) {
        if self.warnings.is_empty() {
            return;
        }
        let place = place();
        for warning in self.warnings.drain(..) {
            self.settings.notes.warn(&place, warning);
        }
    }

    /// Records what the file states about the types of values that are not inputs.
    pub(super) fn read_stated(
        &mut self,
        open: &mut OpenGraph,
        value_infos: Vec<ValueInfoProto>,
        outputs: &[ValueInfoProto],
    ) -> Result<(), ImportProblem> {
        for info in value_infos {
            let name = self.builder.cx().names.intern(info.name());
            // A value that is already in scope is an input or an initializer.
            if let Some(value) = self.state.scope.get(name)
                && self.state.scope.is_innermost(value)
            {
                let found = self.builder.body().ty(value.expr);
                let stated = self.stated_type(&info);
                let is_wrong = self.warn_of_contradiction(&info, stated, found);
                if self.builder.body().as_literal(value.expr).is_some() {
                    let infos = self.more_than(&info, found, is_wrong);
                    open.infos.extend(infos);
                }
                continue;
            }
            open.stated.insert(name, Stated { info: Box::new(info), is_output: false });
        }
        for info in outputs {
            let name = self.builder.cx().names.intern(info.name());
            open.stated.insert(name, Stated { info: Box::new(info.clone()), is_output: true });
        }
        Ok(())
    }

    /// Checks a value against what the file states about it, and adds what must be preserved to
    /// `meta`.
    pub(super) fn push_stated(
        &mut self,
        graph: &mut OpenGraph,
        name: Option<NameId>,
        value: ExprId,
        meta: &mut Vec<(&str, AttrId)>,
    ) {
        let id = name.unwrap_or_else(|| self.builder.cx().names.intern(""));
        let Some(Stated { info, is_output }) = graph.stated.remove(&id) else { return };
        let found = self.builder.body().ty(value);
        let stated = self.stated_type(&info);
        let is_wrong = self.warn_of_contradiction(&info, stated, found);
        if is_output {
            graph.contradicted.extend(is_wrong.then_some(id));
        } else {
            let more = self.more_than(&info, found, is_wrong);
            let attr = more.unwrap_or_else(|| self.builder.cx().attr(Attr::Bool(true)));
            meta.push((keys::INFO, attr));
        }
    }

    /// Returns true if the file states the type of an output whose type the value does not show.
    pub(super) fn knows_less(&mut self, graph: &OpenGraph, outputs: &[Option<NameId>], value: ExprId) -> bool {
        let ty = self.builder.body().ty(value);
        let cx = self.builder.cx();
        let any = cx.types.any();
        let fields = cx.types.as_tuple(ty).map_or_else(|| vec![ty], <[TypeId]>::to_vec);
        let mut unknown = outputs.iter().zip(fields).filter(|&(_, field)| field == any);
        unknown.any(|(&name, _)| self.stated_output(graph, name).is_some_and(|stated| stated != any))
    }

    /// Returns the type that the file states for a value, if any.
    pub(super) fn stated_output(&mut self, graph: &OpenGraph, name: Option<NameId>) -> Option<TypeId> {
        let id = name.unwrap_or_else(|| self.builder.cx().names.intern(""));
        let info = &graph.stated.get(&id)?.info;
        info.r#type.as_ref()?;
        Some(self.stated_type(info))
    }
}
