//! Walks down a Let chain and back up.
//!
//! Both walks remember the link that holds each Let after its `pre`. Before its `post`, they check
//! that the link still holds the Let. So a removal of the Let in between is reported, at the cost
//! of one check per Let.

use std::ops::ControlFlow;

use anfora_ir::{BlockKind, Body, Cursor, Editor, Expr, ExprId, Function, Step};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::RewriteError;
use crate::link::{Binding, Link};

/// The context of a walk of a chain: a body, or anything that holds one.
///
/// It is implemented for a reference to a body (without edits), for an [`Editor`] (with edits), and
/// for a pair of one of these and any state. A pass that holds an editor can implement it in one
/// line, and can then call its own methods in both callbacks.
pub trait HoldsBody {
    /// Returns the body.
    fn body(&self) -> &Body;
}

impl HoldsBody for Body {
    #[inline]
    fn body(&self) -> &Body {
        self
    }
}

impl HoldsBody for Function {
    #[inline]
    fn body(&self) -> &Body {
        &self.body
    }
}

impl HoldsBody for Editor<'_> {
    #[inline]
    fn body(&self) -> &Body {
        self.body
    }
}

impl<H: HoldsBody + ?Sized> HoldsBody for &H {
    #[inline]
    fn body(&self) -> &Body {
        (**self).body()
    }
}

impl<H: HoldsBody + ?Sized> HoldsBody for &mut H {
    #[inline]
    fn body(&self) -> &Body {
        (**self).body()
    }
}

impl<H: HoldsBody, S> HoldsBody for (H, S) {
    #[inline]
    fn body(&self) -> &Body {
        self.0.body()
    }
}

/// A Let with the link that holds it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChainLink {
    /// The link that holds the Let. If `pre` removed the Let, its `post` gets the link that holds
    /// the expression after it instead.
    pub link: Link,
    /// The Let, as it is when the callback is called.
    pub binding: Binding,
}

/// Walks the chain at `at`: down, with a call of `pre` at each Let, and back up from the tail, with
/// a call of `post` at each Let in reverse. The result of `pre` for a Let is passed to `post` for
/// the same Let. Returns the tail.
///
/// This is the shape of a recursive function over Lets: `pre` is the code before the recursive call
/// on the rest, and `post` is the code after it. A chain of any length takes constant stack. Either
/// callback can end the walk with [`ControlFlow::Break`], with a value of the author's type. The
/// walk does not go into values; [`expand_every_chain`] does.
///
/// # Edits
///
/// Both callbacks may overwrite the value of their Let, remove the Let from the chain with
/// [`unlink_let`](crate::unlink_let) at the given link, insert bindings before it there
/// ([`insert_before`](crate::insert_before), [`splice_before`](crate::splice_before)), and edit
/// everything after it. The walk goes on with the chain as `pre` left it; a Let that its `pre`
/// removed is still given to `post`. If `pre` removes its own Let, it may also remove any number of
/// the Lets that follow it, before or after that, at the same link. Then it must not replace the
/// expression after the removed Lets (the next Let, or the tail) by another one.
///
/// The walk searches for a Let after its `pre`. This takes time in proportion to the number of Lets
/// that `pre` inserted and removed. If the walk ends with an error, it takes time in proportion to
/// the chain.
///
/// Neither callback may remove, move or insert Lets before its own, except directly before it. The
/// `post` of a Let that `pre` removed may edit nothing at the link where the Let was. If a callback
/// makes such an edit, the walk breaks with [`RewriteError::MovedLet`].
///
/// # Errors
/// Breaks with the author's value, or with [`RewriteError::MovedLet`], converted to the author's
/// type.
///
/// Here `post` checks whether the rest uses the variable, and removes unused bindings:
///
/// ```
/// # use anfora_ir::{Editor, Expr, ExprId, FunctionBuilder, IdSet, Literal, Module, OpRegistry};
/// # use std::{ops::ControlFlow, sync::Arc};
/// use anfora_visit::{Link, RewriteError, chain, expand_a_normal_form, unlink_let};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let unused = f.tuple(&[x]);
/// # f.bind("unused", unused);
/// # let key = f.finish(x).unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// // let %x = (1, 1); let %unused = (%x,); %x
/// let mut used = IdSet::<ExprId>::with_capacity(function.body.len());
/// used.insert(function.body.tail(function.body.root()));
/// let mut context = (Editor::new(cx, &mut function.body), used);
/// let walked: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
///     &mut context,
///     Link::Root,
///     |_, _| ControlFlow::Continue(()),
///     |(editor, used), at, ()| {
///         if used.contains(at.binding.var.expr()) {
///             for &operand in editor.body.operands_of(at.binding.value) {
///                 used.insert(operand);
///             }
///         } else {
///             unlink_let(editor.body, at.link);
///         }
///         ControlFlow::Continue(())
///     },
/// );
/// assert!(walked.is_continue());
/// assert_eq!(chain(&function.body, function.body.root()).count(), 1);
/// ```
pub fn expand_a_normal_form<C: HoldsBody, T, B: From<RewriteError>>(
    context: &mut C,
    at: Link,
    mut pre: impl FnMut(&mut C, ChainLink) -> ControlFlow<B, T>,
    mut post: impl FnMut(&mut C, ChainLink, T) -> ControlFlow<B>,
) -> ControlFlow<B, ExprId> {
    let mut open: Vec<Open<T>> = Vec::new();
    let mut link = at;
    let mut next = at.target(context.body());
    while let Some(binding) = Binding::of(context.body(), next) {
        let carried = pre(context, ChainLink { link, binding })?;
        let place = Place::after_pre(context.body(), link, binding.id)?;
        open.push(Open { id: binding.id, place, carried });
        link = place.next(binding.id);
        next = link.target(context.body());
    }
    while let Some(let_) = open.pop() {
        let_.come_back(context, &mut post)?;
    }
    ControlFlow::Continue(next)
}

/// Walks the chain at `at` and every chain inside it (in values, branches, lambdas and operands),
/// in program order. Calls `pre` at each Let before its value is walked. At the end of each chain,
/// calls `post` for the Lets of the chain in reverse. So the value of a Let and the rest of its
/// chain are walked between its `pre` and its `post`.
///
/// Each node is walked once, and nesting of any depth takes constant stack. `pre` and `post` are as
/// in [`expand_a_normal_form`], with the same legal edits and the same errors. If `pre` overwrites
/// a value, the new value is walked.
///
/// # Errors
/// As [`expand_a_normal_form`].
///
/// ```
/// # use anfora_ir::{ExprId, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::{ops::ControlFlow, sync::Arc};
/// use anfora_visit::{Link, RewriteError, expand_every_chain};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # f.open_block();
/// # let pair = f.tuple(&[one, one]);
/// # let inner = f.bind("inner", pair);
/// # let block = f.close_block(inner).unwrap();
/// # let outer = f.bind("outer", block);
/// # let key = f.finish(outer).unwrap();
/// // let %outer = { let %inner = (1, 1); %inner }; %outer
/// let body = &module.get(key).unwrap().body;
/// let mut context = (body, Vec::new());
/// let walked: ControlFlow<RewriteError> = expand_every_chain(
///     &mut context,
///     Link::Root,
///     |(body, order), at| {
///         order.push(("pre", body.var_name(at.binding.var).unwrap()));
///         ControlFlow::Continue(())
///     },
///     |(body, order), at, ()| {
///         order.push(("post", body.var_name(at.binding.var).unwrap()));
///         ControlFlow::Continue(())
///     },
/// );
/// assert!(walked.is_continue());
/// let (_, order) = context;
/// let order: Vec<String> =
///     order.iter().map(|&(w, n)| format!("{w} {}", module.cx.names.get(n))).collect();
/// assert_eq!(order, ["pre outer", "pre inner", "post inner", "post outer"]);
/// ```
pub fn expand_every_chain<C: HoldsBody, T, B: From<RewriteError>>(
    context: &mut C,
    at: Link,
    mut pre: impl FnMut(&mut C, ChainLink) -> ControlFlow<B, T>,
    mut post: impl FnMut(&mut C, ChainLink, T) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut cursor = Cursor::at(context.body(), at.target(context.body()));
    let mut open: Vec<Open<T>> = Vec::new();
    let mut blocks: Vec<OpenBlock> = Vec::new();
    // For each entered node, the number of the operand that holds the last block.
    let mut nodes: Vec<u32> = Vec::new();
    while let Some(step) = cursor.next(context.body()) {
        match step {
            Step::EnterBlock(start, kind) => {
                let link = match kind {
                    BlockKind::Root => Some(at),
                    BlockKind::Operand(id) => {
                        nodes.last_mut().and_then(|from| operand_link(context.body(), id, start, from))
                    }
                    _ => Link::of_block(kind),
                };
                let Some(link) = link else { return moved() };
                blocks.push(OpenBlock { mark: open.len(), link, passing: false });
            }
            Step::Let(id) => {
                let (Some(binding), Some(block)) = (Binding::of(context.body(), id), blocks.last_mut()) else {
                    return moved();
                };
                if block.link.target(context.body()) != id {
                    if !block.passing {
                        return moved();
                    }
                    cursor.skip();
                    continue;
                }
                let link = block.link;
                let carried = pre(context, ChainLink { link, binding })?;
                let place = Place::after_pre(context.body(), link, id)?;
                block.link = place.next(id);
                block.passing = block.link.target(context.body()) != Link::Rest(id).target(context.body());
                open.push(Open { id, place, carried });
            }
            Step::ExitBlock(..) => {
                let Some(OpenBlock { mark, link, passing }) = blocks.pop() else { return moved() };
                if passing && Binding::of(context.body(), link.target(context.body())).is_some() {
                    return moved();
                }
                while open.len() > mark
                    && let Some(let_) = open.pop()
                {
                    let_.come_back(context, &mut post)?;
                }
            }
            Step::Enter(_) => nodes.push(0),
            Step::Exit(_) => {
                nodes.pop();
            }
            Step::Bound(_) | Step::Atom(_) | Step::Flat(_) | Step::Seen(_) => {}
        }
    }
    ControlFlow::Continue(())
}

/// Returns the link of a block that is an operand or the condition of a node. Operands are visited
/// in order, so the search starts at the last one found.
pub(crate) fn operand_link(body: &Body, id: ExprId, start: ExprId, from: &mut u32) -> Option<Link> {
    let Some(operands) = body.expr(id).operand_list() else {
        return Some(if matches!(body.expr(id), Expr::If { .. }) { Link::Cond(id) } else { Link::Operand(id, 0) });
    };
    *from += (*from as usize..operands.len()).position(|i| body.operand(operands, i) == start)? as u32;
    Some(Link::Operand(id, *from))
}

/// A block with Lets that are still to be walked.
struct OpenBlock {
    /// The number of open Lets when the block began.
    mark: usize,
    /// The link of the next Let or of the tail of the block.
    link: Link,
    /// True while the cursor yields Lets that a `pre` removed together with its own Let. The walk
    /// passes over them.
    passing: bool,
}

/// A Let between its `pre` and its `post`.
struct Open<T> {
    id: ExprId,
    place: Place,
    carried: T,
}

/// The place of a Let after its `pre`.
#[derive(Copy, Clone)]
enum Place {
    /// This link holds the Let.
    At(Link),
    /// The Let was removed; this link holds the expression after it.
    Out(Link),
}

impl Place {
    /// Finds a Let that was at `link` before its `pre`, which may have inserted Lets before it or
    /// removed it.
    #[inline]
    fn after_pre<B: From<RewriteError>>(body: &Body, link: Link, id: ExprId) -> ControlFlow<B, Place> {
        let found = link.target(body);
        if found == id {
            return ControlFlow::Continue(Place::At(link));
        }
        if found == Link::Rest(id).target(body) {
            return ControlFlow::Continue(Place::Out(link));
        }
        match Place::search(body, link, id) {
            Some(place) => ControlFlow::Continue(place),
            None => moved(),
        }
    }

    /// Searches two chains in alternate steps: the chain at `link`, and the chain after the Let (a
    /// removed Let still links to its rest). If the first chain reaches the Let, the Let is in
    /// place. If both reach the same expression, the Let was removed, and this expression comes
    /// next. Takes time in proportion to the number of Lets before that.
    fn search(body: &Body, link: Link, id: ExprId) -> Option<Place> {
        let mut here: FxHashMap<ExprId, Link> = FxHashMap::default();
        let mut after: FxHashSet<ExprId> = FxHashSet::default();
        let rest = |of: ExprId| Binding::of(body, of).map(|_| Link::Rest(of));
        let (mut at, mut behind) = (Some(link), Some(Link::Rest(id)));
        while at.is_some() || behind.is_some() {
            if let Some(link) = at {
                let found = link.target(body);
                if found == id {
                    return Some(Place::At(link));
                }
                if after.contains(&found) {
                    return Some(Place::Out(link));
                }
                // If the expression was found before, the chain is cyclic, and its search ends.
                at = if here.insert(found, link).is_none() { rest(found) } else { None };
            }
            if let Some(link) = behind {
                let found = link.target(body);
                if let Some(&link) = here.get(&found) {
                    return Some(Place::Out(link));
                }
                behind = if after.insert(found) { rest(found) } else { None };
            }
        }
        None
    }

    /// Returns the link of the next expression in the chain.
    #[inline]
    fn next(self, id: ExprId) -> Link {
        match self {
            Place::At(_) => Link::Rest(id),
            Place::Out(link) => link,
        }
    }
}

impl<T> Open<T> {
    /// Calls `post` if the Let is where its `pre` left it.
    #[inline]
    fn come_back<C: HoldsBody, B: From<RewriteError>>(
        self,
        context: &mut C,
        post: &mut impl FnMut(&mut C, ChainLink, T) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Some(binding) = Binding::of(context.body(), self.id) else { return moved() };
        match self.place {
            Place::At(link) => {
                if link.target(context.body()) != self.id {
                    return moved();
                }
                post(context, ChainLink { link, binding }, self.carried)
            }
            Place::Out(link) => {
                let after = link.target(context.body());
                post(context, ChainLink { link, binding }, self.carried)?;
                if link.target(context.body()) != after {
                    return moved();
                }
                ControlFlow::Continue(())
            }
        }
    }
}

#[cold]
fn moved<B: From<RewriteError>, T>() -> ControlFlow<B, T> {
    ControlFlow::Break(RewriteError::MovedLet.into())
}
