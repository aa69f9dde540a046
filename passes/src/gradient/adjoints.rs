//! The adjoints of values, while they are added up.
//!
//! The adjoint of a tuple is kept field by field, so that a projection adds to one field alone, and
//! a field to which nothing is added takes no zeros. Each adjoint has one owner: a variable, or the
//! field of another adjoint. When two are added up, one of them is used up, so all sums of fields
//! take time linear in the fields that have got an adjoint.
//!
//! The adjoint of a large tuple may also be a value, such as the result of a call. Its fields are
//! projected when the tuple is reached, or never. Two such values are added by a function, and
//! zeros of their type are the result of one ([`tuple_functions`](super::tuple_functions)).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anfora_ir::{ExprId, NameId, TypeError, TypeId};

use super::backward::Differentiator;
use super::tangents::{known_zeros, zero_of};
use super::tuple_functions::TupleFunction;

/// The index of an adjoint in its store.
pub(super) type AdjointId = usize;

/// An adjoint: the sum of a value of the program and of the adjoints of fields.
#[derive(Default)]
pub(super) struct AdjointValue {
    /// A value of the adjoint type; `None` stands for zeros.
    value: Option<ExprId>,
    /// The adjoints of fields of a tuple, by number. The others are zeros. A small tuple, which is
    /// added field by field, has no value beside fields.
    fields: BTreeMap<u32, AdjointId>,
}

impl AdjointValue {
    /// Returns the adjoint with the value of an expression.
    pub(super) fn value(value: ExprId) -> AdjointValue {
        AdjointValue { value: Some(value), fields: BTreeMap::new() }
    }

    /// Returns the adjoint of a tuple in which one field has an adjoint.
    pub(super) fn field(field: u32, adjoint: AdjointId) -> AdjointValue {
        AdjointValue { value: None, fields: BTreeMap::from([(field, adjoint)]) }
    }
}

/// A step of making one expression of an adjoint.
enum MakeStep {
    /// Makes the adjoint of a value of a type. The value itself is needed for zeros of its shape.
    Value(Option<AdjointId>, TypeId, ExprId),
    /// Makes a tuple of the last results. It is zero if there is a type.
    Tuple(usize, Option<TypeId>),
}

impl Differentiator<'_, '_> {
    /// Binds a value in the current list of adjoints, and returns the variable; an atom stays as it
    /// is.
    pub(super) fn bind(&mut self, name: Option<NameId>, value: ExprId) -> ExprId {
        if self.editor.body.expr(value).is_atom() { value } else { self.list.bind(self.editor, name, value) }
    }

    /// Adds an adjoint to the store.
    pub(super) fn store(&mut self, value: AdjointValue) -> AdjointId {
        self.store.push(value);
        self.store.len() - 1
    }

    /// Returns true if an operand needs an adjoint: it is a variable with floats, and depends on a
    /// value that is differentiated by.
    pub(super) fn wants(&mut self, operand: ExprId) -> bool {
        if !self.flow.is_active(operand) {
            return false;
        }
        let ty = self.editor.body.ty(operand);
        self.types.has_floats(self.editor.cx, ty)
    }

    /// Adds an adjoint to that of an operand, if the operand needs one.
    pub(super) fn contribute(&mut self, operand: ExprId, adjoint: AdjointId) -> Result<(), TypeError> {
        if !self.wants(operand) {
            return Ok(());
        }
        match self.adjoints[operand] {
            Some(sum) => self.add(sum, adjoint),
            None => {
                self.adjoints.set(operand, Some(adjoint));
                self.reached.push(operand);
                Ok(())
            }
        }
    }

    /// Adds an adjoint to that of a field of a tuple.
    pub(super) fn contribute_field(&mut self, tuple: ExprId, index: u32, adjoint: AdjointId) -> Result<(), TypeError> {
        if !self.wants(tuple) {
            return Ok(());
        }
        let Some(whole) = self.adjoints[tuple] else {
            let whole = self.store(AdjointValue::field(index, adjoint));
            return self.contribute(tuple, whole);
        };
        self.open_small(whole)?;
        match self.store[whole].fields.insert(index, adjoint) {
            Some(before) => self.add(adjoint, before),
            None => Ok(()),
        }
    }

    /// Takes the adjoint of a variable, which is complete. Returns `None` if it is zero.
    pub(super) fn take_adjoint(&mut self, var: ExprId) -> Option<AdjointId> {
        let adjoint = self.adjoints[var]?;
        self.adjoints.set(var, None);
        Some(adjoint)
    }

    /// Adds `other` to `sum`.
    fn add(&mut self, sum: AdjointId, other: AdjointId) -> Result<(), TypeError> {
        let mut stack = vec![(sum, other)];
        while let Some((sum, other)) = stack.pop() {
            self.open_small(other)?;
            self.open_small(sum)?;
            let AdjointValue { value, fields } = std::mem::take(&mut self.store[other]);
            let mut total = std::mem::take(&mut self.store[sum]);
            total.value = match (total.value, value) {
                (Some(a), Some(b)) => Some(self.add_values(a, b)?),
                (a, b) => a.or(b),
            };
            // The fewer fields go to the others.
            let is_larger = fields.len() > total.fields.len();
            let (mut into, from) = if is_larger { (fields, total.fields) } else { (total.fields, fields) };
            for (i, adjoint) in from {
                match into.entry(i) {
                    Entry::Vacant(entry) => _ = entry.insert(adjoint),
                    Entry::Occupied(mut entry) if is_larger => stack.push((adjoint, entry.insert(adjoint))),
                    Entry::Occupied(entry) => stack.push((*entry.get(), adjoint)),
                }
            }
            self.store[sum] = AdjointValue { value: total.value, fields: into };
        }
        Ok(())
    }

    /// Returns the sum of two values: tensors, or large tuples.
    fn add_values(&mut self, a: ExprId, b: ExprId) -> Result<ExprId, TypeError> {
        let [own, other] = [a, b].map(|value| self.editor.body.ty(value));
        let sum = if self.editor.cx.types.as_tuple(own).is_none() {
            self.editor.call_named("add", &[a, b])?
        } else {
            let ty = self.editor.cx.types.join(own, other).unwrap_or(own);
            let ty = self.types.without_symbols(self.editor.cx, ty);
            return self.call_tuple_function(TupleFunction::Sum, ty, &[a, b]);
        };
        Ok(self.bind(None, sum))
    }

    /// Calls a function for a tuple type without symbols.
    fn call_tuple_function(
        &mut self,
        kind: TupleFunction,
        ty: TypeId,
        arguments: &[ExprId],
    ) -> Result<ExprId, TypeError> {
        self.editor.cx.ops.resolve(kind.operator())?;
        let (global, signature) = self.pullbacks.tuple_function(self.editor.cx, kind, ty);
        let callee = self.editor.body.global(global, signature);
        let no_attrs = self.editor.cx.attrs.empty();
        let call = self.editor.call(callee, arguments, no_attrs)?;
        Ok(self.bind(None, call))
    }

    /// Replaces the value of an adjoint by the adjoints of its fields, if it is a small tuple.
    fn open_small(&mut self, adjoint: AdjointId) -> Result<(), TypeError> {
        let Some(value) = self.store[adjoint].value else { return Ok(()) };
        let ty = self.editor.body.ty(value);
        if self.types.is_small_tuple(self.editor.cx, ty) {
            let fields = self.project(value)?;
            self.store[adjoint] = AdjointValue { value: None, fields: fields.into_iter().collect() };
        }
        Ok(())
    }

    /// Returns the adjoints of the fields of a value, by number, without those that are `()`.
    fn project(&mut self, value: ExprId) -> Result<Vec<(u32, AdjointId)>, TypeError> {
        let types = self.editor.cx.types.as_tuple(self.editor.body.ty(value)).unwrap_or_default().to_vec();
        let unit = self.editor.cx.types.unit();
        let mut fields = Vec::with_capacity(types.len());
        for (i, _) in (0..).zip(types).filter(|&(_, ty)| ty != unit) {
            let field = self.editor.proj(value, i)?;
            let field = self.bind(None, field);
            fields.push((i, self.store(AdjointValue::value(field))));
        }
        Ok(fields)
    }

    /// Takes the adjoints of the fields of a tuple, by number. An adjoint that is a value is
    /// projected.
    pub(super) fn take_fields(&mut self, adjoint: AdjointId) -> Result<BTreeMap<u32, AdjointId>, TypeError> {
        let AdjointValue { value, mut fields } = std::mem::take(&mut self.store[adjoint]);
        let Some(value) = value else { return Ok(fields) };
        for (i, field) in self.project(value)? {
            if let Some(more) = fields.insert(i, field) {
                self.add(field, more)?;
            }
        }
        Ok(fields)
    }

    /// Makes one expression of the adjoint of `value`, which has the type `ty`: an atom of its
    /// adjoint type.
    pub(super) fn make(&mut self, adjoint: Option<AdjointId>, ty: TypeId, value: ExprId) -> Result<ExprId, TypeError> {
        let value = self.latest(value);
        let mut steps = vec![MakeStep::Value(adjoint, ty, value)];
        let mut done: Vec<ExprId> = Vec::new();
        while let Some(step) = steps.pop() {
            let (adjoint, ty, value) = match step {
                MakeStep::Value(adjoint, ty, value) => (adjoint, ty, value),
                MakeStep::Tuple(fields, zero_of) => {
                    let fields = done.split_off(done.len() - fields);
                    let tuple = self.editor.tuple(&fields);
                    let tuple = self.bind(None, tuple);
                    zero_of.into_iter().for_each(|ty| _ = self.zeros.insert(ty, tuple));
                    done.push(tuple);
                    continue;
                }
            };
            // Types share parts, so a block has the zeros of each type once.
            if let (None, Some(&zeros)) = (adjoint, self.zeros.get(&ty)) {
                done.push(zeros);
                continue;
            }
            let wanted = self.types.of(self.editor.cx, ty);
            if wanted == self.editor.cx.types.unit() {
                let unit = self.editor.tuple(&[]);
                let unit = self.bind(None, unit);
                self.zeros.insert(ty, unit);
                done.push(unit);
                continue;
            }
            let fields = match adjoint.map(|adjoint| (adjoint, &self.store[adjoint])) {
                Some((_, AdjointValue { value: Some(made), fields })) if fields.is_empty() => {
                    let made = *made;
                    done.push(self.conform(made, wanted)?);
                    continue;
                }
                Some((adjoint, _)) => self.take_fields(adjoint)?,
                None => BTreeMap::new(),
            };
            let is_known_zero = adjoint.is_none() && self.types.has_known_zeros(self.editor.cx, ty);
            let Some(types) = self.editor.cx.types.as_tuple(ty).map(<[TypeId]>::to_vec) else {
                let zeros = self.tensor_of_zeros(ty, value)?;
                if is_known_zero {
                    self.zeros.insert(ty, zeros);
                }
                done.push(zeros);
                continue;
            };
            if is_known_zero && self.types.is_large_plain_tuple(self.editor.cx, wanted) {
                let zeros = self.call_tuple_function(TupleFunction::Zeros, wanted, &[])?;
                self.zeros.insert(ty, zeros);
                done.push(zeros);
                continue;
            }
            steps.push(MakeStep::Tuple(types.len(), is_known_zero.then_some(ty)));
            for (i, &ty) in types.iter().enumerate().rev() {
                let adjoint = fields.get(&(i as u32)).copied();
                // Only zeros of an extent that is not known need the value.
                let field = if adjoint.is_some() || self.types.has_known_zeros(self.editor.cx, ty) {
                    value
                } else {
                    let field = self.editor.proj(value, i as u32)?;
                    self.bind(None, field)
                };
                steps.push(MakeStep::Value(adjoint, ty, field));
            }
        }
        Ok(done.pop().expect("the first step leaves one result"))
    }

    /// Returns a value that has at least the type `wanted`.
    pub(super) fn conform(&mut self, value: ExprId, wanted: TypeId) -> Result<ExprId, TypeError> {
        if self.editor.cx.types.accepts(wanted, self.editor.body.ty(value)) {
            return Ok(value);
        }
        let cast = self.editor.match_cast(value, wanted)?;
        Ok(self.bind(None, cast))
    }

    /// Returns zeros of the type and shape of a tensor.
    fn tensor_of_zeros(&mut self, ty: TypeId, value: ExprId) -> Result<ExprId, TypeError> {
        let zeros = match known_zeros(self.editor, ty) {
            Some(zeros) => zeros?,
            None => {
                let shape = self.editor.call_named("shape_of", &[value])?;
                let shape = self.bind(None, shape);
                let zero = zero_of(self.editor.cx, ty);
                self.editor.op("full", &[shape], &[("value", zero.into())])?
            }
        };
        let zeros = self.bind(None, zeros);
        self.conform(zeros, ty)
    }

    /// Returns the name of the adjoint of a variable.
    pub(super) fn adjoint_name(&mut self, var: ExprId) -> Option<NameId> {
        let name = self.editor.body.binding_name(self.editor.cx, var)?;
        let name = format!("{name}_adjoint");
        Some(self.editor.cx.names.intern(&name))
    }
}
