//! Edits of Let chains that passes share: taking a Let out, putting bindings in, splicing a block.
//!
//! All of them keep the flags of dataflow regions right, and all go through the body's journal, so
//! that they can be taken back. None is longer than the chain that it puts in. They do not look at
//! uses: who takes a Let out has replaced or dropped the uses of its variable.

use anfora_ir::{Body, Editor, ExprId, LetFlags, RegionWriter, VarFlags, VarId};

use crate::link::{Binding, Link, chain};

/// Takes the Let that hangs at `link` out of its chain and returns what hangs there now. If a
/// dataflow region started with it, the region starts with the next Let of the region.
///
/// The Let itself keeps its own link to the rest, so that a walk standing on it goes on.
///
/// # Panics
/// If no Let hangs there.
pub fn unlink_let(body: &mut Body, link: Link) -> ExprId {
    let Some(gone) = Binding::of(body, link.target(body)) else {
        panic!("no Let hangs at {link:?}");
    };
    RegionWriter::take_out(body, gone.flags, gone.rest);
    link.set(body, gone.rest);
    gone.rest
}

/// Puts bindings in front of what hangs at `link`, a Let or a tail, and returns the link where that
/// hangs now. In front of a Let of a dataflow region, they become part of the region (of its
/// beginning, if it started there), with their variables visible as the author made them; elsewhere
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

/// Moves the bindings of a block in front of what hangs at `link`; returns the block's tail, and
/// the link where what hung at `link` hangs now.
///
/// In front of a Let of a dataflow region, all of them become part of that region and their
/// variables visible only in it; elsewhere the regions of the block stay as they are. The block
/// must not hang anywhere else afterwards: its Lets are moved, not copied (see
/// [`copy_fresh`](crate::copy_fresh)). Takes time linear in the block's chain.
///
/// # Panics
/// If the link is one of the block's own chain, or of a Let to which that leads.
pub fn splice_before(body: &mut Body, link: Link, block: ExprId) -> (ExprId, Link) {
    let next = link.target(body);
    let Some(first) = Binding::of(body, block) else { return (block, link) };
    // Looked at before anything is linked: afterwards the chain would go round.
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

/// Writes the Lets of a chain, of which `first` is the first, into the region that is open, and
/// makes their variables visible only in it. If none is open, the regions of the chain stay.
/// Returns the last Let, and the number of Lets.
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

/// The link at which the tail of the chain that hangs at `link` hangs. Walks the chain.
pub fn tail_link(body: &Body, mut link: Link) -> Link {
    while let Some(b) = Binding::of(body, link.target(body)) {
        link = Link::Rest(b.id);
    }
    link
}

/// Overwrites the flags of a Let.
///
/// # Panics
/// If it is not a Let.
#[inline]
pub fn set_let_flags(body: &mut Body, id: ExprId, flags: LetFlags) {
    body.set_let_flags(id, flags);
}

/// If an output of a region, which goes, is replaced by a variable that is visible only in the
/// region, that becomes an output.
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
/// ([`VarFlags::PLAIN`]), or visible only in it.
#[inline]
pub fn set_var_flags(body: &mut Body, var: VarId, flags: VarFlags) {
    body.set_var_flags(var, flags);
}
