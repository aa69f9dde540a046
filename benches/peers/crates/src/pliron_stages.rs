//! pliron: the program on scalars, in three operations of our own, is built, walked, printed and
//! parsed, verified, and rid of dead code.

use std::io::Write;

use pliron::basic_block::BasicBlock;
use pliron::builtin::attributes::FPSingleAttr;
use pliron::builtin::op_interfaces::{
    IsTerminatorInterface, NOpdsInterface, OneResultInterface, SameOperandsAndResultType, SingleBlockRegionInterface,
};
use pliron::builtin::ops::{ConstantOp, FuncOp, ModuleOp};
use pliron::builtin::types::{FP32Type, FunctionType};
use pliron::context::{Context, Ptr};
use pliron::derive::{op_interface_impl, pliron_op};
use pliron::graph::walkers::uninterruptible::immutable::walk_op;
use pliron::graph::walkers::{IRNode, WALKCONFIG_PREORDER_FORWARD};
use pliron::ident;
use pliron::irfmt::parsers::spaced;
use pliron::op::Op as _;
use pliron::operation::{Operation, verify_operation};
use pliron::opts::dce::{SideEffects, dce};
use pliron::parsable::parse_from_str;
use pliron::printable::Printable;
use pliron::value::Value;

use crate::program::{Op, Program};
use crate::stage::Report;

// rustfmt would indent the attribute further each time.
#[rustfmt::skip]
macro_rules! binary_operation {
    ($op:ident, $name:literal) => {
        #[pliron_op(
            name = $name,
            format = "$0 `, ` $1 ` : ` type($0)",
            interfaces = [
                NOpdsInterface<2>,
                OneResultInterface,
                pliron::builtin::op_interfaces::SameOperandsType,
                pliron::builtin::op_interfaces::SameResultsType,
                SameOperandsAndResultType
            ],
            verifier = "succ",
        )]
        struct $op;

        #[op_interface_impl]
        impl SideEffects for $op {
            fn has_side_effects(&self, _: &Context) -> bool {
                false
            }
        }
    };
}

binary_operation!(AddOp, "chain.add");
binary_operation!(MultiplyOp, "chain.multiply");
binary_operation!(SubtractOp, "chain.subtract");

#[pliron_op(name = "chain.return", format = "$0", interfaces = [IsTerminatorInterface], verifier = "succ")]
struct ReturnOp;

/// Times all stages.
pub(crate) fn time(report: &mut Report<impl Write>) {
    let program = Program::new(report.n());
    let mut context = Context::new();
    let module = build(&program, &mut context);
    let text = module.disp(&context).to_string();
    let built = |context: Context| {
        let mut context = context;
        let module = build(&program, &mut context);
        (context, module)
    };
    let left = |(context, module): &(Context, Ptr<Operation>)| Some(count_operations(context, *module));
    report.stage("build", Context::new, built, left);
    let parse = |mut context: Context| {
        let module = parse_from_str(spaced(Operation::top_level_parser()), &mut context, &text);
        let module = module.expect("the text is what was printed");
        (context, module)
    };
    report.stage("parse", Context::new, parse, left);
    let parse_and_verify = |context: Context| {
        let (context, module) = parse(context);
        verify_operation(module, &context).expect("the program is valid");
        (context, module)
    };
    // The work of the verifier grows with the square of the program.
    let verified = report.n() <= 10_000;
    if verified {
        report.stage("parse-verify", Context::new, parse_and_verify, left);
    }
    let printed = |text: &String| Some(text.lines().filter(|l| l.contains(" = chain.")).count());
    report.stage("print", || (), |()| module.disp(&context).to_string(), printed);
    if verified {
        report.stage("verify", || (), |()| verify_operation(module, &context), |_| None);
    }
    report.stage("visit", || (), |()| count_operations(&context, module), |&count| Some(count));
    let drop_dead = |(mut context, module): (Context, Ptr<Operation>)| {
        dce(module, &mut context).expect("nothing is left that reads what is dropped");
        (context, module)
    };
    report.stage("dce", || built(Context::new()), drop_dead, left);
}

fn build(program: &Program, context: &mut Context) -> Ptr<Operation> {
    let f32 = FP32Type::get(context).into();
    let module = ModuleOp::new(context, ident!("chain"));
    let ty = FunctionType::get(context, vec![f32], vec![f32]);
    let function = FuncOp::new(context, ident!("main"), ty);
    module.append_operation(context, function.get_operation(), 0);
    let block = function.get_entry_block(context);
    let x = block.deref(context).get_argument(0);
    let constants: Vec<Value> = program.constants.iter().map(|&c| constant(context, block, c)).collect();
    let mut results: Vec<Value> = Vec::with_capacity(program.operations.len());
    for &(op, lhs, rhs) in &program.operations {
        let operands = [lhs, rhs].map(|operand| operand.value(x, &results, &constants));
        let op = match op {
            Op::Add => AddOp::get_concrete_op_info(),
            Op::Multiply => MultiplyOp::get_concrete_op_info(),
            Op::Subtract => SubtractOp::get_concrete_op_info(),
        };
        let op = Operation::new(context, op, vec![f32], operands.to_vec(), vec![], 0);
        op.insert_at_back(block, context);
        results.push(op.deref(context).get_result(0));
    }
    let result = *results.last().expect("the program has an operation");
    let end = Operation::new(context, ReturnOp::get_concrete_op_info(), vec![], vec![result], vec![], 0);
    end.insert_at_back(block, context);
    module.get_operation()
}

fn constant(context: &mut Context, block: Ptr<BasicBlock>, value: f32) -> Value {
    let op = ConstantOp::new(context, Box::new(FPSingleAttr::from(value)));
    op.get_operation().insert_at_back(block, context);
    op.get_result(context)
}

/// Walks the program and counts the operations that have two operands.
fn count_operations(context: &Context, module: Ptr<Operation>) -> usize {
    let mut count = 0;
    walk_op(context, &mut count, &WALKCONFIG_PREORDER_FORWARD, module, |context, count, node| {
        if let IRNode::Operation(op) = node
            && op.deref(context).get_num_operands() == 2
        {
            *count += 1;
        }
    });
    count
}
