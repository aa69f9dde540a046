//! The entry points of `anfora-visit` for orders and analyses.

use anfora::visit::{
    Blocks, CallGraph, DefUse, Link, Liveness, PostDominators, bindings, bound_variables, for_each_expr, post_order,
    program_order,
};
use anfora_ir::{Body, Expr, ExprId, Module, SideTable};

use super::{Done, Kind, Row, ensure};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "orders",
        covers: &["visit::post_order", "visit::program_order", "visit::bindings", "visit::for_each_expr"],
        kind: Kind::Module(orders),
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
    Row {
        name: "call-graph",
        covers: &[
            "visit::CallGraph::of",
            "visit::GlobalWalk::new",
            "visit::GlobalWalk::in_body",
            "visit::GlobalWalk::in_attrs",
        ],
        kind: Kind::Module(call_graph),
    },
];

fn each_body(module: &Module, mut look: impl FnMut(&Body) -> Done) -> Done {
    module.functions().try_for_each(|(_, function)| look(&function.body))
}

fn orders(module: Module) -> Done {
    each_body(&module, |body| {
        let root = body.root();
        let nodes = program_order(body, root).count();
        ensure(post_order(body, root).count() == nodes, "post-order has each node once")?;
        let mut last = None;
        for_each_expr(body, root, |id| last = Some(id));
        ensure(program_order(body, root).last() == last, "each node comes in program order")?;
        let lets = program_order(body, root).filter(|&id| matches!(body.expr(id), Expr::Let { .. }));
        ensure(lets.eq(bindings(body, root).map(|b| b.id)), "program order has the bindings in their order")
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
        // Replaces every use of a parameter by a use of a new variable, and then puts the parameter
        // back.
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
