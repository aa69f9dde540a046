//! The entry points of `anfora-visit`.

use std::convert::Infallible;
use std::ops::ControlFlow;

use anfora::visit::{
    Binding, Edits, LetList, Link, Memo, Mutator, Refused, Rewrite, RewriteError, Scope, Site, Slot, Verdict, Visit,
    Visitor, bound_variables, chain, copy_fresh, expand_a_normal_form, expand_every_chain, free_variables,
    insert_before, link_counts, mutate, mutate_at, mutate_function, post_order_rewrite, splice_before, substitute,
    tail_link, unlink_let, walk, walk_from,
};
use anfora_ir::{
    Body, Editor, Expr, ExprId, FunctionKey, LetFlags, Module, RewriteOptions, Rewrites, Transplant, VarId,
    alpha_equal, alpha_equal_exprs, verify_module,
};

use super::{Done, Kind, Row, ensure};

pub(super) const ROWS: &[Row] = &[
    Row { name: "walk", covers: &["visit::walk", "visit::walk_from"], kind: Kind::Module(walks) },
    Row {
        name: "variables",
        covers: &["visit::free_variables", "visit::bound_variables", "visit::link_counts"],
        kind: Kind::Module(variables),
    },
    Row { name: "mutate-nothing", covers: &["visit::mutate"], kind: Kind::Module(mutate_nothing) },
    Row { name: "mutate-scoped", covers: &["visit::mutate_at"], kind: Kind::Module(mutate_scoped) },
    Row { name: "rewrite-nothing", covers: &["visit::post_order_rewrite"], kind: Kind::Module(rewrite_nothing) },
    Row {
        name: "mutate-everything",
        covers: &["visit::Site::bind", "visit::Site::push", "visit::Site::resolve"],
        kind: Kind::Module(mutate_everything),
    },
    Row {
        name: "take-branches",
        covers: &["visit::mutate_function", "visit::Site::value_of", "visit::Site::field"],
        kind: Kind::Module(take_branches),
    },
    Row { name: "same-tails", covers: &["visit::Site::with_tails"], kind: Kind::Module(same_tails) },
    Row {
        name: "substitute",
        covers: &["visit::substitute", "visit::Site::assume"],
        kind: Kind::Module(substitute_parameter),
    },
    Row {
        name: "copy",
        covers: &["visit::copy_fresh", "ir::Transplant::copy", "ir::Transplant::binding"],
        kind: Kind::Module(copy),
    },
    Row {
        name: "expand",
        covers: &["visit::expand_a_normal_form", "visit::expand_every_chain", "visit::chain", "visit::Binding::of"],
        kind: Kind::Module(expand),
    },
    Row {
        name: "edit-chains",
        covers: &[
            "visit::unlink_let",
            "visit::insert_before",
            "visit::splice_before",
            "visit::tail_link",
            "visit::set_var_flags",
            "visit::Link::target",
            "visit::Link::set",
            "visit::LetList::bind",
            "visit::LetList::push",
            "visit::LetList::push_let",
            "visit::LetList::splice",
            "visit::LetList::end_region",
            "visit::LetList::finish",
            "visit::Site::splice",
        ],
        kind: Kind::Module(edit_chains),
    },
    Row {
        name: "memo",
        covers: &[
            "visit::Memo::with_room",
            "visit::Memo::get",
            "visit::Memo::insert",
            "visit::Memo::remove",
            "visit::Memo::check",
        ],
        kind: Kind::Module(memo),
    },
];

/// Calls `edit` with an editor of each function.
pub(super) fn each_function(module: &mut Module, mut edit: impl FnMut(&mut Editor<'_>) -> Done) -> Done {
    let keys: Vec<FunctionKey> = module.order().to_vec();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        edit(&mut Editor::new(cx, &mut function.body))?;
    }
    Ok(())
}

pub(super) fn verified(module: &Module) -> Done {
    match verify_module(module) {
        Ok(_) => Ok(()),
        Err(errors) => Err(errors.first().map_or_else(String::new, |e| e.to_string())),
    }
}

#[derive(Default)]
struct Tally {
    entered: usize,
    left: usize,
    defined: usize,
    used: usize,
}

impl Visitor for Tally {
    type Break = Infallible;
    fn visit_expr(&mut self, _: &Body, _: ExprId) -> Visit<Infallible> {
        self.entered += 1;
        Visit::Continue
    }
    fn exit_expr(&mut self, _: &Body, _: ExprId) -> ControlFlow<Infallible> {
        self.left += 1;
        ControlFlow::Continue(())
    }
    fn visit_def(&mut self, _: &Body, _: VarId) -> Visit<Infallible> {
        self.defined += 1;
        Visit::Continue
    }
    fn visit_use(&mut self, _: &Body, _: VarId) -> Visit<Infallible> {
        self.used += 1;
        Visit::Continue
    }
}

fn walks(module: Module) -> Done {
    for (_, function) in module.functions() {
        let (mut whole, mut from_root) = (Tally::default(), Tally::default());
        let _ = walk(&function.body, &mut whole);
        let _ = walk_from(&function.body, function.body.root(), &mut from_root);
        ensure(whole.entered == whole.left, "what is entered is left")?;
        ensure(whole.used == from_root.used, "all uses are under the root")?;
        let params = function.body.params().len();
        ensure(whole.defined == from_root.defined + params, "parameters are defined outside the root")?;
    }
    Ok(())
}

fn variables(module: Module) -> Done {
    for (_, function) in module.functions() {
        let body = &function.body;
        let free = free_variables(body, body.root());
        ensure(free.iter().all(|v| body.params().contains(v)), "only parameters are free in a body")?;
        let uses = link_counts(body);
        ensure(free.iter().all(|v| uses[v.expr()] > 0), "what is free is used")?;
        let bound = bound_variables(body, body.root());
        ensure(bound.len() < body.len(), "each variable is bound once")?;
    }
    Ok(())
}

struct Nothing;

impl Mutator for Nothing {
    type Error = RewriteError;
}

struct NothingScoped;

impl Mutator for NothingScoped {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;
}

/// Runs a walk that changes nothing, and checks that it writes nothing.
fn write_nothing<T>(mut module: Module, mut rewrite: impl FnMut(&mut Editor<'_>) -> Result<T, RewriteError>) -> Done {
    each_function(&mut module, |editor| {
        editor.body.begin_journal();
        let nodes = editor.body.len();
        rewrite(editor).map_err(|e| e.to_string())?;
        ensure(!editor.body.is_edited() && editor.body.len() == nodes, "doing nothing writes nothing")
    })
}

fn mutate_nothing(module: Module) -> Done {
    write_nothing(module, |editor| mutate(editor, &mut Nothing))
}

fn mutate_scoped(module: Module) -> Done {
    write_nothing(module, |editor| mutate_at(editor, Link::Root, &mut NothingScoped))
}

fn rewrite_nothing(module: Module) -> Done {
    write_nothing(module, |editor| {
        post_order_rewrite(editor, Link::Root, &mut |_: &mut Editor<'_>, pre, post| {
            if pre == post { Ok(post) } else { Err(RewriteError::NotAnAtom) }
        })
    })
}

/// A mutator that binds every value except `fn`s to another variable, in front of the binding.
struct Everything;

impl Mutator for Everything {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        // A recursive `fn` sees itself only as the value of its own variable.
        if matches!(site.editor.body.expr(binding.value), Expr::Lambda { .. }) {
            return Ok(Verdict::Keep);
        }
        let copy = site.bind(None, binding.value);
        let value = site.resolve(copy);
        Ok(Verdict::Value(value))
    }

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let _ = (site.depth(), site.in_region(), site.original());
        Ok(if site.editor.body.expr(id).binds() { Rewrite::Keep } else { Rewrite::Replace(id) })
    }
}

fn mutate_everything(mut module: Module) -> Done {
    each_function(&mut module, |editor| mutate(editor, &mut Everything).map_err(|e| e.to_string()))?;
    verified(&module)
}

/// A mutator that replaces each If that is a value by its first branch, and projections of tuples
/// by the fields. An If whose condition is known to be false stays: it has the type of its second
/// branch.
struct TakeBranches;

impl Mutator for TakeBranches {
    type Error = RewriteError;
    const VALUES: bool = true;
    const REFUSED: Refused = Refused::CastBack;

    fn expand(&mut self, site: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        let Expr::If { cond, then_block, .. } = site.editor.body.expr(value) else { return Ok(None) };
        let types = &site.editor.cx.types;
        let known = types.elements(site.editor.body.type_of(cond)).and_then(|e| types.dims.as_constant(*e.first()?));
        Ok((known != Some(0)).then_some(then_block))
    }

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let is_known = |var: VarId| site.value_of(var.expr()).is_some();
        if slot.var.is_some_and(is_known) {
            return Err(RewriteError::NotAnAtom);
        }
        match site.editor.body.expr(value) {
            Expr::Proj { tuple, index } => Ok(site.field(tuple, index).map_or(Verdict::Keep, Verdict::Var)),
            _ => Ok(Verdict::Keep),
        }
    }
}

fn take_branches(mut module: Module) -> Done {
    // The bindings of the branches are recorded.
    module.cx.rewrites = Rewrites::new(RewriteOptions { recorded: Some(1..=u64::MAX), ..RewriteOptions::default() });
    let keys: Vec<FunctionKey> = module.order().to_vec();
    for key in keys {
        let Some((function, cx)) = module.get_mut(key) else { continue };
        mutate_function(cx, function, &mut TakeBranches).map_err(|e| e.to_string())?;
    }
    verified(&module)
}

/// A mutator that replaces each If that is a value by one with the same tails.
struct SameTails;

impl Mutator for SameTails {
    type Error = RewriteError;

    fn rewrite_value(&mut self, site: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Expr::If { then_block, else_block, .. } = site.editor.body.expr(value) else { return Ok(Verdict::Keep) };
        let tails = [then_block, else_block].map(|block| site.editor.body.tail(block));
        site.with_tails(value, tails).map(Verdict::Value)
    }
}

fn same_tails(mut module: Module) -> Done {
    let before = module.clone();
    each_function(&mut module, |editor| mutate(editor, &mut SameTails).map_err(|e| e.to_string()))?;
    ensure(alpha_equal(&before, &module), "the tails are the same")?;
    verified(&module)
}

/// A mutator that assumes in each block that a parameter is itself.
struct Assume(VarId);

impl Mutator for Assume {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;

    fn enter(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        if scope == Scope::Region { Ok(()) } else { site.assume(self.0, self.0.expr()) }
    }
}

fn substitute_parameter(mut module: Module) -> Done {
    each_function(&mut module, |editor| {
        let Some(&param) = editor.body.params().first() else { return Ok(()) };
        let root = editor.body.root();
        mutate(editor, &mut Assume(param)).map_err(|e| e.to_string())?;
        let (name, ty) = (editor.body.var_name(param), editor.body.ty(param.expr()));
        let other = editor.var(name, anfora_ir::VarFlags::PLAIN, ty);
        substitute(editor, Link::Root, &[(param, other.expr())]).map_err(|e| e.to_string())?;
        let now = editor.body.root();
        ensure(!free_variables(editor.body, now).contains(&param), "what is substituted is not used")?;
        substitute(editor, Link::Root, &[(other, param.expr())]).map_err(|e| e.to_string())?;
        let now = editor.body.root();
        ensure(free_variables(editor.body, now) == free_variables(editor.body, root), "and back again")
    })?;
    verified(&module)
}

fn copy(module: Module) -> Done {
    let mut copied = module.clone();
    each_function(&mut copied, |editor| {
        let root = editor.body.root();
        let copy = copy_fresh(editor, root);
        ensure(alpha_equal_exprs(editor.cx, editor.body, root, copy), "a copy equals the original")?;
        let source = editor.body.clone();
        let mut transplant = Transplant::new();
        for &param in source.params() {
            transplant.replace(param.expr(), param.expr());
        }
        let across = transplant.copy(editor, Some(&source), root);
        ensure(transplant.copied(root).is_none_or(|c| c == across), "the transplant knows what it made")?;
        Link::Root.set(editor.body, across);
        for Binding { id, var, .. } in chain(&source, root).collect::<Vec<_>>() {
            let link = transplant.binding(editor, Some(&source), id, LetFlags::PLAIN);
            let bound = Binding::of(editor.body, link).map(|copy| copy.var.expr());
            ensure(bound.is_some() && bound == transplant.copied(var.expr()), "a binding is copied with its variable")?;
        }
        Ok(())
    })?;
    verified(&copied)?;
    ensure(alpha_equal(&module, &copied), "a module of copies equals the module")
}

fn expand(mut module: Module) -> Done {
    each_function(&mut module, |editor| {
        let body: &Body = editor.body;
        let length = chain(body, body.root()).count();
        let mut context = (body, 0usize);
        let _: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
            &mut context,
            Link::Root,
            |(_, n), _| {
                *n += 1;
                ControlFlow::Continue(*n)
            },
            |(_, n), _, mine| {
                *n = if *n == mine { mine - 1 } else { usize::MAX };
                ControlFlow::Continue(())
            },
        );
        ensure(context.1 == 0, "the way back is the way down, reversed")?;
        let mut all = (body, 0usize);
        let _: ControlFlow<RewriteError> = expand_every_chain(
            &mut all,
            Link::Root,
            |(_, n), _| {
                *n += 1;
                ControlFlow::Continue(())
            },
            |_, _, ()| ControlFlow::Continue(()),
        );
        ensure(all.1 >= length, "every chain is at least the first")
    })
}

fn edit_chains(mut module: Module) -> Done {
    let text = module.to_text();
    each_function(&mut module, |editor| {
        let nothing = editor.tuple(&[]);
        let unit = editor.body.ty(nothing);
        // Insert a binding in front of each binding of the outermost chain, and remove it again.
        let lets: Vec<Binding> = chain(editor.body, editor.body.root()).collect();
        let mut link = Link::Root;
        for binding in &lets {
            let var = editor.var(None, Default::default(), unit);
            let at = insert_before(editor, link, &[(var, nothing)]);
            ensure(at.target(editor.body) == binding.id, "what is put before a binding is before it")?;
            unlink_let(editor.body, link);
            link = Link::Rest(binding.id);
        }
        ensure(tail_link(editor.body, Link::Root) == link, "the tail is at the last binding")?;
        // Build a list of Lets in a region of its own. Nothing links to it.
        let mut list = LetList::new();
        list.begin_region();
        let vars: Vec<VarId> = (0..8).map(|_| editor.var(None, Default::default(), unit)).collect();
        for &var in &vars {
            let lone = editor.let_(var, nothing, var.expr(), Default::default());
            list.push_let(editor.body, lone);
        }
        list.end_region(editor.body, &vars[..1]);
        let block = list.finish(editor, nothing);
        ensure(chain(editor.body, block).count() == vars.len(), "a list has what is put into it")?;
        // Move the chain into a list, and back to where it was.
        let root = editor.body.root();
        let mut list = LetList::new();
        let first = list.bind(editor, None, nothing);
        let tail = list.splice(editor, root).map_err(|e| e.to_string())?;
        let block = list.finish(editor, tail);
        ensure(Binding::of(editor.body, block).is_some_and(|b| b.var.expr() == first), "lists keep their order")?;
        Link::Root.set(editor.body, block);
        unlink_let(editor.body, Link::Root);
        ensure(editor.body.root() == root, "what is unlinked leaves the rest")?;
        let (tail, at) = splice_before(editor.body, tail_link(editor.body, Link::Root), tail);
        at.set(editor.body, tail);
        Ok(())
    })?;
    ensure(module.to_text() == text, "edits that cancel out leave the program as it was")?;
    verified(&module)
}

fn memo(module: Module) -> Done {
    for (_, function) in module.functions() {
        let body = &function.body;
        let mut memo = Memo::with_room(body);
        memo.begin_scope();
        for (id, _) in body.exprs() {
            memo.insert(id, id);
            if id == body.root() {
                memo.remove(id);
            }
        }
        ensure(memo.get(body.root()).is_none(), "what is removed is gone")?;
        memo.end_scope();
        memo.check(body);
        ensure(body.exprs().all(|(id, _)| memo.get(id).is_none()), "a scope leaves nothing behind")?;
    }
    Ok(())
}
