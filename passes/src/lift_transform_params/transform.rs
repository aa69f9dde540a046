//! The functions that prepare weights.

use anfora_ir::{
    Body, Context, Editor, EntityId, Expr, ExprId, Function, FunctionKey, GlobalId, LetFlags, Module, NameId,
    NameSupply, SideTable, SignatureChange, SymbolId, SymbolSubstitution, Transplant, TypeId, VarFlags, VarId,
    Visibility, change_signature,
};
use anfora_manager::PassError;
use anfora_visit::chain;
use rustc_hash::{FxHashMap, FxHashSet};

use super::movable::{LiftedValue, LiftedValues, bound_symbols, weight_types};
use super::{WeightGroup, WeightedFunction, inputs_of};
use crate::inline_functions;

/// A function that prepares weights, without its result.
pub(super) struct Transform {
    function: Function,
    /// The types of the weights, and the variables of those that are projected.
    weights: Vec<(TypeId, Option<ExprId>)>,
    names: Vec<Option<NameId>>,
    /// The results that replace bindings.
    outputs: Vec<ExprId>,
    last: Option<ExprId>,
}

impl WeightGroup {
    /// Makes the function that prepares the weights, from the first function.
    pub(super) fn make_transform(&mut self, module: &mut Module) {
        // A public function needs one that other modules can call.
        let is_public = |f: &WeightedFunction| module.get(f.key).is_some_and(|f| f.visibility == Visibility::Public);
        let visibility = if self.functions.iter().any(is_public) { Visibility::Public } else { Visibility::Private };
        let first = &self.functions[0];
        let Some((function, cx)) = module.get_mut(first.key) else { return };
        let mut made = Transform::of(cx, function, first, &self.values);
        made.function.visibility = visibility;
        self.transform = Some(made);
    }
}

impl Transform {
    /// Returns a function with copies of the values that become parameters, and of those that they
    /// use.
    fn of(cx: &mut Context, source: &Function, first: &WeightedFunction, values: &LiftedValues) -> Transform {
        let body = &source.body;
        let mut function = Function::new(&cx.types, cx.attrs.empty());
        let params = &body.params()[first.inputs..];
        let bound = bound_symbols(cx, body, params);
        let types = weight_types(cx, body, params, &bound);
        let mut symbols = SymbolSubstitution::new();
        let mut all: Vec<SymbolId> = bound.into_iter().collect();
        all.sort_unstable_by_key(|symbol| symbol.index());
        all.into_iter().for_each(|symbol| _ = symbols.rename(cx, symbol));
        let types: Vec<TypeId> = types.into_iter().map(|ty| symbols.ty(cx, ty)).collect();
        let names = params.iter().map(|&param| body.var_name(param)).collect();
        let all = cx.types.tuple(&types);
        let name = cx.names.intern("params");
        let mut editor = Editor::new(cx, &mut function.body);
        let tuple = editor.var(Some(name), VarFlags::PLAIN, all);
        editor.body.push_param(tuple);
        let weights = types.into_iter().map(|ty| (ty, None)).collect();
        let mut made = Transform { function, weights, names, outputs: Vec::new(), last: None };
        made.copy_values(cx, body, first, values, symbols);
        made
    }

    fn copy_values(
        &mut self,
        cx: &mut Context,
        source: &Body,
        first: &WeightedFunction,
        values: &LiftedValues,
        symbols: SymbolSubstitution,
    ) {
        let mut sources: SideTable<ExprId, CopySource> = source.side_table(CopySource::Copied);
        for (i, param) in (0..).zip(&source.params()[first.inputs..]) {
            sources.set(param.expr(), CopySource::Weight(i));
        }
        for moved in &first.moved {
            sources.set(moved.binding.var.expr(), CopySource::Value(moved.value));
        }
        let mut is_parameter = vec![false; values.len()];
        values.parameters().for_each(|value| is_parameter[value as usize] = true);
        let mut transplant = Transplant::between_functions();
        transplant.begin(symbols);
        for i in needed_copies(source, values, &is_parameter, &sources) {
            let LiftedValue { binding, .. } = values.get(i);
            for &input in inputs_of(source, &binding.value) {
                let copy = match sources[input] {
                    CopySource::Weight(i) => Some(self.weight(cx, i as usize)),
                    // The variable may be that of another binding of the value.
                    CopySource::Value(value) => transplant.copied(values.get(value).binding.var.expr()),
                    CopySource::Copied => None,
                };
                copy.into_iter().for_each(|copy| transplant.replace(input, copy));
            }
            let mut editor = Editor::new(cx, &mut self.function.body);
            let link = transplant.binding(&mut editor, Some(source), binding.id, LetFlags::PLAIN);
            self.append(link);
            if is_parameter[i as usize] {
                self.outputs.extend(transplant.copied(binding.var.expr()));
            }
        }
    }

    /// Returns the variable of a weight, which is bound to its projection.
    fn weight(&mut self, cx: &mut Context, i: usize) -> ExprId {
        let (ty, bound) = self.weights[i];
        bound.unwrap_or_else(|| {
            let mut editor = Editor::new(cx, &mut self.function.body);
            let tuple = editor.body.params()[0].expr();
            let projection = editor.proj(tuple, i as u32).expect("the tuple has a field for each weight");
            let var = editor.var(self.names[i], VarFlags::PLAIN, ty);
            let link = editor.let_(var, projection, var.expr(), LetFlags::PLAIN);
            self.append(link);
            self.weights[i].1 = Some(var.expr());
            var.expr()
        })
    }

    /// Appends a Let to the chain.
    fn append(&mut self, link: ExprId) {
        let body = &mut self.function.body;
        match self.last.replace(link) {
            Some(last) => body.set_let_body(last, link),
            None => body.set_root(link),
        }
    }

    /// Returns the function, which returns the weights that stay and the outputs.
    fn finish(mut self, cx: &mut Context, stay: &[bool]) -> Function {
        let mut results: Vec<ExprId> = (0..stay.len()).filter(|&i| stay[i]).map(|i| self.weight(cx, i)).collect();
        results.append(&mut self.outputs);
        let mut editor = Editor::new(cx, &mut self.function.body);
        let tuple = editor.tuple(&results);
        match self.last {
            Some(last) => editor.body.set_let_body(last, tuple),
            None => editor.body.set_root(tuple),
        }
        self.function
    }
}

/// The source of the copy of an operand.
#[derive(Copy, Clone)]
enum CopySource {
    /// The operand is copied: a constant or a function.
    Copied,
    /// The projection of a weight.
    Weight(u32),
    /// The copy of a value.
    Value(u32),
}

/// Returns the values that become parameters, and those that they use, in order.
fn needed_copies(
    body: &Body,
    values: &LiftedValues,
    is_parameter: &[bool],
    sources: &SideTable<ExprId, CopySource>,
) -> Vec<u32> {
    let mut is_needed = is_parameter.to_vec();
    let mut copies: Vec<u32> = Vec::new();
    for value in (0..values.len() as u32).rev() {
        if !is_needed[value as usize] {
            continue;
        }
        for &input in inputs_of(body, &values.get(value).binding.value) {
            if let CopySource::Value(used) = sources[input] {
                is_needed[used as usize] = true;
            }
        }
        copies.push(value);
    }
    copies.reverse();
    copies
}

/// Adds the functions that prepare weights, each after the last function whose weights they are, or
/// appends them to functions that do so already.
///
/// # Errors
/// If one of these does not return the weights.
pub(super) fn add_transforms(module: &mut Module, groups: Vec<WeightGroup>) -> Result<(), PassError> {
    let mut added: FxHashMap<FunctionKey, FunctionKey> = FxHashMap::default();
    let mut composed: Vec<String> = Vec::new();
    let mut names: Option<NameSupply> = None;
    for group in groups {
        let (Some(transform), Some(last)) = (group.transform, group.functions.last()) else { continue };
        let mut function = transform.finish(&mut module.cx, &group.is_needed);
        match group.existing {
            None => {
                let key = module.add_named(&group.transform_name, function).expect("no function has this name");
                added.insert(last.key, key);
            }
            Some(existing) => {
                function.visibility = Visibility::Private;
                let names = names.get_or_insert_with(|| NameSupply::new(module));
                let global = names.fresh(&mut module.cx, &group.transform_name);
                let name = module.cx.global_name(global).to_string();
                module.add_named(&name, function).expect("the name is free");
                call_at_end(module, existing, global).map_err(|error| {
                    let message = format!("it does not return the weights of `@{}`: {}", last.name, error.message());
                    error.with_message(message).in_function(group.transform_name.clone())
                })?;
                composed.push(name);
            }
        }
    }
    if !added.is_empty() {
        let new: FxHashSet<FunctionKey> = added.values().copied().collect();
        let before: Vec<FunctionKey> = module.order().iter().copied().filter(|key| !new.contains(key)).collect();
        module.set_order(before.iter().flat_map(|key| [Some(*key), added.get(key).copied()]).flatten().collect());
    }
    if !composed.is_empty() {
        inline_functions(module, &composed, None)?;
    }
    Ok(())
}

/// Makes a function return the result of another function of its result.
fn call_at_end(module: &mut Module, key: FunctionKey, callee: GlobalId) -> Result<(), PassError> {
    let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
    let last = chain(&function.body, function.body.root()).last();
    let tail = last.map_or(function.body.root(), |binding| match function.body.expr(binding.id) {
        Expr::Let { body, .. } => body,
        _ => binding.value,
    });
    let no_attrs = cx.attrs.empty();
    let name = cx.names.intern("params");
    let mut editor = Editor::new(cx, &mut function.body);
    let bound = (!editor.body.expr(tail).is_atom()).then(|| {
        let ty = editor.body.ty(tail);
        editor.var(Some(name), VarFlags::PLAIN, ty)
    });
    let callee = editor.global(callee);
    let call = editor.call(callee, &[bound.map_or(tail, VarId::expr)], no_attrs)?;
    let rest = bound.map_or(call, |var| editor.let_(var, tail, call, LetFlags::PLAIN));
    match last {
        Some(binding) => editor.body.set_let_body(binding.id, rest),
        None => editor.body.set_root(rest),
    }
    change_signature(module, key, SignatureChange::new().result(None))?;
    Ok(())
}
