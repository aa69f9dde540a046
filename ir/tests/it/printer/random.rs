//! Random programs, in A-normal form and in graph form.

use anfora_ir::{BuildError, ExprId, FunctionBuilder, Literal, Module, first_difference};
use proptest::prelude::*;

use super::{condition, main_of, parse};

const NAMES: [&str; 8] = ["", "", "x", "y", "x$1", "0", "2", "a b"];

/// A block that is being built: the number of values visible before it, and its kind.
struct Open {
    visible: usize,
    kind: Kind,
}

enum Kind {
    Then,
    Value,
    Function,
    Region,
}

struct Program<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// Values of one type that may be used at the current place: variables and nodes.
    values: Vec<ExprId>,
    open: Vec<Open>,
}

impl Program<'_> {
    fn byte(&mut self) -> usize {
        self.bytes.next().map_or(0, |&b| usize::from(b))
    }

    fn value(&mut self) -> ExprId {
        let back = self.byte() % self.values.len().min(8);
        self.values[self.values.len() - 1 - back]
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.byte() % NAMES.len()]
    }

    fn note(&mut self, f: &mut FunctionBuilder<'_>, id: ExprId) {
        if self.byte().is_multiple_of(8) {
            let one = f.cx().int_attr(1);
            let note = f.cx().named_attrs(&[("note", one)]);
            f.body().set_meta(id, Some(note));
        }
    }

    fn bind(&mut self, f: &mut FunctionBuilder<'_>, value: ExprId) {
        let name = self.name();
        let var = f.bind(name, value);
        self.note(f, var);
        self.values.push(var);
    }

    fn in_region(&self) -> bool {
        matches!(self.open.last(), Some(Open { kind: Kind::Region, .. }))
    }

    fn step(&mut self, f: &mut FunctionBuilder<'_>) -> Result<(), BuildError> {
        let visible = self.values.len();
        match self.byte() % 12 {
            0..2 => {
                let value = self.value();
                self.bind(f, value);
            }
            2..5 => {
                let (a, b) = (self.value(), self.value());
                let sum = f.call_op("add", &[a, b], &[])?;
                self.note(f, sum);
                self.values.push(sum);
            }
            5 => {
                let (a, one) = (self.value(), f.literal(Literal::splat(&[8], 1.0f32)));
                let pair = f.tuple(&[a, one]);
                let field = f.proj(pair, 0)?;
                self.values.push(field);
            }
            6 => {
                let (op, a) = (f.cx().ops.resolve("onnx.Foo")?, self.value());
                let (ty, none) = (f.body().type_of(a), f.cx().attrs.empty());
                let call = f.editor().call_opaque(op, &[a], none, ty);
                self.bind(f, call);
            }
            7 if !self.in_region() => {
                f.begin_dataflow();
                self.open.push(Open { visible, kind: Kind::Region });
            }
            8 if !self.in_region() => {
                f.open_block();
                self.open.push(Open { visible, kind: Kind::Then });
            }
            9 if !self.in_region() => {
                f.open_block();
                self.open.push(Open { visible, kind: Kind::Value });
            }
            10 if !self.in_region() => {
                let ty = f.body().type_of(self.values[0]);
                let name = self.name();
                let p = f.open_lambda(&[(name, ty)], None, &[]);
                self.values.extend(p);
                self.open.push(Open { visible, kind: Kind::Function });
            }
            _ => return self.close(f),
        }
        Ok(())
    }

    fn close(&mut self, f: &mut FunctionBuilder<'_>) -> Result<(), BuildError> {
        let Some(Open { visible, kind }) = self.open.pop() else { return Ok(()) };
        if let Kind::Region = kind {
            let vars: Vec<ExprId> = self.values.drain(visible..).filter(|&v| f.body().as_var(v).is_some()).collect();
            let outputs: Vec<ExprId> = vars.into_iter().filter(|_| self.byte().is_multiple_of(2)).collect();
            f.end_dataflow(&outputs);
            self.values.extend(outputs);
            return Ok(());
        }
        let tail = self.value();
        self.values.truncate(visible);
        let value = match kind {
            Kind::Function => {
                let function = f.close_lambda(tail)?;
                let name = self.name();
                let function: ExprId = f.bind(name, function);
                let argument = self.value();
                f.call(function, &[argument])?
            }
            Kind::Then => {
                let then_block = f.close_block(tail)?;
                let (cond, other) = (condition(f), self.value());
                f.if_(cond, then_block, other)?
            }
            Kind::Value | Kind::Region => f.close_block(tail)?,
        };
        self.bind(f, value);
        Ok(())
    }
}

fn build(bytes: &[u8]) -> Module {
    main_of(|f, x| {
        let mut program = Program { bytes: bytes.iter(), values: vec![x], open: Vec::new() };
        while !program.bytes.as_slice().is_empty() {
            program.step(f)?;
        }
        while !program.open.is_empty() {
            program.close(f)?;
        }
        Ok(program.value())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_reads_back_as_itself(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let module = build(&bytes);
        let text = module.to_text();
        let parsed = parse(&text);
        prop_assert_eq!(parsed.to_text(), &*text);
        if let Some(difference) = first_difference(&module, &parsed) {
            prop_assert!(false, "{}\n{}", difference, text);
        }
    }
}
