//! The programs that can be asked for, and the statements of those that are not of the whole
//! language.

use anfora_ir::{Attr, BuildError, ExprId, Literal};

use super::Generator;
use super::blocks::Frame;
use super::kinds::Kind;

/// The content of random programs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Vocabulary {
    /// The whole language. Half of the functions are in graph form.
    Whole,
    /// `@main(%p0: int32, %p1: bool)`: sums, products and negatives in many branches, lambdas,
    /// regions and blocks as values, under names that the printer has to change. Half of the
    /// programs are in graph form.
    Arithmetic,
    /// `@main` of tensors and a bool: dataflow regions of operators of all fusion patterns, some of
    /// them in branches.
    Regions,
    /// Dataflow regions without what ONNX has not: branches, tuples, aliases and casts.
    OnnxRegions,
}

impl Vocabulary {
    pub(super) fn has_graphs(self) -> bool {
        matches!(self, Vocabulary::Whole | Vocabulary::Arithmetic)
    }

    pub(super) fn is_regions(self) -> bool {
        matches!(self, Vocabulary::Regions | Vocabulary::OnnxRegions)
    }

    /// Returns the kinds of the parameters of `@main`.
    pub(super) fn parameters(self) -> &'static [Kind] {
        const REGIONS: [Kind; 5] = [Kind::Matrix, Kind::Vector, Kind::Tall, Kind::Dynamic, Kind::Bool];
        match self {
            Vocabulary::Whole => &Kind::TENSORS,
            Vocabulary::Arithmetic => &[Kind::Vector, Kind::Bool],
            Vocabulary::Regions => &REGIONS,
            Vocabulary::OnnxRegions => &REGIONS[..4],
        }
    }
}

/// Names of bindings in [`Vocabulary::Arithmetic`].
const NAMES: [&str; 8] = ["", "", "x", "y", "x$1", "0", "2", "a b"];

impl Generator<'_> {
    /// Returns a name for a binding. Some names repeat, and some bindings have no name.
    pub(super) fn name(&mut self) -> String {
        let draw = self.rng.below(8);
        match draw {
            _ if self.vocabulary == Vocabulary::Arithmetic => NAMES[draw].to_string(),
            0 => String::new(),
            1 => "t".to_string(),
            _ => format!("v{}", self.names),
        }
    }

    /// Returns the tail of `@main`, in a vocabulary other than the whole language.
    pub(super) fn narrow_result(&mut self) -> Result<ExprId, BuildError> {
        let mut fields = Vec::new();
        if self.vocabulary == Vocabulary::Arithmetic {
            let last = self.pick(Kind::Vector)?;
            if self.rng.one_in(2) {
                return Ok(last);
            }
            fields.push(last);
            for _ in 0..3 {
                fields.push(self.pick(Kind::Vector)?);
            }
        } else {
            fields.extend(self.values.since(&self.parameters));
            // ONNX has no tuple of one value.
            if let [only] = fields[..] {
                return Ok(only);
            }
        }
        Ok(self.b.tuple(&fields))
    }

    pub(super) fn arithmetic_statement(&mut self) -> Result<(), BuildError> {
        if self.rng.one_in(10) {
            self.toggle_region();
            return Ok(());
        }
        match self.rng.below(12) {
            0..5 => {
                let op = self.rng.choose(&["add", "multiply"]);
                self.binary(op, [Kind::Vector; 2], Kind::Vector)
            }
            5 => self.unary("negative", Kind::Vector, Kind::Vector),
            6 => {
                let (a, b) = (self.pick(Kind::Vector)?, self.pick(Kind::Vector)?);
                let b = self.b.call_op("negative", &[b], &[])?;
                let b = self.unnamed(b);
                let product = self.b.call_op("multiply", &[a, b], &[])?;
                self.bind(product, Kind::Vector);
                Ok(())
            }
            7 => {
                let alias = self.pick(Kind::Vector)?;
                self.bind_let(alias, Kind::Vector);
                Ok(())
            }
            8 => {
                let (a, b) = (self.pick(Kind::Vector)?, self.pick(Kind::Vector)?);
                let pair = self.b.tuple(&[a, b]);
                let pair = self.unnamed(pair);
                let field = self.b.proj(pair, 0)?;
                self.bind(field, Kind::Vector);
                Ok(())
            }
            9 | 10 if self.may_nest() => match self.rng.below(3) {
                0 => {
                    self.enter(Frame::Value { kind: Kind::Vector });
                    Ok(())
                }
                1 => {
                    self.enter_lambda();
                    Ok(())
                }
                _ => {
                    let cond = self.pick(Kind::Bool)?;
                    self.enter(Frame::Then { cond, kind: Kind::Vector });
                    Ok(())
                }
            },
            _ if !self.region.is_open() => {
                let (f, v) = (self.pick(Kind::Function)?, self.pick(Kind::Vector)?);
                let call = self.b.call(f, &[v])?;
                self.bind_let(call, Kind::Vector);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns one of the last values of a kind, and seldom an early one, so that graphs have
    /// chains, skips and joins.
    fn late(&mut self, kind: Kind) -> Option<ExprId> {
        let count = self.values.of(kind).len();
        let late = if self.rng.one_in(5) { count } else { count.min(4) };
        let back = self.rng.below(late);
        let index = count.checked_sub(back + 1)?;
        Some(self.values.of(kind)[index])
    }

    pub(super) fn region_statement(&mut self) -> Result<(), BuildError> {
        let is_onnx = self.vocabulary == Vocabulary::OnnxRegions;
        // A branch, or the beginning or end of a region.
        if !self.region.is_open() {
            if !is_onnx && self.may_nest() && self.rng.one_in(3) {
                let cond = self.pick(Kind::Bool)?;
                self.enter(Frame::Then { cond, kind: Kind::Matrix });
                return Ok(());
            }
            self.toggle_region();
        } else if self.rng.one_in(14) {
            self.toggle_region();
            return Ok(());
        }
        // Operands, mostly late ones.
        let any = self.rng.choose(&[Kind::Matrix, Kind::Matrix, Kind::Vector, Kind::Half, Kind::Tall, Kind::Dynamic]);
        let (Some(a), Some(b)) = (self.late(any), self.late(any)) else { return Ok(()) };
        let (Some(square), Some(row)) = (self.late(Kind::Matrix), self.late(Kind::Vector)) else { return Ok(()) };
        // One operator. Programs for ONNX draw none of the last five.
        let draw = self.rng.below(if is_onnx { 18 } else { 23 });
        let (value, kind) = match draw {
            0 => (self.b.call_op("exp", &[a], &[])?, any),
            1 => (self.b.call_op("negative", &[a], &[])?, any),
            2 => (self.b.call_op("tanh", &[a], &[])?, any),
            3 => (self.b.call_op("nn.relu", &[a], &[])?, any),
            4..7 => (self.b.call_op("add", &[a, b], &[])?, any),
            7 if any != Kind::Vector => (self.b.call_op("multiply", &[a, row], &[])?, any),
            8 if any != Kind::Vector => (self.b.call_op("nn.softmax", &[a], &[])?, any),
            7..10 => {
                let two = self.b.literal(Literal::scalar(2f32));
                (self.b.call_op("subtract", &[a, two], &[])?, any)
            }
            10 => {
                let shape: &[usize] = if self.rng.one_in(2) { &[4] } else { &[4, 4] };
                let numbers = self.numbers(shape);
                (self.b.call_op("add", &[square, numbers], &[])?, Kind::Matrix)
            }
            11 => {
                let Some(tall) = self.late(Kind::Tall) else { return Ok(()) };
                let numbers = self.numbers(&[5, 4]);
                (self.b.call_op("multiply", &[tall, numbers], &[])?, Kind::Tall)
            }
            12 => {
                let axis = [self.rng.below(2) as i64];
                let axis = self.ints(&axis);
                (self.b.call_op("sum", &[square], &[("axis", axis)])?, Kind::Vector)
            }
            13 => (self.b.call_op("matmul", &[a, square], &[])?, any),
            14 => {
                let axes = self.ints(&[1, 0]);
                (self.b.call_op("permute_dims", &[square], &[("axes", axes)])?, Kind::Matrix)
            }
            15 | 16 => return self.halves(square),
            17 => {
                let (Some(a), Some(b)) = (self.late(Kind::Half), self.late(Kind::Half)) else { return Ok(()) };
                (self.b.call_op("concat", &[a, b], &[])?, Kind::Matrix)
            }
            18 => (self.b.call_op("matmul", &[square, row], &[])?, Kind::Vector),
            19 => (self.b.tuple(&[square, row]), Kind::Pair),
            20 => {
                let Some(pair) = self.late(Kind::Pair) else { return Ok(()) };
                let index = self.rng.below(2);
                (self.b.proj(pair, index as u32)?, [Kind::Matrix, Kind::Vector][index])
            }
            21 => (square, Kind::Matrix),
            _ => {
                let to = self.types.of(Kind::Matrix);
                let to = self.b.cx().attr(Attr::Type(to));
                (self.b.call_op("match_cast", &[square], &[("to", to)])?, Kind::Matrix)
            }
        };
        self.bind_let(value, kind);
        Ok(())
    }

    /// Adds the split of a matrix, with both halves for ONNX, or else a half of some split.
    fn halves(&mut self, square: ExprId) -> Result<(), BuildError> {
        let is_onnx = self.vocabulary == Vocabulary::OnnxRegions;
        let known = self.late(Kind::Halves).filter(|_| !is_onnx && self.rng.one_in(2));
        let halves = match known {
            Some(halves) => halves,
            None => {
                let two = self.b.cx().int_attr(2);
                let halves = self.b.call_op("split", &[square], &[("sections", two)])?;
                if !is_onnx {
                    self.bind_let(halves, Kind::Halves);
                    return Ok(());
                }
                // The region has no tuple as output.
                self.b.bind("", halves)
            }
        };
        let first = self.rng.below(2) as u32;
        for index in if is_onnx { 0..2 } else { first..first + 1 } {
            let half = self.b.proj(halves, index)?;
            self.bind_let(half, Kind::Half);
        }
        Ok(())
    }

    /// Returns a constant of small numbers.
    fn numbers(&mut self, shape: &[usize]) -> ExprId {
        let elements: Vec<f32> = (0..shape.iter().product()).map(|_| self.rng.below(8) as f32).collect();
        self.dense(shape, &elements)
    }
}
