//! Random well-typed programs of the whole language.
//!
//! Half of the functions are in graph form: some values are not bound but shared as nodes, and blocks and Ifs stand as operands.

use anfora_ir::{Attr, BuildError, DType, Expr, ExprId, FunctionBuilder, Literal, Module, TypeId, VarId, Visibility};

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The kinds of value that the programs compute with.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Vector,
    Matrix,
    Scalar,
    Int,
    Bool,
    /// A tuple of a vector and a scalar.
    Pair,
    /// A function from a vector to a vector.
    Function,
}

const TENSORS: [Kind; 5] = [Kind::Vector, Kind::Matrix, Kind::Scalar, Kind::Int, Kind::Bool];

/// A value in scope.
#[derive(Copy, Clone)]
struct Value {
    id: ExprId,
    kind: Kind,
    /// The dataflow region in which alone it is visible; 0 for everywhere.
    region: u32,
}

/// What a block that is being generated is for, with what to do when it is done.
enum Frame {
    Function,
    Then { cond: ExprId, kind: Kind },
    Else { cond: ExprId, kind: Kind, then_block: ExprId },
    Lambda { var: VarId },
    Value { kind: Kind },
}

struct Scope {
    frame: Frame,
    /// How many values were in scope when the block began.
    values: usize,
    /// Bindings to go before the block ends.
    left: usize,
}

struct Types {
    vector: TypeId,
    matrix: TypeId,
    scalar: TypeId,
    int: TypeId,
    bool: TypeId,
    pair: TypeId,
    function: TypeId,
}

impl Types {
    fn of(&self, kind: Kind) -> TypeId {
        match kind {
            Kind::Vector => self.vector,
            Kind::Matrix => self.matrix,
            Kind::Scalar => self.scalar,
            Kind::Int => self.int,
            Kind::Bool => self.bool,
            Kind::Pair => self.pair,
            Kind::Function => self.function,
        }
    }
}

struct Generator<'m> {
    b: FunctionBuilder<'m>,
    rng: Rng,
    types: Types,
    values: Vec<Value>,
    scopes: Vec<Scope>,
    /// The open dataflow region, numbered from 1; 0 outside.
    region: u32,
    regions: u32,
    /// Variables of the open region that may become its outputs.
    region_values: Vec<ExprId>,
    /// Global functions from a vector to a vector, callee first.
    globals: Vec<String>,
    names: u32,
    symbols: u32,
    main: bool,
    /// Whether it is in graph form.
    graph: bool,
}

/// How deep blocks nest.
const DEPTH: usize = 12;

pub(super) fn random(size: usize, seed: u64) -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut rng = Rng(seed);
    pairwise(&mut module)?;
    let helpers = rng.below(4).min(size / 8);
    let mut globals = Vec::new();
    for i in 0..helpers {
        let name = format!("helper{i}");
        generate(&mut module, &name, size / 8, rng.next(), &globals)?;
        globals.push(name);
    }
    if size > 2 && rng.one_in(2) {
        countdown(&mut module)?;
        globals.push("countdown".to_string());
    }
    if size > 2 && rng.one_in(2) {
        doubled(&mut module)?;
        globals.push("doubled".to_string());
    }
    generate(&mut module, "main", size, rng.next(), &globals)?;
    Ok(module)
}

/// A recursive function: `fn(v) -> v` that calls a private `loop` which counts down from 3.
fn countdown(module: &mut Module) -> Result<(), BuildError> {
    let mut b = FunctionBuilder::new(module, "loop");
    b.visibility(Visibility::Private);
    let (vector, int) = (b.cx().types.static_tensor(DType::Float32, &[8]), b.cx().types.scalar(DType::Int64));
    let (v, n) = (b.param("v", vector), b.param("n", int));
    b.result(vector);
    let zero = b.literal(Literal::scalar(0i64));
    let stop = b.call_op("less_equal", &[n, zero], &[])?;
    let stop = b.bind("stop", stop);
    b.open_block();
    let one = b.literal(Literal::scalar(1i64));
    let rest = b.call_op("subtract", &[n, one], &[])?;
    let rest = b.bind("rest", rest);
    let next = b.call_op("add", &[v, v], &[])?;
    let next = b.bind("next", next);
    let this = b.global("loop");
    let again = b.call(this, &[next, rest])?;
    let again = b.bind("again", again);
    let else_block = b.close_block(again)?;
    let choice = b.if_(stop, v, else_block)?;
    b.finish(choice)?;

    let mut b = FunctionBuilder::new(module, "countdown");
    b.visibility(Visibility::Private);
    let v = b.param("v", vector);
    let three = b.literal(Literal::scalar(3i64));
    let this = b.global("loop");
    let call = b.call(this, &[v, three])?;
    b.finish(call)?;
    Ok(())
}

/// A function of vectors of any length.
fn doubled(module: &mut Module) -> Result<(), BuildError> {
    let mut b = FunctionBuilder::new(module, "doubled");
    b.visibility(Visibility::Private);
    let n = b.symbol("n");
    let any_length = b.cx().types.tensor(DType::Float32, &[n]);
    let v = b.param("v", any_length);
    let sum = b.call_op("add", &[v, v], &[])?;
    let sum = b.bind("sum", sum);
    b.finish(sum)?;
    Ok(())
}

/// A function of two vectors, of which closures are made.
fn pairwise(module: &mut Module) -> Result<(), BuildError> {
    let mut b = FunctionBuilder::new(module, "pairwise");
    b.visibility(Visibility::Private);
    let vector = b.cx().types.static_tensor(DType::Float32, &[8]);
    let (v, captured) = (b.param("v", vector), b.param("captured", vector));
    let least = b.call_op("minimum", &[v, captured], &[])?;
    b.finish(least)?;
    Ok(())
}

fn generate(module: &mut Module, name: &str, size: usize, seed: u64, globals: &[String]) -> Result<(), BuildError> {
    let main = name == "main";
    let mut b = FunctionBuilder::new(module, name);
    let cx = b.cx();
    let (vector, scalar) = (cx.types.static_tensor(DType::Float32, &[8]), cx.types.scalar(DType::Float32));
    let types = Types {
        vector,
        scalar,
        matrix: cx.types.static_tensor(DType::Float32, &[2, 8]),
        int: cx.types.scalar(DType::Int64),
        bool: cx.types.scalar(DType::Bool),
        pair: cx.types.tuple(&[vector, scalar]),
        function: cx.types.function(&[vector], vector, &[]),
    };
    if !main {
        b.visibility(Visibility::Private);
    }
    let mut values = Vec::new();
    let params: &[Kind] = if main { &TENSORS } else { &[Kind::Vector] };
    for (i, &kind) in params.iter().enumerate() {
        let id = b.param(&format!("p{i}"), types.of(kind));
        values.push(Value { id, kind, region: 0 });
    }
    let mut g = Generator {
        b,
        rng: Rng(seed),
        types,
        values,
        scopes: vec![Scope { frame: Frame::Function, values: 0, left: size }],
        region: 0,
        regions: 0,
        region_values: Vec::new(),
        globals: globals.to_vec(),
        names: 0,
        symbols: 0,
        main,
        graph: seed & 1 == 1,
    };
    let tail = loop {
        let scope = g.scopes.last_mut().expect("the function's scope is left last");
        if scope.left > 0 {
            scope.left -= 1;
            g.statement()?;
        } else if let Some(tail) = g.leave()? {
            break tail;
        }
    };
    g.b.finish(tail)?;
    Ok(())
}

impl Generator<'_> {
    /// A visible value of a kind; a constant where there is none, and now and then anyway.
    fn pick(&mut self, kind: Kind) -> Result<ExprId, BuildError> {
        let region = self.region;
        if !self.rng.one_in(6) || matches!(kind, Kind::Pair | Kind::Function) {
            let start = self.rng.below(self.values.len());
            let found = (0..self.values.len().min(64))
                .map(|i| self.values[(start + i) % self.values.len()])
                .find(|v| v.kind == kind && (v.region == 0 || v.region == region));
            if let Some(v) = found {
                return Ok(v.id);
            }
        }
        self.constant(kind)
    }

    fn constant(&mut self, kind: Kind) -> Result<ExprId, BuildError> {
        const FLOATS: [f32; 10] = [0.0, -0.0, 1.0, -1.0, 0.5, 3.25, 1e30, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let float = FLOATS[self.rng.below(FLOATS.len())];
        Ok(match kind {
            Kind::Vector if self.rng.one_in(2) => {
                let elements: Vec<f32> = (0..8).map(|i| i as f32 - self.rng.below(8) as f32).collect();
                let literal = Literal::from_elements(&[8], &elements).expect("eight elements of a shape of eight");
                self.b.literal(literal)
            }
            Kind::Vector => self.b.literal(Literal::splat(&[8], float)),
            Kind::Matrix => self.b.literal(Literal::splat(&[2, 8], float)),
            Kind::Scalar => self.b.literal(Literal::scalar(float)),
            Kind::Int => {
                const INTS: [i64; 6] = [0, 1, -1, 7, i64::MAX, i64::MIN];
                let i = INTS[self.rng.below(INTS.len())];
                self.b.literal(Literal::scalar(i))
            }
            Kind::Bool => {
                let truth = self.rng.one_in(2);
                self.b.literal(Literal::scalar(truth))
            }
            Kind::Pair => {
                let (v, s) = (self.constant(Kind::Vector)?, self.constant(Kind::Scalar)?);
                let pair = self.b.tuple(&[v, s]);
                self.bind(pair, Kind::Pair)
            }
            Kind::Function if self.region != 0 => {
                self.end_region();
                self.constant(Kind::Function)?
            }
            Kind::Function => {
                let vector = self.types.vector;
                let params = self.b.open_lambda(&[("y", vector)], None, &[]);
                let call = self.b.call_op("add", &[params[0], params[0]], &[])?;
                let lambda = self.b.close_lambda(call)?;
                self.bind(lambda, Kind::Function)
            }
        })
    }

    /// Binds a value, or, in graph form, leaves it as a node that others share.
    fn bind(&mut self, value: ExprId, kind: Kind) -> ExprId {
        let plain = matches!(self.b.body().expr(value), Expr::CallOp { .. } | Expr::Tuple(_) | Expr::Proj { .. });
        if self.graph && plain && self.rng.one_in(3) {
            self.values.push(Value { id: value, kind, region: self.region });
            return value;
        }
        self.bind_let(value, kind)
    }

    fn bind_let(&mut self, value: ExprId, kind: Kind) -> ExprId {
        self.names += 1;
        // Some names repeat, and some bindings have none.
        let name = match self.rng.below(8) {
            0 => String::new(),
            1 => "t".to_string(),
            _ => format!("v{}", self.names),
        };
        let id = self.b.bind(&name, value);
        self.values.push(Value { id, kind, region: self.region });
        if self.region != 0 {
            self.region_values.push(id);
        }
        id
    }

    fn statement(&mut self) -> Result<(), BuildError> {
        let nest = self.scopes.len() < DEPTH;
        match self.rng.below(46) {
            0 | 1 => self.toggle_region(),
            2 | 3 if nest && self.region == 0 => {
                let cond = self.pick(Kind::Bool)?;
                let kind = TENSORS[self.rng.below(TENSORS.len())];
                self.enter(Frame::Then { cond, kind });
            }
            4 | 5 if nest && self.region == 0 => {
                let (vector, function) = (self.types.vector, self.types.function);
                self.names += 1;
                let var = self.b.declare_var(&format!("f{}", self.names), function);
                let params = self.b.open_lambda(&[("y", vector)], None, &[]);
                self.enter_with(Frame::Lambda { var }, false);
                self.values.push(Value { id: params[0], kind: Kind::Vector, region: 0 });
            }
            6 if nest && self.region == 0 => {
                let kind = TENSORS[self.rng.below(TENSORS.len())];
                self.enter(Frame::Value { kind });
            }
            7 if self.region == 0 => {
                let v = self.pick(Kind::Scalar)?;
                let call = self.b.call_op("print", &[v], &[])?;
                self.b.bind("", call);
            }
            8 | 9 if self.region == 0 => {
                let (f, v) = (self.pick(Kind::Function)?, self.pick(Kind::Vector)?);
                let call = self.b.call(f, &[v])?;
                self.bind(call, Kind::Vector);
            }
            10 if self.region == 0 && !self.globals.is_empty() => {
                let name = self.globals[self.rng.below(self.globals.len())].clone();
                let f = self.b.global(&name);
                let v = self.pick(Kind::Vector)?;
                let call = self.b.call(f, &[v])?;
                self.bind(call, Kind::Vector);
            }
            11 => {
                let (v, s) = (self.pick(Kind::Vector)?, self.pick(Kind::Scalar)?);
                let pair = self.b.tuple(&[v, s]);
                self.bind(pair, Kind::Pair);
            }
            12 | 13 => {
                let pair = self.pick(Kind::Pair)?;
                let index = self.rng.below(2);
                let field = self.b.proj(pair, index as u32)?;
                self.bind(field, [Kind::Vector, Kind::Scalar][index]);
            }
            14 => {
                let kind = TENSORS[self.rng.below(TENSORS.len())];
                let alias = self.pick(kind)?;
                self.bind(alias, kind);
            }
            15 => {
                let m = self.pick(Kind::Matrix)?;
                let axis = self.b.cx().ints_attr(&[0]);
                let call = self.b.call_op("sum", &[m], &[("axis", axis)])?;
                self.bind(call, Kind::Vector);
            }
            16 => {
                let v = self.pick(Kind::Vector)?;
                let call = self.b.call_op("max", &[v], &[])?;
                self.bind(call, Kind::Scalar);
            }
            17 => {
                let (a, b) = (self.pick(Kind::Matrix)?, self.pick(Kind::Vector)?);
                let call = self.b.call_op("add", &[a, b], &[])?;
                self.bind(call, Kind::Matrix);
            }
            18 => {
                let v = self.pick(Kind::Vector)?;
                let ty = self.types.vector;
                let to = self.b.cx().attr(Attr::Type(ty));
                let call = self.b.call_op("match_cast", &[v], &[("to", to)])?;
                self.bind(call, Kind::Vector);
            }
            19 | 20 => {
                let kind = [Kind::Scalar, Kind::Int][self.rng.below(2)];
                let (a, b) = (self.pick(kind)?, self.pick(kind)?);
                let op = ["less", "equal", "greater_equal"][self.rng.below(3)];
                let call = self.b.call_op(op, &[a, b], &[])?;
                self.bind(call, Kind::Bool);
            }
            21 => {
                let (a, b) = (self.pick(Kind::Bool)?, self.pick(Kind::Bool)?);
                let call = self.b.call_op(["logical_and", "logical_or"][self.rng.below(2)], &[a, b], &[])?;
                self.bind(call, Kind::Bool);
            }
            22 | 23 => {
                let (a, b) = (self.pick(Kind::Int)?, self.pick(Kind::Int)?);
                let op = ["add", "multiply", "subtract", "maximum"][self.rng.below(4)];
                let call = self.b.call_op(op, &[a, b], &[])?;
                self.bind(call, Kind::Int);
            }
            24 if self.region == 0 => {
                let v = self.pick(Kind::Vector)?;
                let pairwise = self.b.global("pairwise");
                let closure = self.b.call_op("make_closure", &[pairwise, v], &[])?;
                self.bind(closure, Kind::Function);
            }
            25 if self.region == 0 => self.recursion()?,
            26 if self.region == 0 => self.higher_order()?,
            27 => self.other_elements()?,
            28 if !self.scopes.iter().any(|s| matches!(s.frame, Frame::Lambda { .. })) => self.unknown_length()?,
            29 => {
                let (pair, v) = (self.pick(Kind::Pair)?, self.pick(Kind::Vector)?);
                let nested = self.b.tuple(&[v, pair]);
                let nested = self.unnamed(nested);
                let pair = self.b.proj(nested, 1)?;
                self.bind(pair, Kind::Pair);
            }
            30..34 => {
                let kind = [Kind::Vector, Kind::Matrix, Kind::Scalar][self.rng.below(3)];
                let a = self.pick(kind)?;
                let op = ["tanh", "negative", "nn.relu", "abs"][self.rng.below(4)];
                let call = self.b.call_op(op, &[a], &[])?;
                self.bind(call, kind);
            }
            _ => {
                let kind = [Kind::Vector, Kind::Matrix, Kind::Scalar][self.rng.below(3)];
                let (a, b) = (self.pick(kind)?, self.pick(kind)?);
                let op = ["add", "multiply", "subtract", "maximum", "minimum"][self.rng.below(5)];
                let call = self.b.call_op(op, &[a, b], &[])?;
                self.bind(call, kind);
            }
        }
        Ok(())
    }

    /// A node in graph form, else a binding.
    fn unnamed(&mut self, value: ExprId) -> ExprId {
        if self.graph { value } else { self.b.bind("", value) }
    }

    /// A lambda that counts down from 2, and a call of it.
    fn recursion(&mut self) -> Result<(), BuildError> {
        let (captured, vector, int) = (self.pick(Kind::Vector)?, self.types.vector, self.types.int);
        let ty = self.b.cx().types.function(&[vector, int], vector, &[]);
        let this = self.b.declare_var("again", ty);
        let params = self.b.open_lambda(&[("y", vector), ("n", int)], Some(vector), &[]);
        let zero = self.b.literal(Literal::scalar(0i64));
        let stop = self.b.call_op("less_equal", &[params[1], zero], &[])?;
        let stop = self.b.bind("stop", stop);
        self.b.open_block();
        let one = self.b.literal(Literal::scalar(1i64));
        let rest = self.b.call_op("subtract", &[params[1], one], &[])?;
        let rest = self.unnamed(rest);
        let next = self.b.call_op("maximum", &[params[0], captured], &[])?;
        let next = self.unnamed(next);
        let call = self.b.call(this.expr(), &[next, rest])?;
        let else_block = self.b.close_block(call)?;
        let choice = self.b.if_(stop, params[0], else_block)?;
        let lambda = self.b.close_lambda(choice)?;
        self.b.bind_var(this, lambda, None);
        let (v, two) = (self.pick(Kind::Vector)?, self.b.literal(Literal::scalar(2i64)));
        let call = self.b.call(this.expr(), &[v, two])?;
        self.bind(call, Kind::Vector);
        Ok(())
    }

    /// A lambda that calls the function that it is given, and a call of it.
    fn higher_order(&mut self) -> Result<(), BuildError> {
        let (f, captured, function) = (self.pick(Kind::Function)?, self.pick(Kind::Vector)?, self.types.function);
        let params = self.b.open_lambda(&[("g", function)], None, &[]);
        let call = self.b.call(params[0], &[captured])?;
        let lambda = self.b.close_lambda(call)?;
        let apply = self.b.bind("apply", lambda);
        let call = self.b.call(apply, &[f])?;
        self.bind(call, Kind::Vector);
        Ok(())
    }

    /// A computation with elements of another type.
    fn other_elements(&mut self) -> Result<(), BuildError> {
        use DType::{BFloat16, Float16, Float64, Int8, Int16, Int32, UInt8, UInt16, UInt32, UInt64};
        let kind = [Kind::Int, Kind::Vector][self.rng.below(2)];
        let (others, own): (&[DType], DType) = match kind {
            Kind::Int => (&[Int8, Int16, Int32, UInt8, UInt16, UInt32, UInt64], DType::Int64),
            _ => (&[Float16, BFloat16, Float64], DType::Float32),
        };
        let other = self.b.cx().attr(Attr::DType(others[self.rng.below(others.len())]));
        let own = self.b.cx().attr(Attr::DType(own));
        let x = self.pick(kind)?;
        let x = self.b.call_op("astype", &[x], &[("dtype", other)])?;
        let x = self.unnamed(x);
        let op = ["add", "multiply", "maximum"][self.rng.below(3)];
        let y = self.b.call_op(op, &[x, x], &[])?;
        let y = self.unnamed(y);
        let z = self.b.call_op("astype", &[y], &[("dtype", own)])?;
        self.bind(z, kind);
        Ok(())
    }

    /// A computation with a vector whose length is a symbol.
    fn unknown_length(&mut self) -> Result<(), BuildError> {
        self.symbols += 1;
        let length = self.b.symbol(&format!("k{}", self.symbols));
        let (any_length, vector) = (self.b.cx().types.tensor(DType::Float32, &[length]), self.types.vector);
        let to = |g: &mut Self, ty| g.b.cx().attr(Attr::Type(ty));
        let (forget, recall) = (to(self, any_length), to(self, vector));
        let v = self.pick(Kind::Vector)?;
        let v = self.b.call_op("match_cast", &[v], &[("to", forget)])?;
        let v = self.b.bind("any_length", v);
        let sum = self.b.call_op("subtract", &[v, v], &[])?;
        let sum = self.unnamed(sum);
        let sum = self.b.call_op("match_cast", &[sum], &[("to", recall)])?;
        self.bind_let(sum, Kind::Vector);
        Ok(())
    }

    /// Binds a value that owns blocks, or what an operator makes of it.
    fn bind_owner(&mut self, owner: ExprId, kind: Kind) -> Result<(), BuildError> {
        let mut value = owner;
        if self.graph && self.rng.one_in(2) {
            let other = self.pick(kind)?;
            let op = if kind == Kind::Bool { "logical_and" } else { "maximum" };
            value = self.b.call_op(op, &[owner, other], &[])?;
        }
        self.bind_let(value, kind);
        Ok(())
    }

    fn toggle_region(&mut self) {
        if self.region == 0 {
            self.b.begin_dataflow();
            self.regions += 1;
            self.region = self.regions;
        } else {
            self.end_region();
        }
    }

    /// About half of the region's variables become outputs; the others are gone.
    fn end_region(&mut self) {
        if self.region == 0 {
            return;
        }
        let outputs: Vec<ExprId> =
            std::mem::take(&mut self.region_values).into_iter().filter(|_| self.rng.one_in(2)).collect();
        self.b.end_dataflow(&outputs);
        let visible: std::collections::HashSet<ExprId> = outputs.into_iter().collect();
        let region = std::mem::take(&mut self.region);
        self.values.retain_mut(|v| {
            if v.region == region {
                v.region = 0;
                return visible.contains(&v.id);
            }
            true
        });
    }

    fn enter(&mut self, frame: Frame) {
        self.enter_with(frame, true);
    }

    fn enter_with(&mut self, frame: Frame, open: bool) {
        let scope = self.scopes.last_mut().expect("the function's scope is left last");
        let left = self.rng.below(12).min(scope.left);
        scope.left -= left;
        if open {
            self.b.open_block();
        }
        self.scopes.push(Scope { frame, values: self.values.len(), left });
    }

    /// Ends the innermost block; the tail of the function when that is the function's own.
    fn leave(&mut self) -> Result<Option<ExprId>, BuildError> {
        self.end_region();
        let scope = self.scopes.pop().expect("the function's scope is left last");
        match scope.frame {
            Frame::Function => {
                if !self.main {
                    return Ok(Some(self.pick(Kind::Vector)?));
                }
                let fields = TENSORS.iter().map(|&k| self.pick(k)).collect::<Result<Vec<_>, _>>()?;
                let all = self.b.tuple(&fields);
                return Ok(Some(self.b.bind("result", all)));
            }
            Frame::Then { cond, kind } => {
                let tail = self.pick(kind)?;
                let then_block = self.b.close_block(tail)?;
                self.values.truncate(scope.values);
                self.enter(Frame::Else { cond, kind, then_block });
            }
            Frame::Else { cond, kind, then_block } => {
                let tail = self.pick(kind)?;
                let else_block = self.b.close_block(tail)?;
                self.values.truncate(scope.values);
                let choice = self.b.if_(cond, then_block, else_block)?;
                self.bind_owner(choice, kind)?;
            }
            Frame::Lambda { var } => {
                let tail = self.pick(Kind::Vector)?;
                let lambda = self.b.close_lambda(tail)?;
                self.values.truncate(scope.values);
                self.b.bind_var(var, lambda, None);
                self.values.push(Value { id: var.expr(), kind: Kind::Function, region: 0 });
            }
            Frame::Value { kind } => {
                let tail = self.pick(kind)?;
                let block = self.b.close_block(tail)?;
                self.values.truncate(scope.values);
                self.bind_owner(block, kind)?;
            }
        }
        Ok(None)
    }
}
