//! Attributes in the tables of a module: interning, lists, and look-up by name.

use crate::core::attr_names::PRIMITIVE;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, NameId};
use crate::tables::attrs::Attr;
use crate::tables::dtype::DType;

impl Context {
    /// Returns the id of an attribute value, after bringing the value to its one form.
    pub fn attr(&mut self, attr: Attr) -> AttrId {
        let attr = match attr {
            Attr::Literal(id) => {
                let l = self.literals.get(id);
                match l.dtype() {
                    _ if l.rank() != 0 => attr,
                    DType::Int64 => l.as_scalar::<i64>().map_or(attr, Attr::Int),
                    DType::Float64 => l.as_scalar::<f64>().map_or(attr, |f| Attr::Float(f.to_bits())),
                    DType::Bool => l.as_scalar::<bool>().map_or(attr, Attr::Bool),
                    _ => attr,
                }
            }
            other => other,
        };
        self.attrs.values.intern(attr)
    }

    /// Returns an integer attribute.
    ///
    /// Cost: one entry.
    pub fn int_attr(&mut self, value: i64) -> AttrId {
        self.attr(Attr::Int(value))
    }

    /// Returns a float64 attribute.
    ///
    /// Cost: one entry.
    pub fn float_attr(&mut self, value: f64) -> AttrId {
        self.attr(Attr::Float(value.to_bits()))
    }

    /// Returns a string attribute.
    ///
    /// Cost: linear in the text.
    pub fn str_attr(&mut self, value: &str) -> AttrId {
        let name = self.names.intern(value);
        self.attr(Attr::Str(name))
    }

    /// Returns an attribute that is a list of integers.
    ///
    /// Cost: one loop.
    pub fn ints_attr(&mut self, values: &[i64]) -> AttrId {
        let items = values.iter().map(|&v| self.int_attr(v)).collect();
        self.attr(Attr::List(items))
    }

    /// Returns the id of a list of named attributes. If two have the same name, the later one
    /// counts.
    pub fn attrs(&mut self, list: &[(NameId, AttrId)]) -> AttrsId {
        if list.is_empty() {
            return self.attrs.empty();
        }
        let mut sorted: Vec<(NameId, AttrId)> = list.to_vec();
        sorted.sort_by(|a, b| self.names.get(a.0).cmp(self.names.get(b.0)));
        sorted.reverse();
        sorted.dedup_by_key(|e| e.0);
        sorted.reverse();
        self.attrs.lists.intern(sorted.into())
    }

    /// Returns the id of a list of attributes named by strings.
    ///
    /// Cost: one loop.
    pub fn named_attrs(&mut self, list: &[(&str, AttrId)]) -> AttrsId {
        let list: Vec<_> = list.iter().map(|&(k, v)| (self.names.intern(k), v)).collect();
        self.attrs(&list)
    }

    /// Returns the value of a named attribute of a list, if the list has it.
    ///
    /// Cost: one entry.
    pub fn find_attr(&self, attrs: AttrsId, name: &str) -> Option<AttrId> {
        let list = self.attrs.list(attrs);
        list.iter().find(|&&(k, _)| self.names.get(k) == name).map(|&(_, v)| v)
    }

    /// Returns true if a function with these attributes is primitive, that is, a group of operators
    /// to be compiled as one: if it has the attribute [`PRIMITIVE`] with a value other than 0,
    /// `false` and `none`.
    ///
    /// No pass optimises the block of a primitive function: its operators stay. Its form may
    /// change: passes that establish a property of all functions (ToANormalForm, LambdaLifting,
    /// ToNonDataflow) rewrite it too. InlineFunctions inlines it and into it, and FuseOps compares
    /// it with the groups that it makes.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn is_primitive(&self, attrs: AttrsId) -> bool {
        attrs != self.attrs.empty()
            && self
                .find_attr(attrs, PRIMITIVE)
                .is_some_and(|value| !matches!(self.attrs.get(value), Attr::Int(0) | Attr::Bool(false) | Attr::None))
    }

    /// Returns the list with one attribute set (`Some`) or removed (`None`).
    pub fn with_attr(&mut self, attrs: AttrsId, name: &str, value: Option<AttrId>) -> AttrsId {
        let key = self.names.intern(name);
        let mut list: Vec<_> = self.attrs.list(attrs).iter().copied().filter(|&(k, _)| k != key).collect();
        list.extend(value.map(|v| (key, v)));
        self.attrs(&list)
    }

    /// Returns the integers of a list attribute; `None` if it is not a list of integers.
    ///
    /// Cost: one loop.
    pub fn attr_ints(&self, id: AttrId) -> Option<Vec<i64>> {
        let Attr::List(items) = self.attrs.get(id) else { return None };
        items
            .iter()
            .map(|&i| match self.attrs.get(i) {
                Attr::Int(v) => Some(*v),
                _ => None,
            })
            .collect()
    }
}
