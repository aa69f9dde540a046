//! Attributes.

use crate::core::entity::{AttrId, AttrsId, NameId, OpId};
use crate::tables::attrs::Attr;
use crate::text::lexer::is_word;

use super::literals::Position;
use super::words::is_op_name;
use super::{Printer, Task};

impl<'m> Printer<'m, '_> {
    /// Prints the attributes that tools attach to a binding or item, on a line of their own.
    pub(super) fn meta(&mut self, attrs: AttrsId) {
        self.out.indent();
        self.out.text("#[");
        self.named_attrs(self.cx.attrs.list(attrs), false, "]\n");
    }

    /// Prints `KEY=attr, …` and `close`. From the first nested attribute on, the rest is left to
    /// tasks.
    pub(super) fn named_attrs(&mut self, mut items: &'m [(NameId, AttrId)], mut comma: bool, close: &'static str) {
        while let Some((&(key, value), rest)) = items.split_first() {
            if comma {
                self.out.text(", ");
            }
            let key = self.cx.names.get(key);
            if is_word(key) {
                self.out.text(key)
            } else {
                self.out.quoted(key)
            }
            self.out.ascii(b'=');
            (items, comma) = (rest, true);
            if self.is_simple(value) {
                if !self.attr_alias(value) {
                    self.list_or_leaf(value);
                }
                continue;
            }
            self.tasks.push(Task::NamedAttrs { items, comma, close });
            self.tasks.push(Task::Attr(value));
            return;
        }
        self.out.text(close);
    }

    /// Returns true if attributes print without tasks.
    #[inline]
    pub(super) fn are_simple(&self, attrs: AttrsId) -> bool {
        self.cx.attrs.list(attrs).iter().all(|&(_, a)| self.is_simple(a))
    }

    fn is_simple(&self, attr: AttrId) -> bool {
        match self.cx.attrs.get(attr) {
            Attr::List(items) => self.is_leaf(attr) || items.iter().all(|&i| self.is_leaf(i)),
            _ => self.is_leaf(attr),
        }
    }

    /// Returns true if no other attribute nests in the text of this one.
    fn is_leaf(&self, attr: AttrId) -> bool {
        !matches!(self.cx.attrs.get(attr), Attr::Function(_) | Attr::List(_)) || self.aliases.of_attr(attr).is_some()
    }

    /// Prints an attribute, by its alias if it has one.
    pub(super) fn attr(&mut self, attr: AttrId) {
        if !self.attr_alias(attr) {
            self.attr_in_full(attr);
        }
    }

    /// Prints the alias of an attribute. Returns false if it has none.
    fn attr_alias(&mut self, attr: AttrId) -> bool {
        let Some(n) = self.aliases.of_attr(attr) else { return false };
        self.out.text("!a");
        self.out.number(n.into());
        true
    }

    /// Prints an attribute in full; its parts may be aliases.
    pub(super) fn attr_in_full(&mut self, attr: AttrId) {
        let cx = self.cx;
        match cx.attrs.get(attr) {
            &Attr::Function(f) => self.function_attr(&cx.function_attrs[f]),
            _ => self.list_or_leaf(attr),
        }
    }

    fn list_or_leaf(&mut self, attr: AttrId) {
        let cx = self.cx;
        let Attr::List(items) = cx.attrs.get(attr) else { return self.leaf_attr(attr) };
        self.out.ascii(b'[');
        self.attr_items(items);
    }

    /// Prints the rest of a list and its closing bracket. From the first nested item on, the rest
    /// is left to tasks.
    pub(super) fn attr_items(&mut self, mut items: &'m [AttrId]) {
        while let Some((&item, rest)) = items.split_first() {
            items = rest;
            if !self.is_leaf(item) {
                self.tasks.push(Task::AttrItems(rest));
                self.tasks.push(Task::Text(if rest.is_empty() { "" } else { ", " }));
                self.tasks.push(Task::Attr(item));
                return;
            }
            if !self.attr_alias(item) {
                self.leaf_attr(item);
            }
            if !rest.is_empty() {
                self.out.text(", ");
            }
        }
        self.out.ascii(b']');
    }

    fn leaf_attr(&mut self, attr: AttrId) {
        let cx = self.cx;
        match cx.attrs.get(attr) {
            Attr::None => self.out.text("none"),
            Attr::Bool(b) => self.out.text(if *b { "true" } else { "false" }),
            Attr::Int(i) => self.out.signed(*i),
            Attr::Float(bits) => self.out.float_attribute(*bits),
            Attr::Str(s) => self.out.quoted(cx.names.get(*s)),
            Attr::Shape(dims) => {
                self.out.text("shape(");
                self.dims(dims);
                self.out.ascii(b')');
            }
            Attr::Literal(l) => self.out.literal(cx.literals.get(*l), Position::Attribute, self.options.literals),
            Attr::DType(d) => self.out.text(d.name()),
            Attr::Type(t) => self.ty(*t),
            Attr::Global(g) => {
                self.out.ascii(b'@');
                self.out.name(cx.global_name(*g));
            }
            Attr::Op(op) => self.op_name(*op),
            // These nest and are printed by tasks.
            Attr::List(_) | Attr::Function(_) => {}
        }
    }

    /// Prints the name of an operator.
    #[inline]
    pub(super) fn op_name(&mut self, op: OpId) {
        let name: &str = &self.cx.ops.get(op).name;
        let plain = match self.plain_ops.get(op.index()).copied().flatten() {
            Some(plain) => plain,
            None => {
                let plain = is_op_name(name);
                if self.plain_ops.len() <= op.index() {
                    self.plain_ops.resize(op.index() + 1, None);
                }
                self.plain_ops[op.index()] = Some(plain);
                plain
            }
        };
        if plain {
            self.out.text(name);
        } else {
            self.out.text("op ");
            self.out.quoted(name);
        }
    }
}
