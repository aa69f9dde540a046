//! Single lines of a function, for outlines and reports.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::{Expr, VarId};
use crate::core::function::Function;

use super::expressions::BodyState;
use super::literals::LiteralTexts;
use super::names::{NameUses, own_name};
use super::output::Output;
use super::symbols::SymbolNames;
use super::{Annotations, PrintLiterals, PrintOptions, Printer};

/// Constants of more than eight elements are left out of a line.
const OPTIONS: PrintOptions =
    PrintOptions { annotations: Annotations::Needed, literals: PrintLiterals::Elided { more_than: 8 } };

/// A line is cut after this many bytes, at a character.
const LONGEST: usize = 1000;

/// A line of a function: its text, and the variables in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionLine {
    /// The text, without indentation.
    pub text: String,
    /// True if the text does not show all of the line: it was cut, or has a constant without its
    /// elements. Lines that differ may then have the same text.
    pub is_abridged: bool,
    /// The parameters of the function or of a `fn` in the line.
    pub parameters: Vec<VarId>,
    /// The variables that the line uses, as often as it does. Those in blocks belong to other
    /// lines. After the end of a line that was cut, variables may be missing.
    pub uses: Vec<VarId>,
}

/// The variables of the line that is being printed.
#[derive(Default)]
pub(super) struct LineVariables {
    pub(super) parameters: Vec<VarId>,
    pub(super) uses: Vec<VarId>,
}

/// Returns a Let, or the tail of a block, as one line: `let %y = add(%x, %x);`. Blocks in it are
/// written as `{ … }`, and long constants as the number of their elements and a hash of their
/// contents. Variables have the names that they have in the body, without the suffixes that tell
/// equal names apart in the text of a module; see [`line_name`]. A line that is too long ends with
/// `…`.
///
/// Cost: one node.
pub fn statement_line(cx: &Context, body: &Body, at: ExprId) -> FunctionLine {
    line(cx, body, |printer| match body.expr(at) {
        Expr::Let { var, value, .. } => {
            printer.out.text("let ");
            own_name(&cx.names, body, var.expr(), &mut printer.out);
            printer.out.text(" = ");
            printer.let_value(value, false);
            printer.run();
            printer.out.ascii(b';');
        }
        _ => {
            printer.expr(at);
            printer.run();
        }
    })
}

/// Returns the signature of a function as one line: `def @main(%x: Tensor[(8,), float32]) -> …`.
/// See [`statement_line`].
///
/// Cost: one loop.
pub fn signature_line(cx: &Context, function: &Function) -> FunctionLine {
    line(cx, &function.body, |printer| {
        printer.head(function);
        printer.run();
    })
}

/// Returns a variable as lines spell it: `%x`, or `%"a name"` for a name that is no identifier. A
/// variable without a name is spelled as the number of its node, `%#57`, after the
/// [generation](Body::generation) of the body if that is not 0: `%#2:57`. In a function, no other
/// variable without a name is spelled so, whatever passes do.
///
/// Cost: linear in the text.
pub fn line_name(cx: &Context, body: &Body, var: VarId) -> String {
    written(|out| own_name(&cx.names, body, var.expr(), out))
}

/// Returns the name of the variable that a Let binds, or of a variable itself, or what
/// [`line_name`] writes after `%` if it has no name; `None` for anything else.
///
/// Cost: linear in the text.
pub fn binding_label<'c>(cx: &'c Context, body: &Body, id: ExprId) -> Option<Cow<'c, str>> {
    if let Some(name) = body.binding_name(cx, id) {
        return Some(Cow::Borrowed(name));
    }
    let var = match body.expr(id) {
        Expr::Let { var, .. } => var,
        _ => body.as_var(id)?,
    };
    Some(Cow::Owned(line_name(cx, body, var).split_off(1)))
}

/// Returns a variable with this [`binding_label`] as lines spell it: `%x`, `%"a name"`, `%#57`. A
/// name such as `#57` cannot be told from a variable without a name, and is spelled like it.
///
/// Cost: linear in the text.
pub fn spelled_label(label: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_unnamed = label.strip_prefix('#').is_some_and(|number| match number.split_once(':') {
        Some((generation, number)) => is_number(generation) && is_number(number),
        None => is_number(number),
    });
    if is_unnamed { format!("%{label}") } else { spelled_local(label) }
}

/// Returns a name as the text format spells the local variable of this name: `%x`, `%"a name"`.
///
/// Cost: linear in the text.
pub fn spelled_local(name: &str) -> String {
    written(|out| {
        out.ascii(b'%');
        out.name(name);
    })
}

fn written(write: impl FnOnce(&mut Output<'_>)) -> String {
    let mut text = String::new();
    let mut out = Output::new(&mut text);
    write(&mut out);
    out.finish().expect("a string takes all text");
    text
}

fn line<'m>(cx: &'m Context, body: &'m Body, print: impl FnOnce(&mut Printer<'m, '_>)) -> FunctionLine {
    let mut line = Line::default();
    let mut printer = Printer {
        cx,
        options: &OPTIONS,
        out: Output::new(&mut line).with_chunk(LONGEST).with_hashes(),
        aliases: Arc::default(),
        names: NameUses::own(),
        symbols: SymbolNames::default(),
        literals: LiteralTexts::default(),
        plain_ops: Vec::new(),
        state: BodyState::nothing(body),
        outer: Vec::new(),
        tasks: Vec::new(),
        type_parts: Vec::new(),
        outputs: Vec::new(),
        line: Some(LineVariables::default()),
    };
    print(&mut printer);
    let is_cut = printer.out.finish().is_err();
    let is_abridged = is_cut || printer.out.has_elided();
    let LineVariables { parameters, uses } = printer.line.take().unwrap_or_default();
    FunctionLine { text: line.0, is_abridged, parameters, uses }
}

/// Takes the text up to the limit.
#[derive(Default)]
struct Line(String);

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut room = LONGEST.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.0.push_str(&text[..room]);
        self.0.push('…');
        Err(fmt::Error)
    }
}
