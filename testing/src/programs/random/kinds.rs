//! The kinds of value that the programs compute with, the values in scope, and constants.

use anfora_ir::{BuildError, Context, DType, DimId, Element, ExprId, Literal, TypeId};
use half::{bf16, f16};

use super::{Generator, Vocabulary};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Eight floats; in regions to fuse four, and in arithmetic one int32.
    Vector,
    /// Two by eight floats; in regions to fuse four by four.
    Matrix,
    Scalar,
    /// One int64.
    Int,
    Bool,
    /// Three elements of the type with this index in [`DTYPES`].
    Three(u8),
    /// A tuple of a vector and a scalar; in regions to fuse, of a matrix and a vector.
    Pair,
    /// A tuple of a pair, and of an int and a pair.
    Nested,
    /// A function from a vector to a vector.
    Function,
    /// A tuple of a function and a vector.
    Holder,
    /// A vector of floats, whose length is the first symbol of the function; in regions to fuse, as
    /// many rows of four.
    Dynamic,
    /// Two by four floats.
    Half,
    /// A tuple of two halves.
    Halves,
    /// Five by four floats.
    Tall,
}

/// Element types other than those of the main kinds.
pub(super) const DTYPES: [DType; 11] = [
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Float16,
    DType::BFloat16,
    DType::Float64,
];

const KINDS: usize = 13 + DTYPES.len();

impl Kind {
    pub(super) const TENSORS: [Kind; 5] = [Kind::Vector, Kind::Matrix, Kind::Scalar, Kind::Int, Kind::Bool];

    fn index(self) -> usize {
        match self {
            Kind::Vector => 0,
            Kind::Matrix => 1,
            Kind::Scalar => 2,
            Kind::Int => 3,
            Kind::Bool => 4,
            Kind::Pair => 5,
            Kind::Nested => 6,
            Kind::Function => 7,
            Kind::Holder => 8,
            Kind::Dynamic => 9,
            Kind::Half => 10,
            Kind::Halves => 11,
            Kind::Tall => 12,
            Kind::Three(dtype) => 13 + usize::from(dtype),
        }
    }
}

pub(super) struct Types {
    ids: [TypeId; KINDS],
    /// The type of a function from a vector to a function.
    pub(super) maker: TypeId,
    /// True if [`Kind::Dynamic`] is a type of this function.
    pub(super) has_dynamic: bool,
}

impl Types {
    pub(super) fn new(cx: &mut Context, vocabulary: Vocabulary) -> Types {
        match vocabulary {
            Vocabulary::Whole => Types::whole(cx),
            _ => Types::narrow(cx, vocabulary),
        }
    }

    /// Returns the types of a part of the language. Kinds that it does not have are units.
    fn narrow(cx: &mut Context, vocabulary: Vocabulary) -> Types {
        let types = &mut cx.types;
        let mut ids = [types.unit(); KINDS];
        let mut set = |kind: Kind, ty| ids[kind.index()] = ty;
        let vector = match vocabulary {
            Vocabulary::Arithmetic => types.scalar(DType::Int32),
            _ => types.static_tensor(DType::Float32, &[4]),
        };
        let (matrix, half) =
            (types.static_tensor(DType::Float32, &[4, 4]), types.static_tensor(DType::Float32, &[2, 4]));
        set(Kind::Vector, vector);
        set(Kind::Matrix, matrix);
        set(Kind::Bool, types.scalar(DType::Bool));
        set(Kind::Pair, types.tuple(&[matrix, vector]));
        let function = types.function(&[vector], vector, &[]);
        set(Kind::Function, function);
        set(Kind::Half, half);
        set(Kind::Halves, types.tuple(&[half, half]));
        set(Kind::Tall, types.static_tensor(DType::Float32, &[5, 4]));
        let maker = types.function(&[vector], function, &[]);
        Types { ids, maker, has_dynamic: false }
    }

    fn whole(cx: &mut Context) -> Types {
        let types = &mut cx.types;
        let mut ids = [types.unit(); KINDS];
        let (vector, scalar) = (types.static_tensor(DType::Float32, &[8]), types.scalar(DType::Float32));
        let (int, function) = (types.scalar(DType::Int64), types.function(&[vector], vector, &[]));
        let pair = types.tuple(&[vector, scalar]);
        let int_pair = types.tuple(&[int, pair]);
        let mut set = |kind: Kind, ty| ids[kind.index()] = ty;
        set(Kind::Vector, vector);
        set(Kind::Matrix, types.static_tensor(DType::Float32, &[2, 8]));
        set(Kind::Scalar, scalar);
        set(Kind::Int, int);
        set(Kind::Bool, types.scalar(DType::Bool));
        set(Kind::Pair, pair);
        set(Kind::Nested, types.tuple(&[pair, int_pair]));
        set(Kind::Function, function);
        set(Kind::Holder, types.tuple(&[function, vector]));
        for (i, &dtype) in DTYPES.iter().enumerate() {
            set(Kind::Three(i as u8), types.static_tensor(dtype, &[3]));
        }
        let maker = types.function(&[vector], function, &[]);
        Types { ids, maker, has_dynamic: false }
    }

    pub(super) fn bind_length(&mut self, cx: &mut Context, length: DimId, vocabulary: Vocabulary) {
        let four = vocabulary.is_regions().then(|| cx.types.dims.constant(4));
        let extents: Vec<DimId> = [length].into_iter().chain(four).collect();
        self.ids[Kind::Dynamic.index()] = cx.types.tensor(DType::Float32, &extents);
        self.has_dynamic = true;
    }

    pub(super) fn of(&self, kind: Kind) -> TypeId {
        self.ids[kind.index()]
    }
}

/// The values in scope, by kind, oldest first.
pub(super) struct Values([Vec<ExprId>; KINDS]);

/// The numbers of values in scope, by kind.
#[derive(Copy, Clone)]
pub(super) struct Mark([usize; KINDS]);

impl Values {
    pub(super) fn new() -> Values {
        Values(std::array::from_fn(|_| Vec::new()))
    }

    pub(super) fn push(&mut self, kind: Kind, id: ExprId) {
        self.0[kind.index()].push(id);
    }

    pub(super) fn of(&self, kind: Kind) -> &[ExprId] {
        &self.0[kind.index()]
    }

    /// Returns the values since the mark, kind by kind.
    pub(super) fn since(&self, mark: &Mark) -> impl Iterator<Item = ExprId> {
        self.0.iter().zip(mark.0).flat_map(|(list, len)| list[len..].iter().copied())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(std::array::from_fn(|i| self.0[i].len()))
    }

    pub(super) fn truncate(&mut self, mark: Mark) {
        for (list, len) in self.0.iter_mut().zip(mark.0) {
            list.truncate(len);
        }
    }

    /// Removes the values since the mark for which `keep` returns false.
    pub(super) fn retain_since(&mut self, mark: Mark, keep: impl Fn(ExprId) -> bool) {
        for (list, len) in self.0.iter_mut().zip(mark.0) {
            let mut end = len;
            for i in len..list.len() {
                if keep(list[i]) {
                    list[end] = list[i];
                    end += 1;
                }
            }
            list.truncate(end);
        }
    }
}

/// Floats that expose errors. The last two are NaNs with payloads of their own.
const FLOATS: [u32; 14] = [
    0x0000_0000,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x4050_0000,
    0x7149_f2ca,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0000_0001,
    0x7f7f_ffff,
    0x7fc0_1234,
    0xffc0_0001,
];

const INTS: [i64; 10] = [0, 1, -1, 2, 7, 127, -128, 1 << 40, i64::MAX, i64::MIN];

fn three<T: Element>(elements: [T; 3]) -> Literal {
    if elements.iter().all(|e| *e == elements[0]) {
        return Literal::splat(&[3], elements[0]);
    }
    Literal::from_elements(&[3], &elements).expect("three elements of a shape of three")
}

impl Generator<'_> {
    /// Returns a visible value of a kind, preferably a recent one. Returns a constant if there is
    /// no value of the kind, and sometimes otherwise.
    pub(super) fn pick(&mut self, kind: Kind) -> Result<ExprId, BuildError> {
        let constant = !self.vocabulary.is_regions()
            && matches!(kind, Kind::Vector | Kind::Matrix | Kind::Scalar | Kind::Int | Kind::Bool);
        let list = &self.values.0[kind.index()];
        if list.is_empty() || (constant && self.rng.one_in(6)) {
            return self.constant(kind);
        }
        let from = if self.rng.one_in(2) { list.len().saturating_sub(6) } else { 0 };
        Ok(list[from + self.rng.below(list.len() - from)])
    }

    pub(super) fn float(&mut self) -> f32 {
        f32::from_bits(self.rng.choose(&FLOATS))
    }

    fn elements(&mut self, dtype: DType) -> Literal {
        let ints: [i64; 3] = std::array::from_fn(|_| self.rng.choose(&INTS));
        let floats: [f32; 3] = std::array::from_fn(|_| self.float());
        match dtype {
            DType::Int8 => three(ints.map(|i| i as i8)),
            DType::Int16 => three(ints.map(|i| i as i16)),
            DType::Int32 => three(ints.map(|i| i as i32)),
            DType::UInt8 => three(ints.map(|i| i as u8)),
            DType::UInt16 => three(ints.map(|i| i as u16)),
            DType::UInt32 => three(ints.map(|i| i as u32)),
            DType::UInt64 => three(ints.map(|i| i as u64)),
            DType::Float16 => three(floats.map(f16::from_f32)),
            DType::BFloat16 => three(floats.map(bf16::from_f32)),
            DType::Float64 => three(floats.map(f64::from)),
            _ => three(ints),
        }
    }

    pub(super) fn constant(&mut self, kind: Kind) -> Result<ExprId, BuildError> {
        let literal = match kind {
            Kind::Vector if self.vocabulary == Vocabulary::Arithmetic => Literal::scalar(self.rng.below(3) as i32),
            Kind::Vector if self.rng.one_in(2) => {
                let elements: Vec<f32> = (0..8).map(|i| i as f32 - self.rng.below(8) as f32).collect();
                Literal::from_elements(&[8], &elements).expect("eight elements of a shape of eight")
            }
            Kind::Vector => Literal::splat(&[8], self.float()),
            Kind::Matrix => Literal::splat(&[2, 8], self.float()),
            Kind::Scalar => Literal::scalar(self.float()),
            Kind::Int => Literal::scalar(self.rng.choose(&INTS)),
            Kind::Bool => Literal::scalar(self.rng.one_in(2)),
            Kind::Three(dtype) => self.elements(DTYPES[usize::from(dtype)]),
            Kind::Pair => {
                let (v, s) = (self.pick(Kind::Vector)?, self.pick(Kind::Scalar)?);
                let pair = self.b.tuple(&[v, s]);
                return Ok(self.bind(pair, kind));
            }
            Kind::Nested => {
                let (pair, int, other) = (self.pick(Kind::Pair)?, self.pick(Kind::Int)?, self.pick(Kind::Pair)?);
                let inner = self.b.tuple(&[int, other]);
                let inner = self.unnamed(inner);
                let nested = self.b.tuple(&[pair, inner]);
                return Ok(self.bind(nested, kind));
            }
            Kind::Function => return self.small_lambda(),
            Kind::Holder => {
                let (f, v) = (self.pick(Kind::Function)?, self.pick(Kind::Vector)?);
                let holder = self.b.tuple(&[f, v]);
                return Ok(self.bind(holder, kind));
            }
            // A parameter has this kind, or only what is known to be in scope is asked for.
            Kind::Dynamic | Kind::Half | Kind::Halves | Kind::Tall => {
                unreachable!("only functions that have a value of this kind ask for one")
            }
        };
        Ok(self.b.literal(literal))
    }
}
