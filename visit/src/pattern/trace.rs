//! Texts of the changes that rules made.

use anfora_ir::{Attr, AttrId, AttrsId, Body, Context, Expr, ExprId};

/// A rewrite in [`Outcome::trace`](crate::pattern::Outcome::trace).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The number of the rule.
    pub rule: usize,
    /// An expression of the body before the run: the replaced node or its binding. If rules made
    /// that, the last original expression at which a rule was applied.
    pub at: ExprId,
    /// The binding whose value was replaced, without `%`, if it has a name.
    pub binding: Option<String>,
    /// The replaced node alone, with the names of its operands and its attributes.
    pub before: String,
    /// The replacement.
    pub after: String,
}

/// Returns the text of a node, in which `…` stands for operands without names.
pub(crate) fn node_text(cx: &Context, body: &Body, id: ExprId) -> String {
    let list = |ids: &[ExprId]| ids.iter().map(|&o| atom_text(cx, body, o)).collect::<Vec<_>>().join(", ");
    let text = match body.expr(id) {
        Expr::CallOp { op, operands, attrs } => {
            let mut given: Vec<String> = body.operands(operands).iter().map(|&o| atom_text(cx, body, o)).collect();
            given.extend(attr_texts(cx, attrs));
            format!("{}({})", cx.ops.get(op).name, given.join(", "))
        }
        Expr::Call { operands, .. } => match body.operands(operands).split_first() {
            Some((&function, arguments)) => format!("{}({})", atom_text(cx, body, function), list(arguments)),
            None => "…".to_string(),
        },
        Expr::Tuple(fields) => format!("({})", list(body.operands(fields))),
        Expr::Proj { tuple, index } => format!("{}.{index}", atom_text(cx, body, tuple)),
        Expr::If { .. } => "an `if`".to_string(),
        Expr::Lambda { .. } => "a `fn`".to_string(),
        _ => return format!("`{}`", atom_text(cx, body, id)),
    };
    format!("`{text}`")
}

fn atom_text(cx: &Context, body: &Body, id: ExprId) -> String {
    match body.expr(id) {
        Expr::Var { .. } => body.binding_name(cx, id).map_or("…".to_string(), |name| format!("%{name}")),
        Expr::Global(global) => format!("@{}", cx.global_name(global)),
        Expr::Literal(literal) => match cx.literals.get(literal) {
            tensor if tensor.as_splat().is_some() => format!("constant {}", cx.type_text(body.ty(id))),
            _ => cx.type_text(body.ty(id)),
        },
        Expr::None => "none".to_string(),
        _ => "…".to_string(),
    }
}

/// Returns the texts of the attributes of a call. `…` stands for values that are not a number, word
/// or type, and for further items of a long list.
fn attr_texts(cx: &Context, attrs: AttrsId) -> impl Iterator<Item = String> + '_ {
    const MOST_ITEMS: usize = 16;
    let plain = |value: AttrId| match cx.attrs.get(value) {
        Attr::None => "none".to_string(),
        Attr::Bool(value) => value.to_string(),
        Attr::Int(value) => value.to_string(),
        Attr::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
        Attr::Str(text) => format!("{:?}", cx.names.get(*text)),
        Attr::DType(dtype) => dtype.to_string(),
        Attr::Type(ty) => cx.type_text(*ty),
        _ => "…".to_string(),
    };
    cx.attrs.list(attrs).iter().map(move |&(name, value)| {
        let text = match cx.attrs.get(value) {
            Attr::List(items) => {
                let mut texts: Vec<String> = items.iter().take(MOST_ITEMS).map(|&item| plain(item)).collect();
                texts.extend((items.len() > MOST_ITEMS).then(|| "…".to_string()));
                format!("[{}]", texts.join(", "))
            }
            _ => plain(value),
        };
        format!("{}={text}", cx.names.get(name))
    })
}
