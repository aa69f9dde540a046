//! The first version in which an operator takes an element type, if that is not the operator's
//! first version. The data is from the schemas of the PyPI package `onnx` 1.23
//! (`onnx.defs.get_all_schemas_with_history`), for versions from 7 on.

use std::sync::LazyLock;

use anfora_ir::DType;
use rustc_hash::FxHashMap;

/// The side of an operator whose element type is looked up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The first input.
    Input,
    /// The first output.
    Output,
}

/// The first version in which an operator takes an element type.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Since {
    /// The first version of the operator, or no version is known.
    First,
    /// This version.
    Version(i64),
    /// No version takes the element type.
    Never,
}

const BOOL: u32 = 1 << DType::Bool as u32;
const INT8: u32 = 1 << DType::Int8 as u32;
const INT16: u32 = 1 << DType::Int16 as u32;
const INT32: u32 = 1 << DType::Int32 as u32;
const INT64: u32 = 1 << DType::Int64 as u32;
const UINT8: u32 = 1 << DType::UInt8 as u32;
const UINT16: u32 = 1 << DType::UInt16 as u32;
const UINT32: u32 = 1 << DType::UInt32 as u32;
const UINT64: u32 = 1 << DType::UInt64 as u32;
const FLOAT16: u32 = 1 << DType::Float16 as u32;
const BFLOAT16: u32 = 1 << DType::BFloat16 as u32;
const FLOAT32: u32 = 1 << DType::Float32 as u32;
const FLOAT64: u32 = 1 << DType::Float64 as u32;

const INT2: u32 = 1 << DType::Int2 as u32;
const UINT2: u32 = 1 << DType::UInt2 as u32;
const INT4: u32 = 1 << DType::Int4 as u32;
const UINT4: u32 = 1 << DType::UInt4 as u32;
const FLOAT4: u32 = 1 << DType::Float4E2M1 as u32;
const POWERS: u32 = 1 << DType::Float8E8M0 as u32;
/// The floats of 8 bits but float8e8m0, which was added later.
const FLOAT8: u32 = 1 << DType::Float8E4M3FN as u32
    | 1 << DType::Float8E4M3FNUZ as u32
    | 1 << DType::Float8E5M2 as u32
    | 1 << DType::Float8E5M2FNUZ as u32;
const HALF_BYTES: u32 = INT4 | UINT4;
const QUARTERS: u32 = INT2 | UINT2;

/// Integers of 8 or 16 bits.
const SMALL: u32 = INT8 | INT16 | UINT8 | UINT16;
/// Integers of 32 or 64 bits.
const WIDE: u32 = INT32 | INT64 | UINT32 | UINT64;
const SIGNED: u32 = INT8 | INT16 | INT32 | INT64;
const UNSIGNED: u32 = UINT8 | UINT16 | UINT32 | UINT64;
const BYTES: u32 = INT8 | UINT8;
const INTEGERS: u32 = SMALL | WIDE;
/// Floats without bfloat16, which was added later.
const FLOATS: u32 = FLOAT16 | FLOAT32 | FLOAT64;
const HALVES: u32 = FLOAT16 | BFLOAT16;
const NUMBERS: u32 = INTEGERS | FLOATS;
/// All types but bfloat16.
const OLD: u32 = BOOL | NUMBERS;
const COMPUTED: u32 = OLD | BFLOAT16;

const BOTH: &[Side] = &[Side::Input, Side::Output];
const INPUT: &[Side] = &[Side::Input];
const OUTPUT: &[Side] = &[Side::Output];

/// The sides, the sets of types with the version that added each (0 for the first version), and the
/// operators.
pub(crate) type Row = (&'static [Side], &'static [(i64, u32)], &'static [&'static str]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (BOTH, &[(0, OLD), (13, BFLOAT16), (19, FLOAT8), (21, HALF_BYTES), (23, FLOAT4), (24, POWERS), (25, QUARTERS)], &["Cast"]),
    (BOTH, &[(0, NUMBERS), (13, BFLOAT16)], &["Abs", "Erf", "Mod", "Sign"]),
    (BOTH, &[(0, OLD), (13, BFLOAT16)], &[
        "Concat", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "Resize",
        "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    ]),
    (BOTH, &[(0, FLOATS), (13, BFLOAT16)], &[
        "Ceil", "Dropout", "Exp", "Floor", "Hardmax", "LRN", "Log", "LogSoftmax", "Mean", "MeanVarianceNormalization",
        "Reciprocal", "Sigmoid", "Softmax", "SoftmaxCrossEntropyLoss", "Sqrt", "Sum", "Tanh",
    ]),
    (BOTH, &[(0, FLOATS), (12, INTEGERS), (13, BFLOAT16)], &["Clip", "Max", "Min"]),
    (BOTH, &[(0, FLOATS), (9, INTEGERS | BOOL), (13, BFLOAT16)], &["Flatten"]),
    (BOTH, &[(0, FLOATS), (9, WIDE), (13, BFLOAT16)], &["Gemm", "MatMul"]),
    (BOTH, &[(0, SIGNED | FLOATS), (13, BFLOAT16)], &["Neg"]),
    (BOTH, &[(0, FLOATS), (11, INTEGERS), (13, BOOL | BFLOAT16)], &["Pad"]),
    (BOTH, &[(0, FLOATS), (12, INT32 | INT64), (13, BFLOAT16)], &["Pow"]),
    (BOTH, &[(0, WIDE | FLOATS), (13, BFLOAT16)], &[
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
    ]),
    (BOTH, &[(0, WIDE | FLOATS), (13, BFLOAT16), (14, SMALL)], &["Add", "Div", "Mul", "Sub"]),
    (BOTH, &[(0, FLOATS), (14, BFLOAT16)], &["BatchNormalization"]),
    (BOTH, &[(0, WIDE | FLOAT32 | FLOAT64), (14, HALVES)], &["CumSum"]),
    (BOTH, &[(0, FLOATS), (13, BFLOAT16), (14, SIGNED)], &["Relu"]),
    (BOTH, &[(0, FLOATS), (16, BFLOAT16)], &["LeakyRelu"]),
    (BOTH, &[(0, FLOATS), (9, WIDE), (16, BFLOAT16)], &["PRelu"]),
    (BOTH, &[(0, WIDE | FLOATS), (12, BYTES), (13, BFLOAT16), (20, BOOL)], &["ReduceMax", "ReduceMin"]),
    (BOTH, &[(0, FLOATS), (22, BFLOAT16)], &[
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "Conv", "ConvTranspose", "Cos", "Cosh", "Det", "Elu",
        "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "InstanceNormalization",
        "LpNormalization", "LpPool", "MaxUnpool", "Mish", "NegativeLogLikelihoodLoss", "Round", "Selu", "Sin", "Sinh",
        "Softplus", "Softsign", "Tan", "ThresholdedRelu",
    ]),
    (BOTH, &[(0, OLD), (22, BFLOAT16)], &["EyeLike", "GridSample"]),
    (BOTH, &[(0, FLOATS), (22, BFLOAT16)], &["GRU", "LSTM", "RNN"]),
    (BOTH, &[(0, FLOAT32 | HALVES)], &["CausalConvWithState", "LinearAttention", "RotaryEmbedding"]),
    (BOTH, &[(0, FLOATS), (12, BYTES), (22, BFLOAT16)], &["MaxPool"]),
    (BOTH, &[(0, FLOATS), (11, INTEGERS), (24, BFLOAT16)], &["TopK"]),
    (BOTH, &[(0, INT16 | INT32 | INT64 | FLOAT32 | FLOAT64), (27, HALVES)], &["Range"]),
    (BOTH, &[(0, UNSIGNED), (28, SIGNED)], &["BitShift"]),
    (BOTH, &[(0, FLOAT32), (28, HALVES | FLOAT64)], &["Celu"]),
    (BOTH, &[(0, OLD), (28, BFLOAT16)], &["Compress", "ReverseSequence", "Unique"]),
    (BOTH, &[(0, NUMBERS), (28, BFLOAT16)], &["Einsum"]),
    (INPUT, &[(0, NUMBERS), (13, BFLOAT16)], &["ArgMax", "ArgMin"]),
    (INPUT, &[(0, INT32 | INT64 | BOOL), (11, SMALL | UINT32 | UINT64 | FLOATS), (13, BFLOAT16)], &["Equal"]),
    (INPUT, &[(0, FLOATS), (9, INTEGERS), (13, BFLOAT16)], &["Greater", "Less"]),
    (INPUT, &[(0, FLOATS), (13, BFLOAT16)], &["IsNaN"]),
    (INPUT, &[(0, OLD), (13, BFLOAT16)], &["NonZero", "Shape", "Size"]),
    (INPUT, &[(0, NUMBERS), (16, BFLOAT16)], &["GreaterOrEqual", "LessOrEqual"]),
    (INPUT, &[(0, INT32 | FLOAT32), (19, HALVES)], &["QuantizeLinear"]),
    (INPUT, &[(0, FLOAT32 | FLOAT64), (20, HALVES)], &["IsInf"]),
    (INPUT, &[
        (0, BYTES | INT32), (19, FLOAT8), (21, INT16 | UINT16 | HALF_BYTES), (23, FLOAT4), (25, QUARTERS),
    ], &["DequantizeLinear"]),
    (OUTPUT, &[(0, OLD), (16, BFLOAT16)], &["Where"]),
    (OUTPUT, &[(0, FLOAT32), (19, HALVES)], &["DequantizeLinear"]),
    (OUTPUT, &[(0, OLD), (20, BFLOAT16)], &["ConstantOfShape"]),
    (OUTPUT, &[
        (0, BYTES), (19, FLOAT8), (21, INT16 | UINT16 | HALF_BYTES), (23, FLOAT4), (25, QUARTERS),
    ], &["QuantizeLinear"]),
    (OUTPUT, &[(0, OLD), (28, BFLOAT16)], &["OneHot"]),
];

/// The rows of each operator.
static BY_OPERATOR: LazyLock<FxHashMap<&'static str, Vec<&'static Row>>> = LazyLock::new(|| {
    let mut rows: FxHashMap<&'static str, Vec<&'static Row>> = FxHashMap::default();
    for row in ROWS {
        for &operator in row.2 {
            rows.entry(operator).or_default().push(row);
        }
    }
    rows
});

/// Returns the rows of an operator.
pub(crate) fn rows_of(onnx: &str) -> &'static [&'static Row] {
    BY_OPERATOR.get(onnx).map_or(&[][..], Vec::as_slice)
}

/// Returns the first version in which the operator of these rows takes elements of a type on a
/// side.
pub(crate) fn since(rows: &[&Row], side: Side, dtype: DType) -> Since {
    let bit = 1u32.checked_shl(dtype as u32).unwrap_or(0);
    let Some((_, versions, _)) = rows.iter().find(|(sides, ..)| sides.contains(&side)) else { return Since::First };
    match versions.iter().find(|(_, types)| types & bit != 0) {
        Some(&(0, _)) => Since::First,
        Some(&(version, _)) => Since::Version(version),
        None if bit & COMPUTED == 0 && !lists_small_numbers(versions) => Since::First,
        None => Since::Never,
    }
}

/// Returns true if a row lists element types that no kernel computes with. Other rows say nothing
/// about these.
fn lists_small_numbers(versions: &[(i64, u32)]) -> bool {
    versions.iter().any(|(_, types)| types & !COMPUTED != 0)
}
