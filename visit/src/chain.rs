//! Edits of Let chains that passes share: removing a Let, inserting bindings, splicing a block.
//!
//! All of them keep the flags of dataflow regions right and go through the body's journal, so that
//! they can be rolled back. Each takes time linear in the chain that it inserts. They do not check
//! uses: before a Let is removed, the caller must replace or drop the uses of its variable.

use anfora_ir::{Body, Editor, ExprId, LetFlags, RegionWriter, VarFlags, VarId};

use crate::link::{Binding, Link, chain};

/// Removes the Let at `link` from its chain, and returns the expression that is at `link` then. If
/// a dataflow region started with the Let, the region starts with its next Let.
///
/// The removed Let keeps its own link to the rest, so a walk that is at this Let can continue.
///
/// # Panics
/// If no Let is at `link`.
pub fn unlink_let(body: &mut Body, link: Link) -> ExprId {
    let Some(gone) = Binding::of(body, link.target(body)) else {
        panic!("there is no Let at {link:?}");
    };
    RegionWriter::take_out(body, gone.flags, gone.rest);
    link.set(body, gone.rest);
    gone.rest
}

/// Inserts bindings before the Let or tail at `link`, and returns the link at which that Let or
/// tail is then. Before a Let of a dataflow region, the bindings become part of the region (of its
/// beginning, if the region started there), and their variables keep their visibility; elsewhere
/// the variables become plain.
pub fn insert_before(editor: &mut Editor<'_>, link: Link, bindings: &[(VarId, ExprId)]) -> Link {
    let next = link.target(editor.body);
    let Some(next) = Binding::of(editor.body, next) else {
        return insert(editor, link, bindings, &mut RegionWriter::default());
    };
    let mut regions = RegionWriter::before(next.flags);
    let link = insert(editor, link, bindings, &mut regions);
    regions.write(editor.body, next.id);
    link
}

fn insert(editor: &mut Editor<'_>, mut link: Link, bindings: &[(VarId, ExprId)], regions: &mut RegionWriter) -> Link {
    for &(var, value) in bindings {
        let flags = regions.next_flags();
        if !flags.is_dataflow() {
            set_var_flags(editor.body, var, VarFlags::PLAIN);
        }
        let rest = link.target(editor.body);
        let id = editor.let_(var, value, rest, flags);
        link.set(editor.body, id);
        link = Link::Rest(id);
    }
    link
}

/// Moves the bindings of a block before the expression at `link`. Returns the block's tail, and the
/// link at which that expression is then.
///
/// Before a Let of a dataflow region, all bindings become part of that region and their variables
/// visible only in it; elsewhere the regions of the block stay as they are. The Lets of the block
/// are moved, not copied (see [`copy_fresh`](crate::copy_fresh)): afterwards the block must have no
/// other parent. Takes time linear in the block's chain.
///
/// # Panics
/// If the link is in the block's own chain, or belongs to a Let to which that chain leads.
pub fn splice_before(body: &mut Body, link: Link, block: ExprId) -> (ExprId, Link) {
    let next = link.target(body);
    let Some(first) = Binding::of(body, block) else { return (block, link) };
    // Checked before anything is linked: afterwards the chain would be cyclic.
    let is_its_own = chain(body, block).any(|b| Some(b.id) == link.holder() || b.id == next);
    assert!(!is_its_own, "a block cannot be spliced into its own chain; splice a copy: `copy_fresh`");
    let mut regions = RegionWriter::before(Binding::of(body, next).map_or(LetFlags::PLAIN, |b| b.flags));
    link.set(body, block);
    let (last, _) = join_region(body, first, &mut regions);
    if regions.is_open() {
        regions.write(body, next);
    }
    body.set_let_body(last.id, next);
    (last.rest, Link::Rest(last.id))
}

/// Writes the Lets of the chain that begins with `first` into the open region, and makes their
/// variables visible only in it. If no region is open, the regions of the chain stay. Returns the
/// last Let and the number of Lets.
pub(crate) fn join_region(body: &mut Body, first: Binding, regions: &mut RegionWriter) -> (Binding, usize) {
    let (mut at, mut len) = (first, 1);
    loop {
        if regions.is_open() {
            regions.write(body, at.id);
            set_var_flags(body, at.var, VarFlags::DATAFLOW);
        }
        match Binding::of(body, at.rest) {
            Some(next) => (at, len) = (next, len + 1),
            None => return (at, len),
        }
    }
}

/// Returns the link that holds the tail of the chain at `link`. Walks the chain.
pub fn tail_link(body: &Body, mut link: Link) -> Link {
    while let Some(b) = Binding::of(body, link.target(body)) {
        link = Link::Rest(b.id);
    }
    link
}

/// Makes the variable `by` an output of its region if it is visible only there and replaces the
/// removed output `gone`.
#[inline]
pub(crate) fn pass_on_output(body: &mut Body, gone: VarId, by: ExprId) {
    if let Some(by) = body.as_var(by)
        && body.is_dataflow_var(by)
        && !body.is_dataflow_var(gone)
    {
        set_var_flags(body, by, VarFlags::PLAIN);
    }
}

/// Overwrites the flags of a variable: makes it an output of its dataflow region
/// ([`VarFlags::PLAIN`]), or visible only in the region.
#[inline]
pub fn set_var_flags(body: &mut Body, var: VarId, flags: VarFlags) {
    body.set_var_flags(var, flags);
}
