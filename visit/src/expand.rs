//! Down a Let chain and back up.

use std::ops::ControlFlow;

use anfora_ir::{Body, Cursor, Editor, ExprId, Function, Step};

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
    /// The link that the Let hangs at.
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
/// Edits: `pre` may edit anything before its Let, its Let's value, and whatever comes after, which is then walked as it has become. `post` may edit
/// its Let and anything after it, and may take its Let out of the chain with [`unlink_let`](crate::unlink_let) at the link that it is given (a Let unlinked in
/// `pre` is walked all the same, and gets its `post`). Neither may unlink or move Lets before its own.
///
/// Here `post` sees whether the rest uses the variable, and takes out what is unused:
///
/// ```
/// # use anfora_ir::{Editor, Expr, ExprId, FunctionBuilder, IdSet, Literal, Module, OpRegistry};
/// # use std::{ops::ControlFlow, sync::Arc};
/// use anfora_visit::{Link, chain, expand_a_normal_form, unlink_let};
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
/// let _: ControlFlow<(), ExprId> = expand_a_normal_form(
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
/// assert_eq!(chain(&function.body, function.body.root()).count(), 1);
/// ```
pub fn expand_a_normal_form<C: HoldsBody, T, B>(
    context: &mut C,
    at: Link,
    mut pre: impl FnMut(&mut C, ChainLink) -> ControlFlow<B, T>,
    mut post: impl FnMut(&mut C, ChainLink, T) -> ControlFlow<B>,
) -> ControlFlow<B, ExprId> {
    let mut links: Vec<(Link, ExprId, T)> = Vec::new();
    let mut link = at;
    let mut next = at.target(context.body());
    while let Some(binding) = Binding::of(context.body(), next) {
        let carried = pre(context, ChainLink { link, binding })?;
        links.push((link, binding.id, carried));
        link = Link::Rest(binding.id);
        next = link.target(context.body());
    }
    while let Some((link, id, carried)) = links.pop() {
        if let Some(binding) = Binding::of(context.body(), id) {
            post(context, ChainLink { link, binding }, carried)?;
        }
    }
    ControlFlow::Continue(next)
}

/// Walks every chain under `start`, those in values, branches, lambdas and operands too, in program order: `pre` at each Let before its value,
/// and at the end of each chain `post` for its Lets in reverse. So between a Let's `pre` and its `post` come its value, and the rest of its chain.
///
/// Each node is walked once, and nesting of any depth takes constant stack. `pre` and `post` are as in [`expand_a_normal_form`].
///
/// Edits: `pre` may overwrite its Let's value, which is then walked as it has become. `post` may edit its Let and anything after it in its chain,
/// but neither may take Lets out or put them in, for which a [`Mutator`](crate::Mutator) is the tool.
///
/// ```
/// # use anfora_ir::{ExprId, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::{ops::ControlFlow, sync::Arc};
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
/// let _: ControlFlow<()> = anfora_visit::expand_every_chain(
///     &mut context,
///     body.root(),
///     |(body, order), binding| {
///         order.push(("pre", body.var_name(binding.var).unwrap()));
///         ControlFlow::Continue(())
///     },
///     |(body, order), binding, ()| {
///         order.push(("post", body.var_name(binding.var).unwrap()));
///         ControlFlow::Continue(())
///     },
/// );
/// let order: Vec<String> = context.1.iter().map(|&(w, n)| format!("{w} {}", module.cx.names.get(n))).collect();
/// assert_eq!(order, ["pre outer", "pre inner", "post inner", "post outer"]);
/// ```
pub fn expand_every_chain<C: HoldsBody, T, B>(
    context: &mut C,
    start: ExprId,
    mut pre: impl FnMut(&mut C, Binding) -> ControlFlow<B, T>,
    mut post: impl FnMut(&mut C, Binding, T) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut cursor = Cursor::at(context.body(), start);
    let mut links: Vec<(ExprId, T)> = Vec::new();
    let mut blocks: Vec<usize> = Vec::new();
    while let Some(step) = cursor.next(context.body()) {
        match step {
            Step::EnterBlock(..) => blocks.push(links.len()),
            Step::Let(id) => {
                if let Some(binding) = Binding::of(context.body(), id) {
                    let carried = pre(context, binding)?;
                    links.push((id, carried));
                }
            }
            Step::ExitBlock(..) => {
                let mark = blocks.pop().unwrap_or(0);
                while links.len() > mark
                    && let Some((id, carried)) = links.pop()
                {
                    if let Some(binding) = Binding::of(context.body(), id) {
                        post(context, binding, carried)?;
                    }
                }
            }
            Step::Bound(_) | Step::Atom(_) | Step::Flat(_) | Step::Enter(_) | Step::Exit(_) | Step::Seen(_) => {}
        }
    }
    ControlFlow::Continue(())
}
