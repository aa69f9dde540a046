//! The program in the forms that other compilers read.

use std::fmt::{self, Display};
use std::io::{self, Write};

use clap::ValueEnum;

use crate::program::{Op, Operand, Program};

/// A form of the program.
#[derive(Copy, Clone, ValueEnum)]
pub(crate) enum Form {
    /// A line an operation: its name and its operands, `x`, `%` with the number of an operation, or
    /// a number.
    Operations,
    /// A function of MLIR's dialects func and arith on `tensor<8xf32>`.
    Mlir,
    /// A function of LLVM IR on `float`.
    Llvm,
    /// anfora's text format.
    Anfora,
}

impl Form {
    /// Writes the program in this form.
    ///
    /// # Errors
    /// If writing fails.
    pub(crate) fn write(self, program: &Program, out: &mut impl Write) -> io::Result<()> {
        match self {
            Form::Operations => operations(program, out),
            Form::Mlir => mlir(program, out),
            Form::Llvm => llvm(program, out),
            Form::Anfora => anfora(program, out),
        }
    }
}

/// A part of a line, which a function writes.
struct Written<F>(F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> Display for Written<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}

fn operations(program: &Program, out: &mut impl Write) -> io::Result<()> {
    let operand = |operand: Operand| {
        Written(move |f: &mut fmt::Formatter<'_>| match operand {
            Operand::Parameter => write!(f, "x"),
            Operand::Result(k) => write!(f, "%{k}"),
            Operand::Constant(j) => write!(f, "{}", program.constants[j]),
        })
    };
    for &(op, lhs, rhs) in &program.operations {
        let name = match op {
            Op::Add => "add",
            Op::Multiply => "multiply",
            Op::Subtract => "subtract",
        };
        writeln!(out, "{name} {} {}", operand(lhs), operand(rhs))?;
    }
    Ok(())
}

fn mlir(program: &Program, out: &mut impl Write) -> io::Result<()> {
    const TYPE: &str = "tensor<8xf32>";
    let operand = |operand: Operand| {
        Written(move |f: &mut fmt::Formatter<'_>| match operand {
            Operand::Parameter => write!(f, "%x"),
            Operand::Result(k) => write!(f, "%b{k}"),
            Operand::Constant(j) => write!(f, "%c{j}"),
        })
    };
    writeln!(out, "func.func @main(%x: {TYPE}) -> {TYPE} {{")?;
    for (j, value) in program.constants.iter().enumerate() {
        writeln!(out, "  %c{j} = arith.constant dense<{value:.12e}> : {TYPE}")?;
    }
    for (i, &(op, lhs, rhs)) in program.operations.iter().enumerate() {
        let name = match op {
            Op::Add => "arith.addf",
            Op::Multiply => "arith.mulf",
            Op::Subtract => "arith.subf",
        };
        writeln!(out, "  %b{i} = {name} {}, {} : {TYPE}", operand(lhs), operand(rhs))?;
    }
    writeln!(out, "  return %b{} : {TYPE}\n}}", program.operations.len() - 1)
}

fn anfora(program: &Program, out: &mut impl Write) -> io::Result<()> {
    const TYPE: &str = "Tensor[(8,), float32]";
    let operand = |operand: Operand| {
        Written(move |f: &mut fmt::Formatter<'_>| match operand {
            Operand::Parameter => write!(f, "%x"),
            Operand::Result(k) => write!(f, "%b{k}"),
            Operand::Constant(j) => write!(f, "dense<{TYPE}>[{}]", program.constants[j]),
        })
    };
    writeln!(out, "def @main(%x: {TYPE}) -> {TYPE} {{\n  dataflow {{")?;
    for (i, &(op, lhs, rhs)) in program.operations.iter().enumerate() {
        let name = match op {
            Op::Add => "add",
            Op::Multiply => "multiply",
            Op::Subtract => "subtract",
        };
        writeln!(out, "    let %b{i} = {name}({}, {});", operand(lhs), operand(rhs))?;
    }
    let last = program.operations.len() - 1;
    writeln!(out, "    output(%b{last});\n  }}\n  %b{last}\n}}")
}

fn llvm(program: &Program, out: &mut impl Write) -> io::Result<()> {
    let operand = |operand: Operand| {
        Written(move |f: &mut fmt::Formatter<'_>| match operand {
            Operand::Parameter => write!(f, "%x"),
            Operand::Result(k) => write!(f, "%b{k}"),
            // The bits of the number as a double, in which LLVM IR writes floats.
            Operand::Constant(j) => write!(f, "0x{:016X}", f64::from(program.constants[j]).to_bits()),
        })
    };
    writeln!(out, "define float @main(float %x) {{")?;
    for (i, &(op, lhs, rhs)) in program.operations.iter().enumerate() {
        let name = match op {
            Op::Add => "fadd",
            Op::Multiply => "fmul",
            Op::Subtract => "fsub",
        };
        writeln!(out, "  %b{i} = {name} float {}, {}", operand(lhs), operand(rhs))?;
    }
    writeln!(out, "  ret float %b{}\n}}", program.operations.len() - 1)
}
