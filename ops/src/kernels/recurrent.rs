//! Recurrent networks: LSTM, GRU and the plain one.
//!
//! The weights of the gates are the rows of one matrix, of as many rows for each gate as the state
//! has elements. The order of the gates is that of ONNX.

use anfora_ir::{DType, Literal};

use super::cast::cast;
use super::number::Real;
use super::view::{Output, View, filled};
use super::working::{Working, check_steps, product, working_type};
use super::{Failure, shape_text};

/// The kind of a network.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// The gates are input, output, forget and cell.
    Lstm {
        /// True if the forget gate is 1 minus the input gate.
        input_forget: bool,
    },
    /// The gates are update, reset and hidden.
    Gru {
        /// True if the reset gate multiplies the product with the state, and not the state.
        linear_before_reset: bool,
    },
    Plain,
}

impl Cell {
    /// Returns the number of gates.
    pub(crate) const fn gates(self) -> usize {
        match self {
            Cell::Lstm { .. } => 4,
            Cell::Gru { .. } => 3,
            Cell::Plain => 1,
        }
    }
}

/// The directions in which sequences are read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Reverse,
    Bidirectional,
}

impl Direction {
    /// Returns the direction of this name.
    ///
    /// # Errors
    /// If there is no such direction.
    pub(crate) fn from_name(name: &str) -> Result<Direction, Failure> {
        match name {
            "forward" => Ok(Direction::Forward),
            "reverse" => Ok(Direction::Reverse),
            "bidirectional" => Ok(Direction::Bidirectional),
            _ => Err(Failure::Mismatch(format!("`direction` is `{name}`, which is none"))),
        }
    }

    /// Returns the number of directions.
    pub(crate) const fn count(self) -> usize {
        if matches!(self, Direction::Bidirectional) { 2 } else { 1 }
    }
}

/// The attributes of a network.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Recurrence {
    pub(crate) cell: Cell,
    pub(crate) direction: Direction,
    /// The bound of the operands of activations.
    pub(crate) clip: Option<f64>,
    /// True if the batch is the first axis, and not the sequence.
    pub(crate) batch_first: bool,
}

/// The operands of a network.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RecurrentOperands<'a> {
    pub(crate) x: &'a Literal,
    /// The weights of the operand, `(directions, gates * hidden, input)`.
    pub(crate) weights: &'a Literal,
    /// The weights of the state, `(directions, gates * hidden, hidden)`.
    pub(crate) recurrent: &'a Literal,
    /// The terms of both products, `(directions, 2 * gates * hidden)`.
    pub(crate) bias: Option<&'a Literal>,
    /// The lengths of the sequences, int32.
    pub(crate) lengths: Option<&'a Literal>,
    /// The state and the cell before the first position.
    pub(crate) initial: [Option<&'a Literal>; 2],
    /// The factors of the cell in the gates, `(directions, 3 * hidden)`.
    pub(crate) peepholes: Option<&'a Literal>,
}

/// The extents of a call.
#[derive(Copy, Clone, Debug)]
struct RecurrentExtents {
    length: usize,
    batch: usize,
    input: usize,
    directions: usize,
    hidden: usize,
    gates: usize,
}

impl RecurrentExtents {
    fn of(x: RecurrentOperands<'_>, how: Recurrence) -> Result<RecurrentExtents, Failure> {
        let wrong = || {
            let [x, w, r] = [x.x, x.weights, x.recurrent].map(|l| shape_text(l.shape()));
            Failure::Mismatch(format!(
                "sequences of shape {x}, weights of shapes {w} and {r}, or others that do not fit"
            ))
        };
        let (&[first, second, input], &[directions, rows, _], &[_, _, hidden]) =
            (x.x.shape(), x.weights.shape(), x.recurrent.shape())
        else {
            return Err(wrong());
        };
        let (length, batch) = if how.batch_first { (second, first) } else { (first, second) };
        let gates = how.cell.gates();
        let extents = RecurrentExtents { length, batch, input, directions, hidden, gates };
        let has = |l: Option<&Literal>, shape: &[usize]| l.is_none_or(|l| l.shape() == shape);
        let fits = directions == how.direction.count()
            && Some(rows) == gates.checked_mul(hidden)
            && x.weights.shape() == [directions, rows, input]
            && x.recurrent.shape() == [directions, rows, hidden]
            && rows.checked_mul(2).is_some_and(|n| has(x.bias, &[directions, n]))
            && has(x.lengths, &[batch])
            && x.initial.iter().all(|i| has(*i, &extents.state_shape(how)))
            && hidden.checked_mul(3).is_some_and(|n| has(x.peepholes, &[directions, n]));
        if fits { Ok(extents) } else { Err(wrong()) }
    }

    fn state_shape(&self, how: Recurrence) -> [usize; 3] {
        match how.batch_first {
            true => [self.batch, self.directions, self.hidden],
            false => [self.directions, self.batch, self.hidden],
        }
    }

    /// Returns the position of a state, without the elements in it.
    fn state(&self, how: Recurrence, direction: usize, batch: usize) -> usize {
        match how.batch_first {
            true => batch * self.directions + direction,
            false => direction * self.batch + batch,
        }
    }

    fn steps(&self) -> Option<u128> {
        let row = self.input.checked_add(self.hidden)?.checked_add(1)?;
        product(&[self.length.max(1), self.batch, self.directions, self.gates, self.hidden, row])
    }
}

/// Returns the number of steps: a product with all weights for each position. `None` if it
/// overflows, or the call fails.
pub(crate) fn steps(x: RecurrentOperands<'_>, how: Recurrence) -> Option<u128> {
    RecurrentExtents::of(x, how).ok()?.steps()
}

/// Returns the states at all positions and the last states; of an LSTM also the last cells.
pub(crate) fn recurrent(x: RecurrentOperands<'_>, how: Recurrence) -> Result<Vec<Literal>, Failure> {
    let extents = RecurrentExtents::of(x, how)?;
    let [state, cell] = x.initial;
    let others = [x.bias, x.lengths, state, cell, x.peepholes];
    check_steps(&[x.x, x.weights, x.recurrent], &others, extents.steps())?;
    let dtype = x.x.dtype();
    let work = working_type(dtype)?;
    let own = |l: Option<&Literal>| l.map(|l| cast(l, work)).transpose();
    let (sequences, weights, of_state) = (cast(x.x, work)?, cast(x.weights, work)?, cast(x.recurrent, work)?);
    let (bias, state, cell, peepholes) = (own(x.bias)?, own(state)?, own(cell)?, own(x.peepholes)?);
    if let Some(lengths) = x.lengths.filter(|l| l.dtype() != DType::Int32) {
        return Err(Failure::ElementType(lengths.dtype()));
    }
    let x = RecurrentOperands {
        x: &sequences,
        weights: &weights,
        recurrent: &of_state,
        bias: bias.as_ref(),
        lengths: x.lengths,
        initial: [state.as_ref(), cell.as_ref()],
        peepholes: peepholes.as_ref(),
    };
    let all = match work {
        DType::Float64 => run::<f64>(x, extents, how)?,
        _ => run::<f32>(x, extents, how)?,
    };
    let kept = if matches!(how.cell, Cell::Lstm { .. }) { 3 } else { 2 };
    all.iter().take(kept).map(|l| cast(l, dtype)).collect()
}

/// The weights of one direction.
struct Weights<'a, T: Working> {
    e: RecurrentExtents,
    how: Recurrence,
    direction: usize,
    weights: View<'a, T>,
    recurrent: View<'a, T>,
    bias: Option<View<'a, T>>,
    peepholes: Option<View<'a, T>>,
}

impl<T: Working> Weights<'_, T> {
    fn dot(view: &View<'_, T>, row: usize, x: &[T]) -> T {
        let products = x.iter().enumerate().map(|(i, &e)| e.mul(view.get(row * x.len() + i)));
        products.fold(T::ZERO, |sum, p| sum.add(p))
    }

    fn row(&self, gate: usize, i: usize) -> usize {
        (self.direction * self.e.gates + gate) * self.e.hidden + i
    }

    /// Returns the term of a gate that belongs to the operand or to the state.
    fn term(&self, gate: usize, i: usize, of_state: bool) -> T {
        let half = if of_state { self.e.gates } else { 0 };
        let at = (self.direction * 2 * self.e.gates + half + gate) * self.e.hidden + i;
        self.bias.as_ref().map_or(T::ZERO, |b| b.get(at))
    }

    fn of_input(&self, gate: usize, i: usize, x: &[T]) -> T {
        Self::dot(&self.weights, self.row(gate, i), x)
    }

    fn of_state(&self, gate: usize, i: usize, state: &[T]) -> T {
        Self::dot(&self.recurrent, self.row(gate, i), state)
    }

    /// Returns the sum of both products and terms of a gate.
    fn sum(&self, gate: usize, i: usize, x: &[T], state: &[T]) -> T {
        let terms = self.term(gate, i, false).add(self.term(gate, i, true));
        self.of_input(gate, i, x).add(self.of_state(gate, i, state)).add(terms)
    }

    fn peephole(&self, number: usize, i: usize, cell: T) -> T {
        let at = (self.direction * 3 + number) * self.e.hidden + i;
        self.peepholes.as_ref().map_or(T::ZERO, |p| p.get(at).mul(cell))
    }

    fn clipped(&self, x: T) -> T {
        match self.how.clip.map(T::from_f64) {
            Some(bound) if x > bound => bound,
            Some(bound) if x < bound.neg() => bound.neg(),
            _ => x,
        }
    }

    fn sigmoid(&self, x: T) -> T {
        T::ONE.div(T::ONE.add(self.clipped(x).neg().exp()))
    }

    fn tanh(&self, x: T) -> T {
        Real::tanh(self.clipped(x))
    }

    /// Computes the next state from the operand, the state and the cell, which becomes the next.
    fn next(&self, x: &[T], state: &[T], cell: &mut [T], reset: &mut [T], next: &mut [T]) {
        match self.how.cell {
            Cell::Plain => {
                for (i, n) in next.iter_mut().enumerate() {
                    *n = self.tanh(self.sum(0, i, x, state));
                }
            }
            Cell::Lstm { input_forget } => {
                for (i, n) in next.iter_mut().enumerate() {
                    let before = cell[i];
                    let [input, output, forget, new] = [0, 1, 2, 3].map(|gate| self.sum(gate, i, x, state));
                    let input = self.sigmoid(input.add(self.peephole(0, i, before)));
                    let forget = match input_forget {
                        true => T::ONE.sub(input),
                        false => self.sigmoid(forget.add(self.peephole(2, i, before))),
                    };
                    cell[i] = forget.mul(before).add(input.mul(self.tanh(new)));
                    let output = self.sigmoid(output.add(self.peephole(1, i, cell[i])));
                    *n = output.mul(self.tanh(cell[i]));
                }
            }
            Cell::Gru { linear_before_reset } => {
                for (i, r) in reset.iter_mut().enumerate() {
                    *r = self.sigmoid(self.sum(1, i, x, state));
                }
                if !linear_before_reset {
                    reset.iter_mut().zip(state).for_each(|(r, &s)| *r = r.mul(s));
                }
                for (i, n) in next.iter_mut().enumerate() {
                    let update = self.sigmoid(self.sum(0, i, x, state));
                    let [of_input, of_state] = [self.term(2, i, false), self.term(2, i, true)];
                    let hidden = match linear_before_reset {
                        true => {
                            let product = self.of_state(2, i, state).add(of_state);
                            self.of_input(2, i, x).add(reset[i].mul(product)).add(of_input)
                        }
                        false => self.of_input(2, i, x).add(self.of_state(2, i, reset)).add(of_state.add(of_input)),
                    };
                    *n = T::ONE.sub(update).mul(self.tanh(hidden)).add(update.mul(state[i]));
                }
            }
        }
    }
}

fn run<T: Working>(x: RecurrentOperands<'_>, e: RecurrentExtents, how: Recurrence) -> Result<[Literal; 3], Failure> {
    let shape = match how.batch_first {
        true => [e.batch, e.length, e.directions, e.hidden],
        false => [e.length, e.directions, e.batch, e.hidden],
    };
    let mut out = Output::<T>::new(&shape)?;
    let mut last: [Output<T>; 2] = [Output::new(&e.state_shape(how))?, Output::new(&e.state_shape(how))?];
    let sequences = View::<T>::new(x.x);
    let initial = x.initial.map(|i| i.map(View::<T>::new));
    let lengths = x.lengths.map(View::<i32>::new);
    let mut row = filled(e.input, T::ZERO)?;
    let [mut state, mut cell] = [filled(e.hidden, T::ZERO)?, filled(e.hidden, T::ZERO)?];
    let [mut reset, mut next] = [filled(e.hidden, T::ZERO)?, filled(e.hidden, T::ZERO)?];
    for direction in 0..e.directions {
        let weights = Weights::<T> {
            e,
            how,
            direction,
            weights: View::new(x.weights),
            recurrent: View::new(x.recurrent),
            bias: x.bias.map(View::new),
            peepholes: x.peepholes.map(View::new),
        };
        let is_reversed = how.direction == Direction::Reverse || direction == 1;
        for batch in 0..e.batch {
            let at = e.state(how, direction, batch) * e.hidden;
            for (values, initial) in [&mut state, &mut cell].into_iter().zip(&initial) {
                for (i, v) in values.iter_mut().enumerate() {
                    *v = initial.as_ref().map_or(T::ZERO, |view| view.get(at + i));
                }
            }
            let length =
                lengths.as_ref().map_or(e.length, |l| usize::try_from(l.get(batch)).unwrap_or(0).min(e.length));
            for step in 0..length {
                let position = if is_reversed { length - 1 - step } else { step };
                let outer = if how.batch_first { batch * e.length + position } else { position * e.batch + batch };
                for (i, r) in row.iter_mut().enumerate() {
                    *r = sequences.get(outer * e.input + i);
                }
                weights.next(&row, &state, &mut cell, &mut reset, &mut next);
                std::mem::swap(&mut state, &mut next);
                let place = match how.batch_first {
                    true => outer * e.directions + direction,
                    false => (position * e.directions + direction) * e.batch + batch,
                };
                write(&mut out, place * e.hidden, &state);
            }
            write(&mut last[0], at, &state);
            write(&mut last[1], at, &cell);
        }
    }
    let [states, cells] = last;
    Ok([out.finish()?, states.finish()?, cells.finish()?])
}

/// Writes elements from a position on.
fn write<T: Working>(out: &mut Output<T>, start: usize, elements: &[T]) {
    for (o, &e) in out.raw()[start..start + elements.len()].iter_mut().zip(elements) {
        *o = T::narrow(e).store();
    }
}
