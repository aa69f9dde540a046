//! Copies of a part of a chain into a body of its own, and back.

use anfora_ir::{BlockKind, Body, Cursor, Expr, ExprId, Step, VarFlags, VarId};
use rustc_hash::FxHashMap;

/// Expressions of one body, each with the expression that stands for it in another body.
pub(crate) type Names = FxHashMap<ExprId, ExprId>;

/// A variable that is used in the part, is not bound there, and has no counterpart in the other
/// body.
pub(crate) struct Stray(pub(crate) ExprId);

/// Copies the Lets from `first` to `last`, with everything in their values, to the end of another
/// body. The copies are linked to each other. The copy of the last Let has its own value as its
/// rest, as a placeholder, until the caller links it. `names` holds the variables that have a
/// counterpart in the other body already, and receives everything that was copied. `free` makes a
/// variable for each expression that is used and not bound.
///
/// Linear in the part, without recursion.
pub(crate) fn copy_lets(
    from: &Body,
    [first, last]: [ExprId; 2],
    to: &mut Body,
    names: &mut Names,
    mut free: impl FnMut(&mut Body, ExprId) -> Option<VarId>,
) -> Result<(), Stray> {
    // For each block, the last Let that was copied.
    let mut blocks: Vec<Option<ExprId>> = Vec::new();
    let mut cursor = Cursor::at(from, first);
    while let Some(step) = cursor.next(from) {
        match step {
            Step::EnterBlock(..) => blocks.push(None),
            Step::Let(id) => {
                if let Expr::Let { var, .. } = from.expr(id) {
                    bind(from, var, to, names);
                }
            }
            Step::Atom(id) => copy_atom(from, id, to, names, &mut free)?,
            Step::Flat(id) => {
                from.inputs(id).iter().try_for_each(|&o| copy_atom(from, o, to, names, &mut free))?;
                copy_node(from, id, to, names)?;
            }
            Step::Enter(id) => {
                if let Expr::Lambda { lambda, .. } = from.expr(id) {
                    from.lambda_params(lambda).for_each(|p| bind(from, p, to, names));
                }
            }
            Step::Exit(id) => copy_node(from, id, to, names)?,
            Step::Seen(_) => {}
            Step::Bound(id) => {
                let Expr::Let { var, value, flags, .. } = from.expr(id) else { continue };
                let value = name_of(names, value)?;
                let var = to.as_var(name_of(names, var.expr())?).ok_or(Stray(var.expr()))?;
                let copy = to.push(Expr::Let { var, value, body: value, flags }, from.ty(id), from.span(id));
                to.set_meta(copy, from.meta(id));
                names.insert(id, copy);
                let block = blocks.last_mut().expect("a Let is in a block");
                if let Some(before) = block.replace(id) {
                    to.set_let_body(name_of(names, before)?, copy);
                }
                if id == last && blocks.len() == 1 {
                    break;
                }
            }
            Step::ExitBlock(_, kind) => {
                if let (Some(Some(end)), false) = (blocks.pop(), kind == BlockKind::Root)
                    && let Expr::Let { body: tail, .. } = from.expr(end)
                {
                    to.set_let_body(name_of(names, end)?, name_of(names, tail)?);
                }
            }
        }
    }
    Ok(())
}

fn name_of(names: &Names, id: ExprId) -> Result<ExprId, Stray> {
    names.get(&id).copied().ok_or(Stray(id))
}

/// Makes a variable for a variable that is bound in the part, unless it has one already.
fn bind(from: &Body, var: VarId, to: &mut Body, names: &mut Names) {
    names.entry(var.expr()).or_insert_with(|| copy_var(from, var, to).expr());
}

/// Returns a new variable with the same name, flags and type.
pub(crate) fn copy_var(from: &Body, var: VarId, to: &mut Body) -> VarId {
    let id = var.expr();
    let flags = if from.is_dataflow_var(var) { VarFlags::DATAFLOW } else { VarFlags::PLAIN };
    let copy = to.push_var(from.var_name(var), flags, from.ty(id), from.span(id));
    to.set_meta(copy.expr(), from.meta(id));
    copy
}

fn copy_atom(
    from: &Body,
    id: ExprId,
    to: &mut Body,
    names: &mut Names,
    free: &mut impl FnMut(&mut Body, ExprId) -> Option<VarId>,
) -> Result<(), Stray> {
    if names.contains_key(&id) {
        return Ok(());
    }
    let ty = from.ty(id);
    let copy = match from.expr(id) {
        Expr::Literal(literal) => to.literal(literal, ty),
        Expr::Global(global) => to.global(global, ty),
        Expr::Op(op) => to.op(op, ty),
        Expr::None => to.none(ty),
        _ => free(to, id).ok_or(Stray(id))?.expr(),
    };
    names.insert(id, copy);
    Ok(())
}

/// Copies a call, tuple, projection, If or Lambda whose parts were copied.
fn copy_node(from: &Body, id: ExprId, to: &mut Body, names: &mut Names) -> Result<(), Stray> {
    let operands = |to: &mut Body| {
        let list: Result<Vec<ExprId>, Stray> = from.operands_of(id).iter().map(|&o| name_of(names, o)).collect();
        Ok(to.push_operands(&list?))
    };
    let expr = match from.expr(id) {
        Expr::CallOp { op, attrs, .. } => Expr::CallOp { op, operands: operands(to)?, attrs },
        Expr::Call { attrs, .. } => Expr::Call { operands: operands(to)?, attrs },
        Expr::Tuple(_) => Expr::Tuple(operands(to)?),
        Expr::Proj { tuple, index } => Expr::Proj { tuple: name_of(names, tuple)?, index },
        Expr::If { cond, then_block, else_block } => Expr::If {
            cond: name_of(names, cond)?,
            then_block: name_of(names, then_block)?,
            else_block: name_of(names, else_block)?,
        },
        Expr::Lambda { lambda, body: block } => {
            let data = from.lambda(lambda);
            let params: Option<Vec<VarId>> =
                from.lambda_params(lambda).map(|p| to.as_var(*names.get(&p.expr())?)).collect();
            let copy = to.push_lambda(&params.ok_or(Stray(id))?, data.ret, data.attrs);
            to.set_lambda_symbols(copy, from.lambda_symbols(lambda).to_vec());
            Expr::Lambda { lambda: copy, body: name_of(names, block)? }
        }
        _ => return Err(Stray(id)),
    };
    let copy = to.push(expr, from.ty(id), from.span(id));
    to.set_meta(copy, from.meta(id));
    names.insert(id, copy);
    Ok(())
}
