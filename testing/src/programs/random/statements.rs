//! Statements: each adds a value to the scope, or has an effect.

use anfora_ir::{Attr, AttrId, BuildError, DType, Element, ExprId, Literal};

use super::blocks::Frame;
use super::kinds::{DTYPES, Kind};
use super::rng::Rng;
use super::{Generator, Role, Vocabulary};

const FLOATS: [Kind; 3] = [Kind::Vector, Kind::Matrix, Kind::Scalar];

impl Generator<'_> {
    pub(super) fn any_three(&mut self) -> Kind {
        Kind::Three(self.rng.below(DTYPES.len()) as u8)
    }

    fn any_kind(&mut self) -> Kind {
        let three = self.any_three();
        let others = [Kind::Pair, Kind::Nested, Kind::Function, Kind::Holder, three];
        if self.rng.one_in(2) { self.rng.choose(&Kind::TENSORS) } else { self.rng.choose(&others) }
    }

    pub(super) fn statement(&mut self) -> Result<(), BuildError> {
        match self.vocabulary {
            Vocabulary::Whole => self.whole_statement(),
            Vocabulary::Arithmetic => self.arithmetic_statement(),
            Vocabulary::Regions | Vocabulary::OnnxRegions => self.region_statement(),
        }
    }

    fn whole_statement(&mut self) -> Result<(), BuildError> {
        if self.rng.one_in(if self.region.is_open() { 12 } else { 16 }) {
            self.toggle_region();
            return Ok(());
        }
        match self.rng.below(48) {
            0..3 => self.control(),
            3..8 => self.function_statement(),
            8 | 9 => self.global_call(),
            10 | 11 => self.effect(),
            12..16 => self.tuple_statement(),
            16 | 17 => {
                let kind = self.any_kind();
                let alias = self.pick(kind)?;
                self.bind_let(alias, kind);
                Ok(())
            }
            18..21 => self.shape_statement(),
            21..24 => self.other_elements(),
            24 => self.product(),
            25 => self.normalisation(),
            26 | 27 => self.dynamic(),
            28 | 29 => {
                let kind = self.rng.choose(&[Kind::Scalar, Kind::Int]);
                let op = self.rng.choose(&["less", "equal", "greater_equal"]);
                self.binary(op, [kind, kind], Kind::Bool)
            }
            30 => {
                let op = self.rng.choose(&["logical_and", "logical_or", "logical_xor"]);
                self.binary(op, [Kind::Bool; 2], Kind::Bool)
            }
            31 => {
                let op = self.rng.choose(&["add", "multiply", "subtract", "maximum"]);
                self.binary(op, [Kind::Int; 2], Kind::Int)
            }
            32 => self.constants(),
            33 => self.binary("add", [Kind::Matrix, Kind::Vector], Kind::Matrix),
            34 => self.near_misses(),
            35..39 => {
                let kind = self.rng.choose(&FLOATS);
                let op = self.rng.choose(&["tanh", "negative", "nn.relu", "abs", "square"]);
                self.unary(op, kind, kind)
            }
            39 => self.may_fail(),
            _ => {
                let kind = self.rng.choose(&FLOATS);
                let op = self.rng.choose(&["add", "multiply", "subtract", "maximum", "minimum"]);
                self.binary(op, [kind, kind], kind)
            }
        }
    }

    pub(super) fn unary(&mut self, op: &str, from: Kind, to: Kind) -> Result<(), BuildError> {
        let a = self.pick(from)?;
        let call = self.b.call_op(op, &[a], &[])?;
        self.bind(call, to);
        Ok(())
    }

    pub(super) fn binary(&mut self, op: &str, from: [Kind; 2], to: Kind) -> Result<(), BuildError> {
        let (a, b) = (self.pick(from[0])?, self.pick(from[1])?);
        let call = self.b.call_op(op, &[a, b], &[])?;
        self.bind(call, to);
        Ok(())
    }

    fn control(&mut self) -> Result<(), BuildError> {
        if !self.may_nest() {
            return Ok(());
        }
        let kind = self.any_kind();
        if self.rng.one_in(4) {
            self.enter(Frame::Value { kind });
            return Ok(());
        }
        let cond = self.pick(Kind::Bool)?;
        self.enter(Frame::Then { cond, kind });
        Ok(())
    }

    /// Adds an effect that can be observed.
    fn effect(&mut self) -> Result<(), BuildError> {
        if self.region.is_open() {
            return Ok(());
        }
        match self.rng.below(8) {
            0 => {
                let float = self.b.cx().attr(Attr::DType(DType::Float32));
                let eight = self.b.cx().types.dims.constant(8);
                let shape = self.b.cx().attr(Attr::Shape([eight].into()));
                let call = self.b.call_op("random.uniform", &[], &[("shape", shape), ("dtype", float)])?;
                self.bind_let(call, Kind::Vector);
            }
            1 => {
                let i = self.pick(Kind::Int)?;
                let truth = self.b.call_op("equal", &[i, i], &[])?;
                let truth = self.unnamed(truth);
                let call = self.b.call_op("assert", &[truth], &[])?;
                self.b.bind("", call);
            }
            _ => {
                let kind = self.rng.choose(&Kind::TENSORS);
                let v = self.pick(kind)?;
                let call = self.b.call_op("print", &[v], &[])?;
                self.b.bind("", call);
            }
        }
        Ok(())
    }

    fn tuple_statement(&mut self) -> Result<(), BuildError> {
        match self.rng.below(10) {
            8 | 9 => {
                // Projects two fields that could be mistaken for each other.
                let (a, b) = (self.pick(Kind::Vector)?, self.pick(Kind::Vector)?);
                let both = self.b.tuple(&[a, b]);
                let both = self.unnamed(both);
                for index in 0..2 {
                    let field = self.b.proj(both, index)?;
                    self.bind(field, Kind::Vector);
                }
            }
            0 | 1 => {
                let kind = self.rng.choose(&[Kind::Pair, Kind::Nested]);
                self.constant(kind)?;
            }
            2..4 => {
                let pair = self.pick(Kind::Pair)?;
                let index = self.rng.below(2);
                let field = self.b.proj(pair, index as u32)?;
                self.bind(field, [Kind::Vector, Kind::Scalar][index]);
            }
            4 => {
                let nested = self.pick(Kind::Nested)?;
                let field = self.b.proj(nested, 0)?;
                self.bind(field, Kind::Pair);
            }
            5 => {
                let nested = self.pick(Kind::Nested)?;
                let inner = self.b.proj(nested, 1)?;
                let inner = self.unnamed(inner);
                let index = self.rng.below(2);
                let field = self.b.proj(inner, index as u32)?;
                self.bind(field, [Kind::Int, Kind::Pair][index]);
            }
            6 => {
                // Takes a tuple apart and puts it together again.
                let pair = self.pick(Kind::Pair)?;
                let (v, s) = (self.b.proj(pair, 0)?, self.b.proj(pair, 1)?);
                let (v, s) = (self.unnamed(v), self.unnamed(s));
                let pair = self.b.tuple(&[v, s]);
                self.bind(pair, Kind::Pair);
            }
            _ => {
                let m = self.pick(Kind::Matrix)?;
                let two = self.b.cx().int_attr(2);
                let parts = self.b.call_op("split", &[m], &[("sections", two)])?;
                let parts = self.unnamed(parts);
                let index = self.rng.below(2) as u32;
                let part = self.b.proj(parts, index)?;
                let part = self.unnamed(part);
                let axes = self.ints(&[0]);
                let row = self.b.call_op("squeeze", &[part], &[("axis", axes)])?;
                self.bind(row, Kind::Vector);
            }
        }
        Ok(())
    }

    pub(super) fn ints(&mut self, ints: &[i64]) -> AttrId {
        self.b.cx().ints_attr(ints)
    }

    /// Returns a constant of the given shape.
    pub(super) fn dense<T: Element>(&mut self, shape: &[usize], elements: &[T]) -> ExprId {
        let literal = Literal::from_elements(shape, elements).expect("as many elements as the shape has");
        self.b.literal(literal)
    }

    fn literal_attr(&mut self, literal: Literal) -> AttrId {
        let cx = self.b.cx();
        let id = cx.literals.intern(literal);
        cx.attr(Attr::Literal(id))
    }

    fn shape_statement(&mut self) -> Result<(), BuildError> {
        let (call, kind) = match self.rng.below(8) {
            0 | 1 => {
                let (m, axis) = (self.pick(Kind::Matrix)?, self.ints(&[0]));
                let op = self.rng.choose(&["sum", "max", "mean"]);
                (self.b.call_op(op, &[m], &[("axis", axis)])?, Kind::Vector)
            }
            2 => {
                let (kind, op) = (self.rng.choose(&FLOATS[..2]), self.rng.choose(&["max", "sum"]));
                let x = self.pick(kind)?;
                (self.b.call_op(op, &[x], &[])?, Kind::Scalar)
            }
            3 => {
                let (v, shape) = (self.pick(Kind::Vector)?, self.dense(&[2], &[2i64, 8]));
                (self.b.call_op("broadcast_to", &[v, shape], &[])?, Kind::Matrix)
            }
            4 => {
                let (m, indices) = (self.pick(Kind::Matrix)?, self.dense(&[2], &[1i64, 0]));
                (self.b.call_op("take", &[m, indices], &[])?, Kind::Matrix)
            }
            5 => {
                let m = self.pick(Kind::Matrix)?;
                let shape = self.b.call_op("shape_of", &[m], &[])?;
                let shape = self.unnamed(shape);
                (self.b.call_op("sum", &[shape], &[])?, Kind::Int)
            }
            6 => {
                let (c, kind) = (self.pick(Kind::Bool)?, self.rng.choose(&FLOATS));
                let (a, b) = (self.pick(kind)?, self.pick(kind)?);
                (self.b.call_op("where", &[c, a, b], &[])?, kind)
            }
            _ => {
                let (v, ty) = (self.pick(Kind::Vector)?, self.types.of(Kind::Vector));
                let to = self.b.cx().attr(Attr::Type(ty));
                (self.b.call_op("match_cast", &[v], &[("to", to)])?, Kind::Vector)
            }
        };
        self.bind(call, kind);
        Ok(())
    }

    /// Adds a computation with elements of another type.
    fn other_elements(&mut self) -> Result<(), BuildError> {
        let from = self.any_three();
        let to = self.any_three();
        match self.rng.below(6) {
            0 => {
                let (Kind::Three(dtype), x) = (to, self.pick(from)?) else { return Ok(()) };
                let dtype = self.b.cx().attr(Attr::DType(DTYPES[usize::from(dtype)]));
                let call = self.b.call_op("astype", &[x], &[("dtype", dtype)])?;
                self.bind(call, to);
            }
            1 => {
                let x = self.pick(from)?;
                let int64 = self.b.cx().attr(Attr::DType(DType::Int64));
                let x = self.b.call_op("astype", &[x], &[("dtype", int64)])?;
                let x = self.unnamed(x);
                let call = self.b.call_op("sum", &[x], &[])?;
                self.bind(call, Kind::Int);
            }
            2 => {
                let x = self.pick(Kind::Scalar)?;
                let (Kind::Three(dtype), y) = (to, self.pick(to)?) else { return Ok(()) };
                let dtype = self.b.cx().attr(Attr::DType(DTYPES[usize::from(dtype)]));
                let x = self.b.call_op("astype", &[x], &[("dtype", dtype)])?;
                let x = self.unnamed(x);
                let call = self.b.call_op("add", &[x, y], &[])?;
                self.bind(call, to);
            }
            _ => {
                let op = self.rng.choose(&["add", "multiply", "subtract", "maximum", "minimum"]);
                return self.binary(op, [from, from], from);
            }
        }
        Ok(())
    }

    /// Adds an operation on two constants.
    fn constants(&mut self) -> Result<(), BuildError> {
        let three = self.any_three();
        let kind = self.rng.choose(&[Kind::Int, Kind::Int, Kind::Scalar, Kind::Vector, three]);
        let (a, b) = (self.constant(kind)?, self.constant(kind)?);
        let op = self.rng.choose(&["add", "multiply", "subtract", "maximum", "minimum"]);
        let call = self.b.call_op(op, &[a, b], &[])?;
        self.bind(call, kind);
        Ok(())
    }

    /// Adds two calls that differ in an attribute, or in the sign of a zero.
    fn near_misses(&mut self) -> Result<(), BuildError> {
        let kind = self.rng.choose(&[Kind::Vector, Kind::Scalar]);
        let x = self.pick(kind)?;
        let slopes = self.rng.one_in(2);
        let op = self.rng.choose(&["multiply", "add", "maximum"]);
        for number in [0.0, -0.0] {
            let call = if slopes {
                let alpha = self.b.cx().float_attr(number);
                self.b.call_op("nn.leaky_relu", &[x], &[("alpha", alpha)])?
            } else {
                let zero = self.b.literal(Literal::scalar(number as f32));
                self.b.call_op(op, &[x, zero], &[])?
            };
            self.bind(call, kind);
        }
        Ok(())
    }

    /// Adds matrix products, with a transposition and an operator between them.
    fn product(&mut self) -> Result<(), BuildError> {
        let m = self.pick(Kind::Matrix)?;
        let transposed = self.b.call_op("permute_dims", &[m], &[])?;
        let transposed = self.unnamed(transposed);
        let a = self.pick(Kind::Matrix)?;
        let square = self.b.call_op("matmul", &[a, transposed], &[])?;
        let square = self.unnamed(square);
        let square = self.b.call_op(self.rng.choose(&["nn.softmax", "nn.relu", "tanh"]), &[square], &[])?;
        let square = self.unnamed(square);
        let b = self.pick(Kind::Matrix)?;
        let back = self.b.call_op("matmul", &[square, b], &[])?;
        self.bind(back, Kind::Matrix);
        self.parallel_products(a)
    }

    /// Adds products of a matrix with several constants, and the same steps behind most of them.
    /// Only `@main` returns the result, so that nothing else depends on how it is rounded.
    fn parallel_products(&mut self, m: ExprId) -> Result<(), BuildError> {
        if self.role != Role::Main || !self.is_outermost() || self.sinks.len() >= 6 {
            return Ok(());
        }
        let mut rng = self.rng.apart();
        let bounded = self.b.call_op("tanh", &[m], &[])?;
        let bounded = self.unnamed(bounded);
        let has_bias = rng.one_in(2);
        let step = rng.choose(&["nn.relu", "negative", "tanh"]);
        let mut parts = Vec::new();
        for _ in 0..3 + rng.below(2) {
            let width = 1 + rng.below(2);
            let numbers = |rng: &mut Rng, count: usize| -> Vec<f32> {
                (0..count).map(|_| rng.below(8) as f32 * 0.25 - 0.75).collect()
            };
            let weight = self.dense(&[8, width], &numbers(&mut rng, 8 * width));
            let mut part = self.b.call_op("matmul", &[bounded, weight], &[])?;
            if has_bias {
                let bias = self.dense(&[width], &numbers(&mut rng, width));
                part = self.unnamed(part);
                part = self.b.call_op("add", &[part, bias], &[])?;
            }
            part = self.unnamed(part);
            let step = if rng.one_in(4) { "negative" } else { step };
            part = self.b.call_op(step, &[part], &[])?;
            parts.push(self.unnamed(part));
        }
        let axis = self.b.cx().int_attr(1);
        let joined = self.b.call_op("concat", &parts, &[("axis", axis)])?;
        let out = self.b.bind("parts", joined);
        self.region.bound(out);
        self.sinks.push(out);
        Ok(())
    }

    /// Adds a convolution with constant weights, and operators that can be folded into it. Only
    /// `@main` returns the result, so that nothing else depends on how it is rounded.
    fn normalisation(&mut self) -> Result<(), BuildError> {
        if self.role != Role::Main || !self.is_outermost() || self.sinks.len() >= 4 {
            return Ok(());
        }
        let m = self.pick(Kind::Matrix)?;
        let bounded = self.b.call_op("tanh", &[m], &[])?;
        let bounded = self.unnamed(bounded);
        let shape = self.dense(&[4], &[1i64, 2, 2, 4]);
        let image = self.b.call_op("reshape", &[bounded, shape], &[])?;
        let image = self.unnamed(image);
        let mut rng = self.rng.apart();
        let image = self.scaled(image, &mut rng)?;
        let weight = self.dense(&[2, 2, 1, 1], &[0.5f32, -1.0, 2.0, 0.25]);
        let is_padded = rng.one_in(2);
        let padding = self.ints(if is_padded { &[1, 0, 0, 1] } else { &[0; 4] });
        let mut x = self.b.call_op("nn.conv2d", &[image, weight], &[("padding", padding)])?;
        for _ in 0..=self.rng.below(2) {
            x = self.unnamed(x);
            let per_channel = self.dense(&[2, 1, 1], &[1.5f32, -0.75]);
            x = match self.rng.below(3) {
                0 => self.b.call_op("multiply", &[x, per_channel], &[])?,
                1 => self.b.call_op("add", &[x, per_channel], &[])?,
                _ => {
                    let stats = [[1.25f32, 0.5], [0.1, -0.2], [0.3, 0.4], [1.5, 2.5]].map(|s| self.dense(&[2], &s));
                    self.b.call_op("nn.batch_norm", &[x, stats[0], stats[1], stats[2], stats[3]], &[])?
                }
            };
        }
        if !is_padded && rng.one_in(3) {
            // The scaled image is also used elsewhere.
            x = self.unnamed(x);
            x = self.b.call_op("add", &[x, image], &[])?;
        }
        let x = self.activated(x, &mut rng)?;
        let out = self.b.bind("image", x);
        self.region.bound(out);
        self.sinks.push(out);
        Ok(())
    }

    /// Returns an image, or an activation of it that is written as several operators.
    fn activated(&mut self, image: ExprId, rng: &mut Rng) -> Result<ExprId, BuildError> {
        let kind = rng.below(4);
        if kind == 0 {
            return Ok(image);
        }
        let image = self.unnamed(image);
        let number = |this: &mut Self, number: f32| this.b.literal(Literal::scalar(number));
        if kind == 1 {
            let gate = self.b.call_op("sigmoid", &[image], &[])?;
            let gate = self.unnamed(gate);
            return self.b.call_op("multiply", &[image, gate], &[]);
        }
        if kind == 2 {
            let (three, zero, six) = (number(self, 3.0), number(self, 0.0), number(self, 6.0));
            let sum = self.b.call_op("add", &[image, three], &[])?;
            let sum = self.unnamed(sum);
            let clipped = self.b.call_op("clip", &[sum, zero, six], &[])?;
            let clipped = self.unnamed(clipped);
            let product = self.b.call_op("multiply", &[image, clipped], &[])?;
            let product = self.unnamed(product);
            return self.b.call_op("divide", &[product, six], &[]);
        }
        let (root, one, half) = (number(self, std::f32::consts::SQRT_2), number(self, 1.0), number(self, 0.5));
        let quotient = self.b.call_op("divide", &[image, root], &[])?;
        let quotient = self.unnamed(quotient);
        let erf = self.b.call_op("erf", &[quotient], &[])?;
        let erf = self.unnamed(erf);
        let sum = self.b.call_op("add", &[erf, one], &[])?;
        let sum = self.unnamed(sum);
        let product = self.b.call_op("multiply", &[image, sum], &[])?;
        let product = self.unnamed(product);
        self.b.call_op("multiply", &[product, half], &[])
    }

    /// Returns the image after up to three steps that can be folded into a convolution after it.
    fn scaled(&mut self, mut image: ExprId, rng: &mut Rng) -> Result<ExprId, BuildError> {
        for _ in 0..rng.below(4) {
            let numbers = rng.choose(&[[1.5f32, -0.75], [0.5, 2.0]]);
            let per_channel = self.dense(&[2, 1, 1], &numbers);
            image = match rng.below(5) {
                0 | 1 => self.b.call_op("multiply", &[image, per_channel], &[])?,
                2 | 3 => self.b.call_op("nn.relu", &[image], &[])?,
                _ => self.b.call_op("add", &[image, per_channel], &[])?,
            };
            image = self.unnamed(image);
        }
        Ok(image)
    }

    /// Returns a vector of a length that the callee does not know.
    pub(super) fn of_any_length(&mut self) -> Result<ExprId, BuildError> {
        if self.types.has_dynamic {
            return self.pick(Kind::Dynamic);
        }
        if self.rng.one_in(2) {
            return self.pick(Kind::Vector);
        }
        let (a, b) = (self.pick(Kind::Vector)?, self.pick(Kind::Vector)?);
        let long = self.b.call_op("concat", &[a, b], &[])?;
        Ok(self.unnamed(long))
    }

    /// Adds a computation with symbolic extents.
    fn dynamic(&mut self) -> Result<(), BuildError> {
        if !self.types.has_dynamic || self.rng.one_in(3) {
            return self.unknown_length();
        }
        let d = self.pick(Kind::Dynamic)?;
        match self.rng.below(7) {
            0 => {
                // The length is doubled, by arithmetic of extents.
                let other = self.pick(Kind::Dynamic)?;
                let long = self.b.call_op("concat", &[d, other], &[])?;
                let long = self.unnamed(long);
                let ty = self.b.body().type_of(long);
                let to = self.b.cx().attr(Attr::Type(ty));
                let long = self.b.call_op("match_cast", &[long], &[("to", to)])?;
                let long = self.b.bind("long", long);
                self.region.bound(long);
                let max = self.b.call_op("max", &[long], &[])?;
                self.bind(max, Kind::Scalar);
            }
            1 => {
                let shape = self.b.call_op("shape_of", &[d], &[])?;
                let shape = self.unnamed(shape);
                let sum = self.b.call_op("sum", &[shape], &[])?;
                self.bind(sum, Kind::Int);
            }
            2 => {
                let s = self.pick(Kind::Scalar)?;
                let call = self.b.call_op("add", &[d, s], &[])?;
                self.bind(call, Kind::Dynamic);
            }
            3 => {
                // The length is computed.
                let (first, three) = (self.b.literal(Literal::scalar(0i64)), self.b.literal(Literal::scalar(3i64)));
                let shape = self.b.call_op("shape_of", &[d], &[])?;
                let shape = self.unnamed(shape);
                let extent = self.b.call_op("take", &[shape, first], &[])?;
                let extent = self.bind(extent, Kind::Int);
                let op = self.rng.choose(&["add", "multiply", "floor_mod", "maximum", "divide"]);
                let count = self.b.call_op(op, &[extent, three], &[])?;
                let count = self.unnamed(count);
                let axis = self.ints(&[0]);
                let count = self.b.call_op("expand_dims", &[count], &[("axis", axis)])?;
                let count = self.unnamed(count);
                let shape = self.b.call_op("concat", &[shape, count], &[])?;
                let shape = self.unnamed(shape);
                let value = self.literal_attr(Literal::scalar(1.5f32));
                let matrix = self.b.call_op("full", &[shape], &[("value", value)])?;
                let matrix = self.unnamed(matrix);
                let max = self.b.call_op("max", &[matrix], &[])?;
                self.bind(max, Kind::Scalar);
            }
            4 => {
                // The vector gets a shape that is computed, and then its own shape again.
                let one = self.dense(&[1], &[1i64]);
                let shape = self.b.call_op("shape_of", &[d], &[])?;
                let shape = self.unnamed(shape);
                let shape = self.b.call_op("concat", &[shape, one], &[])?;
                let shape = self.unnamed(shape);
                let column = self.b.call_op("reshape", &[d, shape], &[])?;
                let column = self.unnamed(column);
                let axis = self.ints(&[1]);
                let call = self.b.call_op("squeeze", &[column], &[("axis", axis)])?;
                self.bind(call, Kind::Dynamic);
            }
            5 => return self.rows(d),
            _ => return self.binary("maximum", [Kind::Dynamic; 2], Kind::Dynamic),
        }
        Ok(())
    }

    /// Makes a vector the rows of a matrix, which may be added to it anyway.
    fn rows(&mut self, d: ExprId) -> Result<(), BuildError> {
        let two = self.dense(&[1], &[2i64]);
        let shape = self.b.call_op("shape_of", &[d], &[])?;
        let shape = self.unnamed(shape);
        let shape = self.b.call_op("concat", &[two, shape], &[])?;
        let shape = self.unnamed(shape);
        let rows = self.b.call_op("broadcast_to", &[d, shape], &[])?;
        let rows = self.unnamed(rows);
        let op = self.rng.choose(&["negative", "tanh"]);
        let changed = self.b.call_op(op, &[rows], &[])?;
        let changed = self.unnamed(changed);
        let other = if self.rng.one_in(2) { rows } else { self.pick(Kind::Dynamic)? };
        let sum = self.b.call_op("add", &[changed, other], &[])?;
        let sum = self.unnamed(sum);
        let axis = self.ints(&[0]);
        let call = self.b.call_op("max", &[sum], &[("axis", axis)])?;
        self.bind(call, Kind::Dynamic);
        Ok(())
    }

    /// Adds a computation with a vector whose length becomes a symbol.
    fn unknown_length(&mut self) -> Result<(), BuildError> {
        if self.in_lambda() {
            return Ok(());
        }
        self.symbols += 1;
        let length = self.b.symbol(&format!("k{}", self.symbols));
        let (any_length, vector) = (self.b.cx().types.tensor(DType::Float32, &[length]), self.types.of(Kind::Vector));
        let to = |g: &mut Self, ty| g.b.cx().attr(Attr::Type(ty));
        let (forget, recall) = (to(self, any_length), to(self, vector));
        let zero = self.b.cx().literals.intern(Literal::scalar(0f32));
        let v = self.pick(Kind::Vector)?;
        let v = self.b.call_op("match_cast", &[v], &[("to", forget)])?;
        let v = self.b.bind("any_length", v);
        self.region.bound(v);
        let sum = if self.rng.one_in(3) {
            self.b.call_op("subtract", &[v, v], &[])?
        } else if self.rng.one_in(2) {
            let extents = self.b.cx().attr(Attr::Shape([length].into()));
            let shape = self.b.call_op("shape_to_tensor", &[], &[("shape", extents)])?;
            let shape = self.unnamed(shape);
            let value = self.b.cx().attr(Attr::Literal(zero));
            self.b.call_op("full", &[shape], &[("value", value)])?
        } else {
            // Only the symbol of the cast is used.
            let shape = self.b.cx().attr(Attr::Shape([length].into()));
            self.b.call_op("zeros", &[], &[("shape", shape)])?
        };
        let sum = self.unnamed(sum);
        let sum = self.b.call_op("match_cast", &[sum], &[("to", recall)])?;
        self.bind_let(sum, Kind::Vector);
        Ok(())
    }

    /// Adds a division by zero, which is an error, in a place that is not evaluated.
    fn may_fail(&mut self) -> Result<(), BuildError> {
        if !self.may_nest() {
            return Ok(());
        }
        let (i, zero) = (self.pick(Kind::Int)?, self.b.literal(Literal::scalar(0i64)));
        let never = if self.rng.one_in(2) {
            self.b.literal(Literal::scalar(false))
        } else {
            let unequal = self.b.call_op("not_equal", &[i, i], &[])?;
            self.b.bind("never", unequal)
        };
        self.b.open_block();
        let quotient = self.b.call_op("floor_divide", &[i, zero], &[])?;
        let quotient = self.b.bind("quotient", quotient);
        let then_block = self.b.close_block(quotient)?;
        let choice = self.b.if_(never, then_block, i)?;
        self.bind_let(choice, Kind::Int);
        Ok(())
    }
}
