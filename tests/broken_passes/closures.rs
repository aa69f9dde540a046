//! LambdaLifting and InlineFunctions, with mistakes.

use std::collections::HashMap;
use std::sync::Arc;

use anfora::ir::{Editor, Expr, GlobalId, NameId, TypeId};
use anfora::manager::{ModulePass, Pass};

use super::{Broken, after, in_sequence, is_call_of, lets, registered};
use crate::random_programs::checking::Why;

pub(super) const BROKEN: &[Broken] = &[
    Broken {
        of: "LambdaLifting",
        mistake: "passes captures in another order",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || after("LambdaLifting", exchange_captures),
    },
    Broken {
        of: "LambdaLifting",
        mistake: "forgets the captures where a function calls itself",
        why: &[Why::IllFormed],
        make: || in_sequence([registered("LambdaLifting"), forget_captures()]),
    },
    Broken {
        of: "InlineFunctions",
        mistake: "takes a parameter for the caller's variable of that name",
        why: &[Why::OtherResult, Why::OtherEffects],
        make: || in_sequence([capture_by_name(), registered("InlineFunctions")]),
    },
];

fn exchange_captures(editor: &mut Editor<'_>) {
    for b in lets(editor.body) {
        if !is_call_of(editor, b.value, &["make_closure"]) {
            continue;
        }
        let operands = editor.body.operands_of(b.value).to_vec();
        let ty = |i: usize| editor.body.ty(operands[i]);
        let same = (2..operands.len()).find(|&i| ty(i) == ty(i - 1) && operands[i] != operands[i - 1]);
        let (Some(i), Some(list)) = (same, editor.body.expr(b.value).operand_list()) else { continue };
        editor.body.set_operand(list, i, operands[i - 1]);
        editor.body.set_operand(list, i - 1, operands[i]);
    }
}

fn forget_captures() -> Arc<dyn Pass> {
    Arc::new(ModulePass::new("Edit", 0, |module, _| {
        for key in module.order().to_vec() {
            let lifted = module.name(key).starts_with("main_");
            let (function, _) = module.get_mut(key).expect("keys of the order are live");
            let this = function.global();
            let body = &mut function.body;
            for b in lets(body) {
                let Expr::Call { operands, attrs } = body.expr(b.value) else { continue };
                let operands = body.operands(operands).to_vec();
                let calls_itself = matches!(body.expr(operands[0]), Expr::Global(g) if Some(g) == this);
                // The callee and the lambda's own two parameters. The other arguments are captures.
                if lifted && calls_itself && operands.len() > 3 {
                    let operands = body.push_operands(&operands[..3]);
                    body.set_expr(b.value, Expr::Call { operands, attrs });
                }
            }
        }
        Ok(())
    }))
}

fn capture_by_name() -> Arc<dyn Pass> {
    Arc::new(ModulePass::new("Edit", 0, |module, _| {
        let mut params: HashMap<GlobalId, Vec<(Option<NameId>, TypeId)>> = HashMap::new();
        for (_, f) in module.functions() {
            let names = f.body.params().iter().map(|&p| (f.body.var_name(p), f.body.ty(p.expr())));
            params.extend(f.global().map(|g| (g, names.collect())));
        }
        for key in module.order().to_vec() {
            let (function, _) = module.get_mut(key).expect("keys of the order are live");
            let body = &mut function.body;
            let own = body.params().to_vec();
            for b in lets(body) {
                let Expr::Call { operands, .. } = body.expr(b.value) else { continue };
                let Expr::Global(g) = body.expr(body.operands(operands)[0]) else { continue };
                for (i, &(name, ty)) in params.get(&g).into_iter().flatten().enumerate() {
                    let captured = own.iter().find(|&&p| body.var_name(p) == name && body.ty(p.expr()) == ty).copied();
                    if let Some(captured) = captured {
                        body.set_operand(operands, i + 1, captured.expr());
                    }
                }
            }
        }
        Ok(())
    }))
}
