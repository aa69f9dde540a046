//! The operands and attributes of a node, as rows see them, and the type of an output that a row
//! gives.

use anfora_ir::{Context, DType, DimId, Operand, TensorType, Type, TypeId, infer_op};
use anfora_ops::typing::{broadcast, result};
use smallvec::SmallVec;

use super::row::{ElementChoices, ElementType, ExtentOf, OutputExtents, OutputShape, OutputType};
use crate::convert::MAX_RANK;
use crate::proto::{AttributeProto, AttributeType, NodeProto};
use crate::tensor::dtype_of;

/// A node and one of its outputs.
pub(super) struct NodeTypes<'a> {
    pub(super) cx: &'a mut Context,
    pub(super) node: &'a NodeProto,
    /// The operands; for a node with subgraphs, these are the last ones, as functions.
    pub(super) operands: &'a [Operand],
    /// For each operand that is a sequence or may be missing, the type of its elements, if known.
    pub(super) elements: &'a [Option<TypeId>],
    /// The number of the output.
    pub(super) output: usize,
}

impl NodeTypes<'_> {
    /// Returns the type that a row gives the output; `Any` if it gives none.
    pub(super) fn type_of(&mut self, output: &OutputType) -> TypeId {
        match *output {
            OutputType::Same(i) => self.operand(i).map_or_else(|| self.cx.types.any(), |o| o.ty),
            OutputType::Tensor(choices, extents) => {
                let Some(dtype) = self.dtype(choices) else { return self.cx.types.any() };
                let shape = self.shape(extents);
                self.tensor_of(dtype, shape)
            }
            OutputType::Kind(..) => self.cx.types.any(),
            OutputType::ElementOf(i) => match (self.elements_of(i), self.operand(i)) {
                (Some(elements), _) => elements,
                (None, Some(operand)) => self.cx.types.without_elements(operand.ty),
                (None, None) => self.cx.types.any(),
            },
            OutputType::By(find) => find(self),
        }
    }

    /// Returns an operand that is not left out.
    pub(super) fn operand(&self, i: usize) -> Option<Operand> {
        self.operands.get(i).copied().filter(|o| !o.absent)
    }

    /// Returns the type of the elements of an operand that is a sequence or may be missing.
    pub(super) fn elements_of(&self, i: usize) -> Option<TypeId> {
        self.elements.get(i).copied().flatten()
    }

    /// Returns the tensor type of an operand.
    pub(super) fn tensor(&self, i: usize) -> Option<&TensorType> {
        self.cx.types.as_tensor(self.operand(i)?.ty)
    }

    /// Returns the extents of an operand. Tensors of a rank above that of our operators have none
    /// here, since finding types must not take time linear in the rank.
    pub(super) fn extents(&self, i: usize) -> OutputShape {
        self.tensor(i)?.shape.as_ref().filter(|s| s.len() <= MAX_RANK).cloned()
    }

    /// Returns the rank of an operand.
    pub(super) fn rank(&self, i: usize) -> Option<usize> {
        Some(self.extents(i)?.len())
    }

    /// Returns as many unknown extents.
    pub(super) fn unknown(&self, rank: usize) -> SmallVec<[DimId; 4]> {
        SmallVec::from_elem(self.cx.types.dims.unknown(), rank)
    }

    /// Returns an extent; an unknown one for a negative number.
    pub(super) fn constant(&mut self, extent: i64) -> DimId {
        match extent {
            0.. => self.cx.types.dims.constant(extent),
            _ => self.cx.types.dims.unknown(),
        }
    }

    /// Returns the elements of an operand that is a list of at most as many integers as our tensors
    /// have extents, each if it is known.
    pub(super) fn list(&mut self, i: usize) -> Option<Vec<DimId>> {
        let operand = self.operand(i)?;
        if let Some(elements) = self.cx.types.elements(operand.ty) {
            return Some(elements.to_vec());
        }
        let literal = self.cx.literals.get(operand.literal?);
        let is_short = literal.rank() <= 1 && literal.element_count() <= MAX_RANK;
        let list = literal.to_i64s().filter(|_| is_short)?;
        Some(list.into_iter().map(|n| self.cx.types.dims.constant(n)).collect())
    }

    /// Returns the elements of an operand that is a short list of integers, all of which are known.
    pub(super) fn numbers(&mut self, i: usize) -> Option<Vec<i64>> {
        let list = self.list(i)?;
        list.into_iter().map(|d| self.cx.types.dims.as_constant(d)).collect()
    }

    /// Returns an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|a| a.name() == name)
    }

    /// Returns an integer attribute.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|a| a.i.unwrap_or(0))
    }

    /// Returns a short list of integers in an attribute.
    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|a| a.ints.as_slice()).filter(|list| list.len() <= MAX_RANK)
    }

    /// Returns the position of an axis of a tensor of a rank.
    pub(super) fn axis(axis: i64, rank: usize) -> Option<usize> {
        let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
        usize::try_from(axis).ok().filter(|&a| a < rank)
    }

    fn dtype(&self, choices: ElementChoices) -> Option<DType> {
        choices.iter().find_map(|&choice| self.choice(choice)).flatten()
    }

    /// Returns the element type of a choice; `None` if the choice does not apply.
    fn choice(&self, choice: ElementType) -> Option<Option<DType>> {
        let of = |i: usize| self.operand(i).map(|_| self.tensor(i).map(|t| t.dtype));
        match choice {
            ElementType::Of(i) => of(i),
            ElementType::Is(dtype) => Some(Some(dtype)),
            ElementType::Attribute(name) => {
                let attribute = self.attribute(name)?;
                match (attribute.r#type(), attribute.i()) {
                    (AttributeType::Int, 0) => None,
                    (AttributeType::Int, number) => Some(i32::try_from(number).ok().and_then(dtype_of)),
                    _ => Some(None),
                }
            }
            ElementType::OfTensor(name) => {
                let tensor = self.attribute(name)?.t.as_ref()?;
                Some(dtype_of(tensor.data_type.unwrap_or(0)))
            }
            ElementType::If(name, dtype) => {
                let AttributeProto { ints, floats, strings, .. } = self.attribute(name)?;
                (!ints.is_empty() || !floats.is_empty() || !strings.is_empty()).then_some(Some(dtype))
            }
            ElementType::Exchanged(i) => of(i).map(|dtype| match dtype {
                Some(DType::String) => Some(DType::Int64),
                Some(DType::Int64) => Some(DType::String),
                _ => None,
            }),
        }
    }

    fn shape(&mut self, extents: OutputExtents) -> OutputShape {
        match extents {
            OutputExtents::Unranked => None,
            OutputExtents::Are(list) => Some(list.iter().map(|&e| self.extent(e)).collect()),
            OutputExtents::Like(i) => self.extents(i),
            OutputExtents::RankOf(i, first) => {
                let mut shape = self.unknown(self.rank(i)?);
                for (place, &extent) in shape.iter_mut().zip(first) {
                    *place = self.extent(extent);
                }
                Some(shape)
            }
            OutputExtents::Broadcast([]) => self.broadcast(0..self.operands.len()),
            OutputExtents::Broadcast(list) => self.broadcast(list.iter().copied()),
            OutputExtents::Ours(name, list) => self.shape_by_ours(name, list),
            OutputExtents::By(find) => find(self),
        }
    }

    /// Returns the extents that operands broadcast to. Unknown ones if they do not.
    pub(super) fn broadcast(&mut self, operands: impl Iterator<Item = usize>) -> OutputShape {
        let mut tensors = Vec::new();
        for i in operands {
            if self.operand(i).is_some() {
                tensors.push((i, TensorType::new(DType::Float32, Some(self.extents(i)?))));
            }
        }
        let list: Vec<(usize, &TensorType)> = tensors.iter().map(|(i, t)| (*i, t)).collect();
        broadcast(self.cx, &list).ok().flatten()
    }

    /// Returns the extents of the call of one of our operators with operands like these. Their
    /// elements are taken to be floats.
    pub(super) fn shape_by_ours(&mut self, name: &str, list: &[usize]) -> OutputShape {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for &i in list {
            let shape = self.extents(i)?;
            operands.push(Operand { ty: self.cx.types.tensor(DType::Float32, &shape), literal: None, absent: false });
        }
        let op = self.cx.ops.find(name)?;
        let (attrs, any) = (self.cx.attrs.empty(), self.cx.types.any());
        let found = infer_op(self.cx, op, &operands, attrs, any).ok()?;
        self.cx.types.as_tensor(found)?.shape.clone()
    }

    fn extent(&mut self, extent: ExtentOf) -> DimId {
        let unknown = self.cx.types.dims.unknown();
        match extent {
            ExtentOf::Unknown => unknown,
            ExtentOf::Is(extent) => self.constant(extent),
            ExtentOf::Of(i, axis) => {
                let Some(shape) = self.extents(i) else { return unknown };
                Self::axis(axis, shape.len()).map_or(unknown, |a| shape[a])
            }
            ExtentOf::Attribute(name, default) => {
                let extent = self.int(name).unwrap_or(default);
                self.constant(extent)
            }
            ExtentOf::Value(i) => match self.list(i).as_deref() {
                Some(&[one]) if self.cx.types.dims.as_constant(one).is_none_or(|n| n >= 0) => one,
                _ => unknown,
            },
        }
    }

    /// Returns the type of a tensor with the elements of an operand.
    pub(super) fn tensor_like(&mut self, i: usize, shape: OutputShape) -> TypeId {
        match self.tensor(i).map(|t| t.dtype) {
            Some(dtype) => self.tensor_of(dtype, shape),
            None => self.cx.types.any(),
        }
    }

    /// Returns the type of a tensor like an operand.
    pub(super) fn like_operand(&mut self, i: usize) -> TypeId {
        let shape = self.extents(i);
        self.tensor_like(i, shape)
    }

    /// Returns the type of a tensor. Its rank is not known if it is above that of our operators.
    pub(super) fn tensor_of(&mut self, dtype: DType, shape: OutputShape) -> TypeId {
        result(self.cx, dtype, shape.filter(|s| s.len() <= MAX_RANK).as_deref())
    }

    /// Returns the types of the results of a subgraph, with unknown extents for its own symbols.
    pub(super) fn results_of(&mut self, function: TypeId) -> Option<Vec<TypeId>> {
        let symbols = self.cx.types.as_function(function)?.symbols as usize;
        let (_, ret) = self.instantiated(function, symbols)?;
        Some(match self.cx.types.get(ret) {
            Type::Tuple(fields) => fields.to_vec(),
            _ => vec![ret],
        })
    }

    /// Returns the types of the parameters of a subgraph, with unknown extents for its own symbols.
    pub(super) fn parameters_of(&mut self, function: TypeId) -> Option<Vec<TypeId>> {
        let symbols = self.cx.types.as_function(function)?.symbols as usize;
        Some(self.instantiated(function, symbols)?.0.to_vec())
    }

    fn instantiated(&mut self, function: TypeId, symbols: usize) -> Option<(SmallVec<[TypeId; 4]>, TypeId)> {
        let dims = self.unknown(symbols);
        self.cx.types.instantiate(function, &dims)
    }
}
