//! Single lines of a function, for outlines and reports.

use std::fmt;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;
use crate::core::function::Function;

use super::aliases::Aliases;
use super::expressions::BodyState;
use super::literals::LiteralTexts;
use super::names::NameUses;
use super::output::Output;
use super::symbols::SymbolNames;
use super::{Annotations, PrintLiterals, PrintOptions, Printer};

/// Constants of more than eight elements are left out of a line.
const OPTIONS: PrintOptions =
    PrintOptions { annotations: Annotations::Needed, literals: PrintLiterals::Elided { more_than: 8 } };

/// A line is cut after this many bytes, at a character.
const LONGEST: usize = 1000;

/// Returns a Let, or the tail of a block, as one line: `let %y = add(%x, %x);`. Blocks in it are
/// written as `{ … }`, and long constants without their elements. Variables have the names that
/// they have in the body, without the suffixes that tell equal names apart in the text of a module.
/// A variable without a name is written as the number of its node. A line that is too long ends
/// with `…`.
///
/// Cost: one node.
pub fn statement_line(cx: &Context, body: &Body, at: ExprId) -> String {
    line(cx, body, |printer| match body.expr(at) {
        Expr::Let { var, value, .. } => {
            printer.out.text("let ");
            printer.local(var.expr());
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
pub fn signature_line(cx: &Context, function: &Function) -> String {
    line(cx, &function.body, |printer| {
        printer.head(function);
        printer.run();
    })
}

fn line<'m>(cx: &'m Context, body: &'m Body, print: impl FnOnce(&mut Printer<'m, '_>)) -> String {
    let mut line = Line::default();
    let mut printer = Printer {
        cx,
        options: &OPTIONS,
        out: Output::new(&mut line).with_chunk(LONGEST),
        aliases: Aliases::default(),
        names: NameUses::own(),
        symbols: SymbolNames::default(),
        literals: LiteralTexts::default(),
        plain_ops: Vec::new(),
        state: BodyState::nothing(body),
        outer: Vec::new(),
        tasks: Vec::new(),
        type_parts: Vec::new(),
        outputs: Vec::new(),
        is_line: true,
    };
    print(&mut printer);
    // A line that is cut is complete as far as it is shown.
    let _ = printer.out.finish();
    line.0
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
