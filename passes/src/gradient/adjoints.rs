//! The adjoints of values, while they are added up.
//!
//! The adjoint of a tuple is kept field by field, so that a projection adds to one field alone, and
//! a field to which nothing is added takes no zeros. Each adjoint has one owner: a variable, or the
//! field of another adjoint.

use anfora_ir::{AttrValue, ExprId, Literal, NameId, Number, TypeError, TypeId};
use rustc_hash::FxHashMap;

use super::backward::Differentiator;
use super::tangents::known_shape;

/// The index of an adjoint in its store.
pub(super) type AdjointId = usize;

/// An adjoint.
pub(super) enum AdjointValue {
    /// A value of the program, of the adjoint type.
    Value(ExprId),
    /// The adjoints of the fields of a tuple; `None` stands for zeros.
    Fields(Vec<Option<AdjointId>>),
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

    /// Adds an adjoint to that of a field of a tuple, in constant time unless it is the first one.
    pub(super) fn contribute_field(&mut self, tuple: ExprId, index: u32, adjoint: AdjointId) -> Result<(), TypeError> {
        if !self.wants(tuple) {
            return Ok(());
        }
        let index = index as usize;
        let Some(whole) = self.adjoints[tuple] else {
            let ty = self.editor.body.ty(tuple);
            let mut fields = vec![None; self.editor.cx.types.as_tuple(ty).map_or(0, <[_]>::len)];
            fields[index] = Some(adjoint);
            let whole = self.store(AdjointValue::Fields(fields));
            return self.contribute(tuple, whole);
        };
        let mut fields = self.take_fields(whole)?;
        let before = fields[index].replace(adjoint);
        self.store[whole] = AdjointValue::Fields(fields);
        match before {
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
            if let (AdjointValue::Value(a), AdjointValue::Value(b)) = (&self.store[sum], &self.store[other])
                && self.editor.cx.types.as_tuple(self.editor.body.ty(*a)).is_none()
            {
                let total = self.editor.call_named("add", &[*a, *b])?;
                let total = self.bind(None, total);
                self.store[sum] = AdjointValue::Value(total);
                continue;
            }
            let more = self.take_fields(other)?;
            let mut fields = self.take_fields(sum)?;
            for (field, more) in fields.iter_mut().zip(more) {
                match (*field, more) {
                    (Some(a), Some(b)) => stack.push((a, b)),
                    (None, more) => *field = more,
                    (Some(_), None) => {}
                }
            }
            self.store[sum] = AdjointValue::Fields(fields);
        }
        Ok(())
    }

    /// Takes the fields of the adjoint of a tuple. An adjoint that is a value is projected.
    pub(super) fn take_fields(&mut self, adjoint: AdjointId) -> Result<Vec<Option<AdjointId>>, TypeError> {
        let value = match std::mem::replace(&mut self.store[adjoint], AdjointValue::Fields(Vec::new())) {
            AdjointValue::Fields(fields) => return Ok(fields),
            AdjointValue::Value(value) => value,
        };
        let types = self.editor.cx.types.as_tuple(self.editor.body.ty(value)).unwrap_or_default().to_vec();
        let unit = self.editor.cx.types.unit();
        let mut fields = Vec::with_capacity(types.len());
        for (i, ty) in (0..).zip(types) {
            fields.push(if ty == unit {
                None
            } else {
                let field = self.editor.proj(value, i)?;
                let field = self.bind(None, field);
                Some(self.store(AdjointValue::Value(field)))
            });
        }
        Ok(fields)
    }

    /// Makes one expression of the adjoint of `value`, which has the type `ty`: an atom of its
    /// adjoint type.
    pub(super) fn make(&mut self, adjoint: Option<AdjointId>, ty: TypeId, value: ExprId) -> Result<ExprId, TypeError> {
        let mut steps = vec![MakeStep::Value(adjoint, ty, value)];
        let mut done: Vec<ExprId> = Vec::new();
        // Types share parts, and a tuple of zeros is made once for each type.
        let mut zero_tuples: FxHashMap<TypeId, ExprId> = FxHashMap::default();
        while let Some(step) = steps.pop() {
            let (adjoint, ty, value) = match step {
                MakeStep::Value(adjoint, ty, value) => (adjoint, ty, value),
                MakeStep::Tuple(fields, zero_of) => {
                    let fields = done.split_off(done.len() - fields);
                    let tuple = self.editor.tuple(&fields);
                    let tuple = self.bind(None, tuple);
                    zero_of.into_iter().for_each(|ty| _ = zero_tuples.insert(ty, tuple));
                    done.push(tuple);
                    continue;
                }
            };
            if let (None, Some(&zeros)) = (adjoint, zero_tuples.get(&ty)) {
                done.push(zeros);
                continue;
            }
            let wanted = self.types.of(self.editor.cx, ty);
            let fields = match adjoint.map(|adjoint| &mut self.store[adjoint]) {
                _ if wanted == self.editor.cx.types.unit() => {
                    let unit = self.editor.tuple(&[]);
                    done.push(self.bind(None, unit));
                    continue;
                }
                Some(AdjointValue::Value(adjoint)) => {
                    let adjoint = *adjoint;
                    done.push(self.conform(adjoint, wanted)?);
                    continue;
                }
                Some(AdjointValue::Fields(fields)) => std::mem::take(fields),
                None => Vec::new(),
            };
            let Some(types) = self.editor.cx.types.as_tuple(ty).map(<[TypeId]>::to_vec) else {
                done.push(self.zeros(ty, value)?);
                continue;
            };
            let is_known_zero = adjoint.is_none() && self.editor.cx.types.has_known_extents(ty);
            steps.push(MakeStep::Tuple(types.len(), is_known_zero.then_some(ty)));
            for (i, &ty) in types.iter().enumerate().rev() {
                let adjoint = fields.get(i).copied().flatten();
                // Only zeros of an extent that is not known need the value.
                let field = if adjoint.is_some() || self.editor.cx.types.has_known_extents(ty) {
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
    fn conform(&mut self, value: ExprId, wanted: TypeId) -> Result<ExprId, TypeError> {
        if self.editor.cx.types.accepts(wanted, self.editor.body.ty(value)) {
            return Ok(value);
        }
        let cast = self.editor.match_cast(value, wanted)?;
        Ok(self.bind(None, cast))
    }

    /// Returns zeros of the type and shape of a tensor.
    fn zeros(&mut self, ty: TypeId, value: ExprId) -> Result<ExprId, TypeError> {
        let dtype = self.editor.cx.types.as_tensor(ty).map_or(anfora_ir::DType::Float32, |tensor| tensor.dtype);
        let zero = || Number::Float(0.0).scalar(dtype).expect("a float type has a zero");
        let zeros = match known_shape(self.editor.cx, ty) {
            Some(_) if self.rank_is_zero(ty) => return Ok(self.editor.literal(zero())),
            Some(shape) => {
                let attrs: [(&str, AttrValue); 2] = [("shape", shape.into()), ("dtype", dtype.into())];
                self.editor.op("zeros", &[], &attrs)?
            }
            None => {
                let shape = self.editor.call_named("shape_of", &[value])?;
                let shape = self.bind(None, shape);
                let zero: Literal = zero();
                self.editor.op("full", &[shape], &[("value", zero.into())])?
            }
        };
        let zeros = self.bind(None, zeros);
        self.conform(zeros, ty)
    }

    fn rank_is_zero(&self, ty: TypeId) -> bool {
        let shape = self.editor.cx.types.as_tensor(ty).and_then(|tensor| tensor.shape.as_ref());
        shape.is_some_and(|shape| shape.is_empty())
    }

    /// Returns the name of the adjoint of a variable.
    pub(super) fn adjoint_name(&mut self, var: ExprId) -> Option<NameId> {
        let name = self.editor.body.binding_name(self.editor.cx, var)?;
        let name = format!("{name}_adjoint");
        Some(self.editor.cx.names.intern(&name))
    }
}
