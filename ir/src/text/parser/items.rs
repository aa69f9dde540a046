//! Items: module attributes, aliases, declarations and definitions.

use super::expressions::{Frame, State};
use super::{Alias, Parsed, Parser, Reported, SourceRange};
use crate::core::entity::{AttrsId, GlobalId};
use crate::core::function::Function;
use crate::report::diagnostic::Diagnostic;
use crate::report::suggest::did_you_mean;
use crate::text::lexer::Kind;

/// A function that was read.
pub(super) struct Item {
    pub(super) global: GlobalId,
    pub(super) function: Function,
    /// True if every node of it has its type.
    pub(super) is_typed: bool,
}

impl Parser<'_, '_> {
    /// Reads a whole module on up to `threads` threads. Returns its attributes.
    pub(super) fn module_items(&mut self, mut threads: usize) -> AttrsId {
        let mut attrs = self.cx.attrs.empty();
        if self.tok.kind == Kind::ModuleMeta {
            self.next();
            match self.item_meta() {
                Ok(()) => attrs = self.meta.take().unwrap_or(attrs),
                Err(Reported) => self.skip_to_item(),
            }
        }
        while self.tok.kind != Kind::End {
            if threads > 1 && self.is_worth_sharing() {
                self.items_on_threads(threads);
                threads = 1;
                continue;
            }
            let start = self.tok.start();
            if self.item().is_err() {
                self.meta = None;
                if self.tok.start() == start {
                    self.next();
                }
                self.skip_to_item();
            }
        }
        if self.meta.take().is_some() {
            self.error_at(self.tok, "`#[…]` belongs to a binding or an item, but the text ends");
        }
        self.check_globals();
        attrs
    }

    fn item_meta(&mut self) -> Parsed<()> {
        self.frames.push(Frame::Meta { key_values: self.key_values.len() as u32 });
        self.run(State::KeyValue)
    }

    /// Reads an item, or the `#[…]` before one.
    pub(super) fn item(&mut self) -> Parsed<()> {
        match self.tok.kind {
            Kind::Meta => {
                self.next();
                self.item_meta()
            }
            Kind::Def | Kind::Declare => {
                let state = self.function_item();
                match state {
                    Ok(state) => self.run(state),
                    Err(Reported) => self.recover().and_then(|state| self.run(state)),
                }
            }
            Kind::Type => {
                self.next();
                let (name, place) = self.alias_head()?;
                let ty = self.parse_type()?;
                self.define_alias(name, Alias::Type(ty), place)
            }
            Kind::Attr => {
                self.next();
                let (name, place) = self.alias_head()?;
                let attr = self.run_attribute()?;
                self.define_alias(name, Alias::Attr(attr), place)
            }
            Kind::ModuleMeta => Err(self.error_at(self.tok, "`#![…]` stands once, at the beginning of the text")),
            kind => {
                let word = self.slice(self.tok);
                let near = match kind.is_word() {
                    true => did_you_mean(word, ["def", "declare", "type", "attr"]),
                    false => None,
                };
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        "a module consists of `def @f(…) { … }`, `declare @f(…);`, `type !t = …;` and `attr !a = …;`"
                            .to_string()
                    }
                };
                Err(self.unexpected_help("an item", &help))
            }
        }
    }

    fn alias_head(&mut self) -> Parsed<(crate::core::entity::NameId, SourceRange)> {
        if self.meta.take().is_some() {
            self.error_at(self.tok, "`#[…]` belongs to a binding or a function, not to an alias");
        }
        let tok = self.expect(Kind::Alias)?;
        let name = self.name(tok);
        self.expect(Kind::Equal)?;
        Ok((name, tok.into()))
    }

    fn define_alias(&mut self, name: crate::core::entity::NameId, alias: Alias, place: SourceRange) -> Parsed<()> {
        match self.aliases.get(&name) {
            Some(&(_, first)) => {
                let text = format!("the alias `!{}`", self.cx.names.get(name));
                self.duplicate(&text, place, first);
            }
            None => {
                self.aliases.insert(name, (alias, place));
            }
        }
        self.expect(Kind::Semicolon).map(|_| ())
    }

    /// Skips to a token that may begin an item.
    fn skip_to_item(&mut self) {
        loop {
            match self.tok.kind {
                Kind::End | Kind::Def | Kind::Declare => return,
                Kind::Type | Kind::Attr if self.peek().kind == Kind::Alias => return,
                _ => self.next(),
            }
        }
    }

    /// Reports the globals that are used and not defined.
    fn check_globals(&mut self) {
        let mut reported = rustc_hash::FxHashSet::default();
        for (global, place) in std::mem::take(&mut self.global_uses) {
            if self.definitions.contains_key(&global) || !reported.insert(global) {
                continue;
            }
            let name = self.cx.global_name(global).to_string();
            let mut defined: Vec<(SourceRange, GlobalId)> = self.definitions.iter().map(|(&g, &p)| (p, g)).collect();
            defined.sort_by_key(|(place, _)| place.start);
            let names = defined.iter().take(4000).map(|&(_, g)| self.cx.global_name(g));
            let help = match did_you_mean(&name, names) {
                Some(near) => format!("did you mean `@{near}`?"),
                None => format!("define it, or declare it: `declare @{name}(…) -> …;`"),
            };
            self.error(Diagnostic::error(format!("unknown global `@{name}`")).at(place.range()).with_help(help));
            if self.stopped {
                return;
            }
        }
    }
}
