//! The entry points of `anfora-visit` that find things out and keep them: orders, searches, analyses.

use std::ops::ControlFlow;

use anfora_ir::{Body, Expr, ExprId, Module, SideTable};
use anfora_visit::{
    Blocks, CallGraph, DefUse, Link, Liveness, Parents, PostDominators, bindings, bound_variables, find_expr, fold,
    for_each_expr, for_each_link, link_counts, post_order, pre_order, program_order, reverse_order, try_fold,
};

use super::{Done, Kind, Row, ensure};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "orders",
        covers: &[
            "visit::pre_order",
            "visit::post_order",
            "visit::program_order",
            "visit::reverse_order",
            "visit::bindings",
        ],
        kind: Kind::Module(orders),
    },
    Row {
        name: "searches",
        covers: &["visit::for_each_expr", "visit::find_expr", "visit::fold", "visit::try_fold"],
        kind: Kind::Module(searches),
    },
    Row {
        name: "parents",
        covers: &[
            "visit::Parents::of",
            "visit::Parents::links",
            "visit::Parents::only",
            "visit::Parents::is_reachable",
            "visit::Parents::check",
            "visit::for_each_link",
            "visit::link_counts",
        ],
        kind: Kind::Module(parents),
    },
    Row {
        name: "blocks",
        covers: &["visit::Blocks::of", "visit::Blocks::block", "visit::Blocks::check"],
        kind: Kind::Module(blocks),
    },
    Row {
        name: "def-use",
        covers: &[
            "visit::DefUse::new",
            "visit::DefUse::definition",
            "visit::DefUse::value",
            "visit::DefUse::use_count",
            "visit::DefUse::is_used_once",
            "visit::DefUse::only_use",
            "visit::DefUse::uses",
            "visit::DefUse::users",
            "visit::DefUse::set",
            "visit::DefUse::sync",
            "visit::DefUse::refresh",
            "visit::DefUse::check",
        ],
        kind: Kind::Module(def_use),
    },
    Row {
        name: "post-dominators",
        covers: &[
            "visit::PostDominators::of",
            "visit::PostDominators::with_labels",
            "visit::PostDominators::immediate",
            "visit::PostDominators::depth",
            "visit::PostDominators::common",
            "visit::PostDominators::is_post_dominated",
            "visit::PostDominators::path",
            "visit::PostDominators::path_label",
            "visit::PostDominators::check",
        ],
        kind: Kind::Module(post_dominators),
    },
    Row {
        name: "liveness",
        covers: &[
            "visit::Liveness::of",
            "visit::Liveness::last_use",
            "visit::Liveness::range",
            "visit::Liveness::is_live_after",
            "visit::Liveness::check",
        ],
        kind: Kind::Module(liveness),
    },
    Row { name: "call-graph", covers: &["visit::CallGraph::of"], kind: Kind::Module(call_graph) },
];

fn each_body(module: &Module, mut look: impl FnMut(&Body) -> Done) -> Done {
    module.functions().try_for_each(|(_, function)| look(&function.body))
}

fn orders(module: Module) -> Done {
    each_body(&module, |body| {
        let root = body.root();
        let nodes = program_order(body, root).count();
        ensure(pre_order(body, root).count() == nodes, "pre-order has each node once")?;
        ensure(post_order(body, root).count() == nodes, "post-order has each node once")?;
        let back = reverse_order(body, root);
        ensure(back.rev().eq(program_order(body, root)), "reverse order is program order from its end")?;
        let lets = program_order(body, root).filter(|&id| matches!(body.expr(id), Expr::Let { .. }));
        ensure(lets.eq(bindings(body, root).map(|b| b.id)), "program order has the bindings in their order")
    })
}

fn searches(module: Module) -> Done {
    each_body(&module, |body| {
        let root = body.root();
        let mut last = None;
        for_each_expr(body, root, |id| last = Some(id));
        let nodes = fold(body, root, 0usize, |n, _| n + 1);
        ensure(find_expr(body, root, |id| Some(id) == last) == last, "the last node is found")?;
        let tried = try_fold(body, root, 0usize, |n, _| ControlFlow::<(), usize>::Continue(n + 1));
        ensure(tried == ControlFlow::Continue(nodes), "folding that may fail and does not is folding")
    })
}

fn parents(module: Module) -> Done {
    each_body(&module, |body| {
        let parents = Parents::of(body);
        parents.check(body);
        let counts = link_counts(body);
        let mut links = 0;
        let mut wrong = 0;
        for_each_link(body, body.root(), |link, target| {
            links += 1;
            wrong += usize::from(link.target(body) != target || !parents.is_reachable(target));
        });
        ensure(wrong == 0, "what hangs at a link is its target")?;
        let mut hanging = 0;
        for (id, expr) in body.exprs() {
            let several = parents.links(id).len();
            hanging += several;
            ensure(several == counts[id] as usize, "an expression has as many links as are counted")?;
            if parents.is_reachable(id) && expr.binds() {
                ensure(parents.only(id).is_some(), "what binds has one parent")?;
            }
        }
        ensure(hanging >= links, "every link leads to something")
    })
}

fn blocks(module: Module) -> Done {
    each_body(&module, |body| {
        let blocks = Blocks::of(body);
        blocks.check(body);
        let mut outer = 0;
        for binding in bindings(body, body.root()) {
            let block = blocks.block(binding.id).ok_or("a binding is in a block")?;
            outer += usize::from(blocks.parent(block).is_none_or(|p| blocks.encloses(p, block)));
            ensure(blocks.common(block, block) == block, "a block encloses itself")?;
        }
        ensure(outer == bindings(body, body.root()).count(), "a block is in the block around it")
    })
}

fn def_use(mut module: Module) -> Done {
    let keys = module.order().to_vec();
    for key in keys {
        let Some((function, _)) = module.get_mut(key) else { continue };
        let body = &mut function.body;
        let mut def_use = DefUse::new(body);
        def_use.check(body);
        for var in bound_variables(body, body.root()) {
            let id = var.expr();
            ensure(def_use.definition(body, var).is_some(), "what is bound has a definition")?;
            let uses = def_use.use_count(id);
            ensure(def_use.uses(body, id).count() == uses, "uses are counted")?;
            ensure(def_use.users(id).count() == uses, "each use has a user")?;
            ensure(def_use.is_used_once(id) == def_use.only_use(body, id).is_some(), "one use is the only one")?;
        }
        // Every use of a parameter is exchanged for the root's tail's, and back.
        let Some(&param) = body.params().first() else { continue };
        let before: Vec<Link> = def_use.uses(body, param.expr()).collect();
        let other = body.push_var(None, Default::default(), body.ty(param.expr()), None);
        for &link in &before {
            def_use.set(body, link, other.expr());
        }
        ensure(def_use.use_count(param.expr()) == 0, "what was exchanged is not used")?;
        ensure(def_use.value(body, other).is_none(), "what nothing binds has no value")?;
        for &link in &before {
            link.set(body, param.expr());
            def_use.sync(body, link);
        }
        def_use.refresh(body, body.root());
        ensure(def_use.use_count(param.expr()) == before.len(), "what was put back is used as before")?;
    }
    Ok(())
}

fn post_dominators(module: Module) -> Done {
    each_body(&module, |body| {
        let tree = PostDominators::of(body);
        tree.check(body);
        let labelled = PostDominators::with_labels(body, |_, _| 1);
        let ids: Vec<ExprId> = program_order(body, body.root()).collect();
        for (&id, &next) in ids.iter().zip(&ids[1..]) {
            let _ = labelled.path_label(id);
            match tree.immediate(id) {
                Some(by) => {
                    ensure(tree.is_post_dominated(id, by), "a node's post-dominator post-dominates it")?;
                    ensure(tree.depth(id) == tree.depth(by) + 1, "and is above it")?;
                    ensure(tree.path(id).next() == Some(by), "and first on its path")?;
                }
                None => ensure(tree.path(id).next().is_none(), "what nothing post-dominates has no path")?,
            }
            if let Some(common) = tree.common(id, next) {
                let above = |node| node == common || tree.is_post_dominated(node, common);
                ensure(above(id) && above(next), "what is common post-dominates both")?;
            }
        }
        Ok(())
    })
}

fn liveness(module: Module) -> Done {
    each_body(&module, |body| {
        let liveness = Liveness::of(body);
        liveness.check(body);
        let mut homes: SideTable<ExprId, Option<ExprId>> = body.side_table(None);
        for binding in bindings(body, body.root()) {
            homes.set(binding.var.expr(), Some(binding.id));
        }
        for var in bound_variables(body, body.root()) {
            if let Some(home) = homes[var.expr()] {
                let used = liveness.last_use(var).is_some();
                ensure(used == liveness.is_live_after(var, home), "what is used later is live where it is bound")?;
            }
            ensure(liveness.range(var).is_none_or(|(from, to)| from <= to), "a range ends after it begins")?;
        }
        ensure(liveness.max_live() <= body.len(), "no more is live than there is")
    })
}

fn call_graph(module: Module) -> Done {
    let graph = CallGraph::of(&module);
    ensure(graph.callees_first().count() == module.order().len(), "each function is in one component")?;
    let reachable = graph.reachable(module.order().iter().copied());
    ensure(reachable == module.order(), "from all functions, all can be reached")
}
