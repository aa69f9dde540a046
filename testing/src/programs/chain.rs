//! The benchmark program. Every system in the comparison gets the same bindings.

use std::collections::VecDeque;

use anfora_ir::{BuildError, DType, Editor, ExprId, FunctionBuilder, Literal, Module, OpId, VarFlags};

const SEED: u64 = 42;
const CONSTANTS: u64 = 1024;

/// Knuth's MMIX linear congruential generator, of which the high bits are used.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[derive(Copy, Clone)]
enum Operand {
    Binding(usize),
    Param,
    Constant(u64),
}

#[derive(Copy, Clone)]
enum Op {
    Add,
    Multiply,
    Subtract,
}

#[derive(Copy, Clone, PartialEq)]
enum BindingKind {
    Chain,
    Dead,
    Dup,
    Fold,
}

fn operand(rng: &mut Lcg) -> Operand {
    match rng.next(CONSTANTS + 256) {
        j if j < CONSTANTS => Operand::Constant(j),
        _ => Operand::Param,
    }
}

fn add_or_multiply(rng: &mut Lcg) -> Op {
    if rng.next(2) == 0 { Op::Add } else { Op::Multiply }
}

/// Returns the bindings of the program of size `n`. About a fifth of them are dead, a fifth repeat
/// an earlier binding, and a tenth are operations on two constants. The rest form one live chain
/// that uses these.
fn bindings(n: usize) -> Vec<(Op, Operand, Operand)> {
    let mut rng = Lcg(SEED);
    let mut program: Vec<(Op, Operand, Operand)> = Vec::with_capacity(n);
    let (mut head, mut pending, mut chain) = (Operand::Param, VecDeque::new(), Vec::new());
    for i in 0..n {
        let kind = if n - i <= pending.len() + 1 {
            BindingKind::Chain
        } else {
            match rng.next(100) {
                0..20 => BindingKind::Dead,
                20..40 if !chain.is_empty() => BindingKind::Dup,
                40..50 => BindingKind::Fold,
                _ => BindingKind::Chain,
            }
        };
        match kind {
            BindingKind::Chain => {
                let op = add_or_multiply(&mut rng);
                let rhs = match pending.pop_front() {
                    Some(b) => Operand::Binding(b),
                    None => operand(&mut rng),
                };
                program.push((op, head, rhs));
                head = Operand::Binding(i);
                chain.push(i);
            }
            BindingKind::Dead => program.push((Op::Subtract, head, operand(&mut rng))),
            BindingKind::Dup => {
                let window = chain.len().min(16);
                let k = chain[chain.len() - 1 - rng.next(window as u64) as usize];
                program.push(program[k]);
                pending.push_back(i);
            }
            BindingKind::Fold => {
                let op = add_or_multiply(&mut rng);
                let lhs = Operand::Constant(rng.next(CONSTANTS));
                let rhs = Operand::Constant(rng.next(CONSTANTS));
                program.push((op, lhs, rhs));
                pending.push_back(i);
            }
        }
    }
    program
}

pub(super) fn chain(n: usize, _seed: u64) -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut b = FunctionBuilder::new(&mut module, "main");
    let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
    let x = b.param("x", ty);
    b.result(ty);
    let ops: [OpId; 3] = [b.cx().ops.resolve("add")?, b.cx().ops.resolve("multiply")?, b.cx().ops.resolve("subtract")?];
    let no_attrs = b.cx().attrs.empty();
    b.begin_dataflow();
    let mut values: Vec<ExprId> = Vec::with_capacity(n);
    let mut name = String::new();
    for (i, (op, lhs, rhs)) in bindings(n).into_iter().enumerate() {
        let read = |o: Operand, editor: &mut Editor<'_>| match o {
            Operand::Binding(k) => values[k],
            Operand::Param => x,
            Operand::Constant(j) => editor.literal(Literal::splat(&[8], (2.0 * j as f32 - 1023.0) / 2048.0)),
        };
        let mut editor = b.editor();
        let (lhs, rhs) = (read(lhs, &mut editor), read(rhs, &mut editor));
        let call = editor.call_op(ops[op as usize], &[lhs, rhs], no_attrs)?;
        use std::fmt::Write;
        name.clear();
        write!(name, "b{i}").expect("writing to a string succeeds");
        let var = b.bind(&name, call);
        values.push(var);
    }
    let last = values.last().copied().unwrap_or(x);
    let outputs: &[ExprId] = if n == 0 { &[] } else { &[last] };
    b.end_dataflow(outputs);
    debug_assert!(n == 0 || matches!(b.body().expr(last), anfora_ir::Expr::Var { flags: VarFlags::PLAIN, .. }));
    b.finish(last)?;
    Ok(module)
}
