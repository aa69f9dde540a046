//! The initializers of a graph. Each becomes a literal if a literal can hold it.

use anfora_ir::{AttrId, Context, Literal, LiteralId, NameId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::attributes::doc_of;
use crate::error::ImportProblem;
use crate::kept_initializer;
use crate::proto::{NodeProto, SparseTensorProto, TensorProto, ValueInfoProto};
use crate::tensor::{TensorError, literal_of};

/// The initializers of a graph.
pub(super) struct Initializers {
    pub(super) literals: Vec<Initializer>,
    /// The tensors of all initializers.
    pub(super) tensors: FxHashMap<NameId, TensorProto>,
    /// The initializers that no literal can hold: they have an unknown element type, or strings
    /// that are not UTF-8.
    pub(super) of_no_literal: Vec<TensorProto>,
}

/// An initializer that is a literal.
pub(super) struct Initializer {
    pub(super) name: NameId,
    pub(super) literal: LiteralId,
    pub(super) meta: Vec<(&'static str, AttrId)>,
}

impl Initializers {
    /// Reads the initializers of a graph. `stored` has the constants whose elements stay in a file,
    /// by index.
    pub(super) fn read(
        cx: &mut Context,
        tensors: Vec<TensorProto>,
        stored: &mut FxHashMap<usize, Literal>,
    ) -> Result<Initializers, ImportProblem> {
        let mut literals = Vec::with_capacity(tensors.len());
        let mut by_name = FxHashMap::default();
        let mut of_no_literal = Vec::new();
        for (i, tensor) in tensors.into_iter().enumerate() {
            if tensor.name().is_empty() {
                return Err(ImportProblem::Nameless("an initializer"));
            }
            let name = cx.names.intern(tensor.name());
            match stored.remove(&i).map_or_else(|| literal_of(&tensor), Ok) {
                Ok(literal) => {
                    let literal = cx.literals.intern(literal);
                    let meta = doc_of(cx, &tensor.doc_string, &tensor.metadata_props);
                    literals.push(Initializer { name, literal, meta });
                }
                Err(TensorError::DType(1..) | TensorError::Text(_)) => of_no_literal.push(tensor.clone()),
                Err(e) => return Err(ImportProblem::Other(format!("the initializer `{}`: {e}", tensor.name()))),
            }
            if let Some(again) = by_name.insert(name, tensor) {
                return Err(ImportProblem::Duplicate(again.name().to_owned()));
            }
        }
        Ok(Initializers { literals, tensors: by_name, of_no_literal })
    }

    /// Takes the constants that no literal can hold, and returns the nodes that represent them and
    /// the sparse initializers. Default values of inputs are not among them.
    pub(super) fn take_kept_nodes(
        &mut self,
        sparse: Vec<SparseTensorProto>,
        inputs: &[ValueInfoProto],
        are_all_constants: bool,
    ) -> Result<Vec<NodeProto>, ImportProblem> {
        let mut plain = std::mem::take(&mut self.of_no_literal);
        if !plain.is_empty() && !are_all_constants {
            let inputs: FxHashSet<&str> = inputs.iter().map(|i| i.name()).collect();
            plain.retain(|t| !inputs.contains(t.name()));
        }
        let plain = plain.into_iter().map(kept_initializer::node_of_tensor);
        let sparse = sparse.into_iter().map(kept_initializer::node_of_sparse);
        let kept: Vec<NodeProto> = plain.chain(sparse).collect();
        if kept.iter().any(|n| n.output[0].is_empty()) {
            return Err(ImportProblem::Nameless("a sparse initializer"));
        }
        Ok(kept)
    }
}
