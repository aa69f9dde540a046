//! Shrinks modules: functions, parameters and attributes are removed.

use std::ops::Range;

use anfora_ir::{
    Expr, Function, FunctionKey, GlobalId, Module, RegionWriter, SignatureChange, VarFlags, VarId, Visibility,
    change_signature,
};
use anfora_visit::{link_counts, set_var_flags};
use rustc_hash::FxHashSet;

use super::Shrink;
use super::expressions::{Substitute, cut, names_any};

/// Gives the functions that do not state their result type the types of their blocks. Returns
/// `None` if a caller does not fit them.
pub(super) fn update_signatures(module: &mut Module) -> Option<()> {
    let is_open = |f: &Function| f.is_definition() && f.ret.is_none();
    let keys: Vec<FunctionKey> = module.functions().filter(|(_, f)| is_open(f)).map(|(key, _)| key).collect();
    anfora_ir::update_signatures(module, &keys).ok()
}

/// Removes functions, and replaces the calls of them.
pub(super) struct Calls;

impl Shrink for Calls {
    const PART: &'static str = "functions";

    fn sites(&self, module: &Module) -> usize {
        module.order().len()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let chosen: Vec<FunctionKey> = module.order()[sites].to_vec();
        if chosen.len() == module.order().len() {
            return None;
        }
        let globals: FxHashSet<GlobalId> =
            chosen.iter().filter_map(|&key| module.get(key)).filter_map(|f| f.global()).collect();
        for by in [Substitute::Parameter, Substitute::Zero, Substitute::Operand] {
            cut(module, by, |editor, id| names_any(editor, id, &globals))?;
        }
        // Nothing calls them any more, unless a tail or an attribute names them.
        for &key in &chosen {
            if let Some((function, cx)) = module.get_mut(key) {
                function.visibility = Visibility::Private;
                function.attrs = cx.with_attr(function.attrs, anfora_ir::GLOBAL_SYMBOL, None);
            }
        }
        module.compact().ok()?;
        let mut named: FxHashSet<GlobalId> = FxHashSet::default();
        for (_, function) in module.functions() {
            named.extend(function.body.exprs().filter_map(|(_, expr)| match expr {
                Expr::Global(global) => Some(global),
                _ => None,
            }));
        }
        let is_declared =
            |f: &Function| !f.is_definition() && f.global().is_some_and(|global| !named.contains(&global));
        let gone: Vec<FunctionKey> =
            chosen.into_iter().filter(|&key| module.get(key).is_some_and(is_declared)).collect();
        module.remove(&gone);
        Some(true)
    }
}

/// Removes parameters that nothing uses.
pub(super) struct Parameters;

impl Shrink for Parameters {
    const PART: &'static str = "parameters";

    fn sites(&self, module: &Module) -> usize {
        module.functions().filter(|(_, f)| f.is_definition()).map(|(_, f)| f.body.params().len()).sum()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        let (mut number, mut is_changed) = (0, false);
        for key in module.order().to_vec() {
            let Some(function) = module.get(key).filter(|f| f.is_definition()) else { continue };
            let links = link_counts(&function.body);
            let params = function.body.params();
            let stays = |&(i, param): &(usize, &VarId)| links[param.expr()] > 0 || !sites.contains(&(number + i));
            let kept: Vec<usize> = params.iter().enumerate().filter(stays).map(|(i, _)| i).collect();
            let count = params.len();
            number += count;
            if kept.len() < count {
                is_changed = true;
                change_signature(module, key, SignatureChange::new().keep_all(kept)).ok()?;
            }
        }
        Some(is_changed)
    }
}

/// Removes the attributes of the module and of functions, stated result types, and dataflow
/// regions.
pub(super) struct Attributes;

/// The number of sites of a function.
const OF_FUNCTION: usize = 4;

impl Shrink for Attributes {
    const PART: &'static str = "attributes";

    fn sites(&self, module: &Module) -> usize {
        1 + OF_FUNCTION * module.order().len()
    }

    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool> {
        if sites.contains(&0) {
            module.set_attrs(module.cx.attrs.empty());
        }
        for (i, key) in module.order().to_vec().into_iter().enumerate() {
            let (function, cx) = module.get_mut(key)?;
            let is_chosen = |site: usize| sites.contains(&(1 + OF_FUNCTION * i + site));
            if is_chosen(0) {
                function.attrs = cx.attrs.empty();
            }
            if is_chosen(1) {
                function.meta = cx.attrs.empty();
            }
            if is_chosen(2) && function.is_definition() {
                function.ret = None;
            }
            if is_chosen(3) {
                dissolve_regions(function);
            }
        }
        Some(true)
    }
}

/// Makes all bindings of a function plain.
fn dissolve_regions(function: &mut Function) {
    let body = &mut function.body;
    let nodes: Vec<_> = body.exprs().collect();
    for (id, expr) in nodes {
        if let Expr::Let { var, flags, .. } = expr
            && flags.is_dataflow()
        {
            RegionWriter::default().write(body, id);
            set_var_flags(body, var, VarFlags::PLAIN);
        }
    }
}
