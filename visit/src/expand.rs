//! Down a Let chain and back up.
//!
//! Both walks here keep, for each Let between its `pre` and its `post`, the link that it hangs at, and look whether it still does when they come back to
//! it: so an edit that pulls a Let from under the walk is reported, at the cost of one look a Let.

use std::ops::ControlFlow;

use anfora_ir::{BlockKind, Body, Cursor, Editor, Expr, ExprId, Function, Step};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::RewriteError;
use crate::link::{Binding, Link};

/// What a walk of a chain can be given as its context: a body, or anything that holds one.
///
/// Implemented for a reference to a body (which can then not be edited), for an [`Editor`] (which can), and for either in a pair with a state of
/// the author's own. A pass that holds an editor implements it in a line, and has its own methods in reach of both callbacks.
pub trait HoldsBody {
    /// The body.
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

/// A Let and where it hangs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChainLink {
    /// The link that the Let hangs at. In the `post` of a Let that its `pre` took out: where what followed it hangs.
    pub link: Link,
    /// The Let, as it is when the callback is called.
    pub binding: Binding,
}

/// Walks the chain that hangs at `at`: down it, calling `pre` at each Let, and back up from the tail, calling `post` at each in reverse. What `pre`
/// returns for a Let is handed to `post` for the same Let. Returns the tail.
///
/// It is the shape of a recursive function over Lets, `pre` being what stands before the recursive call on the rest and `post` what stands
/// after it. A chain of any length takes constant stack. Either callback ends the walk with [`ControlFlow::Break`], of a type of the author's.
/// What is in the values is not walked; [`expand_every_chain`] does that.
///
/// # Edits
///
/// Both callbacks may overwrite the value of their Let, take the Let out of the chain with [`unlink_let`](crate::unlink_let) at the link that they are given, put
/// bindings in front of it there ([`insert_before`](crate::insert_before), [`splice_before`](crate::splice_before)), and edit anything that
/// comes after it. What `pre` does to what comes after is walked as it has become; a Let that it took out has its value and its `post` all the same.
/// A `pre` that takes out its own Let may take out any number of those after it too, before or afterwards, at the same link: what is left of them, or the tail, goes on being the
/// same expression.
///
/// To find out where a Let is after its `pre` takes time in proportion to what `pre` put in and took out, or to the chain where that ends the walk.
///
/// Neither may take out, move or put in Lets before its own (but right in front of it), and the `post` of a Let that `pre` took out may edit nothing at the
/// link where it was. Where that was done the walk breaks with [`RewriteError::MovedLet`].
///
/// # Errors
/// Breaks with what the author broke with, or with [`RewriteError::MovedLet`], as the author's type.
///
/// Here `post` sees whether the rest uses the variable, and takes out what is unused:
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

/// Walks every chain under the one that hangs at `at`, those in values, branches, lambdas and operands too, in program order: `pre` at each Let before its value,
/// and at the end of each chain `post` for its Lets in reverse. So between a Let's `pre` and its `post` come its value, and the rest of its chain.
///
/// Each node is walked once, and nesting of any depth takes constant stack. `pre` and `post` are as in [`expand_a_normal_form`], and the same edits are legal in
/// them and reported where they are not; a value that `pre` overwrote is walked as it has become.
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
/// let order: Vec<String> = context.1.iter().map(|&(w, n)| format!("{w} {}", module.cx.names.get(n))).collect();
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
    // For each node that was entered, the operand that holds the last block.
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

/// The link of a block that is an operand of a node, or its condition. Operands are come to in order, so the search goes on from the last.
pub(crate) fn operand_link(body: &Body, id: ExprId, start: ExprId, from: &mut u32) -> Option<Link> {
    let Some(operands) = body.expr(id).operand_list() else {
        return Some(if matches!(body.expr(id), Expr::If { .. }) { Link::Cond(id) } else { Link::Operand(id, 0) });
    };
    *from += (*from as usize..operands.len()).position(|i| body.operand(operands, i) == start)? as u32;
    Some(Link::Operand(id, *from))
}

/// A block of which Lets are still to come.
struct OpenBlock {
    /// Where its Lets begin among the open ones.
    mark: usize,
    /// The link of what comes next in it.
    link: Link,
    /// Whether the cursor passes Lets that were taken out together with the one before them.
    passing: bool,
}

/// A Let between its `pre` and its `post`.
struct Open<T> {
    id: ExprId,
    place: Place,
    carried: T,
}

/// Where a Let is after its `pre`.
#[derive(Copy, Clone)]
enum Place {
    /// It hangs here.
    At(Link),
    /// It was taken out; what followed it hangs here.
    Out(Link),
}

impl Place {
    /// Looks for a Let that hung at `link`. What `pre` put in front of it is walked over.
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

    /// Walks in turn down what hangs at `link` now and down what followed the Let, which it still links to when it was taken out, until it comes to the Let
    /// or both are at the same: in as many steps as there are Lets before that.
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
                // What comes around to itself is no chain.
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

    /// The link of what comes next in the chain.
    #[inline]
    fn next(self, id: ExprId) -> Link {
        match self {
            Place::At(_) => Link::Rest(id),
            Place::Out(link) => link,
        }
    }
}

impl<T> Open<T> {
    /// Calls `post`, if the Let is where its `pre` left it.
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
                let hangs = link.target(context.body());
                post(context, ChainLink { link, binding }, self.carried)?;
                if link.target(context.body()) != hangs {
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
