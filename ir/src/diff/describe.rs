//! Texts of values, constants and attributes for people, cut after a few hundred characters.

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, ExprId, LiteralId};
use crate::core::expr::Expr;
use crate::ops::op_def::OpDef;
use crate::ops::op_kinds::AttrDefault;
use crate::tables::attrs::Attr;
use crate::text::spelled_local;

/// Texts are cut when they are longer than this many bytes.
const LONGEST: usize = 160;

/// Returns the name of a variable as the text format writes it.
pub(super) fn variable(name: Option<&str>) -> String {
    match name {
        Some(name) => spelled_local(name),
        None => "an unnamed variable".to_string(),
    }
}

/// Returns the name of a global as the text format writes it.
pub(super) fn global(name: &str) -> String {
    format!("@{}", &spelled_local(name)[1..])
}

/// Cuts a text that is too long.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        let mut end = LONGEST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns a place inside of another one. Places of deep nests are cut.
pub(super) fn within(place: String, outer: &str) -> String {
    cut(format!("{place} in {outer}"))
}

/// Returns a text in quotes.
fn quoted(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    format!("{:?}", &text[..end])
}

/// Returns the text of a constant.
pub(super) fn constant(cx: &Context, literal: LiteralId) -> String {
    let literal = cx.literals.get(literal);
    cut(match literal.as_strings() {
        Some([one]) => quoted(one),
        Some(several) => format!("{} strings of shape {:?}", several.len(), literal.shape()),
        None => literal.message_text(),
    })
}

/// Returns the text of an operand: an atom, or the outline of an expression.
pub(super) fn operand(cx: &Context, body: &Body, id: ExprId) -> String {
    match body.expr(id) {
        Expr::Var { .. } => variable(body.binding_name(cx, id)),
        Expr::Literal(literal) => constant(cx, literal),
        Expr::Global(g) => global(cx.global_name(g)),
        Expr::Op(op) => cx.ops.get(op).name.to_string(),
        Expr::None => "none".to_string(),
        Expr::CallOp { op, .. } => format!("{}(…)", cx.ops.get(op).name),
        Expr::Call { .. } => "a call of a function".to_string(),
        Expr::Tuple(_) => "a tuple".to_string(),
        Expr::Proj { index, .. } => format!("field .{index} of a tuple"),
        Expr::Let { .. } => "a block".to_string(),
        Expr::If { .. } => "an if".to_string(),
        Expr::Lambda { .. } => "a fn".to_string(),
    }
}

/// Returns the text of a value in one line. The parts of a value that are not atoms are outlined.
pub(super) fn value(cx: &Context, body: &Body, id: ExprId) -> String {
    let operands = |ids: &[ExprId], attrs: AttrsId| {
        let mut text = String::from("(");
        let mut comma = "";
        for &id in ids {
            if text.len() > LONGEST {
                break;
            }
            text.push_str(comma);
            text.push_str(&operand(cx, body, id));
            comma = ", ";
        }
        for &(name, value) in cx.attrs.list(attrs) {
            if text.len() > LONGEST {
                break;
            }
            text.push_str(comma);
            text.push_str(cx.names.get(name));
            text.push('=');
            text.push_str(&attribute(cx, value));
            comma = ", ";
        }
        text.push(')');
        text
    };
    cut(match body.expr(id) {
        Expr::CallOp { op, operands: list, attrs } => {
            format!("{}{}", cx.ops.get(op).name, operands(body.operands(list), attrs))
        }
        Expr::Call { operands: list, attrs } => match body.operands(list) {
            [callee, arguments @ ..] => format!("{}{}", operand(cx, body, *callee), operands(arguments, attrs)),
            [] => "a call".to_string(),
        },
        Expr::Tuple(list) => operands(body.operands(list), cx.attrs.empty()),
        Expr::Proj { tuple, index } => format!("{}.{index}", operand(cx, body, tuple)),
        Expr::If { cond, .. } => format!("if {}", operand(cx, body, cond)),
        _ => operand(cx, body, id),
    })
}

/// A part of the text of an attribute that remains to be written.
enum AttrPart {
    Value(AttrId),
    Text(&'static str),
}

/// Returns the text of an attribute.
pub(super) fn attribute(cx: &Context, attr: AttrId) -> String {
    let mut text = String::new();
    let mut parts = vec![AttrPart::Value(attr)];
    while let Some(part) = parts.pop() {
        if text.len() > LONGEST {
            break;
        }
        match part {
            AttrPart::Text(piece) => text.push_str(piece),
            AttrPart::Value(attr) => match cx.attrs.get(attr) {
                Attr::List(items) => {
                    text.push('[');
                    parts.push(AttrPart::Text("]"));
                    // More items do not fit into the text.
                    for (i, &item) in items.iter().take(LONGEST).enumerate().rev() {
                        parts.push(AttrPart::Value(item));
                        parts.extend((i > 0).then_some(AttrPart::Text(", ")));
                    }
                }
                leaf => text.push_str(&attribute_leaf(cx, leaf)),
            },
        }
    }
    cut(text)
}

/// Returns the text of the default of an attribute, if it has one.
pub(super) fn default_attribute(row: &OpDef, name: &str) -> Option<String> {
    match row.attrs.iter().find(|attr| attr.name == name)?.default {
        AttrDefault::Required | AttrDefault::Absent => None,
        AttrDefault::Bool(value) => Some(value.to_string()),
        AttrDefault::Int(value) => Some(value.to_string()),
        AttrDefault::Float(value) => Some(format!("{value:?}")),
        AttrDefault::Str(text) => Some(format!("{text:?}")),
        AttrDefault::Ints(items) => Some(format!("{items:?}")),
        AttrDefault::DType(dtype) => Some(dtype.to_string()),
    }
}

fn attribute_leaf(cx: &Context, attr: &Attr) -> String {
    match attr {
        Attr::None => "none".to_string(),
        Attr::Bool(value) => value.to_string(),
        Attr::Int(value) => value.to_string(),
        Attr::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
        Attr::Str(text) => quoted(cx.names.get(*text)),
        Attr::Shape(dims) => {
            let dims: Vec<String> = dims.iter().take(LONGEST).map(|&d| cx.dim_text(d)).collect();
            format!("shape({})", dims.join(", "))
        }
        Attr::Literal(literal) => constant(cx, *literal),
        Attr::DType(dtype) => dtype.to_string(),
        Attr::Type(ty) => cx.type_text(*ty),
        Attr::Global(g) => global(cx.global_name(*g)),
        Attr::Op(op) => cx.ops.get(*op).name.to_string(),
        Attr::Function(_) => "a function".to_string(),
        Attr::List(_) => "a list".to_string(),
    }
}
