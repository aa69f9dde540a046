//! Lambdas, closures and calls.

use anfora_ir::{BuildError, ExprId, Literal};

use super::Generator;
use super::blocks::Frame;
use super::kinds::Kind;

/// The largest depth of nested recursive lambdas. Each runs its block three times.
const RECURSIONS: usize = 2;

impl Generator<'_> {
    pub(super) fn function_statement(&mut self) -> Result<(), BuildError> {
        let nest = self.may_nest();
        match self.rng.below(16) {
            0..3 if nest => self.enter_lambda(),
            3 if nest => {
                self.names += 1;
                let (vector, maker) = (self.types.of(Kind::Vector), self.types.maker);
                let var = self.b.declare_var(&format!("maker{}", self.names), maker);
                let values = self.values.mark();
                let params = self.b.open_lambda(&[("y", vector)], None, &[]);
                self.values.push(Kind::Vector, params[0]);
                self.enter_opened(Frame::Maker { var }, values);
            }
            4 | 5 if nest && self.recursions() < RECURSIONS => return self.enter_recursion(),
            6..9 if !self.region.is_open() => {
                let (f, v) = (self.pick(Kind::Function)?, self.pick(Kind::Vector)?);
                let call = self.b.call(f, &[v])?;
                self.bind_let(call, Kind::Vector);
            }
            9 if !self.region.is_open() => return self.higher_order(),
            10 | 11 => {
                let v = self.pick(Kind::Vector)?;
                let pairwise = self.b.global("pairwise");
                let closure = self.b.call_op("make_closure", &[pairwise, v], &[])?;
                let closure = self.bind_let(closure, Kind::Function);
                if self.rng.one_in(2) {
                    let v = self.pick(Kind::Vector)?;
                    let call = self.b.call(closure, &[v])?;
                    self.bind_let(call, Kind::Vector);
                }
            }
            12 => {
                self.constant(Kind::Holder)?;
            }
            13 => {
                let holder = self.pick(Kind::Holder)?;
                let index = self.rng.below(2);
                let field = self.b.proj(holder, index as u32)?;
                self.bind(field, [Kind::Function, Kind::Vector][index]);
            }
            14 if !self.region.is_open() && !self.globals.makers.is_empty() => {
                let maker = self.b.global(&self.globals.makers[0]);
                let v = self.pick(Kind::Vector)?;
                let call = self.b.call(maker, &[v])?;
                self.bind_let(call, Kind::Function);
            }
            _ => {
                let f = self.small_lambda()?;
                if self.rng.one_in(2) {
                    let v = self.pick(Kind::Vector)?;
                    let call = self.b.call(f, &[v])?;
                    self.bind_let(call, Kind::Vector);
                }
            }
        }
        Ok(())
    }

    pub(super) fn enter_lambda(&mut self) {
        self.names += 1;
        let (vector, function) = (self.types.of(Kind::Vector), self.types.of(Kind::Function));
        let var = self.b.declare_var(&format!("f{}", self.names), function);
        let values = self.values.mark();
        let params = self.b.open_lambda(&[("y", vector)], None, &[]);
        self.values.push(Kind::Vector, params[0]);
        self.enter_opened(Frame::Lambda { var }, values);
    }

    /// Begins a lambda that counts down from 2.
    fn enter_recursion(&mut self) -> Result<(), BuildError> {
        let (vector, int) = (self.types.of(Kind::Vector), self.types.of(Kind::Int));
        let ty = self.b.cx().types.function(&[vector, int], vector, &[]);
        let var = self.b.declare_var("again", ty);
        let values = self.values.mark();
        let params = self.b.open_lambda(&[("y", vector), ("n", int)], Some(vector), &[]);
        let (y, n) = (params[0], params[1]);
        let zero = self.b.literal(Literal::scalar(0i64));
        let stop = self.b.call_op("less_equal", &[n, zero], &[])?;
        let stop = self.b.bind("stop", stop);
        self.b.open_block();
        self.values.push(Kind::Vector, y);
        self.values.push(Kind::Int, n);
        self.enter_opened(Frame::Recursive { var, y, n, stop }, values);
        Ok(())
    }

    /// Binds a lambda of one binding that captures a value in scope. Returns the variable of the
    /// lambda.
    pub(super) fn small_lambda(&mut self) -> Result<ExprId, BuildError> {
        let captured = self.pick(Kind::Vector)?;
        let vector = self.types.of(Kind::Vector);
        let params = self.b.open_lambda(&[("y", vector)], None, &[]);
        let other = if self.rng.one_in(3) { params[0] } else { captured };
        let op = self.rng.choose(&["add", "subtract", "multiply"]);
        let call = self.b.call_op(op, &[params[0], other], &[])?;
        let call = self.b.bind("w", call);
        let lambda = self.b.close_lambda(call)?;
        Ok(self.bind_let(lambda, Kind::Function))
    }

    /// Binds a lambda that calls the function given to it, and a call of this lambda.
    fn higher_order(&mut self) -> Result<(), BuildError> {
        let (f, captured, function) =
            (self.pick(Kind::Function)?, self.pick(Kind::Vector)?, self.types.of(Kind::Function));
        let params = self.b.open_lambda(&[("g", function)], None, &[]);
        let call = self.b.call(params[0], &[captured])?;
        let lambda = self.b.close_lambda(call)?;
        let apply = self.b.bind("apply", lambda);
        let call = self.b.call(apply, &[f])?;
        self.bind_let(call, Kind::Vector);
        Ok(())
    }

    /// Binds a call of a global function.
    pub(super) fn global_call(&mut self) -> Result<(), BuildError> {
        let globals = self.globals;
        if !self.region.is_open() && self.rng.one_in(2) && !globals.helpers.is_empty() {
            let f = self.b.global(&globals.helpers[self.rng.below(globals.helpers.len())]);
            let v = self.pick(Kind::Vector)?;
            let call = self.b.call(f, &[v])?;
            self.bind_let(call, Kind::Vector);
        } else if !self.region.is_open() && self.rng.one_in(2) && !globals.sized.is_empty() {
            let f = self.b.global(&globals.sized[0]);
            let (d, v) = (self.of_any_length()?, self.pick(Kind::Vector)?);
            let call = self.b.call(f, &[d, v])?;
            self.bind_let(call, Kind::Vector);
        } else if !globals.pure.is_empty() {
            let f = self.b.global(globals.pure[self.rng.below(globals.pure.len())]);
            let v = self.pick(Kind::Vector)?;
            let call = self.b.call(f, &[v])?;
            self.bind_let(call, Kind::Vector);
        }
        Ok(())
    }
}
