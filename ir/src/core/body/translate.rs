//! Translates a body in place.

use crate::core::body::{Body, Leaf};
use crate::core::entity::EntityId;
use crate::core::translate::{Translate, translate_expr, translate_lambda};

impl Body {
    /// Replaces the ids of every node by their translations. Nothing is recorded in an open
    /// journal: the state that a rollback restores must have the same ids in both tables. This
    /// holds if the tables differ only in entries that were interned since the journal was opened.
    /// Linear in the arenas.
    pub(crate) fn translate(&mut self, tables: &mut impl Translate) {
        self.revisions.bump();
        for expr in self.exprs.values_mut() {
            *expr = translate_expr(*expr, tables);
        }
        for ty in &mut self.types {
            *ty = tables.ty(*ty);
        }
        if let Some(extras) = &mut self.extras {
            for data in extras.lambdas.values_mut() {
                *data = translate_lambda(*data, tables);
            }
            for symbols in extras.lambda_symbols.values_mut() {
                symbols.iter_mut().for_each(|s| *s = tables.symbol(*s));
            }
            for meta in extras.meta.values_mut() {
                *meta = tables.attrs(*meta);
            }
        }
        let Some(leaves) = &mut self.leaves else { return };
        // The ids are parts of the keys, so the keys change.
        **leaves = leaves
            .drain()
            .map(|(leaf, id)| {
                let leaf = match leaf {
                    Leaf::Literal(l) => Leaf::Literal(tables.literal(l)),
                    Leaf::Global(g) => Leaf::Global(tables.global(g)),
                    Leaf::Op(op) => Leaf::Op(tables.op(op)),
                    Leaf::None => Leaf::None,
                };
                (leaf, id)
            })
            .collect();
        debug_assert!(leaves.values().all(|id| id.index() < self.exprs.len()), "leaves are nodes of the body");
    }
}
