//! Operators of the domain `com.microsoft`, which onnxruntime defines.

use anfora_ir::{DType, TypeId};

use super::node_types::NodeTypes;
use super::reductions::{matrix_product_of, reduced_by_attribute};
use super::row::ElementType::{Attribute, Is, Of};
use super::row::ExtentOf::{self, Unknown};
use super::row::OutputExtents::{Are, Broadcast, By, Like, Ours, RankOf, Unranked};
use super::row::OutputType::{self, Tensor};
use super::row::{
    BOOL, BROADCAST, FIRST, FLOAT, INT32, INT64, LIKE_FIRST, OutputShape, RANK_OF_FIRST, SCALAR, SECOND, Signature,
};
use super::rules;
use super::windows::recurrent;

const BATCH: ExtentOf = ExtentOf::Of(0, 0);
/// The length of the sequences, or the channels.
const NEXT: ExtentOf = ExtentOf::Of(0, 1);
const INT8: DType = DType::Int8;

/// The attention that each element of the sequences of the first operand gets.
const ATTENDED: OutputType = Tensor(FIRST, Are(&[BATCH, NEXT, Unknown]));
/// Keys and values in one tensor.
const KEYS_AND_VALUES: OutputType = Tensor(FIRST, Are(&[ExtentOf::Is(2), Unknown, Unknown, Unknown, Unknown]));
/// Keys, values or weights by batch and head.
const BY_HEAD: OutputType = Tensor(FIRST, Are(&[Unknown; 4]));
const CACHED: OutputType = Tensor(&[Of(3)], Are(&[Unknown; 4]));
const UNRANKED: OutputType = Tensor(FIRST, Unranked);
const BATCHES: OutputType = Tensor(FIRST, RankOf(0, &[BATCH]));
const PRODUCT: OutputType = Tensor(FIRST, Ours("matmul", &[0, 1]));
const INT64_LIST: OutputType = Tensor(INT64, Are(&[Unknown]));

pub(super) const ROWS: &[Signature] = &[
    // Activations, normalisations and other operators that change no extents.
    Signature::of(
        &[
            "BiasAdd",
            "BiasGelu",
            "BiasSoftmax",
            "FastGelu",
            "Gelu",
            "GroupNorm",
            "Inverse",
            "LongformerAttention",
            "MoE",
            "QLinearLeakyRelu",
            "QLinearSigmoid",
            "QLinearSoftmax",
            "QMoE",
            "QOrderedGelu",
            "QOrderedLayerNormalization",
            "QuickGelu",
            "RotaryEmbedding",
            "Trilu",
        ],
        &[LIKE_FIRST],
    ),
    Signature::of(&["BiasSplitGelu"], &[Tensor(FIRST, RankOf(0, &[BATCH, NEXT]))]),
    Signature::of(&["SkipGroupNorm"], &[LIKE_FIRST, LIKE_FIRST]),
    Signature::of(
        &["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"],
        &[LIKE_FIRST, Tensor(FLOAT, Unranked), Tensor(FLOAT, Unranked), LIKE_FIRST],
    ),
    Signature::of(
        &["EmbedLayerNormalization"],
        &[
            Tensor(&[Of(2)], Are(&[BATCH, NEXT, ExtentOf::Of(2, 1)])),
            Tensor(FIRST, Are(&[BATCH])),
            Tensor(&[Of(2)], Are(&[BATCH, NEXT, ExtentOf::Of(2, 1)])),
        ],
    ),
    Signature::of(
        &["QEmbedLayerNormalization"],
        &[Tensor(&[Of(8)], Are(&[BATCH, NEXT, ExtentOf::Of(2, 1)])), Tensor(FIRST, Are(&[BATCH]))],
    ),
    Signature::of(&["GemmaRotaryEmbedding"], &[Tensor(SECOND, Like(1)), Tensor(SECOND, Like(3))]),
    Signature::of(&["NGramRepeatBlock"], &[Tensor(SECOND, Like(1))]),
    // Attention.
    Signature::of(&["Attention", "DecoderMaskedSelfAttention"], &[ATTENDED, KEYS_AND_VALUES]),
    Signature::of(
        &["QAttention"],
        &[
            Tensor(&[Of(2)], Are(&[BATCH, NEXT, Unknown])),
            Tensor(&[Of(2)], Are(&[ExtentOf::Is(2), Unknown, Unknown, Unknown, Unknown])),
        ],
    ),
    Signature::of(&["QOrderedAttention"], &[ATTENDED]),
    // The element type of the weights is one that the kernel selects.
    Signature::of(
        &["DecoderMaskedMultiHeadAttention", "MultiHeadAttention"],
        &[ATTENDED, BY_HEAD, BY_HEAD, Tensor(&[], Unranked)],
    ),
    Signature::of(&["GroupQueryAttention"], &[ATTENDED, CACHED, CACHED, BY_HEAD]),
    Signature::of(&["SparseAttention"], &[ATTENDED, Tensor(FIRST, Like(3)), Tensor(FIRST, Like(4))]),
    Signature::of(&["DecoderAttention"], &[LIKE_FIRST, BY_HEAD, BY_HEAD]),
    Signature::of(&["PackedAttention", "PackedMultiHeadAttention"], &[Tensor(FIRST, Are(&[BATCH, Unknown]))]),
    Signature::of(&["LinearAttention"], &[ATTENDED, Tensor(&[Of(3)], Unranked)]),
    // Attributes select channels, the layout of the state, and whether updates are an output.
    Signature::of(&["CausalConvWithState"], &[UNRANKED, UNRANKED, UNRANKED]),
    Signature::of(&["GatedRelativePositionBias"], &[BY_HEAD]),
    Signature::of(&["RelativePositionBias"], &[Tensor(FIRST, Are(&[ExtentOf::Is(1), Unknown, Unknown, Unknown]))]),
    Signature::of(
        &["RemovePadding"],
        &[
            Tensor(FIRST, Are(&[Unknown, ExtentOf::Of(0, 2)])),
            Tensor(SECOND, Are(&[BATCH, NEXT])),
            Tensor(SECOND, Are(&[Unknown])),
            Tensor(SECOND, Are(&[ExtentOf::Is(1)])),
        ],
    ),
    Signature::of(
        &["RestorePadding"],
        &[Tensor(FIRST, Are(&[ExtentOf::Of(1, 0), ExtentOf::Of(1, 1), ExtentOf::Of(0, 1)]))],
    ),
    Signature::of(
        &["BeamSearch"],
        &[Tensor(SECOND, Are(&[Unknown; 3])), Tensor(&[Of(5)], Unranked), Tensor(&[Of(5)], Unranked)],
    ),
    Signature::of(&["GreedySearch"], &[Tensor(FIRST, Are(&[BATCH, Unknown]))]),
    Signature::of(&["Sampling"], &[Tensor(FIRST, Are(&[BATCH, Unknown])), Tensor(&[Of(3)], Unranked)]).impure(),
    // Products of matrices.
    Signature::of(&["DynamicQuantizeMatMul", "GemmFastGelu"], &[PRODUCT]),
    Signature::of(&["FusedMatMul", "FusedMatMulActivation", "TransposeMatMul"], &[Tensor(FIRST, By(fused_product))]),
    Signature::of(&["FusedGemm"], &[Tensor(FIRST, By(|node| matrix_product_of(node, 0, 1)))]),
    Signature::of(&["QGemm"], &[Tensor(&[Of(8), Is(DType::Float32)], By(|node| matrix_product_of(node, 0, 3)))]),
    Signature::of(&["MatMulIntegerToFloat"], &[Tensor(&[Of(2)], Ours("matmul", &[0, 1]))]),
    Signature::of(&["MatMulNBits"], &[Tensor(FIRST, By(by_columns))]),
    Signature::of(&["MatMulBnb4", "MatMulFpQ4", "QOrderedMatMul"], &[UNRANKED]),
    Signature::of(&["SparseToDenseMatMul"], &[Tensor(SECOND, Unranked)]),
    // Convolutions and pools.
    Signature::of(&["FusedConv"], &[Tensor(FIRST, RankOf(0, &[BATCH, ExtentOf::Of(1, 0)]))]),
    Signature::of(
        &[
            "ConvTransposeWithDynamicPads",
            "NhwcConv",
            "NhwcFusedConv",
            "NhwcMaxPool",
            "QLinearAveragePool",
            "QLinearGlobalAveragePool",
        ],
        &[BATCHES],
    ),
    Signature::of(&["QLinearConv"], &[Tensor(&[Of(7)], RankOf(0, &[BATCH]))]),
    Signature::of(&["MaxpoolWithMask"], &[Tensor(FIRST, RankOf(0, &[BATCH, NEXT]))]),
    Signature::of(&["CropAndResize"], &[Tensor(FIRST, Are(&[ExtentOf::Of(1, 0), NEXT, Unknown, Unknown]))]),
    Signature::of(
        &["DynamicQuantizeLSTM"],
        &[OutputType::By(recurrent_of_size), OutputType::By(recurrent_of_size), OutputType::By(recurrent_of_size)],
    ),
    // Quantised numbers.
    Signature::of(&["QuantizeLinear"], &[Tensor(&[Of(2), Is(DType::UInt8)], Like(0))]),
    Signature::of(&["DequantizeLinear"], &[Tensor(SECOND, Like(0))]),
    Signature::of(&["QuantizeWithOrder"], &[Tensor(&[Is(INT8)], Like(0))]),
    Signature::of(&["DequantizeWithOrder"], &[Tensor(&[Attribute("to")], Like(0))]),
    Signature::of(&["QLinearAdd", "QLinearMul"], &[Tensor(FIRST, Broadcast(&[0, 3]))]),
    Signature::of(&["QLinearWhere"], &[Tensor(SECOND, Broadcast(&[0, 1, 4]))]),
    Signature::of(&["QLinearConcat"], &[Tensor(SECOND, RankOf(2, &[]))]),
    Signature::of(&["QLinearReduceMean"], &[Tensor(FIRST, By(reduced_by_attribute))]),
    Signature::of(&["GatherBlockQuantized"], &[Tensor(&[Of(2)], Unranked)]),
    Signature::of(&["MulInteger"], &[Tensor(INT32, Broadcast(&[0, 2]))]),
    // Others.
    Signature::of(&["BiasDropout"], &[LIKE_FIRST, Tensor(BOOL, Like(0))]).impure(),
    Signature::of(
        &["BitmaskBiasDropout", "BitmaskDropout"],
        &[LIKE_FIRST, Tensor(&[Is(DType::UInt32)], Are(&[Unknown]))],
    )
    .impure(),
    Signature::of(&["CDist"], &[Tensor(FIRST, Are(&[BATCH, ExtentOf::Of(1, 0)]))]),
    Signature::of(&["ComplexMul", "ComplexMulConj"], &[BROADCAST]),
    Signature::of(&["DynamicTimeWarping"], &[Tensor(INT32, Are(&[ExtentOf::Is(2), Unknown]))]),
    Signature::of(&["ExpandDims", "Irfft", "Rfft", "UnfoldTensor"], &[UNRANKED]),
    Signature::of(&["GatherND"], &[Tensor(FIRST, By(rules::gathered_nd))]),
    Signature::of(&["IsAllFinite"], &[Tensor(BOOL, SCALAR)]),
    Signature::of(&["Pad"], &[RANK_OF_FIRST]),
    Signature::of(&["Range"], &[Tensor(FIRST, Are(&[Unknown]))]),
    Signature::of(&["Tokenizer"], &[Tensor(FIRST, By(rules::with_last_extent))]),
    Signature::of(&["TorchEmbedding"], &[Tensor(FIRST, By(rules::gathered))]),
    Signature::of(&["Unique"], &[Tensor(FIRST, Are(&[Unknown])), INT64_LIST, INT64_LIST]),
];

/// Those of the product of matrices, which may be transposed.
fn fused_product(node: &mut NodeTypes<'_>) -> OutputShape {
    let flags = ["transA", "transB", "transBatchA", "transBatchB"];
    if flags.iter().all(|flag| node.int(flag).unwrap_or(0) == 0) {
        return node.shape_by_ours("matmul", &[0, 1]);
    }
    match (node.rank(0)?, node.rank(1)?) {
        (a @ 2.., b @ 2..) => Some(node.unknown(a.max(b))),
        _ => None,
    }
}

/// Those of the first operand, with the number of columns of the weights on the last axis.
fn by_columns(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    let columns = node.int("N").map_or(node.cx.types.dims.unknown(), |n| node.constant(n));
    *shape.last_mut()? = columns;
    Some(shape)
}

/// Returns the type of a recurrent node whose weights do not show the number of elements of a
/// state.
fn recurrent_of_size(node: &mut NodeTypes<'_>) -> TypeId {
    match node.int("hidden_size") {
        Some(_) => recurrent(node),
        None => node.tensor_like(0, None),
    }
}
