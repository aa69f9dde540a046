//! Recovery from syntax errors: parsing continues at the next `;`, `}` or item.

use super::expressions::{Frame, State};
use super::scope::LocalKind;
use super::{Parsed, Parser, Reported};
use crate::text::lexer::Kind;

impl Parser<'_, '_> {
    /// Recovers after an error was reported: gives up the construct being read in the innermost
    /// block, and skips to where that block continues. Returns an error if there is no such place;
    /// the stack is then empty.
    #[cold]
    pub(super) fn recover(&mut self) -> Parsed<State> {
        // If the error is in a binding, the last frame is that of the outermost binding in the
        // block.
        let broken = self.unwind_to_block().filter(|f| matches!(f, Frame::Let(_) | Frame::Graph { .. }));
        let Some(Frame::Block(block)) = self.frames.last() else { return Err(Reported) };
        let opened = block.start;
        self.meta = None;
        let mut moved = broken.is_some();
        let mut depth = 0usize;
        loop {
            match self.tok.kind {
                Kind::End => {
                    if !self.stopped
                        && let Some(last) = self.diagnostics.last_mut()
                        && last.span.as_ref().is_some_and(|s| s.start == self.text.len())
                    {
                        let opened = opened as usize;
                        last.related.push((opened..opened + 1, "this block is not closed".to_string()));
                    }
                    return self.give_up();
                }
                Kind::Def | Kind::Declare => return self.give_up(),
                Kind::Type | Kind::Attr if self.peek().kind == Kind::Alias => return self.give_up(),
                Kind::LBrace => depth += 1,
                Kind::RBrace if depth == 0 => {
                    self.next();
                    self.bind_broken(broken);
                    if self.open_region().is_some() {
                        self.end_region(&[]);
                        return Ok(State::Statement);
                    }
                    let tail = self.error_expr();
                    return self.close_block(tail);
                }
                Kind::RBrace => depth -= 1,
                Kind::Semicolon if depth == 0 => {
                    self.next();
                    self.bind_broken(broken);
                    return Ok(State::Statement);
                }
                // The `;` before this token is missing.
                Kind::Let if depth == 0 && moved => {
                    self.bind_broken(broken);
                    return Ok(State::Statement);
                }
                _ => {}
            }
            self.next();
            moved = true;
        }
    }

    /// Binds the name of a binding whose value has an error, so that its uses are known.
    fn bind_broken(&mut self, broken: Option<Frame>) {
        let value = self.error_expr();
        match broken {
            Some(Frame::Let(head)) => self.finish_let(head, value),
            Some(Frame::Graph { name, .. }) => self.scopes.declare(name, value, LocalKind::Plain),
            _ => {}
        }
    }

    /// Gives up all open constructs.
    fn give_up(&mut self) -> Parsed<State> {
        while !self.frames.is_empty() {
            self.unwind_to_block();
            self.frames.pop();
        }
        Err(Reported)
    }

    /// Pops frames down to the innermost block. Returns the last popped frame.
    fn unwind_to_block(&mut self) -> Option<Frame> {
        let mut last = None;
        while let Some(frame) = self.frames.pop_if(|frame| !matches!(frame, Frame::Block(_))) {
            match frame {
                Frame::Call { operands, key_values, .. } => {
                    self.operands.truncate(operands as usize);
                    self.key_values.truncate(key_values as usize);
                }
                Frame::Tuple { operands, .. } => self.operands.truncate(operands as usize),
                Frame::Meta { key_values } => self.key_values.truncate(key_values as usize),
                Frame::List { elements } => self.elements.truncate(elements as usize),
                Frame::Signature | Frame::Function => self.abandon_head(),
                Frame::Block(_)
                | Frame::Let(_)
                | Frame::Graph { .. }
                | Frame::Paren { .. }
                | Frame::Condition { .. }
                | Frame::Then { .. }
                | Frame::Else { .. }
                | Frame::Key { .. } => {}
            }
            last = Some(frame);
        }
        last
    }
}
