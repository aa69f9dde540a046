//! Initializers that no literal can hold. Import represents each as a `Constant` node with a mark,
//! and export turns the node back into an initializer.

use crate::attributes::tensor_attribute;
use crate::domains::is_standard;
use crate::keys;
use crate::proto::{AttributeProto, NodeProto, SparseTensorProto, StringStringEntryProto, TensorProto};
use crate::sparse::sparse_attribute;

/// An initializer that was represented by a node.
pub(crate) enum KeptInitializer {
    /// A sparse initializer.
    Sparse(Box<SparseTensorProto>),
    /// A dense initializer.
    Tensor(Box<TensorProto>),
}

/// Returns the node that represents a sparse initializer.
pub(crate) fn node_of_sparse(mut sparse: SparseTensorProto) -> NodeProto {
    let values = sparse.values.get_or_insert_default();
    let node = marked(values, keys::SPARSE);
    NodeProto { attribute: vec![sparse_attribute(sparse)], ..node }
}

/// Returns the node that represents a dense initializer.
pub(crate) fn node_of_tensor(mut tensor: TensorProto) -> NodeProto {
    let node = marked(&mut tensor, keys::INITIALIZER);
    NodeProto { attribute: vec![tensor_attribute("value", tensor)], ..node }
}

/// Returns a marked node with the name, the doc string and the metadata of a tensor, which it
/// takes.
fn marked(tensor: &mut TensorProto, mark: &str) -> NodeProto {
    let name = tensor.name.take().unwrap_or_default();
    let mut metadata_props = std::mem::take(&mut tensor.metadata_props);
    metadata_props.push(StringStringEntryProto { key: Some(mark.to_owned()), value: Some(String::new()) });
    NodeProto {
        op_type: Some("Constant".to_owned()),
        output: vec![name],
        doc_string: tensor.doc_string.take(),
        metadata_props,
        ..NodeProto::default()
    }
}

fn is_mark(entry: &StringStringEntryProto) -> bool {
    matches!(entry.key(), keys::SPARSE | keys::INITIALIZER)
}

/// Returns true if a node with this metadata represents an initializer.
pub(crate) fn is_initializer(metadata: &[StringStringEntryProto]) -> bool {
    metadata.last().is_some_and(is_mark)
}

/// Returns the initializer that a node represents. If the node does not represent an initializer
/// any more, returns the node without the mark.
pub(crate) fn initializer_of_node(mut node: NodeProto) -> Result<KeptInitializer, Box<NodeProto>> {
    node.metadata_props.retain(|e| !is_mark(e));
    let is_constant = node.op_type() == "Constant" && is_standard(node.domain()) && node.name().is_empty();
    let ([attribute], [name]) = (node.attribute.as_mut_slice(), node.output.as_slice()) else {
        return Err(Box::new(node));
    };
    let mut initializer = match attribute {
        AttributeProto { sparse_tensor: Some(sparse), .. } if is_constant => {
            KeptInitializer::Sparse(std::mem::take(sparse))
        }
        AttributeProto { t: Some(tensor), .. } if is_constant => KeptInitializer::Tensor(std::mem::take(tensor)),
        _ => return Err(Box::new(node)),
    };
    let tensor = match &mut initializer {
        KeptInitializer::Sparse(sparse) => sparse.values.get_or_insert_default(),
        KeptInitializer::Tensor(tensor) => tensor,
    };
    tensor.name = Some(name.clone());
    tensor.doc_string = node.doc_string;
    tensor.metadata_props = node.metadata_props;
    Ok(initializer)
}
