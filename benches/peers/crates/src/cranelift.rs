//! cranelift-codegen: the program on scalars is built, printed and parsed, verified and optimized.

use std::io::Write;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, Opcode, Signature, UserFuncName, Value, types::F32};
use cranelift_codegen::isa::{self, CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::verify_function;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_reader::parse_functions;

use crate::program::{Op, Program};
use crate::stage::Report;

/// Times all stages.
pub(crate) fn time(report: &mut Report<impl Write>) {
    let program = Program::new(report.n());
    let isa = target();
    let function = build(&program, &isa);
    let text = function.display().to_string();
    report.stage("build", || (), |()| build(&program, &isa), operations);
    let parse = |()| parse_functions(&text).expect("the text is what was printed").remove(0);
    report.stage("parse", || (), parse, operations);
    let parse_and_verify = |()| {
        let function = parse(());
        verify(&function, &isa);
        function
    };
    report.stage("parse-verify", || (), parse_and_verify, operations);
    let printed = |text: &String| Some(text.lines().filter(|l| l.contains(" = f") && !l.contains("f32const")).count());
    report.stage("print", || (), |()| function.display().to_string(), printed);
    report.stage("verify", || (), |()| verify(&function, &isa), |()| None);
    let optimize = |mut context: Context| {
        context.optimize(&*isa, &mut ControlPlane::default()).expect("the function is valid");
        context
    };
    report.stage("pipeline", || Context::for_function(function.clone()), optimize, |c| operations(&c.func));
}

/// Returns this machine as the target, at the level at which it optimizes, without the verifier in
/// between.
fn target() -> OwnedTargetIsa {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").expect("a setting");
    flags.set("enable_verifier", "false").expect("a setting");
    let target = isa::lookup_by_name(std::env::consts::ARCH).expect("built for this machine");
    target.finish(settings::Flags::new(flags)).expect("settings that fit")
}

fn verify(function: &Function, isa: &OwnedTargetIsa) {
    verify_function(function, &**isa).expect("the function is valid");
}

fn build(program: &Program, isa: &OwnedTargetIsa) -> Function {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(F32));
    signature.returns.push(AbiParam::new(F32));
    let mut function = Function::with_name_signature(UserFuncName::testcase("main"), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let x = builder.block_params(entry)[0];
    let constants: Vec<Value> = program.constants.iter().map(|&c| builder.ins().f32const(c)).collect();
    let mut results: Vec<Value> = Vec::with_capacity(program.operations.len());
    for &(op, lhs, rhs) in &program.operations {
        let [lhs, rhs] = [lhs, rhs].map(|operand| operand.value(x, &results, &constants));
        results.push(match op {
            Op::Add => builder.ins().fadd(lhs, rhs),
            Op::Multiply => builder.ins().fmul(lhs, rhs),
            Op::Subtract => builder.ins().fsub(lhs, rhs),
        });
    }
    builder.ins().return_(&[*results.last().expect("the program has an operation")]);
    builder.finalize(isa.frontend_config());
    function
}

fn operations(function: &Function) -> Option<usize> {
    let instructions = function.layout.blocks().flat_map(|block| function.layout.block_insts(block));
    let opcodes = instructions.map(|inst| function.dfg.insts[inst].opcode());
    Some(opcodes.filter(|opcode| matches!(opcode, Opcode::Fadd | Opcode::Fmul | Opcode::Fsub)).count())
}
